#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>

#include "base/mutex.h"

namespace interlock::service {

// Wakes one coroutine from any thread. A wake that comes while nobody waits is kept for the next
// wait; several become one.
//
// Thread-safe; at most one coroutine waits.
class Signal {
 public:
  void Set() IL_EXCLUDES(mutex_);

  // `wake` is called once, by the next Set(). False: it was set already, which is used up.
  bool Arm(std::function<void()> wake) IL_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  bool set_ IL_GUARDED_BY(mutex_) = false;
  std::function<void()> wake_ IL_GUARDED_BY(mutex_);
};

// Waits for Set(), and resumes on the coroutine's own executor. Cancelling the coroutine sets the
// signal. The wait counts as work of the execution context.
//
// REQUIRES: the coroutine runs on a strand, and its cancellation is emitted there.
boost::asio::awaitable<void> WaitFor(std::shared_ptr<Signal> signal);

}  // namespace interlock::service
