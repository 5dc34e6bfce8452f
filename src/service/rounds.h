#pragma once

#include <functional>

#include "base/clock.h"
#include "base/mutex.h"

namespace interlock::service {

// The rounds of work that repeats: at most one is under way, and Stop() waits for it. A round may
// end on another thread than it began on.
//
// Thread-safe. Driven by the clock, which must outlive it; no thread of its own.
class Rounds {
 public:
  explicit Rounds(Clock& clock) : clock_(clock) {}

  // Ends the round under way, if there is one, and begins the next after `delay`, on the clock's
  // thread; none begins after Stop(). `begin` must keep the owner of this alive, and its round ends
  // with another Schedule().
  void Schedule(Duration delay, std::function<void()> begin) IL_EXCLUDES(mutex_);

  // Waits for the round under way; none begins any more. True the first time. REQUIRES: not on a
  // thread that ends a round.
  bool Stop() IL_EXCLUDES(mutex_);

  // A long round looks at it between two steps.
  bool stopped() IL_EXCLUDES(mutex_);

 private:
  bool Enter() IL_EXCLUDES(mutex_);

  Clock& clock_;
  Mutex mutex_;
  CondVar idle_;
  bool busy_ IL_GUARDED_BY(mutex_) = false;
  bool stopped_ IL_GUARDED_BY(mutex_) = false;
  Clock::TimerId timer_ IL_GUARDED_BY(mutex_) = 0;
};

}  // namespace interlock::service
