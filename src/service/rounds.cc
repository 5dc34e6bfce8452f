#include "service/rounds.h"

#include <utility>

namespace interlock::service {

void Rounds::Schedule(Duration delay, std::function<void()> begin) {
  MutexLock lock(mutex_);
  busy_ = false;
  idle_.NotifyAll();
  if (stopped_) return;
  timer_ = clock_.Schedule(delay, [this, begin = std::move(begin)] {
    if (Enter()) begin();
  });
}

bool Rounds::Enter() {
  MutexLock lock(mutex_);
  timer_ = 0;
  busy_ = !stopped_;
  return busy_;
}

bool Rounds::Stop() {
  MutexLock lock(mutex_);
  const bool first = !std::exchange(stopped_, true);
  if (timer_ != 0) clock_.Cancel(std::exchange(timer_, 0));
  while (busy_) idle_.Wait(mutex_);
  return first;
}

bool Rounds::stopped() {
  MutexLock lock(mutex_);
  return stopped_;
}

}  // namespace interlock::service
