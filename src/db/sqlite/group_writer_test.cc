#include "db/sqlite/group_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "db/sqlite/writer_fixture.h"

namespace interlock::sqlite {
namespace {

using GroupWriterTest = WriterTest;
using GroupWriterDeathTest = WriterTest;

constexpr db::Sql kCountRows = "SELECT count(*) FROM t";

// Time that passes by itself: one millisecond per look.
class TickingClock final : public Clock {
 public:
  Timestamp Now() override { return {}; }
  Duration Monotonic() override { return now_ += std::chrono::milliseconds(1); }
  TimerId Schedule(Duration, std::function<void()>) override { return 1; }
  bool Cancel(TimerId) override { return false; }

 private:
  Duration now_{0};
};

TEST_F(GroupWriterTest, WritesThatWaitTogetherShareOneCommit) {
  MakeWriter();
  for (int i = 1; i <= 5; ++i) Submit(std::to_string(i), Insert(i));
  EXPECT_TRUE(writer_->StepOnce());
  EXPECT_FALSE(writer_->StepOnce());
  EXPECT_EQ(Answers(), "1:ok 2:ok 3:ok 4:ok 5:ok");
  EXPECT_EQ(Rows(), "1 2 3 4 5");
  EXPECT_EQ(writer_->stats().commits, 1u);
}

TEST_F(GroupWriterTest, FailedWriteRollsBackAloneInItsBatch) {
  MakeWriter();
  Submit("a", Insert(1));
  Submit("b", [](db::Transaction& tx) -> Result<void> {
    IL_TRY_VOID(tx->Run(kInsertRow, 2));
    return Error(Errc::kConflict, "no");
  });
  Submit("c", [](db::Transaction& tx) -> Result<void> {
    IL_TRY_VOID(tx->Run(kInsertRow, 3));
    IL_TRY_VOID(tx->Run(kInsertRow, 1));  // not unique
    return {};
  });
  Submit("d", Insert(4));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:ok b:conflict c:constraint_violated d:ok");
  EXPECT_EQ(Rows(), "1 4");
  EXPECT_EQ(writer_->stats().commits, 1u);
}

TEST_F(GroupWriterTest, ThrowingWriteRollsBackAloneAndTheWriterLivesOn) {
  MakeWriter();
  Submit("a", Insert(1));
  Submit("b", [](db::Transaction& tx) -> Result<void> {
    IL_TRY_VOID(tx->Run(kInsertRow, 2));
    throw std::runtime_error("surprise");
  });
  Submit("c", [](db::Transaction& tx) -> Result<void> {
    IL_TRY_VOID(tx->Run(kInsertRow, 3));
    throw 7;  // NOLINT(hicpp-exception-baseclass): callers may throw anything
  });
  Submit("d", [](db::Transaction& tx) -> Result<void> {  // out of the middle of a statement
    IL_TRY_VOID(tx->ForEach("INSERT INTO t(a) VALUES (5), (6) RETURNING a",
                            [](const db::Row&) { throw std::runtime_error("in a row"); }));
    return {};
  });
  Submit("e", Insert(4));
  writer_->StepOnce();
  EXPECT_NE(answers_[1].result.error().message().find("surprise"), std::string::npos);
  EXPECT_EQ(Answers(), "a:ok b:internal c:internal d:internal e:ok");
  EXPECT_EQ(Rows(), "1 4");
}

TEST_F(GroupWriterTest, OnlyAWriteThatFailsAfterAChangeMakesItsBatchRunAgain) {
  MakeWriter();
  int runs = 0;
  const auto counted = [&runs](std::int64_t value) {
    return [&runs, value](db::Transaction& tx) {
      ++runs;
      return Insert(value)(tx);
    };
  };
  Submit("a", counted(1));
  Submit("b", [](db::Transaction&) -> Result<void> { return Error(Errc::kNotFound, "no"); });
  Submit("c", Insert(1));  // not unique: the statement fails, and leaves nothing
  writer_->StepOnce();
  EXPECT_EQ(runs, 1);
  Submit("d", counted(2));
  Submit("e", [](db::Transaction& tx) -> Result<void> {
    IL_TRY_VOID(tx->Run(kInsertRow, 3));
    return Error(Errc::kNotFound, "no");
  });
  writer_->StepOnce();
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(Answers(), "a:ok b:not_found c:constraint_violated d:ok e:not_found");
  EXPECT_EQ(Rows(), "1 2");
}

TEST_F(GroupWriterTest, NothingIsToldBeforeItIsCommitted) {
  MakeWriter();
  Submit("a", Insert(1));
  Submit("b", [this](db::Transaction& tx) -> Result<void> {
    EXPECT_TRUE(answers_.empty());
    EXPECT_EQ(Rows(), "");  // nor is anything visible
    IL_TRY_VOID(tx->Run(kInsertRow, 2));
    return {};
  });
  std::string seen;
  ASSERT_TRUE(writer_->Submit(Insert(3), [&](const Result<void>&) { seen = Rows(); }).ok());
  writer_->StepOnce();
  EXPECT_EQ(seen, "1 2 3");
  EXPECT_EQ(Answers(), "a:ok b:ok");
}

TEST_F(GroupWriterTest, ACommitIsToldOnceItCanBeReadAndBeforeItsAnswers) {
  std::string seen;
  MakeWriter({.on_committed = [&](db::Connection* own) {
    EXPECT_TRUE(answers_.empty());
    EXPECT_FALSE(static_cast<Connection*>(own)->in_transaction());
    const auto count = own->One(kCountRows, [](const db::Row& row) { return row.Int(0); });
    seen += "[" + Rows() + " of " + std::to_string(count.value().value()) + "]";
  }});
  Submit("a", Insert(1));
  Submit("b", Insert(2));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:ok b:ok");
  EXPECT_EQ(seen, "[1 2 of 2]");
  Submit("c", [](db::Transaction&) -> Result<void> { return Error(Errc::kGone, "x"); });
  writer_->StepOnce();
  EXPECT_EQ(seen, "[1 2 of 2]");  // nothing was committed
}

TEST_F(GroupWriterTest, ABatchInWhichAllFailCommitsNothing) {
  MakeWriter();
  const auto refuse = [](db::Transaction&) -> Result<void> { return Error(Errc::kGone, "x"); };
  Submit("a", refuse);
  Submit("b", refuse);
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:gone b:gone");
  EXPECT_EQ(writer_->stats().commits, 0u);
  EXPECT_EQ(writer_->stats().failed, 2u);
}

TEST_F(GroupWriterTest, AFullQueueRefusesAtOnceAndRunsNeitherFunction) {
  MakeWriter({.queue_max = 2});
  Submit("a", Insert(1));
  const auto second = Submit("b", Insert(2));
  const auto never = [](const Result<void>&) { FAIL(); };
  const auto refused = writer_->Submit(Insert(3), never);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kUnavailable);
  EXPECT_TRUE(writer_->Cancel(second));  // makes room
  Submit("c", Insert(4));
  EXPECT_FALSE(writer_->Submit(Insert(5), never).ok());
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "b:cancelled a:ok c:ok");
  EXPECT_EQ(Rows(), "1 4");
  EXPECT_EQ(writer_->stats().refused, 2u);
}

