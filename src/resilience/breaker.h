#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"

namespace interlock::resilience {

// Keeps calls away from something that fails, so that it can recover and callers hear "no" at once
// instead of waiting for the next failure.
//
//   closed     every call may pass; `threshold` failures in a row open it
//   open       no call may pass; after `reset_timeout` the next one becomes the probe, and after
//              `brief_timeout` if the cause of the last failure may end at any moment
//   half_open  the probe is out and nobody else may pass; its success closes, its failure reopens
//
// It counts what it is told and knows nothing of errors: which of them are failures is the Guard's
// decision (guard.h). Time is monotonic, so a wall clock that jumps neither opens nor closes it.
//
// Thread-safe; it runs nothing under its lock. Invariants:
// (1) A permit counts at most once.
// (2) A permit counts only in the generation that gave it out. Every change of state and every new
//     probe begins a generation, so late results of older calls change nothing.
// (3) At most one probe is out at a time. One that never comes back is replaced after
//     `reset_timeout`, so half_open cannot last for ever.
class Breaker {
 public:
  enum class State : std::uint8_t { kClosed, kOpen, kHalfOpen };

  struct Options {
    int threshold = 5;
    Duration reset_timeout = std::chrono::seconds(30);
    Duration brief_timeout = std::chrono::seconds(2);
    std::string_view calls = "calls";  // what is refused, for people
  };

  // For /health, metrics and logs.
  struct Status {
    State state;
    int failures;                // in a row, up to the threshold
    std::uint64_t times_opened;  // failed probes included
    Timestamp last_change;       // of `state`; the time of construction at first
  };

  // Told of each change of state with no lock held, on the thread whose call or report caused it;
  // must not throw. Two changes in quick succession may be heard in either order; status() has the
  // truth.
  using OnChange = std::function<void(State from, State to)>;

  // The leave to make one call. Report how it went with exactly one of the four; one that is
  // destroyed unreported (the call threw, or was lost) is a failure if it was the probe, and
  // nothing otherwise. The breaker must outlive it.
  class [[nodiscard]] Permit {
   public:
    Permit(Permit&& other) noexcept;
    Permit& operator=(Permit&& other) = delete;
    ~Permit();

    void Succeed() &&;
    void Fail() &&;
    // A failure whose cause may end at any moment, such as a full disk.
    void FailBriefly() &&;
    // The call says nothing about health (its caller went away, or it was never tried). If it was
    // the probe, the next caller is.
    void Withdraw() &&;

   private:
    friend class Breaker;
    enum class Report : std::uint8_t { kSuccess, kFailure, kBriefFailure, kNothing, kAbandoned };

    Permit(Breaker& breaker, std::uint64_t generation)
        : breaker_(&breaker), generation_(generation) {}
    void Tell(Report report);

    Breaker* breaker_;  // null once reported or moved from
    std::uint64_t generation_;
  };

  explicit Breaker(Clock& clock) : Breaker(clock, Options{}, nullptr) {}
  Breaker(Clock& clock, Options options, OnChange on_change = nullptr);
  Breaker(const Breaker&) = delete;
  Breaker& operator=(const Breaker&) = delete;

  // The permit, or kCircuitOpen with the detail `retry_after`: whole seconds, at least 1.
  Result<Permit> Enter() IL_EXCLUDES(mutex_);

  State state() const IL_EXCLUDES(mutex_);
  Status status() const IL_EXCLUDES(mutex_);

 private:
  // A change of state to be announced once the lock is released; none when from == to.
  struct Change {
    State from;
    State to;
  };

  bool MayProbe(Duration now) const IL_REQUIRES(mutex_);
  Error Refusal(Duration now) const IL_REQUIRES(mutex_);
  Change MoveTo(State to) IL_REQUIRES(mutex_);  // begins a generation
  Change Open(Duration timeout) IL_REQUIRES(mutex_);
  Change CountFailure(Duration timeout) IL_REQUIRES(mutex_);
  Change Count(Permit::Report report) IL_REQUIRES(mutex_);
  void Hear(std::uint64_t generation, Permit::Report report) IL_EXCLUDES(mutex_);
  void Announce(Change change) const IL_EXCLUDES(mutex_);

  Clock& clock_;
  const Options options_;
  const OnChange on_change_;

  mutable Mutex mutex_;
  State state_ IL_GUARDED_BY(mutex_) = State::kClosed;
  std::uint64_t generation_ IL_GUARDED_BY(mutex_) = 0;  // see (2)
  int failures_ IL_GUARDED_BY(mutex_) = 0;
  bool probe_out_ IL_GUARDED_BY(mutex_) = false;     // half_open only
  Duration waiting_since_ IL_GUARDED_BY(mutex_){0};  // open: the last failure; half_open: the probe
  Duration timeout_ IL_GUARDED_BY(mutex_){0};        // since then, until a probe may go out
  std::uint64_t times_opened_ IL_GUARDED_BY(mutex_) = 0;
  Timestamp last_change_ IL_GUARDED_BY(mutex_);
};

// "closed", "open", "half_open": as /health says it.
std::string_view ToString(Breaker::State state);

}  // namespace interlock::resilience
