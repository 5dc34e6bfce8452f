#include "base/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/time_text.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not every libc declares it

namespace interlock {
namespace {

Error Failed(std::string_view what, int code) {
  return {Errc::kUnavailable,
          fmt::format("{}: {}", what, std::error_code(code, std::generic_category()).message())};
}

// A file descriptor with one owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Close(); }

  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void Set(int fd) {
    Close();
    fd_ = fd;
  }
  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

// posix_spawn's own objects; they can only fail for want of memory.
class SpawnPlan {
 public:
  SpawnPlan() {
    IL_CHECK(::posix_spawn_file_actions_init(&actions_) == 0);
    IL_CHECK(::posix_spawnattr_init(&attributes_) == 0);
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    IL_CHECK(::posix_spawnattr_setsigmask(&attributes_, &none) == 0);
    IL_CHECK(::posix_spawnattr_setsigdefault(&attributes_, &all) == 0);
    IL_CHECK(::posix_spawnattr_setpgroup(&attributes_, 0) == 0);
    IL_CHECK(::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK |
                                                          POSIX_SPAWN_SETSIGDEF |
                                                          POSIX_SPAWN_SETPGROUP) == 0);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void Give(int fd, int as) {
    IL_CHECK(::posix_spawn_file_actions_adddup2(&actions_, fd, as) == 0);
  }
  // To be called last.
  void KeepTheRest(int from) {
    IL_CHECK(::posix_spawn_file_actions_addclosefrom_np(&actions_, from) == 0);
  }

  Result<pid_t> Spawn(const std::vector<std::string>& argv) {
    IL_CHECK(!argv.empty());
    std::vector<char*> words;
    words.reserve(argv.size() + 1);
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    pid_t pid = 0;
    const int code =
        ::posix_spawnp(&pid, words.front(), &actions_, &attributes_, words.data(), environ);
    if (code == ENOENT) {
      return Error(Errc::kNotFound, fmt::format("there is no program {} in PATH", argv.front()));
    }
    if (code != 0) return Failed(fmt::format("{} cannot be started", argv.front()), code);
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

// The process of one run. The timer may hold it longer than the run lasts.
class ProgramRunner::Child {
 public:
  // Why it was killed.
  enum class Cause : std::uint8_t { kNone, kTimeUp, kStopped, kOther };

  Child() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  // Readable once it was killed; -1 when there could be none.
  int wake_fd() const { return wake_.get(); }

  void Started(pid_t pid) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    pid_ = pid;
    if (cause_ != Cause::kNone) ::kill(-pid_, SIGKILL);
  }

  // Does nothing to one that has ended. The first cause counts.
  void Kill(Cause cause) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (ended_ || cause_ != Cause::kNone) return;
    cause_ = cause;
    if (pid_ != 0) ::kill(-pid_, SIGKILL);
    const std::uint64_t one = 1;
    IL_CHECK(::write(wake_.get(), &one, sizeof one) == sizeof one);
  }

  // Waits for its end. As long as it is not reaped its number is its own, so Kill() hits nobody
  // else.
  int Reap() IL_EXCLUDES(mutex_) {
    pid_t pid = 0;
    {
      MutexLock lock(mutex_);
      pid = pid_;
    }
    siginfo_t info = {};
    while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) != 0) {
      IL_CHECK(errno == EINTR);
    }
    MutexLock lock(mutex_);
    ended_ = true;
    IL_CHECK(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) == 0);
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
  }

  Cause cause() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return cause_;
  }

 private:
  const Descriptor wake_;
  Mutex mutex_;
  pid_t pid_ IL_GUARDED_BY(mutex_) = 0;
  bool ended_ IL_GUARDED_BY(mutex_) = false;
  Cause cause_ IL_GUARDED_BY(mutex_) = Cause::kNone;
};

// What is spoken with a program.
class ProgramRunner::Pipes {
 public:
  Result<void> Open() {
    for (Pipe* pipe : {&in_, &out_, &err_}) {
      std::array<int, 2> fds = {};
      if (::pipe2(fds.data(), O_CLOEXEC) != 0) return Failed("no pipe", errno);
      const bool to_program = pipe == &in_;
      pipe->theirs.Set(fds.at(to_program ? 0 : 1));
      pipe->ours.Set(fds.at(to_program ? 1 : 0));
      if (::fcntl(pipe->ours.get(), F_SETFL, O_NONBLOCK) != 0) return Failed("no pipe", errno);
    }
    return {};
  }

