#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace interlock::testing {

// A real program run by a test. Its output goes to files, so it can never block on a full pipe and
// a failing test can show it.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> arguments;  // the program's path first
    std::string directory;               // where output is kept, and where it runs
    int stdout_fd = -1;                  // given: its standard output, and Stdout() stays empty
  };

  explicit ChildProcess(const Options& options);
  ~ChildProcess();  // kills it if it still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number) const;

  // Exit code, or 128 + the signal that ended it; nothing when it still runs after `limit`.
  std::optional<int> Wait(std::chrono::milliseconds limit);

  // Waits until a whole line that contains `text` is in its standard output; nothing when the
  // program ends or `limit` passes before.
  std::optional<std::string> WaitForLine(const std::string& text, std::chrono::milliseconds limit);

  // The same of its standard error, where the log is.
  std::optional<std::string> WaitForLog(const std::string& text, std::chrono::milliseconds limit);

  std::string Stdout() const;
  std::string Stderr() const;

 private:
  std::optional<std::string> WaitForText(const std::string& path, const std::string& text,
                                         std::chrono::milliseconds limit);

  const std::string stdout_path_;
  const std::string stderr_path_;
  pid_t pid_ = -1;
  int pidfd_ = -1;
  std::optional<int> exit_code_;
};

// Runs a program to its end.
struct Finished {
  int exit_code;
  std::string out;
  std::string err;
};
Finished RunProgram(const std::vector<std::string>& arguments, const std::string& directory);

}  // namespace interlock::testing
