// Storage on the real database with its threads and, except where said, on the real clock.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "db/sqlite/database.h"
#include "service/storage.h"
#include "store/schema.h"
#include "testing/fake_clock.h"
#include "testing/on_threads.h"
#include "testing/temp_db.h"

namespace interlock::service {
namespace {

using std::chrono::milliseconds;
using State = resilience::Breaker::State;

constexpr db::Sql kInsert = "INSERT INTO note (writer, number) VALUES (?1, ?2)";
constexpr db::Sql kCount = "SELECT count(*) FROM note";
constexpr db::Sql kCountOf = "SELECT count(*) FROM note WHERE writer = ?1";
constexpr db::Sql kSweep = "DELETE FROM note WHERE number % 2 = 1";
constexpr db::Sql kJournalMode = "PRAGMA journal_mode";
constexpr db::Sql kSmallest = "PRAGMA max_page_count = 1";  // that is, the size it has
constexpr db::Sql kLarge = "PRAGMA max_page_count = 1000000";
constexpr db::Sql kInsertMuch = "INSERT INTO note (writer, number) VALUES (zeroblob(1000000), 0)";

class StorageSqliteTest : public ::testing::Test {
 public:
  ~StorageSqliteTest() override { Close(); }

 protected:
  StorageSqliteTest() {
    for (const db::MigrationStep& step : store::ServerSchema().steps) file_.Make(step.script);
    file_.Make("CREATE TABLE note (writer TEXT, number INTEGER)");
    sqlite::DatabaseOptions options;
    options.path = file_.path();
    database_ = sqlite::Database::Open(options, clock_).value();
    UseClock(clock_);
  }

  void UseClock(Clock& clock) {
    storage_ = std::make_unique<Storage>(
        *database_, clock,
        Storage::Options{.breaker = {.reset_timeout = milliseconds(20)}, .random = [this] {
                           ++retries_;
                           return 0.0;
                         }});
  }
  void Close() {
    storage_->Stop();
    EXPECT_EQ(database_->Close().ok(), !damaged_);
  }
  Result<void> Write(Storage::WriteFn fn) {
    const auto told = std::make_shared<std::promise<Result<void>>>();
    storage_->Write(std::move(fn), [told](Result<void> r) { told->set_value(std::move(r)); });
    return told->get_future().get();
  }
  Result<void> Append(int writer, int number) {
    return Write([writer, number](db::Transaction& tx) -> Result<void> {
      IL_TRY_VOID(tx->Run(kInsert, std::to_string(writer), number));
      return {};
    });
  }
  Result<std::int64_t> Count() {
    const auto told = std::make_shared<std::promise<Result<std::int64_t>>>();
    storage_->Read<std::int64_t>(
        [](db::Connection& connection) -> Result<std::int64_t> {
          IL_TRY(const auto n, connection.One(kCount, [](const db::Row& r) { return r.Int(0); }));
          return n.value_or(-1);
        },
        [told](Result<std::int64_t> r) { told->set_value(std::move(r)); });
    return told->get_future().get();
  }
  Result<void> Ping() {
    const auto told = std::make_shared<std::promise<Result<void>>>();
    storage_->Ping(std::chrono::seconds(10),
                   [told](Result<void> r) { told->set_value(std::move(r)); });
    return told->get_future().get();
  }
  // Returns when `time` has passed on the storage's clock.
  void Pass(Duration time) {
    const auto passed = std::make_shared<std::promise<void>>();
    clock_.Schedule(time, [passed] { passed->set_value(); });
    passed->get_future().wait();
  }

