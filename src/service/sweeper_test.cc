#include "service/sweeper.h"

#include <gtest/gtest.h>

#include <future>
#include <limits>
#include <memory>
#include <string>

#include "base/log.h"
#include "db/migrate.h"
#include "db/sqlite/database.h"
#include "service/storage.h"
#include "store/events.h"
#include "store/schema.h"
#include "testing/captured_log.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::service {
namespace {

using domain::Cursor;
using std::chrono::days;
using std::chrono::seconds;

constexpr db::Sql kAddReadMessage =
    "INSERT INTO messages (cursor, project, id, sender, subject, body, importance, ack_required, "
    "recipients, created_at) VALUES (?1, 'p', CAST(?1 AS TEXT), 's', '', '', '', 0, '{}', ?2)";
constexpr db::Sql kAddAgent =
    "INSERT INTO agents (id, project, session_id, name, token_hash, status, contact_policy, "
    "live_contact_policy, focus_state, focus_at, created_at, last_seen) "
    "VALUES ('a', 'p', 's', 'n', x'00', '', 'open', 'open', 'unknown', 0, 0, ?1)";
constexpr db::Sql kAddReservation =
    "INSERT INTO reservations (id, project, agent, pattern, literal, canonical, prefix, "
    "is_exclusive, reason, fence, created_at, expires_at) "
    "VALUES ('r', 'p', 'a', 'x', 0, 'x', 'x', 1, '', 1, 0, ?1)";
constexpr db::Sql kSeeAgent = "UPDATE agents SET last_seen = ?1";
constexpr db::Sql kLastSeen = "SELECT last_seen FROM agents";
constexpr db::Sql kCountReservations = "SELECT count(*) FROM reservations";
constexpr db::Sql kCountMessages = "SELECT count(*) FROM messages";

class SweeperTest : public ::testing::Test {
 public:
  ~SweeperTest() override {
    if (sweeper_) sweeper_->Stop();
    storage_.Stop();
    EXPECT_TRUE(database_->Close().ok());
  }

 protected:
  static std::unique_ptr<sqlite::Database> OpenByHand(const testing::TempDb& temp, Clock& clock) {
    {
      const auto connection = temp.Open();
      EXPECT_TRUE(db::Migrator(store::ServerSchema(), {.database = temp.path()}, clock)
                      .Run(*connection)
                      .ok());
    }
    return sqlite::Database::Open({.path = temp.path(), .drive = sqlite::Drive::kByHand}, clock)
        .value();
  }

  void Make(const Sweeper::Options& options = {}) {
    sweeper_ =
        std::make_unique<Sweeper>(storage_, clock_, log_, [this] { return published_; }, options);
  }
  // Events of this age, and as many messages that nobody has to read any more.
  void Append(int count, Duration age) {
    for (int i = 0; i < count; ++i) {
      storage_.Write(
          [created_at = clock_.Now() - age](db::Transaction& tx) -> Result<void> {
            IL_TRY(
                const Cursor cursor,
                store::AppendEvent(
                    tx, {.type = "t", .project = "p", .entity_id = "e", .created_at = created_at}));
            IL_TRY_VOID(tx->Run(kAddReadMessage, cursor, created_at.micros));
            return {};
          },
          [](const Result<void>& result) { EXPECT_TRUE(result.ok()) << result.error(); });
    }
    Step();
  }
  // Lets readers and writer do what they have been given, and what comes of it; the number of
  // steps.
  int Step() {
    int steps = 0;
    while (database_->StepReader() || database_->StepWriter()) ++steps;
    return steps;
  }
  // The same up to the first write.
  bool StepToWrite() {
    while (database_->StepReader()) {
    }
    return database_->StepWriter();
  }
  std::uint64_t Commits() { return database_->writer_stats().commits; }
  // Time passes and what is due then is done.
  int After(Duration time) {
    clock_.Advance(time);
    return Step();
  }
  std::int64_t Events() {
    const auto connection = temp_.Open(sqlite::Access::kReadOnly);
    return static_cast<std::int64_t>(
        store::ReadEvents(*connection, {.events_max = 1000}).value().events.size());
  }
  std::int64_t Messages() {
    return temp_.Open(sqlite::Access::kReadOnly)
        ->One(kCountMessages, [](const db::Row& row) { return row.Int(0); })
        .value()
        .value();
  }

