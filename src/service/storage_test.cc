#include "service/storage.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "db/sqlite/connection.h"
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

// Real SQLite whose requests run when the test says so, on the test's thread.
class ManualDatabase final : public db::Database {
 public:
  explicit ManualDatabase(sqlite::Connection& connection) : connection_(connection) {}

  std::deque<Error> faults;         // each is reported by one request, instead of running it
  std::deque<Error> commit_faults;  // each fails one commit, after its function has run

  Result<Ticket> Read(ReadFn fn, Done done) override {
    return Add([this, fn = std::move(fn)] { return fn(connection_); }, std::move(done));
  }
  Result<Ticket> Write(WriteFn fn, Done done) override {
    return Add([this, fn = std::move(fn)] { return Transact(fn); }, std::move(done));
  }
  bool Cancel(Ticket ticket) override {
    for (auto it = queue_.begin(); it != queue_.end(); ++it) {
      if (it->ticket != ticket) continue;
      const Done done = std::move(it->done);
      queue_.erase(it);
      done(Error(Errc::kCancelled, "taken back"));
      return true;
    }
    return false;
  }
  Result<void> Close() override {
    closed_ = true;
    return {};
  }

  int accepted() const { return accepted_; }
  std::size_t queued() const { return queue_.size(); }

  // Runs the first request, and reports.
  void Step() {
    Begin();
    Finish();
  }
  // The two halves: in between it is running, and cannot be cancelled.
  void Begin() {
    IL_CHECK(!queue_.empty() && !running_);
    running_ = std::move(queue_.front());
    queue_.pop_front();
  }
  void Finish() {
    IL_CHECK(running_.has_value());
    const Request request = std::move(*std::exchange(running_, std::nullopt));
    if (!faults.empty()) {
      const Error fault = faults.front();
      faults.pop_front();
      return request.done(fault);
    }
    request.done(request.run());
  }

 private:
  struct Request {
    Ticket ticket;
    std::function<Result<void>()> run;
    Done done;
  };

  Result<Ticket> Add(std::function<Result<void>()> run, Done done) {
    if (closed_) return Error(Errc::kUnavailable, "closed");
    queue_.push_back({static_cast<Ticket>(++accepted_), std::move(run), std::move(done)});
    return queue_.back().ticket;
  }
  Result<void> Transact(const WriteFn& fn) {
    IL_TRY_VOID(connection_.BeginExclusive());
    db::Transaction transaction(connection_);
    Result<void> result = fn(transaction);
    if (result.ok() && !commit_faults.empty()) {
      result = commit_faults.front();
      commit_faults.pop_front();
    }
    if (result.ok()) return connection_.Commit();
    connection_.Rollback();
    return result;
  }

  sqlite::Connection& connection_;
  bool closed_ = false;
  int accepted_ = 0;
  std::deque<Request> queue_;
  std::optional<Request> running_;
};

class StorageTest : public ::testing::Test {
 protected:
  StorageTest() { IL_CHECK(connection_->RunScript("CREATE TABLE note (text TEXT)").ok()); }

  Storage::Done Keep() {
    result_.reset();
    return [this](Result<void> result) {
      ASSERT_FALSE(result_.has_value()) << "done ran twice";
      result_ = std::move(result);
    };
  }
  Storage::Call Insert() {
    return storage_.Write(
        [](db::Transaction& tx) -> Result<void> {
          IL_TRY_VOID(tx->Run(kInsert, "hello"));
          return {};
        },
        Keep());
  }
  Storage::Call ReadNothing() {
    return storage_.Read([](db::Connection&) { return Result<void>(); }, Keep());
  }
  void Trip() {
    for (int i = 0; i < 5; ++i) {
      database_.faults = {Error(Errc::kIo, "disk I/O error")};
      Insert();
      database_.Step();
    }
    ASSERT_EQ(storage_.breaker_state(), State::kOpen);
  }
  std::int64_t Notes() {
    return connection_->One(kCount, [](const db::Row& row) { return row.Int(0); }).value().value();
  }
  std::optional<Errc> Code() const {
    if (!result_ || result_->ok()) return std::nullopt;
    return result_->error().code();
  }

  testing::TempDb file_;
  std::unique_ptr<sqlite::Connection> connection_ = file_.Open();
  testing::FakeClock clock_;
  ManualDatabase database_{*connection_};
  Storage storage_{database_, clock_};
  std::optional<Result<void>> result_;
};

