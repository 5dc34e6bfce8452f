#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/result.h"

namespace interlock::resilience {

// Receives the result of an operation. Must be quick and must not throw.
using Done = std::move_only_function<void(Result<void>)>;

// Receives the result of the last try of an operation; see Retry::Run().
using Settled = std::move_only_function<void(const Result<void>&)>;

// Whether an operation changes data. This decides the error if the budget runs out during a try.
enum class Effect : std::uint8_t {
  kNone,     // a read: kStorageTimeout, nothing has changed
  kChanges,  // a write: kOutcomeUnknown, because it may still be committed
};

// An asynchronous operation that can be tried more than once.
struct Operation {
  using Ticket = std::uint64_t;  // identifies an accepted try; 0 = none

  // Starts one try without waiting. If accepted, `done` runs exactly once, on any thread, possibly
  // before this returns. If rejected (an error or an exception), `done` never runs.
  std::function<Result<Ticket>(std::function<void(Result<void>)> done)> begin = nullptr;

  // Returns true if the try had not begun. It will never begin; its `done` received kCancelled.
  std::function<bool(Ticket)> cancel = nullptr;

  Effect effect = Effect::kChanges;

  // The time limit of the whole operation: queues, tries and the waits between them.
  Duration budget = std::chrono::seconds(10);
};

// A handle of a running operation. Copies refer to the same operation and do not keep it alive.
class Call {
 public:
  Call() = default;  // refers to a finished operation

  // Cancels the operation. If it is queued or waits for its next try, it ends at once: `done`
  // receives kCancelled before this returns. If a try is running, `done` receives the result of
  // that try, which may have been committed, and no further try follows. A finished operation is
  // not affected.
  void Cancel();

 private:
  friend class Retry;
  class State;
  explicit Call(const std::shared_ptr<State>& state) : state_(state) {}
  std::weak_ptr<State> state_;
};

// Repeats an operation that finds the database locked (kBusy, the only error that goes away without
// help) after 50, 100, 200 … 3200 ms. Each delay is extended by up to a quarter at random, so that
// processes that collided do not collide again. Every other result ends the operation at once.
// After the last retry, its error is the result.
//
// Thread-safe. No thread blocks between tries: the Clock runs the timers. Invariants:
// (1) `done` runs exactly once per Run(), without a lock held. Its thread is the caller of Run() if
//     the first try is rejected, the caller of Cancel(), the clock's thread if the budget runs out
//     or a later try is rejected, and otherwise the thread on which the try reported.
// (2) At most one try of an operation is in progress at a time.
// (3) If the budget runs out, the caller is informed at once. A queued try is cancelled and a wait
//     ends: kStorageTimeout. A running try cannot be cancelled: a read gets kStorageTimeout, a
//     write kOutcomeUnknown, because it may be committed a moment later and "timed out" would be
//     understood as "not done". The operation does not wait for the real result, because a commit
//     that hangs for 10 s may hang forever. Therefore the data of a try must outlive its caller.
class Retry {
 public:
  struct Options {
    int retries_max = 7;
    Duration delay_base = std::chrono::milliseconds(50);
  };
  using Random = std::function<double()>;  // uniform in [0, 1); thread-safe

  Retry(Clock& clock, Options options, Random random);
  ~Retry();  // Stop()
  Retry(const Retry&) = delete;
  Retry& operator=(const Retry&) = delete;

  // `settled` receives the result of the last try, or kCancelled if the caller cancelled between
  // tries; it serves to track the health of storage. It runs once, just before `done`. Exception:
  // if the budget runs out during a try, it runs later, when that try reports. If the try never
  // reports, `settled` is destroyed without being run. The same happens if `begin`, the clock's
  // Schedule() or the random source throws; `done` then receives kInternal.
  Call Run(Operation operation, Done done, Settled settled = nullptr);

  // For shutdown, before the resources of `begin` and `cancel` are closed. Operations that wait for
  // their next try end at once with kUnavailable. Running tries report as usual but are not
  // repeated. New operations are rejected. After this returns, the clock's thread never calls
  // `begin` or `cancel` again, and Cancel() and budgets have no effect.
  // REQUIRES: not called from a `done`.
  void Stop();

  // Returns the delay before retry `n` (from 1) for a random number in [0, 1).
  static Duration Delay(const Options& options, int n, double random);

 private:
  friend class Call::State;
  class Core;
  std::shared_ptr<Core> core_;
};

// The random source of production: each thread has its own generator, seeded by the system.
Retry::Random SystemRandom();

}  // namespace interlock::resilience
