#include "cli/phase_hook.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <system_error>

#include "base/unique_fd.h"
#include "json/object_text.h"

namespace interlock::cli {
namespace {

namespace fs = std::filesystem;

std::string ErrorText(int error) { return std::generic_category().message(error); }

// RFC 3339 in the local time zone, which existing hooks expect.
std::string LocalTime(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm local = {};
  std::array<char, 64> text = {};
  if (::localtime_r(&time, &local) == nullptr) return {};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S%z", &local);
  std::string result(text.data(), size);
  result.insert(result.size() - 2, ":");  // RFC 3339 requires +01:00, not +0100
  return result.ends_with("+00:00") ? result.replace(result.size() - 6, 6, "Z") : result;
}

std::string EventLine(const kernel::PhaseEvent& event) {
  json::ObjectText text;
  text.Add("id", event.id)
      .Add("run_id", event.run_id)
      .Add("source", "phase")
      .Add("type", event.type)
      .Add("from_state", event.from_phase)
      .Add("to_state", event.to_phase);
  if (event.reason) text.Add("reason", *event.reason);
  if (event.envelope) text.AddRaw("envelope", *event.envelope);
  text.Add("timestamp", LocalTime(event.created_at));
  return text.Text() + '\n';
}

// Returns why the hook must not run, or an empty text.
std::string_view Objection(const struct stat& file) {
  if (!S_ISREG(file.st_mode)) return "is not a regular file";
  if ((file.st_mode & S_IWOTH) != 0) return "is world-writable";
  if (file.st_uid != ::geteuid() && file.st_uid != 0) return "belongs to another user";
  if ((file.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0) return "is not executable";
  return {};
}

// A memory file, so that a hook that does not read its stdin cannot block us.
UniqueFd InMemory(std::string_view text) {
  UniqueFd file(::memfd_create("event", MFD_CLOEXEC));
  while (file.get() >= 0 && !text.empty()) {
    const ssize_t size = ::write(file.get(), text.data(), text.size());
    if (size < 0 && errno != EINTR) return {};
    if (size > 0) text.remove_prefix(static_cast<std::size_t>(size));
  }
  if (file.get() >= 0 && ::lseek(file.get(), 0, SEEK_SET) != 0) return {};
  return file;
}

// Returns 0 and the pid, or an errno.
std::pair<int, pid_t> Spawn(const fs::path& hook, const fs::path& project, int input, int error) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, error, STDERR_FILENO);
  ::posix_spawn_file_actions_addchdir_np(&actions, project.c_str());
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t normal;
  ::sigemptyset(&normal);
  ::sigaddset(&normal, SIGPIPE);  // `ic` ignores it, the hook should not
  ::posix_spawnattr_setsigdefault(&attributes, &normal);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::string path = hook.string();
  const std::array<char*, 2> argv = {path.data(), nullptr};
  pid_t pid = -1;
  const int failure =
      ::posix_spawn(&pid, path.c_str(), &actions, &attributes, argv.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return {failure, pid};
}

// Copies the output of a pipe to our stderr. Each write fits into PIPE_BUF, so that a slow reader
// of our stderr cannot block us.
class StderrRelay {
 public:
  explicit StderrRelay(int pipe) : pipe_(pipe) {}

  // The next event to poll for: data to read, or room to write.
  pollfd wanted() const {
    if (size_ > 0) return {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    return {.fd = pipe_, .events = POLLIN, .revents = 0};  // -1: end of input
  }
  // REQUIRES: poll() reported wanted() as ready.
  void Step() {
    if (size_ > 0) {
      const ssize_t written = ::write(STDERR_FILENO, bytes_.data(), size_);
      if (written < 0 && errno == EINTR) return;
      size_ = 0;  // after a partial write, drop the rest
      return;
    }
    const ssize_t got = ::read(pipe_, bytes_.data(), bytes_.size());
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) pipe_ = -1;  // all writers have closed it
    if (got > 0) size_ = static_cast<std::size_t>(got);
  }
  bool holds_some() const { return size_ > 0; }
  bool done() const { return pipe_ < 0 && size_ == 0; }

 private:
  int pipe_;
  std::size_t size_ = 0;
  std::array<char, PIPE_BUF> bytes_ = {};
};

// A point in time on the monotonic clock.
struct Deadline {
  Clock& clock;
  Duration end;

  int milliseconds_left() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - clock.Monotonic());
    return static_cast<int>(std::max<std::int64_t>(0, left.count()));
  }
};

// Waits for the end of the process and copies its stderr. Returns false if it had to be killed.
bool EndsBefore(const Deadline& deadline, pid_t pid, StderrRelay& relay) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  while (true) {
    std::array<pollfd, 2> either = {pollfd{.fd = process.get(), .events = POLLIN, .revents = 0},
                                    relay.wanted()};
    const int count = ::poll(either.data(), either.size(), deadline.milliseconds_left());
    if (count < 0 && errno == EINTR) continue;
    if (either[0].revents != 0) return true;
    if (count <= 0 || deadline.milliseconds_left() == 0) break;
    relay.Step();
  }
  ::kill(-pid, SIGKILL);
  return false;
}

// Copies output that is still in the pipe after the end. Waits only for the reader of our stderr.
void PassOnTheRest(const Deadline& deadline, StderrRelay& relay) {
  while (!relay.done()) {
    pollfd next = relay.wanted();
    const int count = ::poll(&next, 1, relay.holds_some() ? deadline.milliseconds_left() : 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    relay.Step();
  }
}

}  // namespace

std::optional<std::string> RunPhaseHook(const fs::path& project, const kernel::PhaseEvent& event,
                                        Clock& clock, std::chrono::milliseconds limit) {
  if (project.empty()) return std::nullopt;
  const fs::path hook = project / ".clavain" / "hooks" / "on-phase-advance";
  struct stat file = {};
  if (::lstat(hook.c_str(), &file) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return fmt::format("the hook {}: {}", hook.string(), ErrorText(errno));
  }
  if (const std::string_view objection = Objection(file); !objection.empty()) {
    return fmt::format("the hook {} {}, so it was not run", hook.string(), objection);
  }
  const UniqueFd input = InMemory(EventLine(event));
  if (input.get() < 0) return fmt::format("the hook {}: {}", hook.string(), ErrorText(errno));
  std::array<int, 2> pipe = {-1, -1};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return fmt::format("the hook {}: {}", hook.string(), ErrorText(errno));
  }
  const UniqueFd reader(pipe[0]);
  UniqueFd writer(pipe[1]);
  const auto [failure, pid] = Spawn(hook, project, input.get(), writer.get());
  writer = UniqueFd();
  if (failure != 0) return fmt::format("the hook {}: {}", hook.string(), ErrorText(failure));
  const Deadline deadline{.clock = clock, .end = clock.Monotonic() + limit};
  StderrRelay relay(reader.get());
  const bool in_time = EndsBefore(deadline, pid, relay);
  PassOnTheRest(deadline, relay);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    return fmt::format("the hook {} did not end within {}s and was killed", hook.string(),
                       limit.count() / 1000);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  return WIFEXITED(status)
             ? fmt::format("the hook {} exited with {}", hook.string(), WEXITSTATUS(status))
             : fmt::format("the hook {} was ended by signal {}", hook.string(), WTERMSIG(status));
}

}  // namespace interlock::cli