TEST_F(GroupWriterTest, ABatchIsBounded) {
  MakeWriter({.batch_max = 2});
  for (int i = 1; i <= 5; ++i) Submit(std::to_string(i), Insert(i));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "1:ok 2:ok");
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "3:ok 4:ok");
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "5:ok");
  EXPECT_EQ(writer_->stats().batch_size_max, 2u);
}

TEST_F(GroupWriterTest, ACancelledWriteIsToldAndNeverRuns) {
  MakeWriter();
  const auto a = Submit("a", Insert(1));
  const auto b = Submit("b", Insert(2));
  Submit("c", Insert(3));
  EXPECT_TRUE(writer_->Cancel(b));
  EXPECT_EQ(Answers(), "b:cancelled");
  EXPECT_FALSE(writer_->Cancel(b));
  EXPECT_FALSE(writer_->Cancel(0));
  EXPECT_FALSE(writer_->Cancel(999'999));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:ok c:ok");
  EXPECT_FALSE(writer_->Cancel(a));
  EXPECT_EQ(Rows(), "1 3");
  EXPECT_EQ(writer_->stats().cancelled, 1u);
}

TEST_F(GroupWriterTest, AWriteThatRunsCannotBeCancelled) {
  MakeWriter();
  GroupWriter::Ticket ticket = 0;
  ticket = Submit("a", [&](db::Transaction& tx) -> Result<void> {
    EXPECT_FALSE(writer_->Cancel(ticket));
    IL_TRY_VOID(tx->Run(kInsertRow, 1));
    return {};
  });
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:ok");
}

TEST_F(GroupWriterTest, CallbacksMaySubmitAndCancel) {
  MakeWriter();
  GroupWriter::Ticket waiting = 0;
  ASSERT_TRUE(writer_
                  ->Submit(Insert(1),
                           [&](const Result<void>&) {
                             waiting = Submit("x", Insert(2));
                             Submit("y", Insert(3));
                             EXPECT_TRUE(writer_->Cancel(waiting));
                           })
                  .ok());
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "x:cancelled");
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "y:ok");
  EXPECT_EQ(Rows(), "1 3");
}

