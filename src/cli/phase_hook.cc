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

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <system_error>

#include "base/unique_fd.h"
#include "json/object_text.h"

namespace interlock::cli {
namespace {

namespace fs = std::filesystem;

std::string Why(int error) { return std::generic_category().message(error); }

// RFC 3339 in the zone of the machine, as hooks have always been given it.
std::string LocalTime(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm local = {};
  std::array<char, 64> text = {};
  if (::localtime_r(&time, &local) == nullptr) return {};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S%z", &local);
  std::string result(text.data(), size);
  result.insert(result.size() - 2, ":");  // +0100 is no zone of RFC 3339
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

// Why it must not be run; empty when it may.
std::string_view Objection(const struct stat& file) {
  if (!S_ISREG(file.st_mode)) return "is no regular file";
  if ((file.st_mode & S_IWOTH) != 0) return "is writable for everybody";
  if (file.st_uid != ::geteuid() && file.st_uid != 0) return "belongs to somebody else";
  if ((file.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0) return "is not executable";
  return {};
}

// A file in memory, so that a hook that does not read cannot make us wait.
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

// 0 and the pid, or the error.
std::pair<int, pid_t> Spawn(const fs::path& hook, const fs::path& project, int input) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addchdir_np(&actions, project.c_str());
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t normal;
  ::sigemptyset(&normal);
  ::sigaddset(&normal, SIGPIPE);  // which `ic` ignores
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

// Waits for its end; false when it had to be ended.
bool EndsWithin(pid_t pid, std::chrono::milliseconds limit) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  int count = 0;
  do {
    count = ::poll(&ended, 1, static_cast<int>(limit.count()));
  } while (count < 0 && errno == EINTR);
  if (count == 1) return true;
  ::kill(-pid, SIGKILL);
  return false;
}

}  // namespace

std::optional<std::string> RunPhaseHook(const fs::path& project, const kernel::PhaseEvent& event,
                                        std::chrono::milliseconds limit) {
  if (project.empty()) return std::nullopt;
  const fs::path hook = project / ".clavain" / "hooks" / "on-phase-advance";
  struct stat file = {};
  if (::lstat(hook.c_str(), &file) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return fmt::format("the hook {}: {}", hook.string(), Why(errno));
  }
  if (const std::string_view objection = Objection(file); !objection.empty()) {
    return fmt::format("the hook {} {}, and is not run", hook.string(), objection);
  }
  const UniqueFd input = InMemory(EventLine(event));
  if (input.get() < 0) return fmt::format("the hook {}: {}", hook.string(), Why(errno));
  const auto [failure, pid] = Spawn(hook, project, input.get());
  if (failure != 0) return fmt::format("the hook {}: {}", hook.string(), Why(failure));
  const bool in_time = EndsWithin(pid, limit);
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
