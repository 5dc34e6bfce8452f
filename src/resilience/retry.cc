#include "resilience/retry.h"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"

namespace interlock::resilience {

// The shared state of all operations of one Retry. Operations keep it alive, because a timer may
// fire while the Retry is being destroyed.
class Retry::Core {
 public:
  Core(Clock& clock_in, Options options_in, Random random_in)
      : clock(clock_in), options(options_in), random(std::move(random_in)) {}

  // A timer or a caller of Cancel() holds a visit while it may call `begin` or `cancel`. Stop()
  // waits for all visits to end and allows no new ones.
  class Visit {
   public:
    explicit Visit(Core& core) : core_(core), allowed_(core.Arrive()) {}
    ~Visit() {
      if (allowed_) core_.Leave();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    bool allowed() const { return allowed_; }

   private:
    Core& core_;
    const bool allowed_;
  };

  // Returns false after Stop(): no further try follows.
  bool AddWaiting(std::shared_ptr<Call::State> state) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (stopped_) return false;
    waiting_.insert(std::move(state));
    return true;
  }
  void RemoveWaiting(const std::shared_ptr<Call::State>& state) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    waiting_.erase(state);
  }
  bool stopped() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return stopped_;
  }
  void Stop() IL_EXCLUDES(mutex_);

  Clock& clock;
  const Options options;
  const Random random;

 private:
  bool Arrive() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (stopped_) return false;
    ++visits_;
    return true;
  }
  void Leave() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (--visits_ == 0) changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  bool stopped_ IL_GUARDED_BY(mutex_) = false;
  int visits_ IL_GUARDED_BY(mutex_) = 0;
  std::unordered_set<std::shared_ptr<Call::State>> waiting_ IL_GUARDED_BY(mutex_);
};

namespace {

std::string Seconds(Duration time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

Error TimedOut(Duration budget, const std::optional<Error>& last) {
  return Error(
      Errc::kStorageTimeout,
      fmt::format("Storage could not run the operation within {}{}; nothing was changed. Repeat "
                  "the request later.",
                  Seconds(budget), last ? fmt::format(" (last try: {})", last->message()) : ""));
}

Error TimedOutWhileRunning(Duration budget, Effect effect) {
  if (effect == Effect::kNone) {
    return Error(Errc::kStorageTimeout,
                 fmt::format("Storage did not finish the read within {}. Repeat the request later.",
                             Seconds(budget)));
  }
  return Error(
      Errc::kOutcomeUnknown,
      fmt::format("Storage began the write but did not confirm it within {}: it may or may "
                  "not be stored. Check the result before you repeat the request.",
                  Seconds(budget)));
}

Error Cancelled() { return Error(Errc::kCancelled, "The request was cancelled by its caller."); }

// Converts the current exception.
Error Threw(std::string_view what) {
  try {
    throw;
  } catch (const std::exception& e) {
    return Error(Errc::kInternal, fmt::format("{} threw: {}", what, e.what()));
  } catch (...) {
    return Error(Errc::kInternal, fmt::format("{} threw an unknown exception", what));
  }
}

Error Stopped() {
  return Error(Errc::kUnavailable, "The server is stopping; repeat the request when it is back.");
}

}  // namespace

// One operation, from Run() to its last try. Every method makes its decision under the lock and
// calls out after releasing it.
class Call::State : public std::enable_shared_from_this<Call::State> {
 public:
  State(std::shared_ptr<Retry::Core> core, Operation operation, Done done, Settled settled)
      : core_(std::move(core)),
        operation_(std::move(operation)),
        done_(std::move(done)),
        settled_(std::move(settled)) {}

  void Start() IL_EXCLUDES(mutex_);
  void Cancel() IL_EXCLUDES(mutex_);
  // Ends the wait between two tries, if there is one.
  void Stop() IL_EXCLUDES(mutex_);

 private:
  // The reason why no further try follows.
  enum class Ending : std::uint8_t { kNone, kCancelled, kTimedOut };

  // Callbacks and their arguments, collected under the lock and called without it.
  struct Outgoing {
    Settled settled;
    std::optional<Result<void>> last;  // for `settled`; nullopt: destroy it without running
    Done done;
    std::optional<Result<void>> result;  // for `done`

    void Send() {
      if (settled && last) settled(*last);
      settled = nullptr;
      if (done) done(std::move(*result));
    }
  };

  int CountTry() IL_REQUIRES(mutex_);
  void Try(int number) IL_EXCLUDES(mutex_);
  void OnTryResult(int number, Result<void> result) IL_EXCLUDES(mutex_);
  void OnWaitTimeout() IL_EXCLUDES(mutex_);
  void OnBudgetTimeout() IL_EXCLUDES(mutex_);
  void TakeBack(Operation::Ticket ticket, Ending why) IL_EXCLUDES(mutex_);

  bool MayRetry(const Result<void>& result) const IL_REQUIRES(mutex_);
  bool Wait() IL_REQUIRES(mutex_);
  Outgoing Conclude(Result<void> last) IL_REQUIRES(mutex_);
  Outgoing Finish(std::optional<Result<void>> last, Result<void> result) IL_REQUIRES(mutex_);