TEST_F(StorageTest, ReadsAndWritesPassThrough) {
  Insert();
  EXPECT_FALSE(result_.has_value());
  database_.Step();
  EXPECT_TRUE(result_->ok());
  EXPECT_EQ(Notes(), 1);
  ReadNothing();
  database_.Step();
  EXPECT_TRUE(result_->ok());
  EXPECT_EQ(clock_.timers_waiting(), 0u);
}

TEST_F(StorageTest, ValuesComeBackToDone) {
  std::optional<Result<std::string>> told;
  storage_.Write<std::string>(
      [](db::Transaction& tx) -> Result<std::string> {
        IL_TRY_VOID(tx->Run(kInsert, "hello"));
        return std::string("stored");
      },
      [&](Result<std::string> result) { told = std::move(result); });
  database_.Step();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->value(), "stored");

  std::optional<Result<std::int64_t>> count;
  storage_.Read<std::int64_t>(
      [](db::Connection& connection) -> Result<std::int64_t> {
        IL_TRY(const auto n, connection.One(kCount, [](const db::Row& row) { return row.Int(0); }));
        return n.value_or(-1);
      },
      [&](Result<std::int64_t> result) { count = std::move(result); });
  database_.Step();
  EXPECT_EQ(count->value(), 1);
}

TEST_F(StorageTest, AValueIsThatOfTheRunThatCounted) {
  int runs = 0;
  std::optional<Result<int>> told;
  storage_.Write<int>([&](db::Transaction&) -> Result<int> { return ++runs; },
                      [&](Result<int> result) { told = std::move(result); });
  database_.commit_faults = {Busy()};
  database_.Step();
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(told.has_value());
  clock_.AdvanceToNextTimer();
  database_.Step();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->value(), 2);
}

TEST_F(StorageTest, AFailedFunctionDeliversItsErrorAndNoValue) {
  std::optional<Result<int>> told;
  storage_.Read<int>(
      [](db::Connection&) -> Result<int> { return Error(Errc::kNotFound, "no such agent"); },
      [&](Result<int> result) { told = std::move(result); });
  database_.Step();
  ASSERT_FALSE(told->ok());
  EXPECT_EQ(told->error().code(), Errc::kNotFound);
}

TEST_F(StorageTest, BetweenRetriesTheDatabaseHasNothingToDo) {
  database_.faults = {Busy(), Busy()};
  Insert();
  database_.Step();
  EXPECT_EQ(database_.queued(), 0u);
  clock_.AdvanceToNextTimer();
  database_.Step();
  clock_.AdvanceToNextTimer();
  database_.Step();
  EXPECT_TRUE(result_->ok());
  EXPECT_EQ(Notes(), 1);
  EXPECT_EQ(database_.accepted(), 3);
}

TEST_F(StorageTest, TheSixthAfterFiveFailuresIsRefusedWithoutReachingTheDatabase) {
  Trip();
  Insert();
  EXPECT_EQ(Code(), Errc::kCircuitOpen);  // told before Write() returned
  ReadNothing();
  EXPECT_EQ(Code(), Errc::kCircuitOpen);  // one breaker for both verbs
  EXPECT_EQ(database_.accepted(), 5);
  EXPECT_EQ(ToString(storage_.breaker_state()), "open");
  EXPECT_EQ(storage_.breaker_status().times_opened, 1u);
}

TEST_F(StorageTest, RecoversAfterTheResetTimeout) {
  Trip();
  clock_.Advance(seconds(30));
  Insert();
  EXPECT_EQ(ToString(storage_.breaker_state()), "half_open");
  database_.Step();
  EXPECT_TRUE(result_->ok());
  EXPECT_EQ(ToString(storage_.breaker_state()), "closed");
}

TEST_F(StorageTest, AHundredDomainErrorsDoNotTrip) {
  for (int i = 0; i < 100; ++i) {
    const Errc code = i % 2 == 0 ? Errc::kNotFound : Errc::kConflict;
    storage_.Write([code](db::Transaction&) { return Result<void>(Error(code, "no")); }, Keep());
    database_.Step();
    EXPECT_EQ(Code(), code);
  }
  EXPECT_EQ(storage_.breaker_state(), State::kClosed);
}

TEST_F(StorageTest, AQueuedWriteIsTakenBackAfterTenSeconds) {
  Insert();
  clock_.Advance(seconds(10));
  EXPECT_EQ(Code(), Errc::kStorageTimeout);
  EXPECT_EQ(result_->error().http_status(), 503);
  EXPECT_EQ(database_.queued(), 0u);
  EXPECT_EQ(Notes(), 0);
}

