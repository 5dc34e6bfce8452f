#include "testing/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace interlock::testing {
namespace {

using std::chrono::milliseconds;

std::string FileText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string OutputPath(const std::string& directory, const char* what) {
  static std::atomic<int> count{0};
  return directory + "/" + what + "-" + std::to_string(++count) + ".txt";
}

milliseconds Left(std::chrono::steady_clock::time_point end) {
  const auto left = end - std::chrono::steady_clock::now();
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(left));
}

// Only async-signal-safe calls from here to exec: the parent may have threads.
[[noreturn]] void BecomeProgram(char* const* arguments, const char* directory, int out,
                                const char* err) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a crashed test leaves no server behind
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(::open(err, flags, 0600), STDERR_FILENO);
  if (::chdir(directory) != 0) ::_exit(126);
  ::execv(arguments[0], arguments);
  ::_exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const Options& options)
    : stdout_path_(OutputPath(options.directory, "stdout")),
      stderr_path_(OutputPath(options.directory, "stderr")) {
  // They exist before anybody watches them.
  std::ofstream(stdout_path_).flush();
  std::ofstream(stderr_path_).flush();
  std::vector<char*> arguments;
  arguments.reserve(options.arguments.size() + 1);
  for (const std::string& one : options.arguments) {
    arguments.push_back(const_cast<char*>(one.c_str()));
  }
  arguments.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    const int out = options.stdout_fd >= 0 ? options.stdout_fd
                                           : ::open(stdout_path_.c_str(), O_WRONLY | O_TRUNC);
    BecomeProgram(arguments.data(), options.directory.c_str(), out, stderr_path_.c_str());
  }
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
}

ChildProcess::~ChildProcess() {
  if (!exit_code_) {
    Signal(SIGKILL);
    Wait(milliseconds(10'000));
  }
  if (pidfd_ >= 0) ::close(pidfd_);
}

void ChildProcess::Signal(int number) const {
  if (!exit_code_) ::kill(pid_, number);
}

std::optional<int> ChildProcess::Wait(milliseconds limit) {
  if (exit_code_) return exit_code_;
  pollfd wait{.fd = pidfd_, .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, static_cast<int>(limit.count())) <= 0) return std::nullopt;
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) return std::nullopt;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

std::optional<std::string> ChildProcess::WaitForLine(const std::string& text, milliseconds limit) {
  return WaitForText(stdout_path_, text, limit);
}

std::optional<std::string> ChildProcess::WaitForLog(const std::string& text, milliseconds limit) {
  return WaitForText(stderr_path_, text, limit);
}

std::optional<std::string> ChildProcess::WaitForText(const std::string& path,
                                                     const std::string& text, milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  const int watch = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  ::inotify_add_watch(watch, path.c_str(), IN_MODIFY);
  std::optional<std::string> found;
  while (true) {
    const std::string all = FileText(path);
    const std::size_t at = all.find(text);
    const std::size_t line_end = at == std::string::npos ? at : all.find('\n', at);
    if (line_end != std::string::npos) {
      const std::size_t newline = all.rfind('\n', at);
      const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
      found = all.substr(begin, line_end - begin);
      break;
    }
    if (exit_code_ || Left(end) == milliseconds(0)) break;
    std::array<pollfd, 2> waits{{{watch, POLLIN, 0}, {pidfd_, POLLIN, 0}}};
    ::poll(waits.data(), waits.size(), static_cast<int>(Left(end).count()));
    std::array<char, 4096> events;
    while (::read(watch, events.data(), events.size()) > 0) {
    }
    if (waits[1].revents != 0) Wait(milliseconds(0));
  }
  ::close(watch);
  return found;
}

std::string ChildProcess::Stdout() const { return FileText(stdout_path_); }
std::string ChildProcess::Stderr() const { return FileText(stderr_path_); }

Finished RunProgram(const std::vector<std::string>& arguments, const std::string& directory) {
  ChildProcess child({.arguments = arguments, .directory = directory});
  const auto code = child.Wait(milliseconds(30'000));
  return {code.value_or(-1), child.Stdout(), child.Stderr()};
}

}  // namespace interlock::testing
