#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"

namespace interlock::resilience {

// A circuit breaker: rejects calls to a failing component, so that the component can recover and
// its callers get an error at once instead of waiting for the next failure.
//
//   closed     all calls pass; `threshold` consecutive failures open the breaker
//   open       no call passes; after `reset_timeout` the next call becomes the probe, or after
//              `brief_timeout` if the cause of the last failure may end at any moment
//   half_open  the probe is running and no other call passes; its success closes the breaker, its
//              failure opens it again
//
// The breaker only counts reports. The Guard (guard.h) decides which errors are failures. Time is
// monotonic, so changes of the wall clock have no effect.
//
// Thread-safe; it calls no code of others under its lock. Invariants:
// (1) A permit counts at most once.
// (2) A permit counts only in the generation that issued it. Every change of state and every new
//     probe starts a generation, so late results of older calls have no effect.
// (3) At most one probe runs at a time. A probe that does not report is replaced after
//     `reset_timeout`, so half_open cannot last forever.
class Breaker {
 public:
  enum class State : std::uint8_t { kClosed, kOpen, kHalfOpen };

  struct Options {
    int threshold = 5;
    Duration reset_timeout = std::chrono::seconds(30);
    Duration brief_timeout = std::chrono::seconds(2);
    std::string_view calls = "calls";  // name of the rejected calls in messages
  };

  // For /health, metrics and logs.
  struct Status {
    State state;
    int failures;                // consecutive, up to the threshold
    std::uint64_t times_opened;  // including failed probes
    Timestamp last_change;       // of `state`; initially the time of construction
  };

  // Called after each change of state, without a lock held, on the thread whose call or report
  // caused it. Must not throw. Two quick changes may arrive in either order; status() is exact.
  using OnChange = std::function<void(State from, State to)>;

  // The permission for one call. Report its result with exactly one of the four functions. A permit
  // that is destroyed without a report (the call threw or was lost) is a failure if it was the
  // probe, and otherwise counts nothing. The breaker must outlive it.
  class [[nodiscard]] Permit {
   public:
    Permit(Permit&& other) noexcept;
    Permit& operator=(Permit&& other) = delete;
    ~Permit();

    void Succeed() &&;
    void Fail() &&;
    // A failure whose cause may end at any moment, such as a full disk.
    void FailBriefly() &&;
    // The call says nothing about the health of the component: it was cancelled or never tried. If
    // it was the probe, the next call becomes the probe.
    void Withdraw() &&;

   private:
    friend class Breaker;
    enum class Report : std::uint8_t { kSuccess, kFailure, kBriefFailure, kNothing, kAbandoned };

    Permit(Breaker& breaker, std::uint64_t generation)
        : breaker_(&breaker), generation_(generation) {}
    void Send(Report report);

    Breaker* breaker_;  // null once reported or moved from
    std::uint64_t generation_;
  };

  explicit Breaker(Clock& clock) : Breaker(clock, Options{}, nullptr) {}
  Breaker(Clock& clock, Options options, OnChange on_change = nullptr);
  Breaker(const Breaker&) = delete;
  Breaker& operator=(const Breaker&) = delete;

  // Returns a permit, or kCircuitOpen with the detail `retry_after`: whole seconds, at least 1.
  Result<Permit> Enter() IL_EXCLUDES(mutex_);

  State state() const IL_EXCLUDES(mutex_);
  Status status() const IL_EXCLUDES(mutex_);

 private:
  // A change of state to report after the lock is released; none if from == to.
  struct Change {
    State from;
    State to;
  };

  bool MayProbe(Duration now) const IL_REQUIRES(mutex_);
  Error Refusal(Duration now) const IL_REQUIRES(mutex_);
  Change MoveTo(State to) IL_REQUIRES(mutex_);  // starts a generation
  Change Open(Duration timeout) IL_REQUIRES(mutex_);
  Change CountFailure(Duration timeout) IL_REQUIRES(mutex_);
  Change Count(Permit::Report report) IL_REQUIRES(mutex_);
  void Record(std::uint64_t generation, Permit::Report report) IL_EXCLUDES(mutex_);
  void Notify(Change change) const IL_EXCLUDES(mutex_);

  Clock& clock_;
  const Options options_;
  const OnChange on_change_;

  mutable Mutex mutex_;
  State state_ IL_GUARDED_BY(mutex_) = State::kClosed;
  std::uint64_t generation_ IL_GUARDED_BY(mutex_) = 0;  // see (2)
  int failures_ IL_GUARDED_BY(mutex_) = 0;
  bool probe_out_ IL_GUARDED_BY(mutex_) = false;     // a probe is running; half_open only
  Duration waiting_since_ IL_GUARDED_BY(mutex_){0};  // open: the last failure; half_open: the probe
  Duration timeout_ IL_GUARDED_BY(mutex_){0};        // from then until the next probe may start
  std::uint64_t times_opened_ IL_GUARDED_BY(mutex_) = 0;
  Timestamp last_change_ IL_GUARDED_BY(mutex_);
};

// "closed", "open", "half_open": the texts of /health.
std::string_view ToString(Breaker::State state);

}  // namespace interlock::resilience
