#include "kernel/watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace interlock::kernel {

namespace fs = std::filesystem;

// Watches the directory, because the log file is created and deleted.
DatabaseWatch::DatabaseWatch(const fs::path& database)
    : file_(database.filename()),
      log_(file_ + "-wal"),
      fd_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (fd_ < 0) return;
  const fs::path directory = database.has_parent_path() ? database.parent_path() : ".";
  constexpr auto kEvents =
      IN_MODIFY | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF;
  if (::inotify_add_watch(fd_, directory.c_str(), kEvents) >= 0) return;
  ::close(fd_);
  fd_ = -1;
}

DatabaseWatch::~DatabaseWatch() {
  if (fd_ >= 0) ::close(fd_);
}

DatabaseWatch::WaitResult DatabaseWatch::Wait(Duration limit) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec most = {.tv_sec = seconds.count(),
                         .tv_nsec = std::chrono::nanoseconds(limit - seconds).count()};
  pollfd watched = {.fd = fd_, .events = POLLIN, .revents = 0};  // ppoll() ignores -1
  const int ready = ::ppoll(&watched, 1, &most, nullptr);
  if (ready == 0) return WaitResult::kTimeout;
  if (ready < 0) return WaitResult::kOther;  // interrupted by a signal
  return TakeEvents() ? WaitResult::kWrite : WaitResult::kOther;
}

// Reads all pending events. Returns true if any of them concerns the database.
bool DatabaseWatch::TakeEvents() {
  bool ours = false;
  alignas(inotify_event) std::array<char, 4096> buffer;
  while (true) {
    const ssize_t size = ::read(fd_, buffer.data(), buffer.size());
    if (size <= 0) return ours;
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      inotify_event event = {};
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      const char* const name = buffer.data() + at + sizeof(event);  // padded with NULs
      // An event without a name concerns the directory itself, or reports lost events.
      if (event.len == 0 || name == file_ || name == log_) ours = true;
      at += sizeof(event) + event.len;
    }
  }
}

Result<bool> PollUntil(const fs::path& database, Clock& clock, Duration limit,
                       const std::function<Result<bool>()>& look) {
  const Duration begin = clock.Monotonic();
  DatabaseWatch watch(database);
  PollBackoff plan;
  while (true) {
    IL_TRY(const bool found, look());
    if (found) return true;
    const Duration left = limit - (clock.Monotonic() - begin);
    if (left <= Duration::zero()) return false;
    plan.After(watch.Wait(std::min(left, plan.next())));
  }
}

}  // namespace interlock::kernel
