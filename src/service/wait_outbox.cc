#include "service/wait_outbox.h"

#include <functional>
#include <utility>

#include "service/wait.h"

namespace interlock::service {

boost::asio::awaitable<void> WaitFor(std::shared_ptr<events::Outbox> outbox) {
  auto arm = [outbox](std::function<void()> wake) { return outbox->Arm(std::move(wake)); };
  auto cancel = [outbox] { outbox->Close(events::Outbox::State::kClosed); };
  co_await internal::WaitUntilWoken(std::move(arm), std::move(cancel));
}

}  // namespace interlock::service
