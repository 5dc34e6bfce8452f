#include "service/storage.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "db/sqlite/database.h"
#include "store/schema.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::service {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = resilience::Breaker::State;

constexpr db::Sql kInsert = "INSERT INTO note (text) VALUES (?1)";
constexpr db::Sql kCount = "SELECT count(*) FROM note";

Error Busy() { return Error(Errc::kBusy, "database is locked"); }
Error Io() { return Error(Errc::kIo, "disk I/O error"); }

// The real database, stepped by hand on virtual time: a request is queued until the test steps, and
// running while its function runs.
class StorageTest : public ::testing::Test {
 public:
  ~StorageTest() override {
    storage_->Stop();
    EXPECT_TRUE(database_->Close().ok());
  }

 protected:
  StorageTest() {
    for (const db::MigrationStep& step : store::ServerSchema().steps) file_.Make(step.script);
    file_.Make("CREATE TABLE note (text TEXT)");
    sqlite::DatabaseOptions options;
    options.path = file_.path();
    options.drive = sqlite::Drive::kByHand;
    database_ = sqlite::Database::Open(options, clock_).value();
    storage_ = std::make_unique<Storage>(*database_, clock_);
  }

  Storage::Done Keep() {
    result_.reset();
    return [this](Result<void> result) {
      ASSERT_FALSE(result_.has_value()) << "done ran twice";
      result_ = std::move(result);
    };
  }
  Result<void> RunInsert(db::Transaction& tx) {
    ++runs_;
    IL_TRY_VOID(tx->Run(kInsert, "hello"));
    if (while_running_) while_running_();
    if (faults_.empty()) return {};
    const Error fault = faults_.front();
    faults_.pop_front();
    return fault;
  }
  Storage::Call Insert() {
    return storage_->Write([this](db::Transaction& tx) { return RunInsert(tx); }, Keep());
  }
  Storage::Call ReadNothing() {
    return storage_->Read([](db::Connection&) { return Result<void>(); }, Keep());
  }
  void Trip() {
    for (int i = 0; i < 5; ++i) {
      faults_ = {Io()};
      Insert();
      ASSERT_TRUE(database_->StepWriter());
      EXPECT_EQ(Code(), Errc::kIo);
    }
    ASSERT_EQ(storage_->breaker_state(Storage::Verb::kWrite), State::kOpen);
  }
  std::int64_t Notes() {
    return file_.Open(sqlite::Access::kReadOnly)
        ->One(kCount, [](const db::Row& row) { return row.Int(0); })
        .value()
        .value();
  }
  std::optional<Errc> Code() const {
    if (!result_ || result_->ok()) return std::nullopt;
    return result_->error().code();
  }

  testing::TempDb file_;
  testing::FakeClock clock_;
  std::unique_ptr<sqlite::Database> database_;
  std::unique_ptr<Storage> storage_;
  std::deque<Error> faults_;             // each fails one run of Insert()
  std::function<void()> while_running_;  // called by Insert() on the storage thread
  int runs_ = 0;                         // of Insert()
  std::optional<Result<void>> result_;
};

TEST_F(StorageTest, ReadsAndWritesPassThrough) {
  Insert();
  EXPECT_FALSE(result_.has_value());
  EXPECT_TRUE(database_->StepWriter());
  EXPECT_TRUE(result_->ok());
  EXPECT_EQ(Notes(), 1);
  ReadNothing();
  EXPECT_TRUE(database_->StepReader());
  EXPECT_TRUE(result_->ok());
  EXPECT_EQ(clock_.timers_waiting(), 0u);
}

TEST_F(StorageTest, ValuesComeBackToDone) {
  std::optional<Result<std::string>> told;
  storage_->Write<std::string>(
      [](db::Transaction& tx) -> Result<std::string> {
        IL_TRY_VOID(tx->Run(kInsert, "hello"));
        return std::string("stored");
      },
      [&](Result<std::string> result) { told = std::move(result); });
  EXPECT_TRUE(database_->StepWriter());
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->value(), "stored");

  std::optional<Result<std::int64_t>> count;
  storage_->Read<std::int64_t>(
      [](db::Connection& connection) -> Result<std::int64_t> {
        IL_TRY(const auto n, connection.One(kCount, [](const db::Row& row) { return row.Int(0); }));
        return n.value_or(-1);
      },
      [&](Result<std::int64_t> result) { count = std::move(result); });
  EXPECT_TRUE(database_->StepReader());
  EXPECT_EQ(count->value(), 1);
}

