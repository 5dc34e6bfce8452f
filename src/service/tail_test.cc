#include "service/tail.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "db/migrate.h"
#include "db/sqlite/database.h"
#include "events/outbox.h"
#include "service/storage.h"
#include "store/events.h"
#include "store/schema.h"
#include "testing/captured_log.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::service {
namespace {

using domain::Cursor;
using std::chrono::milliseconds;

// A database stepped by hand whose reads can be made to fail.
class FlakyReads final : public db::Database {
 public:
  explicit FlakyReads(std::unique_ptr<sqlite::Database> database)
      : database_(std::move(database)) {}

  void FailReads(int count) { failures_ = count; }
  int reads() const { return reads_; }
  sqlite::Database& sqlite() { return *database_; }

  Result<Ticket> Read(ReadFn fn, Done done) override {
    ++reads_;
    if (failures_ == 0) return database_->Read(std::move(fn), std::move(done));
    --failures_;
    done(Error(Errc::kIo, "injected"));
    return Ticket{0};
  }
  Result<Ticket> Write(WriteFn fn, Done done) override {
    return database_->Write(std::move(fn), std::move(done));
  }
  bool Cancel(Ticket ticket) override { return database_->Cancel(ticket); }
  Result<void> Close() override { return database_->Close(); }

 private:
  const std::unique_ptr<sqlite::Database> database_;
  int failures_ = 0;
  int reads_ = 0;
};

std::unique_ptr<sqlite::Database> OpenByHand(const testing::TempDb& temp, Clock& clock) {
  {
    const auto connection = temp.Open();
    EXPECT_TRUE(db::Migrator(store::ServerSchema(), {.database = temp.path()}, clock)
                    .Run(*connection)
                    .ok());
  }
  return sqlite::Database::Open({.path = temp.path(), .drive = sqlite::Drive::kByHand}, clock)
      .value();
}

class TailTest : public ::testing::Test {
 public:
  ~TailTest() override {
    tail_.Stop();
    storage_.Stop();
    EXPECT_TRUE(database_.Close().ok());
  }

 protected:
  // Commits them without telling the tail.
  void Append(int count) {
    for (int i = 0; i < count; ++i) {
      storage_.Write(
          [](db::Transaction& tx) -> Result<void> {
            IL_TRY_VOID(store::AppendEvent(tx, {.type = "t", .project = "p", .entity_id = "e"}));
            return {};
          },
          [](const Result<void>& result) { EXPECT_TRUE(result.ok()); });
    }
    database_.sqlite().StepWriter();
  }
  std::shared_ptr<events::Outbox> Join() {
    auto outbox =
        std::make_shared<events::Outbox>("watcher", events::TypeFilter(), events::Outbox::Limits());
    EXPECT_TRUE(hub_->Join("p", outbox, 0));
    return outbox;
  }
  // Lets the readers do what they have been given, and what comes of it.
  int Read() {
    int steps = 0;
    while (database_.sqlite().StepReader()) ++steps;
    return steps;
  }

