#pragma once

#include <functional>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace interlock::testing {

// Time that moves only when a test says so. Advance() runs the timers that fall due, in order, on
// the calling thread, with Monotonic() standing at each one's due time while it runs.
//
// Thread-safe.
class FakeClock final : public Clock {
 public:
  // 2026-01-02T03:04:05Z: a date whose parts differ, so that a swapped field shows.
  explicit FakeClock(Timestamp start = {1'767'323'045'000'000}) : now_(start) {}

  Timestamp Now() override;
  Duration Monotonic() override;
  TimerId Schedule(Duration delay, std::function<void()> fn) override;
  bool Cancel(TimerId id) override;

  void Advance(Duration by) IL_EXCLUDES(mutex_);
  // The wall clock jumps, forwards or back; monotonic time and timers do not notice.
  void JumpWallClock(Duration by) IL_EXCLUDES(mutex_);
  // How many timers wait, and how long the first has left (zero when there is none).
  std::size_t timers_waiting() IL_EXCLUDES(mutex_);
  Duration NextTimerIn() IL_EXCLUDES(mutex_);
  // Advances to the next timer and runs it. False when none waits.
  bool AdvanceToNextTimer() IL_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  Timestamp now_ IL_GUARDED_BY(mutex_);
  Duration monotonic_ IL_GUARDED_BY(mutex_){0};
  std::map<std::pair<Duration, TimerId>, std::function<void()>> waiting_ IL_GUARDED_BY(mutex_);
  TimerId last_id_ IL_GUARDED_BY(mutex_) = 0;
};

}  // namespace interlock::testing