TEST_F(GroupWriterTest, WhatAWriteCapturedDiesBeforeItsOwnerHears) {
  MakeWriter();
  auto captured = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = captured;
  ASSERT_TRUE(writer_
                  ->Submit([captured = std::move(captured)](
                               db::Transaction&) -> Result<void> { return {}; },
                           [&](const Result<void>&) { EXPECT_TRUE(watch.expired()); })
                  .ok());
  writer_->StepOnce();
  EXPECT_TRUE(watch.expired());
}

TEST_F(GroupWriterTest, CloseCommitsWhatIsQueuedThenRefusesAndLeavesOneFile) {
  MakeWriter({.batch_max = 2});
  for (int i = 1; i <= 5; ++i) Submit(std::to_string(i), Insert(i));
  ASSERT_TRUE(writer_->Close().ok());
  EXPECT_EQ(Answers(), "1:ok 2:ok 3:ok 4:ok 5:ok");
  EXPECT_FALSE(std::filesystem::exists(temp_.path().string() + "-wal"));
  EXPECT_FALSE(std::filesystem::exists(temp_.path().string() + "-shm"));
  EXPECT_TRUE(writer_->Close().ok());
  const auto late = writer_->Submit(Insert(6), [](const Result<void>&) { FAIL(); });
  EXPECT_EQ(late.error().code(), Errc::kUnavailable);
  EXPECT_EQ(Rows(), "1 2 3 4 5");
}

TEST_F(GroupWriterTest, CloseLeavesTheLogToAnotherUserOfTheFile) {
  MakeWriter();
  auto other = temp_.Open(Access::kReadOnly);
  ASSERT_TRUE(other->BeginSnapshot().ok());
  ASSERT_TRUE(other->Run("SELECT count(*) FROM t").ok());
  Submit("a", Insert(1));
  EXPECT_TRUE(writer_->Close().ok());
  EXPECT_EQ(Answers(), "a:ok");
  other->Rollback();
  EXPECT_EQ(Rows(), "1");
}

