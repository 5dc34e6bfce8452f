#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/result.h"

namespace interlock::resilience {

// Told how an operation ended. Must be quick and must not throw.
using Done = std::move_only_function<void(Result<void>)>;

// Told what the last try of an operation said; see Retry::Run().
using Settled = std::move_only_function<void(const Result<void>&)>;

// What an operation leaves behind, which decides what may be said when its time runs out while a
// try is running.
enum class Effect : std::uint8_t {
  kNone,     // a read: kStorageTimeout, and nothing has happened
  kChanges,  // a write: kOutcomeUnknown, for it may still be committed
};

// Something asynchronous that can be tried more than once.
struct Operation {
  using Ticket = std::uint64_t;  // names a try that was accepted; 0 is none

  // Starts one try, without waiting. Accepted: `done` runs exactly once, on any thread, even before
  // this returns. Refused (an error, or an exception): `done` never runs.
  std::function<Result<Ticket>(std::function<void(Result<void>)> done)> begin = nullptr;

  // True: that try had not begun, never will, and its `done` has been called with kCancelled.
  std::function<bool(Ticket)> cancel = nullptr;

  Effect effect = Effect::kChanges;

  // For everything: queues, tries and the waits between them.
  Duration budget = std::chrono::seconds(10);
};

// An operation under way. Copies name the same one; it does not keep the operation alive.
class Call {
 public:
  Call() = default;  // one that is over

  // The caller no longer wants it. If it is queued or waits for its next try it ends at once: its
  // `done` hears kCancelled before this returns. If a try is running its own result will be told
  // (it may have been committed), but no further try is made. Nothing happens when it is over.
  void Cancel();

 private:
  friend class Retry;
  class State;
  explicit Call(const std::shared_ptr<State>& state) : state_(state) {}
  std::weak_ptr<State> state_;
};

// Repeats an operation that finds the database locked (kBusy, the one failure that goes away by
// itself) after 50, 100, 200 … 3200 ms, each lengthened by up to a quarter at random so that
// processes that collided do not collide again. Every other result ends it at once; after the last
// retry the last error is the result.
//
// Thread-safe. No thread is held between tries: the waiting is done by the Clock. Invariants:
// (1) `done` runs exactly once per Run(), with no lock held. On which thread: the one that called
//     Run() if the first try is refused, the one that called Cancel(), the clock's when the budget
//     is used up or a later try is refused, otherwise the one on which the try reported.
// (2) At most one try of an operation is out at a time.
// (3) When the budget is used up the caller is told at once. A queued try is taken back, and a wait
//     ends: kStorageTimeout. A try that is running cannot be taken back: a read is told
//     kStorageTimeout, a write kOutcomeUnknown, since it may be committed a moment later and "timed
//     out" would be heard as "not done". We do not wait for the truth, because what holds a commit
//     up for 10 s may hold it up for ever. Hence what a try touches must not die with its caller.
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

  // `settled` is for whoever keeps count of storage's health: it hears what the last try said, or
  // kCancelled if the caller gave up between tries. It runs once, just before `done`, except when
  // the budget is used up on a running try: then later, when that try reports. If that never
  // happens, `settled` is destroyed without being run; so it is when `begin`, the clock's
  // Schedule() or the random numbers throw, of which `done` hears as kInternal.
  Call Run(Operation operation, Done done, Settled settled = nullptr);

  // For shutdown, before what `begin` and `cancel` use is closed. Operations that wait for their
  // next try end at once with kUnavailable; tries that are out report as usual, but are not
  // repeated; new operations are refused. When it returns the clock's thread is outside `begin` and
  // `cancel` and will not enter them again; Cancel() and budgets have no effect any more.
  // REQUIRES: not called from a `done`.
  void Stop();

  // The wait before retry `n` (from 1) for a random number in [0, 1).
  static Duration Delay(const Options& options, int n, double random);

 private:
  friend class Call::State;
  class Core;
  std::shared_ptr<Core> core_;
};

// A Random for production: each thread has its own generator, seeded by the system.
Retry::Random SystemRandom();

}  // namespace interlock::resilience