TEST_F(StorageTest, AValueIsThatOfTheRunThatCounted) {
  int runs = 0;
  std::optional<Result<int>> told;
  storage_->Write<int>(
      [&](db::Transaction&) -> Result<int> {
        if (++runs == 1) return Busy();
        return runs;
      },
      [&](Result<int> result) { told = std::move(result); });
  EXPECT_TRUE(database_->StepWriter());
  EXPECT_FALSE(told.has_value());
  clock_.AdvanceToNextTimer();
  EXPECT_TRUE(database_->StepWriter());
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->value(), 2);
}

TEST_F(StorageTest, AFailedFunctionDeliversItsErrorAndNoValue) {
  std::optional<Result<int>> told;
  storage_->Read<int>(
      [](db::Connection&) -> Result<int> { return Error(Errc::kNotFound, "no such agent"); },
      [&](Result<int> result) { told = std::move(result); });
  EXPECT_TRUE(database_->StepReader());
  ASSERT_FALSE(told->ok());
  EXPECT_EQ(told->error().code(), Errc::kNotFound);
}

TEST_F(StorageTest, BetweenRetriesTheDatabaseHasNothingToDo) {
  faults_ = {Busy(), Busy()};
  Insert();
  EXPECT_TRUE(database_->StepWriter());
  EXPECT_FALSE(database_->StepWriter());
  clock_.AdvanceToNextTimer();
  EXPECT_TRUE(database_->StepWriter());
  EXPECT_FALSE(database_->StepWriter());
  clock_.AdvanceToNextTimer();
  EXPECT_TRUE(database_->StepWriter());
  EXPECT_TRUE(result_->ok());
  EXPECT_EQ(runs_, 3);
  EXPECT_EQ(Notes(), 1);  // the runs that failed left no trace
}

TEST_F(StorageTest, TheSixthAfterFiveFailuresIsRefusedWithoutReachingTheDatabase) {
  Trip();
  Insert();
  EXPECT_EQ(Code(), Errc::kCircuitOpen);  // told before Write() returned
  EXPECT_FALSE(database_->StepWriter());
  EXPECT_EQ(runs_, 5);
  EXPECT_EQ(ToString(storage_->breaker_state()), "open");
  EXPECT_EQ(storage_->breaker_status(Storage::Verb::kWrite).times_opened, 1u);
}

TEST_F(StorageTest, FailingWritesDoNotBlockReads) {
  Trip();
  ReadNothing();
  EXPECT_TRUE(database_->StepReader());
  EXPECT_TRUE(result_->ok());
  EXPECT_EQ(storage_->breaker_state(Storage::Verb::kRead), State::kClosed);
  EXPECT_EQ(storage_->breaker_state(), State::kOpen) << "the worse of both";
  Insert();
  EXPECT_EQ(Code(), Errc::kCircuitOpen) << "reads that succeed do not close it";
}

TEST_F(StorageTest, FailingReadsDoNotBlockWrites) {
  for (int i = 0; i < 5; ++i) {
    storage_->Read([](db::Connection&) { return Result<void>(Io()); }, Keep());
    ASSERT_TRUE(database_->StepReader());
  }
  ReadNothing();
  EXPECT_EQ(Code(), Errc::kCircuitOpen);
  EXPECT_EQ(storage_->breaker_state(Storage::Verb::kRead), State::kOpen);
  EXPECT_EQ(storage_->breaker_state(), State::kOpen);
  Insert();
  EXPECT_TRUE(database_->StepWriter());
  EXPECT_TRUE(result_->ok());
}