  testing::TempDb temp_;
  testing::FakeClock clock_;
  testing::CapturedLog lines_;
  Logger log_{clock_, lines_};
  FlakyReads database_{OpenByHand(temp_, clock_)};
  Storage storage_{database_, clock_};
  std::shared_ptr<events::Hub> hub_ = std::make_shared<events::Hub>(0);
  Tail tail_{storage_, hub_, clock_, log_, Tail::Options{.rows_max = 4}};
};

TEST_F(TailTest, PublishesWhatIsCommittedInPagesUntilNothingIsLeft) {
  const auto outbox = Join();
  Append(9);
  EXPECT_EQ(Read(), 0) << "nobody told it";
  tail_.Notify(nullptr);
  EXPECT_EQ(Read(), 3);  // 4, 4, 1
  EXPECT_EQ(outbox->Take().frames.size(), 9U);
  EXPECT_EQ(hub_->published(), 9);
}

TEST_F(TailTest, NoticesDuringAPassMakeOneMorePassAndNotMany) {
  const auto outbox = Join();
  Append(1);
  for (int i = 0; i < 10; ++i) tail_.Notify(nullptr);
  EXPECT_EQ(database_.reads(), 1);
  EXPECT_EQ(Read(), 2);
  EXPECT_EQ(outbox->Take().frames.size(), 1U);
  tail_.Notify(nullptr);
  EXPECT_EQ(Read(), 1);
}

TEST_F(TailTest, ACommitBehindThePassUnderWayIsNotForgotten) {
  const auto outbox = Join();
  Append(1);
  tail_.Notify(nullptr);
  Append(1);
  tail_.Notify(nullptr);
  Read();
  EXPECT_EQ(outbox->Take().frames.size(), 2U);
}

TEST_F(TailTest, WhileNobodyListensOnlyTheCursorIsRead) {
  Append(9);
  tail_.Notify(nullptr);
  EXPECT_EQ(Read(), 1);
  EXPECT_EQ(hub_->published(), 9);
}

TEST_F(TailTest, WhileNobodyListensTheWriterLooksForItself) {
  const auto own = temp_.Open();
  Append(9);
  tail_.Notify(own.get());
  EXPECT_EQ(database_.reads(), 0) << "no reader is woken";
  EXPECT_EQ(hub_->published(), 9);
  const auto outbox = Join();
  Append(1);
  tail_.Notify(own.get());
  Read();
  EXPECT_EQ(outbox->Take().frames.size(), 1U);
}

TEST_F(TailTest, WhatTheWriterCannotSeeAReaderLooksFor) {
  const testing::TempDb without_events;
  const auto own = without_events.Open();
  Append(2);
  tail_.Notify(own.get());
  EXPECT_EQ(Read(), 1);
  EXPECT_EQ(hub_->published(), 2);
}

// The pass under way has read events for one that has left when the writer goes past them.
TEST_F(TailTest, WhoJoinsBehindAPassThatWasOvertakenHearsEachEventOnce) {
  const auto own = temp_.Open();
  auto first = Join();
  Append(2);
  tail_.Notify(own.get());  // begins a pass for `first`
  hub_->Leave("p", first);
  Append(1);
  tail_.Notify(own.get());
  EXPECT_EQ(hub_->published(), 3);
  const auto second = Join();
  Read();  // the pass comes with the events 1 to 3
  EXPECT_TRUE(second->Take().frames.empty()) << "they were there before it joined";
  Append(1);
  tail_.Notify(own.get());
  Read();
  EXPECT_EQ(second->Take().frames.size(), 1U);
  EXPECT_EQ(hub_->published(), 4);
}

TEST_F(TailTest, WhoJoinsWhileTheCursorIsBeingReadMissesNothing) {
  Append(3);
  tail_.Notify(nullptr);  // has asked for the cursor, since nobody listens
  const auto outbox = Join();
  Read();
  EXPECT_EQ(outbox->Take().frames.size(), 3U);
  EXPECT_EQ(hub_->published(), 3);
}

TEST_F(TailTest, AFailedReadIsRepeatedLaterAndLaterAndSkipsNothing) {
  const auto outbox = Join();
  Append(2);
  database_.FailReads(3);
  tail_.Notify(nullptr);
  EXPECT_EQ(clock_.NextTimerIn(), milliseconds(50));
  EXPECT_TRUE(lines_.Contains("cannot read the event log"));
  Append(1);
  tail_.Notify(nullptr);  // does not hurry it
  EXPECT_EQ(database_.reads(), 1);
  clock_.Advance(milliseconds(50));
  EXPECT_EQ(clock_.NextTimerIn(), milliseconds(100));
  clock_.Advance(milliseconds(100));
  EXPECT_EQ(clock_.NextTimerIn(), milliseconds(200));
  clock_.Advance(milliseconds(200));
  Read();
  EXPECT_EQ(outbox->Take().frames.size(), 3U);
  database_.FailReads(1);
  tail_.Notify(nullptr);
  EXPECT_EQ(clock_.NextTimerIn(), milliseconds(50)) << "after a success it begins anew";
}

TEST_F(TailTest, TheWaitBetweenFailedReadsHasAnEnd) {
  const auto outbox = Join();
  database_.FailReads(100);
  tail_.Notify(nullptr);
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(clock_.AdvanceToNextTimer());
  EXPECT_EQ(clock_.NextTimerIn(), std::chrono::seconds(5));
}

TEST_F(TailTest, TheWallClockMayJump) {
  const auto outbox = Join();
  for (const auto jump : {std::chrono::hours(-50'000), std::chrono::hours(100'000)}) {
    Append(1);
    clock_.JumpWallClock(jump);
    tail_.Notify(nullptr);
    Read();
  }
  EXPECT_EQ(outbox->Take().frames.size(), 2U);
}

TEST_F(TailTest, AfterStopNothingIsPublishedAndNoTimerIsLeft) {
  const auto outbox = Join();
  Append(2);
  tail_.Notify(nullptr);
  tail_.Stop();
  Read();
  EXPECT_TRUE(outbox->Take().frames.empty());
  tail_.Notify(nullptr);
  EXPECT_EQ(Read(), 0);
  tail_.Stop();
}

TEST_F(TailTest, StoppingEndsTheWaitAfterAFailure) {
  const auto outbox = Join();
  database_.FailReads(1);
  tail_.Notify(nullptr);
  ASSERT_EQ(clock_.timers_waiting(), 1U);
  tail_.Stop();
  EXPECT_EQ(clock_.timers_waiting(), 0U);
}

}  // namespace
}  // namespace interlock::service
