#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// Clang's thread-safety annotations; other compilers see nothing. `./dev lint` checks them.
#if defined(__clang__)
#define IL_ANNOTATION(x) __attribute__((x))
#else
#define IL_ANNOTATION(x)
#endif
#define IL_CAPABILITY(name) IL_ANNOTATION(capability(name))
#define IL_SCOPED_CAPABILITY IL_ANNOTATION(scoped_lockable)
#define IL_GUARDED_BY(mutex) IL_ANNOTATION(guarded_by(mutex))
#define IL_REQUIRES(...) IL_ANNOTATION(requires_capability(__VA_ARGS__))
#define IL_EXCLUDES(...) IL_ANNOTATION(locks_excluded(__VA_ARGS__))
#define IL_ACQUIRE(...) IL_ANNOTATION(acquire_capability(__VA_ARGS__))
#define IL_RELEASE(...) IL_ANNOTATION(release_capability(__VA_ARGS__))
#define IL_NO_THREAD_SAFETY_ANALYSIS IL_ANNOTATION(no_thread_safety_analysis)

namespace interlock {

// std::mutex, visible to the thread-safety analysis. Take it with MutexLock.
class IL_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() IL_ACQUIRE() { mutex_.lock(); }
  void Unlock() IL_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class IL_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) IL_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() IL_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Wakes may be spurious: wait in a loop over the condition.
class CondVar {
 public:
  void Wait(Mutex& mutex) IL_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    cond_.wait(lock);
    lock.release();
  }
  // False when the time was up before a wake.
  bool WaitFor(Mutex& mutex, std::chrono::microseconds limit) IL_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const auto status = cond_.wait_for(lock, limit);  // steady: a clock that jumps does no harm
    lock.release();
    return status == std::cv_status::no_timeout;
  }
  void NotifyOne() { cond_.notify_one(); }
  void NotifyAll() { cond_.notify_all(); }

 private:
  std::condition_variable cond_;
};

}  // namespace interlock
