#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "resilience/retry.h"

namespace interlock::testing {

// An operation whose tries do what the test says. A try takes the next answer of `script` and
// reports it before `begin` returns; with an empty script it stays queued until the test lets it
// run and report.
//
// One operation, one thread.
class ScriptedOperation {
 public:
  std::deque<Result<void>> script;
  std::optional<Error> refusal;     // what `begin` answers
  bool throws = false;              // `begin` throws
  std::function<void()> on_begin;   // called while `begin` runs
  std::function<void()> on_cancel;  // called while `cancel` runs, before it looks

  resilience::Operation Make(resilience::Effect effect = resilience::Effect::kChanges,
                             Duration budget = std::chrono::seconds(10)) {
    return {.begin = [this](auto done) { return Begin(std::move(done)); },
            .cancel = [this](auto ticket) { return Cancel(ticket); },
            .effect = effect,
            .budget = budget};
  }

  int tries() const { return tries_; }
  bool try_is_out() const { return static_cast<bool>(done_); }

  // The queued try begins: from now on it cannot be taken back.
  void RunIt() {
    IL_CHECK(done_ != nullptr);
    IL_CHECK(!running_);
    running_ = true;
  }
  // The try that is out is over.
  void Report(Result<void> result) {
    IL_CHECK(static_cast<bool>(done_));
    running_ = false;
    std::exchange(done_, nullptr)(std::move(result));
  }
  // The try that is out is lost: nobody will ever report.
  void Lose() {
    running_ = false;
    done_ = nullptr;
  }

 private:
  Result<std::uint64_t> Begin(std::function<void(Result<void>)> done) {
    ++tries_;
    if (on_begin) on_begin();
    if (throws) throw std::runtime_error("begin threw");
    if (refusal) return *refusal;
    IL_CHECK(!done_, "one try at a time");
    if (script.empty()) {
      done_ = std::move(done);
    } else {
      Result<void> answer = std::move(script.front());
      script.pop_front();
      done(std::move(answer));
    }
    return Ticket();
  }

  bool Cancel(std::uint64_t ticket) {
    if (on_cancel) on_cancel();
    if (!done_ || running_ || ticket != Ticket()) return false;
    Report(Error(Errc::kCancelled, "taken back"));
    return true;
  }

  std::uint64_t Ticket() const { return 1000 + static_cast<std::uint64_t>(tries_); }

  int tries_ = 0;
  bool running_ = false;
  std::function<void(Result<void>)> done_;  // of the try that is out
};

}  // namespace interlock::testing
