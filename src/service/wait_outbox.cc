#include "service/wait_outbox.h"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace interlock::service {
namespace {

namespace asio = boost::asio;

// A coroutine that waits. `handler` belongs to its strand.
struct Waiter {
  asio::any_io_executor executor;  // counts as work while somebody waits
  asio::any_completion_handler<void()> handler;

  // Once, from any thread.
  static void Wake(std::shared_ptr<Waiter> waiter) {
    const asio::any_io_executor executor = waiter->executor;
    asio::post(executor, [waiter = std::move(waiter)]() mutable {
      auto slot = asio::get_associated_cancellation_slot(waiter->handler);
      if (slot.is_connected()) slot.clear();
      auto handler = std::move(waiter->handler);
      waiter.reset();  // the work it counts ends before the coroutine goes on
      std::move(handler)();
    });
  }
};

}  // namespace

asio::awaitable<void> WaitFor(std::shared_ptr<events::Outbox> outbox) {
  asio::any_io_executor executor = asio::prefer(co_await asio::this_coro::executor,
                                                asio::execution::outstanding_work_t::tracked);
  auto initiate = [executor = std::move(executor), outbox](auto handler) mutable {
    auto waiter = std::make_shared<Waiter>(std::move(executor), std::move(handler));
    auto slot = asio::get_associated_cancellation_slot(waiter->handler);
    if (slot.is_connected()) {
      slot.assign(
          [outbox](asio::cancellation_type) { outbox->Close(events::Outbox::State::kClosed); });
    }
    const bool armed = outbox->Arm([waiter] { Waiter::Wake(waiter); });
    if (!armed) Waiter::Wake(std::move(waiter));
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(std::move(initiate),
                                                                       asio::use_awaitable);
}

}  // namespace interlock::service
