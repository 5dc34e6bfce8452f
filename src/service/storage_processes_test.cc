// Storage while other processes take the write lock of the same file: the one way in which our
// single writer ever finds it busy.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <list>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "db/sqlite/database.h"
#include "service/storage.h"
#include "testing/fake_clock.h"
#include "testing/lock_holder.h"
#include "testing/temp_db.h"

namespace interlock::service {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = resilience::Breaker::State;

constexpr db::Sql kInsert = "INSERT INTO note (text) VALUES (?1)";
constexpr db::Sql kCount = "SELECT count(*) FROM note";

Result<void> Insert(db::Transaction& tx) {
  IL_TRY_VOID(tx->Run(kInsert, "ours"));
  return {};
}

// Writes, and blocks until told.
Result<void> InsertAndWait(Storage& storage) {
  const auto told = std::make_shared<std::promise<Result<void>>>();
  storage.Write(Insert, [told](Result<void> result) { told->set_value(std::move(result)); });
  return told->get_future().get();
}

class StorageProcessesTest : public ::testing::Test {
 protected:
  StorageProcessesTest() { file_.Make("CREATE TABLE note (text TEXT)"); }

  // A short busy wait, so that a lock is found and not waited for.
  std::unique_ptr<sqlite::Database> Open(Clock& clock, sqlite::Drive drive) {
    sqlite::DatabaseOptions options;
    options.path = file_.path();
    options.durability = sqlite::Durability::kFast;
    options.busy_timeout = milliseconds(1);
    options.drive = drive;
    return sqlite::Database::Open(options, clock).value();
  }
  std::int64_t Notes() {
    return file_.Open(sqlite::Access::kReadOnly)
        ->One(kCount, [](const db::Row& row) { return row.Int(0); })
        .value()
        .value();
  }

  testing::TempDb file_;
};

TEST_F(StorageProcessesTest, AWriteThatFindsTheFileLockedArrivesOnceTheOtherLetsGo) {
  SystemClock clock;
  const auto database = Open(clock, sqlite::Drive::kThreads);
  std::promise<void> collided;
  std::atomic<int> retries = 0;
  Storage storage(*database, clock, {.random = [&] {
    if (++retries == 1) collided.set_value();
    return 0.0;
  }});
  testing::LockHolder other(file_.path());
  other.Lock();
  auto told = std::async(std::launch::async, [&] { return InsertAndWait(storage); });
  collided.get_future().wait();  // the first try has found the lock
  other.Commit();
  EXPECT_TRUE(told.get().ok());
  EXPECT_GE(retries, 1);
  EXPECT_EQ(Notes(), 2);
  EXPECT_EQ(storage.breaker_status(Storage::Verb::kWrite).failures, 0);
  storage.Stop();
  EXPECT_TRUE(database->Close().ok());
}

TEST_F(StorageProcessesTest, ReadsGoOnWhileAnotherProcessHoldsTheLock) {
  SystemClock clock;
  const auto database = Open(clock, sqlite::Drive::kThreads);
  Storage storage(*database, clock);
  testing::LockHolder other(file_.path());
  other.Lock();
  std::promise<Result<void>> told;
  storage.Read(
      [](db::Connection& connection) -> Result<void> {
        IL_TRY_VOID(connection.Run(kCount));
        return {};
      },
      [&](Result<void> result) { told.set_value(std::move(result)); });
  EXPECT_TRUE(told.get_future().get().ok());
  other.Commit();
  storage.Stop();
  EXPECT_TRUE(database->Close().ok());
}

// On virtual time: five writes that stay locked through eight tries each open the breaker, and once
// the other process lets go the probe closes it.
TEST_F(StorageProcessesTest, ALockThatStaysTripsTheBreakerAndLettingGoRecovers) {
  testing::FakeClock clock;
  const auto database = Open(clock, sqlite::Drive::kByHand);
  Storage storage(*database, clock, {.random = [] { return 0.0; }});
  testing::LockHolder other(file_.path());
  other.Lock();
  std::optional<Result<void>> told;
  const auto write = [&] {
    told.reset();
    storage.Write(Insert, [&](Result<void> result) { told = std::move(result); });
    int tries = 0;
    while (database->StepWriter()) {
      ++tries;
      if (!told) clock.AdvanceToNextTimer();
    }
    return tries;
  };
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(write(), 8);
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(told->error().code(), Errc::kBusy);
    EXPECT_EQ(clock.timers_waiting(), 0u);
  }
  EXPECT_EQ(storage.breaker_state(), State::kOpen);
  EXPECT_EQ(write(), 0);
  EXPECT_EQ(told->error().code(), Errc::kCircuitOpen);

  clock.Advance(seconds(30));
  EXPECT_EQ(write(), 8);  // the probe
  EXPECT_EQ(told->error().code(), Errc::kBusy);
  EXPECT_EQ(storage.breaker_state(), State::kOpen);

  other.Commit();
  clock.Advance(seconds(30));
  EXPECT_EQ(write(), 1);
  EXPECT_TRUE(told->ok());
  EXPECT_EQ(storage.breaker_state(), State::kClosed);
  EXPECT_EQ(Notes(), 2);
  storage.Stop();
  EXPECT_TRUE(database->Close().ok());
}

TEST_F(StorageProcessesTest, AFightOfFourProcessesLosesNoWrite) {
  constexpr int kOthers = 3;
  constexpr int kThreads = 4;
  constexpr int kWrites = 25;
  SystemClock clock;
  const auto database = Open(clock, sqlite::Drive::kThreads);
  std::promise<void> collided;
  std::atomic<int> retries = 0;
  const resilience::Retry::Random random = resilience::SystemRandom();
  Storage storage(*database, clock, {.random = [&] {
    if (++retries == 1) collided.set_value();
    return random();
  }});
  std::list<testing::LockHolder> others;
  for (int i = 0; i < kOthers; ++i) others.emplace_back(file_.path());
  others.front().Lock();  // so that the fight begins with a collision
  std::atomic<int> stored = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kWrites; ++i) {
        const Result<void> result = InsertAndWait(storage);
        EXPECT_TRUE(result.ok()) << result.error();
        if (result.ok()) ++stored;
      }
    });
  }
  collided.get_future().wait();
  others.front().Commit();
  for (testing::LockHolder& other : others) other.StartFight();
  for (testing::LockHolder& other : others) other.FinishFight();
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(stored, kThreads * kWrites);
  EXPECT_EQ(Notes(), 1 + kOthers * testing::kFightInserts + kThreads * kWrites);
  EXPECT_EQ(storage.breaker_status(Storage::Verb::kWrite).times_opened, 0u);
  storage.Stop();
  EXPECT_TRUE(database->Close().ok());
}

}  // namespace
}  // namespace interlock::service