  // A reservation of an agent that was last heard of at its end.
  void AddReservation(Timestamp expires_at) {
    const auto connection = temp_.Open();
    ASSERT_TRUE(connection->Run(kAddAgent, expires_at.micros).ok());
    ASSERT_TRUE(connection->Run(kAddReservation, expires_at.micros).ok());
  }
  std::int64_t Reservations() {
    return temp_.Open(sqlite::Access::kReadOnly)
        ->One(kCountReservations, [](const db::Row& row) { return row.Int(0); })
        .value()
        .value();
  }

  testing::TempDb temp_;
  testing::FakeClock clock_;
  testing::CapturedLog lines_;
  Logger log_{clock_, lines_};
  std::unique_ptr<sqlite::Database> database_ = OpenByHand(temp_, clock_);
  Storage storage_{*database_, clock_};
  Cursor published_ = std::numeric_limits<Cursor>::max();
  std::unique_ptr<Sweeper> sweeper_;
};

TEST_F(SweeperTest, WhatIsOlderThanTheRetentionGoesAndTheRestStays) {
  Append(3, days(31));
  Append(2, days(29));
  Make();
  EXPECT_EQ(After(seconds(0)), 0) << "not before it is started";
  sweeper_->Start();
  After(seconds(0));
  EXPECT_EQ(Events(), 2);
  EXPECT_EQ(Messages(), 2);
  EXPECT_EQ(sweeper_->stats().removed, 6U);
}

TEST_F(SweeperTest, WhatHoldsWhenTheWriteRunsStaysHoweverLateItWasWhenTheSweepBegan) {
  AddReservation(clock_.Now());
  clock_.Advance(std::chrono::minutes(10));
  Make();
  sweeper_->Start();
  clock_.Advance(seconds(0));
  while (database_->StepReader()) {
  }
  clock_.JumpWallClock(-std::chrono::minutes(11));
  Step();
  EXPECT_EQ(Reservations(), 1);
  clock_.JumpWallClock(std::chrono::minutes(11));
  After(seconds(60));
  EXPECT_EQ(Reservations(), 0);
}

TEST_F(SweeperTest, AnAgentThatIsHeardOfBeforeTheWriteRunsKeepsItsReservations) {
  AddReservation(clock_.Now());
  clock_.Advance(std::chrono::minutes(20));
  Make();
  sweeper_->Start();
  clock_.Advance(seconds(0));
  while (database_->StepReader()) {
  }
  clock_.JumpWallClock(-std::chrono::minutes(10));
  ASSERT_TRUE(temp_.Open()->Run(kSeeAgent, clock_.Now().micros).ok());
  Step();
  EXPECT_EQ(Reservations(), 1);
}

TEST_F(SweeperTest, AgentSeenInMemoryOnlyKeepsItsReservationsAndIsStored) {
  AddReservation(clock_.Now());
  clock_.Advance(std::chrono::minutes(20));
  Make();
  storage_.signs().Seen("a");
  const Timestamp seen = clock_.Now();
  sweeper_->Start();
  After(seconds(0));
  EXPECT_EQ(Reservations(), 1);
  EXPECT_EQ(temp_.Open(sqlite::Access::kReadOnly)
                ->One(kLastSeen, [](const db::Row& row) { return row.Int(0); })
                .value(),
            seen.micros);
  After(std::chrono::minutes(4));
  EXPECT_EQ(Reservations(), 1);
  After(std::chrono::minutes(2));
  EXPECT_EQ(Reservations(), 0);
}

TEST_F(SweeperTest, ItComesBackAfterTheIntervalAndNotBefore) {
  Append(1, days(29));
  Make();
  sweeper_->Start();
  After(seconds(0));
  EXPECT_EQ(sweeper_->stats().sweeps, 1U);
  clock_.JumpWallClock(days(2));
  EXPECT_EQ(After(seconds(59)), 0);
  EXPECT_EQ(Events(), 1);
  After(seconds(1));
  EXPECT_EQ(sweeper_->stats().sweeps, 2U);
  EXPECT_EQ(Events(), 0);
}

TEST_F(SweeperTest, ItWorksInSmallStepsBetweenWhichOthersWrite) {
  Append(10, days(31));
  Make({.rows_max = 4});
  sweeper_->Start();
  clock_.Advance(seconds(0));
  ASSERT_TRUE(StepToWrite());
  EXPECT_EQ(Events(), 6);
  Append(1, days(0));  // while the sweep goes on
  EXPECT_EQ(Events(), 1);
  EXPECT_EQ(Messages(), 1);
}

TEST_F(SweeperTest, WhatIsNotYetPublishedIsNeverRemoved) {
  Append(5, days(31));
  published_ = 2;
  Make();
  sweeper_->Start();
  After(seconds(0));
  EXPECT_EQ(Events(), 3);
}

TEST_F(SweeperTest, AZeroRetentionKeepsEverything) {
  Append(3, days(9000));
  Make({.retain = days(0)});
  sweeper_->Start();
  EXPECT_EQ(After(seconds(0)), 1) << "it looks for reservations that ran out, and no further";
  EXPECT_EQ(After(seconds(60)), 1);
  EXPECT_EQ(Events(), 3);
}

TEST_F(SweeperTest, AFailureIsLoggedAndTheNextSweepTriesAgain) {
  Append(3, days(31));
  const auto other = temp_.Open();
  ASSERT_TRUE(other
                  ->Run("CREATE TRIGGER stop BEFORE DELETE ON events BEGIN "
                        "SELECT RAISE(ABORT, 'not now'); END")
                  .ok());
  Make();
  sweeper_->Start();
  After(seconds(0));
  EXPECT_EQ(Events(), 3);
  EXPECT_EQ(Messages(), 3) << "whoever replays their events must find whose they are";
  EXPECT_EQ(sweeper_->stats().sweeps, 1U) << "the other chores get their turn";
  EXPECT_EQ(sweeper_->stats().failures, 1U);
  EXPECT_TRUE(lines_.Contains("what=events"));
  ASSERT_TRUE(other->Run("DROP TRIGGER stop").ok());
  After(seconds(60));
  EXPECT_EQ(Events(), 0);
  EXPECT_EQ(Messages(), 0);
}

TEST_F(SweeperTest, AChoreThatFailsKeepsNoOtherFromItsTurn) {
  Append(3, days(31));
  ASSERT_TRUE(temp_.Open()->Run("ALTER TABLE reservations RENAME TO elsewhere").ok());
  Make();
  sweeper_->Start();
  After(seconds(0));
  EXPECT_EQ(sweeper_->stats().failures, 2U);
  EXPECT_TRUE(lines_.Contains("what=\"expired reservations\""));
  EXPECT_TRUE(lines_.Contains("what=\"released reservations\""));
  EXPECT_EQ(Events(), 0);
  EXPECT_EQ(Messages(), 0);
}

TEST_F(SweeperTest, StoppingIsIdempotentAndHarmlessBeforeTheStart) {
  Append(1, days(31));
  Make();
  sweeper_->Stop();
  sweeper_->Start();
  EXPECT_EQ(After(seconds(600)), 0);
  sweeper_->Stop();
  EXPECT_EQ(Events(), 1);
  EXPECT_EQ(clock_.timers_waiting(), 0U);
}

TEST_F(SweeperTest, StoppingWaitsForTheStepUnderWayAndEndsTheSweep) {
  Append(10, days(31));
  Make({.rows_max = 2});
  sweeper_->Start();
  clock_.Advance(seconds(0));
  // Both sorts of reservations, then events: those it found are to be removed, the write is queued.
  for (int look = 0; look < 3; ++look) ASSERT_TRUE(database_->StepReader());
  auto stopped = std::async(std::launch::async, [this] { sweeper_->Stop(); });
  while (stopped.wait_for(seconds(0)) != std::future_status::ready) Step();
  const std::int64_t left = Events();
  EXPECT_LT(left, 10) << "the step that was queued is done";
  EXPECT_EQ(After(seconds(600)), 0);
  EXPECT_EQ(Events(), left);
}

TEST_F(SweeperTest, AClockThatJumpsBackRemovesNothingAndOneThatJumpsForwardGoesOn) {
  Append(2, days(0));
  clock_.JumpWallClock(days(-10'000));
  Make();
  sweeper_->Start();
  After(seconds(0));
  EXPECT_EQ(Events(), 2);
  clock_.JumpWallClock(days(10'031));
  After(seconds(60));
  EXPECT_EQ(Events(), 0);
}

TEST_F(SweeperTest, ASweepThatFindsNothingWritesNothing) {
  Append(3, days(29));
  Make();
  sweeper_->Start();
  const std::uint64_t commits = Commits();
  EXPECT_EQ(After(seconds(0)), 4) << "one look at each sort of thing";
  EXPECT_EQ(sweeper_->stats().sweeps, 1U);
  EXPECT_EQ(Commits(), commits);
}

TEST_F(SweeperTest, OldMailThatNobodyReadsIsLookedAtALittlePerSweepAndNothingIsMissed) {
  constexpr int kUnread = 100;
  Append(kUnread, days(31));
  ASSERT_TRUE(temp_.Open()->Run("UPDATE messages SET recipients = '{\"to\":[\"a\"]}'").ok());
  ASSERT_TRUE(temp_.Open()
                  ->Run("INSERT INTO inbox (project, agent, cursor, kind, ack_required) "
                        "SELECT 'p', 'a', cursor, 'to', 0 FROM messages")
                  .ok());
  Append(1, days(31));  // behind them, and done
  Make({.rows_max = 2});
  sweeper_->Start();
  After(seconds(0));
  EXPECT_EQ(Events(), 0);
  ASSERT_EQ(Messages(), kUnread + 1);
  int sweeps = 0;
  while (Messages() > kUnread) {
    ASSERT_LE(After(seconds(60)), 12) << "a sweep is bounded, however much is unread";
    ASSERT_LT(++sweeps, kUnread);
  }
  EXPECT_GT(sweeps, 1);
  const std::uint64_t commits = Commits();
  for (int i = 0; i < 20; ++i) After(seconds(60));
  EXPECT_EQ(Messages(), kUnread);
  EXPECT_EQ(Commits(), commits);
}

TEST_F(SweeperTest, EventsFromTheFutureAtTheHeadHoldUpNothingHoweverMany) {
  Append(50, days(-1000));  // the clock was ahead
  Append(3, days(31));      // then it was put right
  Append(2, days(29));
  Make({.rows_max = 4});
  sweeper_->Start();
  After(seconds(0));
  for (int i = 0; i < 2; ++i) After(seconds(60));
  EXPECT_EQ(Events(), 2);
  EXPECT_EQ(Messages(), 2) << "mail that came with them goes with them";
}

TEST_F(SweeperTest, WhatWasPassedOverForItsDateIsLookedAtAgainWhenTheDateComes) {
  Append(3, days(40));
  clock_.JumpWallClock(days(-100));  // now the server thinks all of them are to come
  Make({.rows_max = 2});
  sweeper_->Start();
  After(seconds(0));
  EXPECT_EQ(Events(), 3);
  clock_.JumpWallClock(days(100));
  After(seconds(60));
  EXPECT_EQ(Events(), 0);
}

}  // namespace
}  // namespace interlock::service
