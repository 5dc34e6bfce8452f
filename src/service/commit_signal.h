#pragma once

#include <functional>
#include <utility>

#include "base/mutex.h"

namespace interlock::service {

// Carries the database's "something may have been committed" to whoever wants to know, who is built
// after the database and gone before it.
//
// Thread-safe. `Notify` is what DatabaseOptions::on_committed is to call.
class CommitSignal {
 public:
  CommitSignal() = default;
  CommitSignal(const CommitSignal&) = delete;
  CommitSignal& operator=(const CommitSignal&) = delete;

  void Notify() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (listener_) listener_();
  }

  // `listener` runs on the writer thread: quick, without throwing, without coming back here. When
  // Disconnect() has returned it is not running and never will.
  void Connect(std::function<void()> listener) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    listener_ = std::move(listener);
  }
  void Disconnect() IL_EXCLUDES(mutex_) { Connect(nullptr); }

 private:
  Mutex mutex_;
  std::function<void()> listener_ IL_GUARDED_BY(mutex_);
};

}  // namespace interlock::service
