#pragma once

#include <functional>
#include <utility>

#include "base/mutex.h"

namespace interlock::db {
class Connection;
}

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

  // `own`: the writer's connection, or null (sqlite::GroupWriter::Options::on_committed).
  void Notify(db::Connection* own) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (listener_) listener_(own);
  }

  // `listener` runs on the writer thread: quick, without throwing, without coming back here. When
  // Disconnect() has returned it is not running and never will.
  using Listener = std::function<void(db::Connection* own)>;
  void Connect(Listener listener) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    listener_ = std::move(listener);
  }
  void Disconnect() IL_EXCLUDES(mutex_) { Connect(nullptr); }

 private:
  Mutex mutex_;
  Listener listener_ IL_GUARDED_BY(mutex_);
};

}  // namespace interlock::service