  testing::TempDb file_;
  SystemClock clock_;
  testing::FakeClock fake_clock_;
  std::atomic<int> retries_ = 0;  // each wait draws one random number
  std::unique_ptr<sqlite::Database> database_;
  bool damaged_ = false;  // the file, so that it cannot be closed in good order
  std::unique_ptr<Storage> storage_;
};

TEST_F(StorageSqliteTest, TenThreadsOfTenAppendsAllArrive) {
  testing::OnThreads(10, [this](int t) {
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(Append(t, i).ok());
  });
  EXPECT_EQ(Count().value(), 100);
  Close();
  const auto connection = file_.Open();  // and they are in the file
  for (int t = 0; t < 10; ++t) {
    EXPECT_EQ(
        connection->One(
                      kCountOf, [](const db::Row& row) { return row.Int(0); }, std::to_string(t))
            .value(),
        10);
  }
}

TEST_F(StorageSqliteTest, FiftyMixedThreadsSeeWhatIsCommittedAndNeverLess) {
  constexpr int kOperations = 20;
  std::atomic<std::int64_t> acknowledged = 0;
  testing::OnThreads(50, [&](int t) {
    std::int64_t seen = 0;
    for (int i = 0; i < kOperations; ++i) {
      if (t % 2 == 0) {
        ASSERT_TRUE(Append(t, i).ok());
        ++acknowledged;
      } else {
        const std::int64_t committed = acknowledged;
        const Result<std::int64_t> count = Count();
        ASSERT_TRUE(count.ok());
        ASSERT_GE(*count, committed);  // what was acknowledged before the read began is in it
        ASSERT_GE(*count, seen);
        seen = *count;
      }
    }
  });
  EXPECT_EQ(Count().value(), 25 * kOperations);
  EXPECT_EQ(storage_->breaker_status(Storage::Verb::kWrite).times_opened, 0u);
}

TEST_F(StorageSqliteTest, FiftyThreadsOfFailingCancelledAndGoodCallsAreEachToldOnce) {
  constexpr int kOperations = 20;
  std::atomic<int> told = 0;
  testing::OnThreads(50, [&](int t) {
    for (int i = 0; i < kOperations; ++i) {
      const int kind = (t + i) % 4;
      Storage::Call call = storage_->Write(
          [kind](db::Transaction& tx) -> Result<void> {
            if (kind == 0) return Error(Errc::kConflict, "held by another");
            if (kind == 1) return Error(Errc::kIo, "injected");
            IL_TRY_VOID(tx->Run(kInsert, "x", kind));
            return {};
          },
          [&](const Result<void>&) { ++told; });
      if (kind == 2) call.Cancel();
    }
  });
  Close();  // tells whoever is left, and then no thread is inside a `done`
  EXPECT_EQ(told, 50 * kOperations);
}

TEST_F(StorageSqliteTest, FiveErrorsOfAFullDiskTripItAndItRecoversWhenThereIsRoom) {
  UseClock(fake_clock_);  // the sixth comes before the reset timeout, however slow the machine is
  for (int i = 0; i < 5; ++i) {
    const Result<void> result = Write([](db::Transaction& tx) -> Result<void> {
      IL_TRY_VOID(tx->Run(kSmallest));
      IL_TRY_VOID(tx->Run(kInsertMuch));
      return {};
    });
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), Errc::kDiskFull);
  }
  EXPECT_EQ(ToString(storage_->breaker_state()), "open");
  bool called = false;
  const Result<void> sixth = Write([&](db::Transaction&) -> Result<void> {
    called = true;
    return {};
  });
  ASSERT_FALSE(sixth.ok());
  EXPECT_EQ(sixth.error().code(), Errc::kCircuitOpen);
  EXPECT_FALSE(called);
  EXPECT_TRUE(Ping().ok());  // goes past the breaker

  fake_clock_.Advance(milliseconds(20));
  EXPECT_TRUE(Write([](db::Transaction& tx) -> Result<void> {
                IL_TRY_VOID(tx->Run(kLarge));
                IL_TRY_VOID(tx->Run(kInsertMuch));
                return {};
              }).ok());
  EXPECT_EQ(ToString(storage_->breaker_state()), "closed");
  EXPECT_EQ(Count().value(), 1);
}

