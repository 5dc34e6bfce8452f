#pragma once

#include <gtest/gtest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "db/migrate.h"
#include "db/sqlite/database.h"
#include "service/storage.h"
#include "store/schema.h"
#include "testing/fake_clock.h"
#include "testing/seeded_random.h"
#include "testing/temp_db.h"

namespace interlock::service {

// A test of use cases on the real database with its threads. `clock_` is for the use cases and
// moves by hand; storage has the machine's.
class ServiceTest : public ::testing::Test {
 public:
  ~ServiceTest() override {
    storage_->Stop();
    EXPECT_TRUE(database_->Close().ok());
    work_.reset();
    thread_.join();
  }

 protected:
  ServiceTest() {
    EXPECT_TRUE(db::Migrator(store::ServerSchema(), {.database = file_.path()}, system_clock_)
                    .Run(*file_.Open())
                    .ok());
    sqlite::DatabaseOptions options;
    options.path = file_.path();
    options.durability = sqlite::Durability::kFast;
    database_ = sqlite::Database::Open(options, system_clock_).value();
    storage_ = std::make_unique<Storage>(*database_, system_clock_);
    thread_ = std::thread([this] { io_.run(); });
  }

  // What the coroutine returns, which runs on a strand of its own meanwhile. From any thread but
  // the one that runs coroutines.
  template <typename T>
  T Run(boost::asio::awaitable<T> coroutine) {
    std::optional<T> result;
    boost::asio::co_spawn(boost::asio::make_strand(io_), Keep(std::move(coroutine), result),
                          boost::asio::use_future)
        .get();
    return *std::move(result);
  }

  // The same for a coroutine that `cancel` cancels, to be emitted on `strand`; returns at once.
  using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;
  Strand MakeStrand() { return boost::asio::make_strand(io_); }
  template <typename T>
  static std::future<T> Spawn(boost::asio::awaitable<T> coroutine, const Strand& strand,
                              boost::asio::cancellation_signal& cancel) {
    auto result = std::make_shared<std::promise<T>>();
    boost::asio::co_spawn(
        strand, Tell(std::move(coroutine), result),
        boost::asio::bind_cancellation_slot(cancel.slot(), boost::asio::detached));
    return result->get_future();
  }

  testing::FakeClock clock_;
  testing::SeededRandom random_;
  testing::TempDb file_;
  SystemClock system_clock_;
  std::unique_ptr<sqlite::Database> database_;
  std::unique_ptr<Storage> storage_;

 private:
  template <typename T>
  static boost::asio::awaitable<void> Keep(boost::asio::awaitable<T> coroutine,
                                           std::optional<T>& result) {
    result.emplace(co_await std::move(coroutine));
  }
  template <typename T>
  static boost::asio::awaitable<void> Tell(boost::asio::awaitable<T> coroutine,
                                           std::shared_ptr<std::promise<T>> result) {
    co_await boost::asio::this_coro::throw_if_cancelled(false);
    result->set_value(co_await std::move(coroutine));
  }

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(io_);
  std::thread thread_;
};

}  // namespace interlock::service