TEST_F(StorageTest, ChangesOfABreakerNameItsVerb) {
  std::vector<std::pair<Storage::Verb, State>> changes;
  Storage storage(*database_, clock_,
                  {.on_breaker_change = [&](Storage::Verb verb, State, State to) {
                    changes.emplace_back(verb, to);
                  }});
  for (int i = 0; i < 5; ++i) {
    storage.Write([](db::Transaction&) { return Result<void>(Io()); }, Keep());
    ASSERT_TRUE(database_->StepWriter());
  }
  EXPECT_EQ(changes, (std::vector{std::pair(Storage::Verb::kWrite, State::kOpen)}));
  storage.Stop();
}

TEST_F(StorageTest, AfterAFullDiskTheNextProbeComesWithinFiveSeconds) {
  for (const Error& full :
       {Error(Errc::kDiskFull, "full"),
        Error(Errc::kOutcomeUnknown, "unknown").WithDetail("cause", "disk_full")}) {
    for (int i = 0; i < 5; ++i) {
      faults_ = {full};
      Insert();
      ASSERT_TRUE(database_->StepWriter());
      EXPECT_EQ(Code(), full.code());
    }
    Insert();
    EXPECT_EQ(Code(), Errc::kCircuitOpen);
    clock_.Advance(seconds(2));
    faults_ = {full};  // the probe still finds it full
    Insert();
    ASSERT_TRUE(database_->StepWriter());
    EXPECT_EQ(storage_->breaker_state(), State::kOpen);
    clock_.Advance(seconds(2));
    Insert();
    ASSERT_TRUE(database_->StepWriter());
    EXPECT_TRUE(result_->ok());
    EXPECT_EQ(storage_->breaker_state(), State::kClosed);
  }
}

TEST_F(StorageTest, RecoversAfterTheResetTimeout) {
  Trip();
  clock_.Advance(seconds(30));
  Insert();
  EXPECT_EQ(ToString(storage_->breaker_state()), "half_open");
  EXPECT_TRUE(database_->StepWriter());
  EXPECT_TRUE(result_->ok());
  EXPECT_EQ(ToString(storage_->breaker_state()), "closed");
}

TEST_F(StorageTest, AHundredDomainErrorsDoNotTrip) {
  for (int i = 0; i < 100; ++i) {
    const Errc code = i % 2 == 0 ? Errc::kNotFound : Errc::kConflict;
    storage_->Write([code](db::Transaction&) { return Result<void>(Error(code, "no")); }, Keep());
    EXPECT_TRUE(database_->StepWriter());
    EXPECT_EQ(Code(), code);
  }
  EXPECT_EQ(storage_->breaker_state(), State::kClosed);
}

TEST_F(StorageTest, AQueuedWriteIsTakenBackAfterTenSeconds) {
  Insert();
  clock_.Advance(seconds(10));
  EXPECT_EQ(Code(), Errc::kStorageTimeout);
  EXPECT_EQ(result_->error().http_status(), 503);
  EXPECT_FALSE(database_->StepWriter());
  EXPECT_EQ(Notes(), 0);
}

TEST_F(StorageTest, ARunningWriteIsToldThatItsOutcomeIsUnknownAndMayCommit) {
  while_running_ = [this] {
    clock_.Advance(seconds(10));
    EXPECT_EQ(Code(), Errc::kOutcomeUnknown);  // told at once, not when it is over
  };
  Insert();
  EXPECT_TRUE(database_->StepWriter());
  EXPECT_EQ(Notes(), 1);
}

TEST_F(StorageTest, ARunningReadIsToldTimeoutAndItsLateValueGoesNowhere) {
  std::optional<Result<std::string>> told;
  storage_->Read<std::string>(
      [&](db::Connection&) -> Result<std::string> {
        clock_.Advance(seconds(10));
        EXPECT_TRUE(told.has_value());
        return std::string(1000, 'x');
      },
      [&](Result<std::string> result) { told = std::move(result); });
  EXPECT_TRUE(database_->StepReader());
  ASSERT_FALSE(told->ok());
  EXPECT_EQ(told->error().code(), Errc::kStorageTimeout);
}

TEST_F(StorageTest, CancellingTakesAQueuedRequestBack) {
  Storage::Call call = Insert();
  call.Cancel();
  EXPECT_EQ(Code(), Errc::kCancelled);
  EXPECT_FALSE(database_->StepWriter());
}

