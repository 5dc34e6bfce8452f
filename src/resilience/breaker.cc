#include "resilience/breaker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace interlock::resilience {

Breaker::Permit::Permit(Permit&& other) noexcept
    : breaker_(std::exchange(other.breaker_, nullptr)), generation_(other.generation_) {}

Breaker::Permit::~Permit() {
  if (breaker_ != nullptr) Send(Report::kAbandoned);
}

void Breaker::Permit::Succeed() && { Send(Report::kSuccess); }
void Breaker::Permit::Fail() && { Send(Report::kFailure); }
void Breaker::Permit::FailBriefly() && { Send(Report::kBriefFailure); }
void Breaker::Permit::Withdraw() && { Send(Report::kNothing); }

void Breaker::Permit::Send(Report report) {
  IL_CHECK(breaker_ != nullptr, "a permit reports once");
  std::exchange(breaker_, nullptr)->Record(generation_, report);
}

Breaker::Breaker(Clock& clock, Options options, OnChange on_change)
    : clock_(clock),
      options_(options),
      on_change_(std::move(on_change)),
      last_change_(clock.Now()) {
  IL_CHECK(options.threshold > 0);
  IL_CHECK(options.reset_timeout > Duration::zero());
  IL_CHECK(options.brief_timeout > Duration::zero());
}

Result<Breaker::Permit> Breaker::Enter() {
  Change change{};
  std::uint64_t generation = 0;
  {
    MutexLock lock(mutex_);
    change = {state_, state_};
    if (state_ != State::kClosed) {
      const Duration now = clock_.Monotonic();
      if (!MayProbe(now)) return Refusal(now);
      change = MoveTo(State::kHalfOpen);
      probe_out_ = true;
      waiting_since_ = now;
      timeout_ = options_.reset_timeout;
    }
    generation = generation_;
  }
  Notify(change);
  return Permit(*this, generation);
}

Breaker::State Breaker::state() const {
  MutexLock lock(mutex_);
  return state_;
}

Breaker::Status Breaker::status() const {
  MutexLock lock(mutex_);
  return {.state = state_,
          .failures = failures_,
          .times_opened = times_opened_,
          .last_change = last_change_};
}

bool Breaker::MayProbe(Duration now) const {
  IL_CHECK(state_ != State::kClosed);
  if (state_ == State::kHalfOpen && !probe_out_) return true;
  return now - waiting_since_ >= timeout_;
}

Error Breaker::Refusal(Duration now) const {
  // The end of a running probe is unknown, so suggest an early retry.
  std::int64_t retry_after = 1;
  if (state_ == State::kOpen) {
    const Duration left = waiting_since_ + timeout_ - now;
    retry_after = std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(left).count());
  }
  return Error(Errc::kCircuitOpen,
               fmt::format("The circuit breaker is open because {} of storage keep failing; repeat "
                           "the request in {} s, and look at the server's log and disk if this "
                           "lasts.",
                           options_.calls, retry_after))
      .WithDetail("retry_after", retry_after);
}

Breaker::Change Breaker::MoveTo(State to) {
  const Change change{state_, to};
  ++generation_;
  state_ = to;
  if (change.from != change.to) last_change_ = clock_.Now();
  return change;
}

Breaker::Change Breaker::Open(Duration timeout) {
  probe_out_ = false;
  waiting_since_ = clock_.Monotonic();
  timeout_ = timeout;
  ++times_opened_;
  return MoveTo(State::kOpen);
}

Breaker::Change Breaker::CountFailure(Duration timeout) {
  if (state_ == State::kHalfOpen || ++failures_ >= options_.threshold) return Open(timeout);
  return {state_, state_};
}

Breaker::Change Breaker::Count(Permit::Report report) {
  IL_CHECK(state_ != State::kOpen);  // the generation of an open breaker has no permits
  const bool is_probe = state_ == State::kHalfOpen;
  switch (report) {
    case Permit::Report::kSuccess:
      failures_ = 0;
      probe_out_ = false;
      if (is_probe) return MoveTo(State::kClosed);
      break;
    case Permit::Report::kFailure:
      return CountFailure(options_.reset_timeout);
    case Permit::Report::kBriefFailure:
      return CountFailure(std::min(options_.brief_timeout, options_.reset_timeout));
    case Permit::Report::kNothing:
      probe_out_ = false;
      break;
    case Permit::Report::kAbandoned:
      if (is_probe) return Open(options_.reset_timeout);
      break;
  }
  return {state_, state_};
}

void Breaker::Record(std::uint64_t generation, Permit::Report report) {
  Change change{};
  {
    MutexLock lock(mutex_);
    if (generation != generation_) return;  // see (2)
    change = Count(report);
  }
  Notify(change);
}

void Breaker::Notify(Change change) const {
  if (change.from != change.to && on_change_) on_change_(change.from, change.to);
}

std::string_view ToString(Breaker::State state) {
  switch (state) {
    case Breaker::State::kClosed:
      return "closed";
    case Breaker::State::kOpen:
      return "open";
    case Breaker::State::kHalfOpen:
      return "half_open";
  }
  IL_CHECK(false, "a state of the enum");
}

}  // namespace interlock::resilience
