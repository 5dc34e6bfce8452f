#include "base/clock.h"

#include <map>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace interlock {

// Timers by due time; ids rise, so equal times run in the order they were scheduled.
class SystemClock::Timers {
 public:
  explicit Timers(SystemClock& clock) : clock_(clock) {}

  ~Timers() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    if (thread_.joinable()) thread_.join();
  }

  TimerId Schedule(Duration due, std::function<void()> fn) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const TimerId id = ++last_id_;
    waiting_.emplace(std::pair(due, id), std::move(fn));
    due_by_id_.emplace(id, due);
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
    // The thread sleeps until the first timer; one that comes later need not wake it.
    if (waiting_.begin()->first.second == id) changed_.NotifyAll();
    return id;
  }

  bool Cancel(TimerId id) IL_EXCLUDES(mutex_) {
    std::function<void()> dropped;  // its captures die outside the lock
    MutexLock lock(mutex_);
    const auto found = due_by_id_.find(id);
    if (found == due_by_id_.end()) return false;
    const auto timer = waiting_.find(std::pair(found->second, id));
    dropped = std::move(timer->second);
    waiting_.erase(timer);
    due_by_id_.erase(found);
    return true;
  }

 private:
  void Run() IL_EXCLUDES(mutex_) {
    while (std::function<void()> fn = NextDue()) fn();
  }

  // Waits for a timer to fall due; empty when stopping.
  std::function<void()> NextDue() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!stopping_) {
      if (waiting_.empty()) {
        changed_.Wait(mutex_);
        continue;
      }
      const auto first = waiting_.begin();
      const Duration left = first->first.first - clock_.Monotonic();
      if (left > Duration::zero()) {
        changed_.WaitFor(mutex_, left);
        continue;
      }
      std::function<void()> fn = std::move(first->second);
      due_by_id_.erase(first->first.second);
      waiting_.erase(first);
      return fn;
    }
    return {};
  }

  SystemClock& clock_;
  Mutex mutex_;
  CondVar changed_;
  std::map<std::pair<Duration, TimerId>, std::function<void()>> waiting_ IL_GUARDED_BY(mutex_);
  std::map<TimerId, Duration> due_by_id_ IL_GUARDED_BY(mutex_);
  TimerId last_id_ IL_GUARDED_BY(mutex_) = 0;
  bool stopping_ IL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // started under mutex_, joined by the destructor
};

SystemClock::SystemClock() : timers_(std::make_unique<Timers>(*this)) {}
SystemClock::~SystemClock() = default;

Timestamp SystemClock::Now() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<Duration>(since_epoch).count()};
}

Duration SystemClock::Monotonic() {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
}

Clock::TimerId SystemClock::Schedule(Duration delay, std::function<void()> fn) {
  return timers_->Schedule(Monotonic() + delay, std::move(fn));
}

bool SystemClock::Cancel(TimerId id) { return timers_->Cancel(id); }

}  // namespace interlock
