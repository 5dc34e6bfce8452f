#pragma once

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <utility>

// The bridge from callbacks of other threads to a coroutine that waits for one; for wait_outbox.cc
// and signal.cc.
namespace interlock::service::internal {

// A coroutine that waits. `handler` belongs to its strand.
struct Waiter {
  boost::asio::any_io_executor executor;  // counts as work while somebody waits
  boost::asio::any_completion_handler<void()> handler;

  // Once, from any thread.
  static void Wake(std::shared_ptr<Waiter> waiter) {
    const boost::asio::any_io_executor executor = waiter->executor;
    boost::asio::post(executor, [waiter = std::move(waiter)]() mutable {
      auto slot = boost::asio::get_associated_cancellation_slot(waiter->handler);
      if (slot.is_connected()) slot.clear();
      auto handler = std::move(waiter->handler);
      waiter.reset();  // the work it counts ends before the coroutine goes on
      std::move(handler)();
    });
  }
};

// Waits until arm(wake) has its `wake` called, or says by false that there is nothing to wait for.
// Cancelling the coroutine calls cancel(), which must see to it that `wake` is called.
//
// REQUIRES: the coroutine runs on a strand, and its cancellation is emitted there.
template <typename Arm, typename Cancel>
boost::asio::awaitable<void> WaitUntilWoken(Arm arm, Cancel cancel) {
  namespace asio = boost::asio;
  asio::any_io_executor executor = asio::prefer(co_await asio::this_coro::executor,
                                                asio::execution::outstanding_work_t::tracked);
  auto initiate = [executor = std::move(executor), arm = std::move(arm),
                   cancel = std::move(cancel)](auto handler) mutable {
    auto waiter = std::make_shared<Waiter>(std::move(executor), std::move(handler));
    auto slot = asio::get_associated_cancellation_slot(waiter->handler);
    if (slot.is_connected()) {
      slot.assign([cancel = std::move(cancel)](asio::cancellation_type) mutable { cancel(); });
    }
    const bool armed = arm([waiter] { Waiter::Wake(waiter); });
    if (!armed) Waiter::Wake(std::move(waiter));
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(std::move(initiate),
                                                                       asio::use_awaitable);
}

}  // namespace interlock::service::internal