TEST_F(StorageTest, ARunningWriteIsToldThatItsOutcomeIsUnknownAndMayCommit) {
  Insert();
  database_.Begin();
  clock_.Advance(seconds(10));
  EXPECT_EQ(Code(), Errc::kOutcomeUnknown);
  database_.Finish();
  EXPECT_EQ(Notes(), 1);
}

TEST_F(StorageTest, ARunningReadIsToldTimeoutAndItsLateValueGoesNowhere) {
  std::optional<Result<std::string>> told;
  storage_.Read<std::string>(
      [](db::Connection&) -> Result<std::string> { return std::string(1000, 'x'); },
      [&](Result<std::string> result) { told = std::move(result); });
  database_.Begin();
  clock_.Advance(seconds(10));
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->error().code(), Errc::kStorageTimeout);
  database_.Finish();
  EXPECT_FALSE(told->ok());
}

TEST_F(StorageTest, CancellingTakesAQueuedRequestBack) {
  Storage::Call call = Insert();
  call.Cancel();
  EXPECT_EQ(Code(), Errc::kCancelled);
  EXPECT_EQ(database_.queued(), 0u);
}

TEST_F(StorageTest, PingAnswersPastAnOpenBreaker) {
  Trip();
  storage_.Ping(milliseconds(500), Keep());
  database_.Step();
  EXPECT_TRUE(result_->ok());
  EXPECT_EQ(storage_.breaker_state(), State::kOpen);
}

TEST_F(StorageTest, PingGivesUpWhenItsBudgetIsUsedUp) {
  storage_.Ping(milliseconds(500), Keep());
  clock_.Advance(milliseconds(499));
  EXPECT_FALSE(result_.has_value());
  clock_.Advance(milliseconds(1));
  EXPECT_EQ(Code(), Errc::kStorageTimeout);
  EXPECT_EQ(database_.queued(), 0u);

  storage_.Ping(milliseconds(500), Keep());
  database_.Begin();
  clock_.Advance(milliseconds(500));
  EXPECT_EQ(Code(), Errc::kStorageTimeout);
  database_.Finish();
}

TEST_F(StorageTest, PingNeitherRetriesNorCounts) {
  for (int i = 0; i < 10; ++i) {
    database_.faults = {i % 2 == 0 ? Busy() : Error(Errc::kIo, "disk I/O error")};
    storage_.Ping(milliseconds(500), Keep());
    database_.Step();
    EXPECT_EQ(Code(), i % 2 == 0 ? Errc::kBusy : Errc::kIo);
  }
  EXPECT_EQ(database_.accepted(), 10);
  EXPECT_EQ(storage_.breaker_state(), State::kClosed);
  EXPECT_EQ(storage_.breaker_status().failures, 0);
}

TEST_F(StorageTest, OnceTheDatabaseIsClosedEveryVerbIsRefusedAtOnce) {
  ASSERT_TRUE(database_.Close().ok());
  Insert();
  EXPECT_EQ(Code(), Errc::kUnavailable);
  ReadNothing();
  EXPECT_EQ(Code(), Errc::kUnavailable);
  storage_.Ping(milliseconds(500), Keep());
  EXPECT_EQ(Code(), Errc::kUnavailable);
  EXPECT_EQ(storage_.breaker_state(), State::kClosed);
}

TEST_F(StorageTest, StopEndsWaitsAndLetsTheDatabaseFinishTheRest) {
  database_.faults = {Busy()};
  Insert();
  database_.Step();
  std::optional<Result<void>> queued;
  storage_.Write([](db::Transaction&) { return Result<void>(); },
                 [&](Result<void> result) { queued = std::move(result); });
  storage_.Stop();
  EXPECT_EQ(Code(), Errc::kUnavailable);
  EXPECT_FALSE(queued.has_value());
  database_.Step();
  EXPECT_TRUE(queued->ok());
  storage_.Ping(milliseconds(500), Keep());
  EXPECT_EQ(Code(), Errc::kUnavailable);
}

TEST_F(StorageTest, ListsItsStatements) {
  ASSERT_EQ(Storage::statements().size(), 1u);
  EXPECT_EQ(Storage::statements()[0].text(), "SELECT 1");
}

}  // namespace
}  // namespace interlock::service
