#include "kernel/lock_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

namespace interlock::kernel {
namespace {

constexpr Duration kPauseMin = std::chrono::milliseconds(1);
constexpr Duration kPauseMax = std::chrono::milliseconds(50);

UniqueFd WatchDirectory(int directory) {
  UniqueFd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (inotify.get() < 0) return inotify;  // the number per user is limited
  // By descriptor, so that it watches the same directory that the caller has open.
  const std::string path = fmt::format("/proc/self/fd/{}", directory);
  constexpr std::uint32_t kEvents =
      IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  if (::inotify_add_watch(inotify.get(), path.c_str(), kEvents) < 0) return {};
  return inotify;
}

UniqueFd OpenProcess(std::optional<std::int64_t> pid) {
  if (!pid) return {};
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(*pid), 0)));
}

timespec ToTimespec(Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return {.tv_sec = seconds.count(),
          .tv_nsec = std::chrono::nanoseconds(duration - seconds).count()};
}

}  // namespace

LockWatch::LockWatch(Clock& clock, int directory, std::string scope, Method method)
    : clock_(clock), scope_(std::move(scope)) {
  if (method == Method::kEvents) inotify_ = WatchDirectory(directory);
}

void LockWatch::Wait(Duration limit, std::optional<std::int64_t> pid) {
  const UniqueFd holder = OpenProcess(pid);
  if (inotify_.get() < 0) {
    pause_ = std::clamp(pause_ * 2, kPauseMin, kPauseMax);
    limit = std::min(limit, pause_);
  }
  // Operations on other locks of this directory cause events too, so the loop checks the time.
  const Duration end = clock_.Monotonic() + limit;
  // poll() ignores a negative descriptor.
  std::array<pollfd, 2> wait = {{{inotify_.get(), POLLIN, 0}, {holder.get(), POLLIN, 0}}};
  do {
    const timespec left = ToTimespec(std::max(end - clock_.Monotonic(), Duration(0)));
    if (::ppoll(wait.data(), wait.size(), &left, nullptr) <= 0) return;
  } while (wait[1].revents == 0 && !TakeEvents());
}

bool LockWatch::TakeEvents() const {
  alignas(inotify_event) std::array<char, 4096> buffer;
  bool gone = false;
  while (true) {
    const ssize_t size = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (size <= 0) return gone;
    const char* const end = buffer.data() + size;
    for (const char* at = buffer.data(); at < end;) {
      inotify_event event{};
      std::memcpy(&event, at, sizeof(event));
      const std::string_view name = event.len > 0 ? at + sizeof(event) : "";
      constexpr std::uint32_t kSelf = IN_DELETE_SELF | IN_MOVE_SELF | IN_Q_OVERFLOW | IN_IGNORED;
      gone = gone || name == scope_ || (event.mask & kSelf) != 0;
      at += sizeof(event) + event.len;
    }
  }
}

}  // namespace interlock::kernel