TEST_F(GroupWriterTest, ALogThatIsTooLongIsMovedIntoTheFileAfterTheAnswers) {
  OpenOptions opening = temp_.options();
  opening.upkeep = LogUpkeep::kByCallerAndClose;
  GroupWriter::Options options{.log_pages_max = 4, .drive = Drive::kByHand};
  writer_ = std::make_unique<GroupWriter>(
      Connection::Open(opening).value(), [this] { return reopen_(); }, options, clock_);
  std::uint64_t moves = 0;   // by the last answer
  std::uint64_t writes = 0;  // so far
  while (writer_->stats().log_moves == 0 && writes < 10) {
    const auto heard = [&](const Result<void>& /*result*/) { moves = writer_->stats().log_moves; };
    ASSERT_TRUE(writer_->Submit(Insert(static_cast<std::int64_t>(++writes)), heard).ok());
    ASSERT_TRUE(writer_->StepOnce());
  }
  EXPECT_EQ(moves, 0U);
  EXPECT_EQ(writer_->stats().log_moves, 1U);
  EXPECT_GT(writes, 1U);  // the first one alone is not too long
}

// SQLite's own files take 128 KiB at a time, so that such a log is written anew in pieces.
TEST_F(GroupWriterTest, ALongLogThatWasThereBeforeIsMovedIntoTheFileFirst) {
  const auto before = temp_.Open();
  ASSERT_TRUE(before
                  ->RunScript("PRAGMA wal_autocheckpoint=0; CREATE TABLE big(x);"
                              "INSERT INTO big VALUES (randomblob(3000000))")
                  .ok());
  const std::string log = temp_.path().string() + "-wal";
  ASSERT_GT(std::filesystem::file_size(log), 3'000'000U);
  MakeWriter();
  Submit("a", Insert(1));
  writer_->StepOnce();
  EXPECT_EQ(Answers(), "a:ok");
  EXPECT_EQ(Rows(), "1");
  EXPECT_LT(std::filesystem::file_size(log), 100'000U);
}

TEST_F(GroupWriterTest, StatisticsTellQueueBatchesAndCommitTime) {
  TickingClock ticking;
  GroupWriter writer(temp_.Open(), reopen_, {.drive = Drive::kByHand}, ticking);
  const auto ignore = [](const Result<void>&) {};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(writer.Submit(Insert(i), ignore).ok());
  EXPECT_EQ(writer.stats().queue_depth, 3u);
  writer.StepOnce();
  ASSERT_TRUE(writer.Submit(Insert(9), ignore).ok());
  ASSERT_TRUE(writer.Submit(Insert(9), ignore).ok());  // not unique
  writer.StepOnce();
  const GroupWriter::Stats stats = writer.stats();
  EXPECT_EQ(stats.queue_depth, 0u);
  EXPECT_EQ(stats.queue_depth_max, 3u);
  EXPECT_EQ(stats.commits, 2u);
  EXPECT_EQ(stats.committed, 4u);
  EXPECT_EQ(stats.failed, 1u);
  EXPECT_EQ(stats.unknown, 0u);
  EXPECT_EQ(stats.batch_size_max, 3u);
  EXPECT_EQ(stats.commit_time_sum, std::chrono::milliseconds(2));
  EXPECT_EQ(stats.commit_time_max, std::chrono::milliseconds(1));
}

TEST_F(GroupWriterDeathTest, CallbacksThatThrowOrCloseFailACheck) {
  MakeWriter();
  EXPECT_DEATH(
      {
        (void)writer_->Submit(Insert(1), [](const Result<void>&) { throw std::runtime_error("x"); })
            .ok();
        writer_->StepOnce();
      },
      "done callback threw: x");
  EXPECT_DEATH(
      {
        (void)writer_
            ->Submit(Insert(1), [this](const Result<void>&) { (void)writer_->Close().ok(); })
            .ok();
        writer_->StepOnce();
      },
      "closed from a storage callback");
}

TEST_F(GroupWriterDeathTest, AWriteThatEndsItsTransactionFailsACheck) {
  MakeWriter();
  EXPECT_DEATH(
      {
        Submit("a", [](db::Transaction& tx) -> Result<void> {
          IL_TRY_VOID(tx->Run("COMMIT"));
          return {};
        });
        writer_->StepOnce();
      },
      "COMMIT");
}

}  // namespace
}  // namespace interlock::sqlite