  const std::shared_ptr<Retry::Core> core_;
  const Operation operation_;

  Mutex mutex_;
  Done done_ IL_GUARDED_BY(mutex_);        // empty after its call
  Settled settled_ IL_GUARDED_BY(mutex_);  // empty after its call
  Ending ending_ IL_GUARDED_BY(mutex_) = Ending::kNone;
  int tries_ IL_GUARDED_BY(mutex_) = 0;
  bool try_out_ IL_GUARDED_BY(mutex_) = false;
  Operation::Ticket ticket_ IL_GUARDED_BY(mutex_) = 0;  // of the running try, once known
  std::optional<Error> last_error_ IL_GUARDED_BY(mutex_);
  Clock::TimerId wait_timer_ IL_GUARDED_BY(mutex_) = 0;
  Clock::TimerId budget_timer_ IL_GUARDED_BY(mutex_) = 0;
};

// Schedules the time limit before the first try, so that a failure to schedule ends the operation.
void Call::State::Start() {
  int number = 0;
  Outgoing outgoing;
  {
    MutexLock lock(mutex_);
    try {
      budget_timer_ = core_->clock.Schedule(
          operation_.budget, [self = shared_from_this()] { self->OnBudgetTimeout(); });
      number = CountTry();
    } catch (...) {
      outgoing = Finish(std::nullopt, Threw("Scheduling the time limit"));
    }
  }
  if (outgoing.done) return outgoing.Send();
  Try(number);
}

// The try counts as running from here on, although it begins only after the lock is released.
int Call::State::CountTry() {
  IL_CHECK(!try_out_);
  try_out_ = true;
  ticket_ = 0;
  return ++tries_;
}

// Also runs on the clock's thread, so no exception may escape.
void Call::State::Try(int number) {
  std::optional<Result<Operation::Ticket>> begun;
  std::optional<Error> thrown;
  try {
    begun = operation_.begin([self = shared_from_this(), number](Result<void> result) {
      self->OnTryResult(number, std::move(result));
    });
  } catch (...) {
    thrown = Threw("Beginning the try");
  }

  if (begun && begun->ok()) {
    Ending why = Ending::kNone;
    {
      MutexLock lock(mutex_);
      if (tries_ != number || !try_out_) return;  // the try has already reported
      ticket_ = begun->value();
      why = ending_;
    }
    if (why != Ending::kNone) TakeBack(begun->value(), why);  // requested while the try began
    return;
  }

  Outgoing outgoing;
  {
    MutexLock lock(mutex_);
    IL_CHECK(try_out_, "a rejected try does not report");
    IL_CHECK(tries_ == number);
    try_out_ = false;
    if (begun) {
      outgoing = Conclude(std::move(*begun).error());
    } else {
      outgoing = Finish(std::nullopt, *std::move(thrown));
    }
  }
  outgoing.Send();
}

// Runs on storage threads, so no exception may escape.
void Call::State::OnTryResult(int number, Result<void> result) {
  Outgoing outgoing;
  {
    MutexLock lock(mutex_);
    IL_CHECK(try_out_, "a try reports once");
    IL_CHECK(tries_ == number, "a try reports once");
    try_out_ = false;
    std::optional<Error> thrown;
    try {
      if (MayRetry(result) && Wait()) {
        last_error_ = result.error();
        return;
      }
    } catch (...) {
      core_->RemoveWaiting(shared_from_this());
      thrown = Threw("Waiting for the next try");
    }
    outgoing = thrown ? Finish(std::nullopt, *std::move(thrown)) : Conclude(std::move(result));
  }
  outgoing.Send();
}

bool Call::State::MayRetry(const Result<void>& result) const {
  return !result.ok() && result.error().code() == Errc::kBusy && ending_ == Ending::kNone &&
         done_ && tries_ <= core_->options.retries_max;
}

bool Call::State::Wait() {
  if (!core_->AddWaiting(shared_from_this())) return false;
  const Duration delay = Retry::Delay(core_->options, tries_, core_->random());
  wait_timer_ =
      core_->clock.Schedule(delay, [self = shared_from_this()] { self->OnWaitTimeout(); });
  return true;
}

void Call::State::OnWaitTimeout() {
  const Retry::Core::Visit visit(*core_);
  if (!visit.allowed()) return;
  int number = 0;
  {
    MutexLock lock(mutex_);
    if (!done_) return;  // the operation has just ended
    wait_timer_ = 0;
    core_->RemoveWaiting(shared_from_this());
    number = CountTry();
  }
  Try(number);
}

void Call::State::OnBudgetTimeout() {
  const Retry::Core::Visit visit(*core_);
  if (!visit.allowed()) return;
  Operation::Ticket ticket = 0;
  Outgoing outgoing;
  {
    MutexLock lock(mutex_);
    if (!done_) return;
    ending_ = Ending::kTimedOut;
    if (!try_out_) {
      IL_CHECK(last_error_.has_value());  // a wait follows only a busy try
      outgoing = Finish(Result<void>(*last_error_), TimedOut(operation_.budget, last_error_));
    }
    ticket = ticket_;
    if (try_out_ && ticket == 0) return;  // the try is just beginning: Try() takes it back
  }
  if (outgoing.done) return outgoing.Send();
  TakeBack(ticket, Ending::kTimedOut);
}

void Call::State::Cancel() {
  const Retry::Core::Visit visit(*core_);
  if (!visit.allowed()) return;
  Operation::Ticket ticket = 0;
  Outgoing outgoing;
  {
    MutexLock lock(mutex_);
    if (!done_ || ending_ != Ending::kNone) return;
    ending_ = Ending::kCancelled;
    if (!try_out_) outgoing = Finish(Result<void>(Cancelled()), Cancelled());
    ticket = ticket_;
    if (try_out_ && ticket == 0) return;
  }
  if (outgoing.done) return outgoing.Send();
  TakeBack(ticket, Ending::kCancelled);
}

void Call::State::Stop() {
  Outgoing outgoing;
  {
    MutexLock lock(mutex_);
    if (!done_ || try_out_) return;
    outgoing = Finish(Result<void>(Stopped()), Stopped());
  }
  outgoing.Send();
}

// A try that can be cancelled reports kCancelled; Conclude() converts that to the right error.
void Call::State::TakeBack(Operation::Ticket ticket, Ending why) {
  if (operation_.cancel(ticket) || why != Ending::kTimedOut) return;
  Outgoing outgoing;
  {
    MutexLock lock(mutex_);
    if (!done_) return;  // the try has just reported
    core_->clock.Cancel(budget_timer_);
    outgoing.done = std::exchange(done_, nullptr);
    outgoing.result = TimedOutWhileRunning(operation_.budget, operation_.effect);
  }
  outgoing.Send();
}

// Computes the final result from the last try and the reason of the ending. A real result wins over
// a timeout or a cancellation.
Call::State::Outgoing Call::State::Conclude(Result<void> last) {
  const bool real =
      last.ok() || (last.error().code() != Errc::kCancelled && last.error().code() != Errc::kBusy);
  if (!real && ending_ == Ending::kCancelled) {
    return Finish(Result<void>(Cancelled()), Cancelled());
  }
  if (!real && ending_ == Ending::kTimedOut) {
    return Finish(std::move(last), TimedOut(operation_.budget, last_error_));
  }
  Result<void> result = last;
  return Finish(std::move(last), std::move(result));
}

Call::State::Outgoing Call::State::Finish(std::optional<Result<void>> last, Result<void> result) {
  core_->clock.Cancel(budget_timer_);
  if (wait_timer_ != 0) {
    core_->clock.Cancel(wait_timer_);
    core_->RemoveWaiting(shared_from_this());
  }
  return {.settled = std::exchange(settled_, nullptr),
          .last = std::move(last),
          .done = std::exchange(done_, nullptr),
          .result = std::move(result)};
}

void Retry::Core::Stop() {
  std::unordered_set<std::shared_ptr<Call::State>> waiting;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    while (visits_ > 0) changed_.Wait(mutex_);
    waiting.swap(waiting_);
  }
  for (const std::shared_ptr<Call::State>& state : waiting) state->Stop();
}

