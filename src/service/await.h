#pragma once

#include <atomic>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "base/result.h"
#include "service/storage.h"

namespace interlock::service {

// The one bridge from storage, which answers by calling back on its own threads, to coroutines:
//
//   auto agent = co_await Await<Agent>([&](Storage::DoneWith<Agent> done) {
//     return storage.Read<Agent>(FindAgent{id}, std::move(done));
//   });
//
// The coroutine resumes on its own executor, never on a storage thread. Cancelling it (the client
// went away, the server stops) cancels the call: one that has not begun ends with kCancelled, one
// that is running tells its own result. A callback that is dropped uncalled, or a start that
// throws, becomes kInternal instead of a coroutine that waits for ever.
//
// REQUIRES: the coroutine runs on a strand, and its cancellation is emitted there. The storage is
// closed before the execution context is destroyed; pending calls keep the context running.
// Start: Call(move-only function of Result<T>), where a Call has Cancel(), as Storage::Call does.
template <typename T, typename Start>
boost::asio::awaitable<Result<T>> Await(Start start);

// The same for one function on the database, which is most of what use cases do.
template <typename T>
boost::asio::awaitable<Result<T>> AwaitRead(Storage& storage,
                                            std::function<Result<T>(db::Connection&)> fn);
template <typename T>
boost::asio::awaitable<Result<T>> AwaitWrite(Storage& storage,
                                             std::function<Result<T>(db::Transaction&)> fn);

namespace internal {

// One awaited call. `handler_`, `call_` belong to the coroutine's strand; Deliver() may come from
// any thread, and only the first one counts.
template <typename T, typename Call>
class Bridge : public std::enable_shared_from_this<Bridge<T, Call>> {
 public:
  using Handler = boost::asio::any_completion_handler<void(Result<T>)>;

  Bridge(boost::asio::any_io_executor executor, Handler handler)
      : executor_(boost::asio::prefer(std::move(executor),
                                      boost::asio::execution::outstanding_work_t::tracked)),
        handler_(std::move(handler)) {}

  template <typename Start>
  void Begin(Start start) {  // NOLINT(performance-unnecessary-value-param): it may be a const one
    auto slot = boost::asio::get_associated_cancellation_slot(handler_);
    if (slot.is_connected()) {
      slot.assign([weak = this->weak_from_this()](boost::asio::cancellation_type) {
        if (auto self = weak.lock()) self->call_.Cancel();
      });
    }
    try {
      call_ = std::move(start)(Storage::DoneWith<T>(Promise(this->shared_from_this())));
    } catch (const std::exception& e) {
      Deliver(Error(Errc::kInternal, std::string("starting a storage call threw: ") + e.what()));
    }
  }

 private:
  // What storage holds of us: delivers once, at the latest when it is destroyed.
  class Promise {
   public:
    explicit Promise(std::shared_ptr<Bridge> bridge) : bridge_(std::move(bridge)) {}
    Promise(Promise&&) noexcept = default;
    Promise& operator=(Promise&&) = delete;
    ~Promise() {
      if (bridge_) bridge_->Deliver(Error(Errc::kInternal, "a storage call was lost"));
    }
    void operator()(Result<T> result) {
      auto bridge = std::exchange(bridge_, nullptr);
      if (bridge) bridge->Deliver(std::move(result));
    }

   private:
    std::shared_ptr<Bridge> bridge_;
  };

  void Deliver(Result<T> result) {
    if (delivered_.exchange(true)) return;
    boost::asio::post(executor_,
                      [self = this->shared_from_this(), result = std::move(result)]() mutable {
                        auto slot = boost::asio::get_associated_cancellation_slot(self->handler_);
                        if (slot.is_connected()) slot.clear();
                        Handler handler = std::move(self->handler_);
                        self.reset();  // the work it counts ends before the coroutine goes on
                        std::move(handler)(std::move(result));
                      });
  }

  boost::asio::any_io_executor executor_;  // counts as work while the call is out
  Handler handler_;
  Call call_;
  std::atomic<bool> delivered_{false};
};

}  // namespace internal

template <typename T, typename Start>
boost::asio::awaitable<Result<T>> Await(Start start) {
  const boost::asio::any_io_executor executor = co_await boost::asio::this_coro::executor;
  using Call = std::invoke_result_t<Start, Storage::DoneWith<T>>;
  auto initiate = [executor](auto handler, Start begin) {
    auto bridge = std::make_shared<internal::Bridge<T, Call>>(executor, std::move(handler));
    bridge->Begin(std::move(begin));
  };
  co_return co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>,
                                                 void(Result<T>)>(
      std::move(initiate), boost::asio::use_awaitable, std::move(start));
}

template <typename T>
boost::asio::awaitable<Result<T>> AwaitRead(Storage& storage,
                                            std::function<Result<T>(db::Connection&)> fn) {
  auto start = [&storage, &fn](Storage::DoneWith<T> done) {
    return storage.Read<T>(std::move(fn), std::move(done));
  };
  co_return co_await Await<T>(start);
}

template <typename T>
boost::asio::awaitable<Result<T>> AwaitWrite(Storage& storage,
                                             std::function<Result<T>(db::Transaction&)> fn) {
  auto start = [&storage, &fn](Storage::DoneWith<T> done) {
    return storage.Write<T>(std::move(fn), std::move(done));
  };
  co_return co_await Await<T>(start);
}

}  // namespace interlock::service
