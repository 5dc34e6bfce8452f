#include "service/await.h"

#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <optional>
#include <stdexcept>
#include <thread>

#include "testing/fake_clock.h"
#include "testing/fake_database.h"

namespace interlock::service {
namespace {

namespace asio = boost::asio;

class AwaitTest : public ::testing::Test {
 public:
  ~AwaitTest() override { storage_.Stop(); }

 protected:
  // Runs one coroutine that awaits `start`; its result lands in result_.
  template <typename Start>
  void Spawn(Start start) {
    asio::co_spawn(strand_, Body(std::move(start)),
                   asio::bind_cancellation_slot(cancel_.slot(), [](const std::exception_ptr& e) {
                     if (e) std::rethrow_exception(e);
                   }));
  }
  template <typename Start>
  asio::awaitable<void> Body(Start start) {
    co_await asio::this_coro::throw_if_cancelled(false);
    result_ = co_await Await<void>(std::move(start));
    resumed_on_ = std::this_thread::get_id();
  }
  auto Ping() {
    return [this](Storage::Done done) {
      return storage_.Ping(std::chrono::seconds(1), std::move(done));
    };
  }
  auto Read() {
    return [this](Storage::Done done) {
      return storage_.Read([](db::Connection&) { return Result<void>(); }, std::move(done));
    };
  }
  // A turn of the loop without waiting.
  void Turn() {
    io_.restart();
    io_.poll();
  }
  void Cancel() {
    asio::post(strand_, [this] { cancel_.emit(asio::cancellation_type::terminal); });
    Turn();
  }

  testing::FakeClock clock_;
  testing::FakeDatabase database_;
  Storage storage_{database_, clock_};
  asio::io_context io_;
  asio::strand<asio::io_context::executor_type> strand_{io_.get_executor()};
  asio::cancellation_signal cancel_;
  std::optional<Result<void>> result_;
  std::thread::id resumed_on_;
};

TEST_F(AwaitTest, AnAnswerBeforeTheStartReturnsIsHeard) {
  Spawn(Read());
  Turn();
  ASSERT_TRUE(result_);
  EXPECT_TRUE(result_->ok());
}

TEST_F(AwaitTest, TheCoroutineResumesOnItsOwnThreadAndKeepsTheContextRunning) {
  database_.Hold();
  Spawn(Read());
  Turn();
  ASSERT_EQ(database_.held(), 1U);
  std::thread storage([&] { database_.Answer(Error(Errc::kNotFound, "gone")); });
  io_.restart();
  io_.run();  // returns only when the answer has come: the call counts as work
  storage.join();
  ASSERT_TRUE(result_);
  EXPECT_EQ(result_->error().code(), Errc::kNotFound);
  EXPECT_EQ(resumed_on_, std::this_thread::get_id());
}

TEST_F(AwaitTest, CancellingEndsACallThatHasNotBegun) {
  database_.Hold();
  Spawn(Read());
  Turn();
  EXPECT_FALSE(result_);
  Cancel();
  ASSERT_TRUE(result_);
  EXPECT_EQ(result_->error().code(), Errc::kCancelled);
  EXPECT_EQ(database_.held(), 0U);
}

TEST_F(AwaitTest, CancellingARunningCallWaitsForItsOwnResult) {
  database_.Hold();
  Spawn(Read());
  Turn();
  database_.StartHeld();
  Cancel();
  EXPECT_FALSE(result_);
  database_.Answer({});
  Turn();
  ASSERT_TRUE(result_);
  EXPECT_TRUE(result_->ok());
}

TEST_F(AwaitTest, CancellingAfterTheAnswerChangesNothing) {
  database_.Hold();
  Spawn(Read());
  Turn();
  database_.Answer({});
  Cancel();
  ASSERT_TRUE(result_);
  EXPECT_TRUE(result_->ok());
  Cancel();  // nobody listens any more
}

TEST_F(AwaitTest, ACallThatIsLostBecomesAnErrorInsteadOfASilence) {
  Spawn([](Storage::Done done) {
    const Storage::Done dropped = std::move(done);
    return Storage::Call();
  });
  Turn();
  ASSERT_TRUE(result_);
  EXPECT_EQ(result_->error().code(), Errc::kInternal);
}

TEST_F(AwaitTest, AStartThatThrowsBecomesAnError) {
  Spawn([](Storage::Done) -> Storage::Call { throw std::runtime_error("no thread left"); });
  Turn();
  ASSERT_TRUE(result_);
  EXPECT_EQ(result_->error().code(), Errc::kInternal);
}

TEST_F(AwaitTest, AStorageThatHangsIsGivenUpWhenTheBudgetIsUsedUp) {
  database_.Hold();
  Spawn(Ping());
  Turn();
  clock_.Advance(std::chrono::milliseconds(999));
  Turn();
  EXPECT_FALSE(result_);
  clock_.Advance(std::chrono::milliseconds(1));
  Turn();
  ASSERT_TRUE(result_);
  EXPECT_EQ(result_->error().code(), Errc::kStorageTimeout);
  database_.Answer({});  // too late, and harmless
  Turn();
}

TEST_F(AwaitTest, ManyAnswersFromOtherThreadsAllArriveOnce) {
  constexpr std::size_t kCalls = 2000;
  database_.Hold();
  std::size_t heard = 0;
  for (std::size_t i = 0; i < kCalls; ++i) {
    asio::co_spawn(strand_, Await<void>(Read()),
                   [&heard](const std::exception_ptr& thrown, const Result<void>& result) {
                     if (!thrown && result.ok()) ++heard;
                   });
  }
  std::thread storage([&] {
    for (std::size_t answered = 0; answered < kCalls;) answered += database_.Answer({});
  });
  io_.run();
  storage.join();
  EXPECT_EQ(heard, kCalls);
}

}  // namespace
}  // namespace interlock::service