TEST_F(StorageSqliteTest, TwoLocksAreRetried) {
  int runs = 0;
  EXPECT_TRUE(Write([&](db::Transaction& tx) -> Result<void> {
                if (++runs <= 2) return Error(Errc::kBusy, "injected");
                IL_TRY_VOID(tx->Run(kInsert, "x", runs));
                return {};
              }).ok());
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(retries_, 2);
  EXPECT_EQ(Count().value(), 1);
}

TEST_F(StorageSqliteTest, AHundredDomainErrorsDoNotTrip) {
  for (int i = 0; i < 100; ++i) {
    const Errc code = i % 2 == 0 ? Errc::kNotFound : Errc::kConflict;
    const Result<void> result =
        Write([code](db::Transaction&) -> Result<void> { return Error(code, "no"); });
    ASSERT_FALSE(result.ok());
    ASSERT_EQ(result.error().code(), code);
  }
  EXPECT_EQ(storage_->breaker_state(), State::kClosed);
  EXPECT_EQ(storage_->breaker_status(Storage::Verb::kWrite).failures, 0);
}

TEST_F(StorageSqliteTest, AProbeWhoseFunctionThrowsReopensAndTheNextOneRecovers) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_FALSE(
        Write([](db::Transaction&) -> Result<void> { return Error(Errc::kIo, "injected"); }).ok());
  }
  Pass(milliseconds(20));
  const Result<void> thrown =
      Write([](db::Transaction&) -> Result<void> { throw std::runtime_error("our bug"); });
  ASSERT_FALSE(thrown.ok());
  EXPECT_EQ(thrown.error().code(), Errc::kInternal);
  EXPECT_EQ(storage_->breaker_state(), State::kOpen);
  Pass(milliseconds(20));
  EXPECT_TRUE(Append(1, 1).ok());
  EXPECT_EQ(storage_->breaker_state(), State::kClosed);
}

TEST_F(StorageSqliteTest, EightWritersAndASweeperNeverFindTheFileBusy) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kWrites = 50;
#else
  constexpr int kWrites = 250;
#endif
  const std::filesystem::path journal = file_.path().string() + "-journal";
  testing::OnThreads(9, [&](int t) {
    for (int i = 0; i < kWrites; ++i) {
      if (t < 8) {
        ASSERT_TRUE(Append(t, i).ok());
      } else {
        ASSERT_TRUE(Write([](db::Transaction& tx) -> Result<void> {
                      IL_TRY_VOID(tx->Run(kSweep));
                      return {};
                    }).ok());
        ASSERT_FALSE(std::filesystem::exists(journal));
      }
    }
  });
  EXPECT_EQ(retries_, 0);
  EXPECT_TRUE(std::filesystem::exists(file_.path().string() + "-wal"));
  EXPECT_FALSE(std::filesystem::exists(journal));
  const auto connection = file_.Open(sqlite::Access::kReadOnly);
  EXPECT_EQ(connection->One(kJournalMode, [](const db::Row& row) { return row.String(0); }).value(),
            "wal");
}

TEST_F(StorageSqliteTest, PingFailsAfterClose) {
  EXPECT_TRUE(Ping().ok());
  EXPECT_TRUE(database_->Close().ok());
  const Result<void> result = Ping();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Errc::kUnavailable);
}

TEST_F(StorageSqliteTest, PingFailsWhenTheFileWasCutShort) {
  damaged_ = true;
  EXPECT_TRUE(Ping().ok());
  std::filesystem::resize_file(file_.path(), 0);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(Ping().ok());  // whichever reader gets it
}

TEST_F(StorageSqliteTest, ClosingAmidWaitsAndQueuesTellsEveryCaller) {
  std::atomic<int> told = 0;
  constexpr int kCalls = 100;
  for (int i = 0; i < kCalls; ++i) {
    storage_->Write(
        [i](db::Transaction&) -> Result<void> {
          if (i % 2 == 0) return Error(Errc::kBusy, "injected");
          return {};
        },
        [&](const Result<void>&) { ++told; });
  }
  Close();
  EXPECT_EQ(told, kCalls);
}

}  // namespace
}  // namespace interlock::service