  // The program's ends become its 0, 1 and 2. They are above 2 here unless this process was started
  // without its own, and then dup2 in this order still ends well: none of the three is one of the
  // targets that come before it.
  Result<pid_t> Spawn(const std::vector<std::string>& argv) {
    SpawnPlan plan;
    plan.Give(in_.theirs.get(), STDIN_FILENO);
    plan.Give(out_.theirs.get(), STDOUT_FILENO);
    plan.Give(err_.theirs.get(), STDERR_FILENO);
    plan.KeepTheRest(STDERR_FILENO + 1);
    auto pid = plan.Spawn(argv);
    for (Pipe* pipe : {&in_, &out_, &err_}) pipe->theirs.Close();
    return pid;
  }

  // Writes `input` and reads both outputs until the program has closed them, it says too much, or
  // `wake_fd` can be read.
  Result<ProgramOutcome> Talk(std::string_view input, int wake_fd) {
    ProgramOutcome outcome;
    while (out_.ours.open() || err_.ours.open()) {
      if (input.empty()) in_.ours.Close();
      std::array<pollfd, 4> waits = {{{.fd = wake_fd, .events = POLLIN, .revents = 0},
                                      {.fd = in_.ours.get(), .events = POLLOUT, .revents = 0},
                                      {.fd = out_.ours.get(), .events = POLLIN, .revents = 0},
                                      {.fd = err_.ours.get(), .events = POLLIN, .revents = 0}}};
      if (::poll(waits.data(), waits.size(), -1) < 0) {
        if (errno == EINTR) continue;
        return Failed("poll", errno);
      }
      if (waits[0].revents != 0) break;
      if (waits[1].revents != 0) input = Feed(input);
      if (waits[2].revents != 0) IL_TRY_VOID(Drain(out_, outcome.out));
      if (waits[3].revents != 0) IL_TRY_VOID(Drain(err_, outcome.err));
    }
    return outcome;
  }

 private:
  struct Pipe {
    Descriptor ours;
    Descriptor theirs;
  };

  // What is left to write. A program that reads no more is not wrong; its exit code tells.
  std::string_view Feed(std::string_view input) {
    const ssize_t written = ::write(in_.ours.get(), input.data(), input.size());
    if (written >= 0) return input.substr(static_cast<std::size_t>(written));
    if (errno == EAGAIN || errno == EINTR) return input;
    return {};
  }

  static Result<void> Drain(Pipe& pipe, std::string& text) {
    std::array<char, 16384> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): read() fills
    const ssize_t got = ::read(pipe.ours.get(), piece.data(), piece.size());
    if (got > 0) {
      text.append(piece.data(), static_cast<std::size_t>(got));
      if (text.size() <= kOutputBytesMax) return {};
      return Error(Errc::kUnavailable, "it says more than anybody would read");
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) pipe.ours.Close();
    return {};
  }

  Pipe in_;
  Pipe out_;
  Pipe err_;
};

Result<ProgramOutcome> ProgramRunner::Run(const ProgramCall& call) {
  using Cause = Child::Cause;
  Pipes pipes;
  IL_TRY_VOID(pipes.Open());
  auto child = std::make_shared<Child>();
  if (child->wake_fd() < 0) return Failed("no eventfd", errno);
  {
    MutexLock lock(mutex_);
    if (stopped_) return Error(Errc::kUnavailable, "the server stops");
    child_ = child;
  }
  IL_TRY(const pid_t pid, pipes.Spawn(call.argv));
  child->Started(pid);
  // A program may close its outputs and stay: the timer is there until it has ended.
  const Clock::TimerId timer =
      clock_.Schedule(call.time_max, [child] { child->Kill(Cause::kTimeUp); });
  auto outcome = pipes.Talk(call.input, child->wake_fd());
  if (!outcome.ok()) child->Kill(Cause::kOther);
  const int exit_code = child->Reap();
  clock_.Cancel(timer);
  switch (child->cause()) {
    case Cause::kTimeUp:
      return Error(Errc::kUnavailable,
                   fmt::format("it did not end within {}", FormatDuration(call.time_max)));
    case Cause::kStopped:
      return Error(Errc::kUnavailable, "it was ended, since the server stops");
    case Cause::kOther:
    case Cause::kNone:
      break;
  }
  if (outcome.ok()) outcome->exit_code = exit_code;
  return outcome;
}

void ProgramRunner::Stop() {
  std::shared_ptr<Child> child;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    child = child_;
  }
  if (child) child->Kill(Child::Cause::kStopped);
}

}  // namespace interlock