TEST_F(StorageTest, PingAnswersPastAnOpenBreaker) {
  Trip();
  storage_->Ping(milliseconds(500), Keep());
  EXPECT_TRUE(database_->StepReader());
  EXPECT_TRUE(result_->ok());
  EXPECT_EQ(storage_->breaker_state(), State::kOpen);
}

TEST_F(StorageTest, PeekTellsItsValuePastAnOpenBreakerOrGivesUp) {
  Trip();
  std::optional<Result<int>> peeked;
  const auto peek = [&] {
    peeked.reset();
    storage_->Peek<int>(
        milliseconds(500), [](db::Connection&) -> Result<int> { return 7; },
        [&](Result<int> result) { peeked = std::move(result); });
  };
  peek();
  EXPECT_TRUE(database_->StepReader());
  ASSERT_TRUE(peeked.has_value());
  EXPECT_EQ(**peeked, 7);
  EXPECT_EQ(storage_->breaker_state(), State::kOpen);
  peek();
  clock_.Advance(milliseconds(500));
  ASSERT_TRUE(peeked.has_value());
  EXPECT_EQ(peeked->error().code(), Errc::kStorageTimeout);
}

TEST_F(StorageTest, PingGivesUpWhenItsBudgetIsUsedUp) {
  storage_->Ping(milliseconds(500), Keep());
  clock_.Advance(milliseconds(499));
  EXPECT_FALSE(result_.has_value());
  clock_.Advance(milliseconds(1));
  EXPECT_EQ(Code(), Errc::kStorageTimeout);
  EXPECT_FALSE(database_->StepReader());  // it was taken back
}

// Reports one error for every request. SQLite itself has no reason to fail SELECT 1.
class FailingDatabase final : public db::Database {
 public:
  explicit FailingDatabase(Error error) : error_(std::move(error)) {}
  int reads() const { return reads_; }

  Result<Ticket> Read(ReadFn /*fn*/, Done done) override {
    done(error_);
    return static_cast<Ticket>(++reads_);
  }
  Result<Ticket> Write(WriteFn /*fn*/, Done /*done*/) override { return error_; }
  bool Cancel(Ticket /*ticket*/) override { return false; }
  Result<void> Close() override { return {}; }

 private:
  Error error_;
  int reads_ = 0;
};

TEST_F(StorageTest, PingNeitherRetriesNorCounts) {
  for (const Error& error : {Busy(), Io()}) {
    FailingDatabase database(error);
    Storage storage(database, clock_);
    for (int i = 0; i < 10; ++i) {
      storage.Ping(milliseconds(500), Keep());
      EXPECT_EQ(Code(), error.code());
    }
    EXPECT_EQ(database.reads(), 10);
    EXPECT_EQ(storage.breaker_status(Storage::Verb::kRead).failures, 0);
  }
}

TEST_F(StorageTest, OnceTheDatabaseIsClosedEveryVerbIsRefusedAtOnce) {
  ASSERT_TRUE(database_->Close().ok());
  Insert();
  EXPECT_EQ(Code(), Errc::kUnavailable);
  ReadNothing();
  EXPECT_EQ(Code(), Errc::kUnavailable);
  storage_->Ping(milliseconds(500), Keep());
  EXPECT_EQ(Code(), Errc::kUnavailable);
  EXPECT_EQ(storage_->breaker_state(), State::kClosed);
}

TEST_F(StorageTest, StopEndsWaitsAndLetsTheDatabaseFinishTheRest) {
  faults_ = {Busy()};
  Insert();
  EXPECT_TRUE(database_->StepWriter());
  std::optional<Result<void>> queued;
  storage_->Write([](db::Transaction&) { return Result<void>(); },
                  [&](Result<void> result) { queued = std::move(result); });
  storage_->Stop();
  EXPECT_EQ(Code(), Errc::kUnavailable);
  EXPECT_FALSE(queued.has_value());
  EXPECT_TRUE(database_->StepWriter());
  EXPECT_TRUE(queued->ok());
  storage_->Ping(milliseconds(500), Keep());
  EXPECT_EQ(Code(), Errc::kUnavailable);
}

}  // namespace
}  // namespace interlock::service
