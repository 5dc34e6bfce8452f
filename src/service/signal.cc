#include "service/signal.h"

#include <utility>

#include "service/wait.h"

namespace interlock::service {

void Signal::Set() {
  std::function<void()> wake;
  {
    MutexLock lock(mutex_);
    wake = std::exchange(wake_, nullptr);
    set_ = wake == nullptr;
  }
  if (wake) wake();
}

bool Signal::Arm(std::function<void()> wake) {
  MutexLock lock(mutex_);
  if (std::exchange(set_, false)) return false;
  wake_ = std::move(wake);
  return true;
}

boost::asio::awaitable<void> WaitFor(std::shared_ptr<Signal> signal) {
  auto arm = [signal](std::function<void()> wake) { return signal->Arm(std::move(wake)); };
  auto cancel = [signal] { signal->Set(); };
  co_await internal::WaitUntilWoken(std::move(arm), std::move(cancel));
}

}  // namespace interlock::service
