#include "testing/fake_clock.h"

namespace interlock::testing {

Timestamp FakeClock::Now() {
  MutexLock lock(mutex_);
  return now_;
}

Duration FakeClock::Monotonic() {
  MutexLock lock(mutex_);
  return monotonic_;
}

Clock::TimerId FakeClock::Schedule(Duration delay, std::function<void()> fn) {
  MutexLock lock(mutex_);
  const TimerId id = ++last_id_;
  waiting_.emplace(std::pair(monotonic_ + delay, id), std::move(fn));
  return id;
}

bool FakeClock::Cancel(TimerId id) {
  std::function<void()> dropped;  // its captures die outside the lock
  MutexLock lock(mutex_);
  for (auto timer = waiting_.begin(); timer != waiting_.end(); ++timer) {
    if (timer->first.second != id) continue;
    dropped = std::move(timer->second);
    waiting_.erase(timer);
    return true;
  }
  return false;
}

void FakeClock::Advance(Duration by) {
  Duration end;
  {
    MutexLock lock(mutex_);
    end = monotonic_ + by;
  }
  while (true) {
    std::function<void()> fn;
    {
      MutexLock lock(mutex_);
      const auto first = waiting_.begin();
      if (first == waiting_.end() || first->first.first > end) {
        if (end > monotonic_) {
          now_ = now_ + (end - monotonic_);
          monotonic_ = end;
        }
        return;
      }
      if (first->first.first > monotonic_) {
        now_ = now_ + (first->first.first - monotonic_);
        monotonic_ = first->first.first;
      }
      fn = std::move(first->second);
      waiting_.erase(first);
    }
    fn();
  }
}

void FakeClock::JumpWallClock(Duration by) {
  MutexLock lock(mutex_);
  now_ = now_ + by;
}

std::size_t FakeClock::timers_waiting() {
  MutexLock lock(mutex_);
  return waiting_.size();
}

Duration FakeClock::NextTimerIn() {
  MutexLock lock(mutex_);
  if (waiting_.empty()) return Duration::zero();
  return waiting_.begin()->first.first - monotonic_;
}

bool FakeClock::AdvanceToNextTimer() {
  if (timers_waiting() == 0) return false;
  Advance(NextTimerIn());
  return true;
}

}  // namespace interlock::testing
