#include "service/await.h"

#include <atomic>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <string>

namespace interlock::service::internal {
namespace {

using Start = std::move_only_function<Cancel(Storage::Done)>;

// One awaited call. `handler_`, `cancel_` belong to the coroutine's strand; Deliver() may come from
// any thread, and only the first one counts.
class Bridge : public std::enable_shared_from_this<Bridge> {
 public:
  using Handler = boost::asio::any_completion_handler<void(Result<void>)>;

  Bridge(boost::asio::any_io_executor executor, Handler handler)
      : executor_(boost::asio::prefer(std::move(executor),
                                      boost::asio::execution::outstanding_work_t::tracked)),
        handler_(std::move(handler)) {}

  void Begin(Start start) {
    auto slot = boost::asio::get_associated_cancellation_slot(handler_);
    if (slot.is_connected()) {
      slot.assign([weak = weak_from_this()](boost::asio::cancellation_type) {
        const auto self = weak.lock();
        if (self && self->cancel_) self->cancel_();
      });
    }
    try {
      cancel_ = start(Storage::Done(Promise(shared_from_this())));
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
    void operator()(Result<void> result) {
      auto bridge = std::exchange(bridge_, nullptr);
      if (bridge) bridge->Deliver(std::move(result));
    }

   private:
    std::shared_ptr<Bridge> bridge_;
  };

  void Deliver(Result<void> result) {
    if (delivered_.exchange(true)) return;
    boost::asio::post(executor_, [self = shared_from_this(), result = std::move(result)]() mutable {
      auto slot = boost::asio::get_associated_cancellation_slot(self->handler_);
      if (slot.is_connected()) slot.clear();
      Handler handler = std::move(self->handler_);
      self.reset();  // the work it counts ends before the coroutine goes on
      std::move(handler)(std::move(result));
    });
  }

  boost::asio::any_io_executor executor_;  // counts as work while the call is out
  Handler handler_;
  Cancel cancel_;
  std::atomic<bool> delivered_{false};
};

}  // namespace

boost::asio::awaitable<Result<void>> AwaitDone(Start start) {
  auto initiate = [](auto handler, Start begin) {
    boost::asio::any_io_executor executor = boost::asio::get_associated_executor(handler);
    auto bridge = std::make_shared<Bridge>(std::move(executor), std::move(handler));
    bridge->Begin(std::move(begin));
  };
  return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(Result<void>)>(
      std::move(initiate), boost::asio::use_awaitable, std::move(start));
}

}  // namespace interlock::service::internal