void Call::Cancel() {
  if (const std::shared_ptr<State> state = state_.lock()) state->Cancel();
}

Retry::Retry(Clock& clock, Options options, Random random)
    : core_(std::make_shared<Core>(clock, options, std::move(random))) {
  IL_CHECK(options.retries_max >= 0);
  IL_CHECK(options.delay_base > Duration::zero());
}

Retry::~Retry() { Stop(); }

Call Retry::Run(Operation operation, Done done, Settled settled) {
  IL_CHECK(operation.begin != nullptr);
  IL_CHECK(operation.cancel != nullptr);
  IL_CHECK(done != nullptr);
  if (core_->stopped()) {
    if (settled) settled(Stopped());
    done(Stopped());
    return {};
  }
  const auto state = std::make_shared<Call::State>(core_, std::move(operation), std::move(done),
                                                   std::move(settled));
  state->Start();
  return Call(state);
}

void Retry::Stop() { core_->Stop(); }

Duration Retry::Delay(const Options& options, int n, double random) {
  IL_CHECK(n >= 1);
  IL_CHECK(n <= options.retries_max);
  IL_CHECK(random >= 0);
  IL_CHECK(random < 1);
  const Duration delay = options.delay_base * (std::int64_t{1} << (n - 1));
  return delay +
         Duration(static_cast<std::int64_t>(static_cast<double>(delay.count()) * random / 4));
}

Retry::Random SystemRandom() {
  return [] {
    thread_local std::minstd_rand generator{std::random_device{}()};
    return std::uniform_real_distribution<double>(0, 1)(generator);
  };
}

}  // namespace interlock::resilience
