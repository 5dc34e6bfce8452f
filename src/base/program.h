#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"

namespace interlock {

struct ProgramCall {
  std::vector<std::string> argv;  // the first is looked for in PATH; no shell sees any of them
  std::string input = {};         // what it reads from stdin
  Duration time_max = std::chrono::seconds(2);
};

struct ProgramOutcome {
  int exit_code = 0;  // 128 + n when signal n ended it
  std::string out = {};
  std::string err = {};
};

// Runs other programs, one at a time, and waits for each. A program has the environment and the
// directory of this process and nothing else of it: no open file, no blocked or ignored signal. It
// leads a process group of its own, which is killed whole when its time is up; it is always reaped.
//
// Run() blocks, so it belongs on a thread of its own, and to one thread at a time; Stop() is for
// any thread. Time is the clock's: its timer ends a run. REQUIRES: this process ignores SIGPIPE.
class ProgramRunner {
 public:
  static constexpr std::size_t kOutputBytesMax = std::size_t{256} * 1024;  // of out and of err

  // The clock must outlive it.
  explicit ProgramRunner(Clock& clock) : clock_(clock) {}
  ProgramRunner(const ProgramRunner&) = delete;
  ProgramRunner& operator=(const ProgramRunner&) = delete;

  // kNotFound: there is no such program. kUnavailable: it could not be started, did not end in
  // time, wrote too much, or Stop() was called.
  Result<ProgramOutcome> Run(const ProgramCall& call) IL_EXCLUDES(mutex_);

  // Kills what runs; later runs are refused.
  void Stop() IL_EXCLUDES(mutex_);

 private:
  class Pipes;
  class Child;

  Clock& clock_;
  Mutex mutex_;
  bool stopped_ IL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Child> child_ IL_GUARDED_BY(mutex_);  // of the run under way
};

}  // namespace interlock
