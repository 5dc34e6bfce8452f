#include "intercore/locks.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "glob/pattern.h"
#include "testing/locks_table.h"
#include "testing/temp_db.h"

namespace interlock::intercore {
namespace {

using domain::Access;
using domain::Reservation;

constexpr std::int64_t kSecond = 1'000'000;

Reservation Example() {
  return {.id = "01a",
          .project = "/repo",
          .agent = "agent",
          .pattern = "src/**",
          .access = Access::kExclusive,
          .reason = "refactoring",
          .fence = 7,
          .created_at = {100 * kSecond},
          .expires_at = {1900 * kSecond}};
}

TEST(LockOfTest, AReservationBecomesARowWithTimesInSeconds) {
  EXPECT_EQ(LockOf(Example()), (Lock{.id = "01a",
                                     .owner = "agent",
                                     .scope = "/repo",
                                     .pattern = "src/**",
                                     .exclusive = true,
                                     .reason = "refactoring",
                                     .ttl_seconds = 1800,
                                     .created_at = 100,
                                     .expires_at = 1900}));
}

TEST(LockOfTest, NoRowLooksFreeBeforeItsReservationIs) {
  Reservation reservation = Example();
  reservation.created_at.micros += 1;
  reservation.expires_at.micros += 1;
  reservation.released_at = Timestamp{200 * kSecond + 999'999};
  const Lock lock = LockOf(reservation);
  EXPECT_EQ(lock.created_at, 100);
  EXPECT_EQ(lock.expires_at, 1901);
  EXPECT_EQ(lock.ttl_seconds, 1800);
  EXPECT_EQ(lock.released_at, 200);
}

TEST(LockOfTest, WhatIsNotSaidIsNull) {
  Reservation reservation = Example();
  reservation.reason.clear();
  EXPECT_EQ(LockOf(reservation).reason, std::nullopt);
  EXPECT_EQ(LockOf(reservation).released_at, std::nullopt);
}

TEST(LockOfTest, TheGlobOfALiteralPathMatchesThatPathAlone) {
  Reservation reservation = Example();
  reservation.literal = true;
  for (const std::string path : {"app/[id]/page.tsx", "a*b/{c,d}?", "back\\slash", "plain/x.cc"}) {
    reservation.pattern = path;
    const auto pattern = glob::Pattern::ParseHeld(LockOf(reservation).pattern);
    ASSERT_TRUE(pattern.ok()) << pattern.error();
    ASSERT_NE(pattern->literal_path(), nullptr) << path;
    EXPECT_EQ(*pattern->literal_path(), path);
  }
}

TEST(ScopeOfTest, AnAbsolutePathIsCleanedAndAnyOtherTextStays) {
  EXPECT_EQ(ScopeOf("/home/me/repo"), "/home/me/repo");
  EXPECT_EQ(ScopeOf("/home//me/./x/../repo/"), "/home/me/repo");
  EXPECT_EQ(ScopeOf("//srv"), "/srv");
  EXPECT_EQ(ScopeOf("/"), "/");
  EXPECT_EQ(ScopeOf("web"), "web");
  EXPECT_EQ(ScopeOf("a//b/"), "a//b/");
  EXPECT_EQ(ScopeOf("./web"), "./web");
  EXPECT_EQ(ScopeOf(""), "");
}

class LocksTest : public ::testing::Test {
 protected:
  LocksTest() { file_.Make(testing::kLocksTable); }

  Result<std::size_t> Write(const std::vector<Lock>& locks) {
    IL_TRY_VOID(connection_->BeginExclusive());
    db::Transaction tx(*connection_);
    auto refused = WriteLocks(tx, locks);
    if (!refused.ok()) {
      connection_->Rollback();
    } else {
      IL_TRY_VOID(connection_->Commit());
    }
    return refused;
  }
  void Script(const std::string& script) {
    const auto ran = connection_->RunScript(script);
    ASSERT_TRUE(ran.ok()) << ran.error();
  }
  std::string Text(const db::Sql& sql) {
    return connection_->One(sql, [](const db::Row& row) { return row.String(0); })
        .value()
        .value_or("(none)");
  }

  testing::TempDb file_;
  std::unique_ptr<sqlite::Connection> connection_ = file_.Open();
};

TEST_F(LocksTest, ARowIsMadeThenChangedAndTheSameAgainChangesNothing) {
  Lock lock = LockOf(Example());
  EXPECT_EQ(FindLock(*connection_, lock.id).value(), std::nullopt);
  EXPECT_EQ(Write({lock, lock}).value(), 0U);
  EXPECT_EQ(FindLock(*connection_, lock.id).value(), lock);
  lock.owner = "other";
  lock.expires_at = 5000;
  lock.released_at = 4000;
  lock.reason.reset();
  EXPECT_EQ(Write({lock}).value(), 0U);
  EXPECT_EQ(FindLock(*connection_, lock.id).value(), lock);
}

TEST_F(LocksTest, ColumnsThatAreNotOursStayNull) {
  ASSERT_EQ(Write({LockOf(Example())}).value(), 0U);
  EXPECT_EQ(Text("SELECT type || coalesce(fence, '-') || coalesce(dispatch_id, '-') || "
                 "coalesce(run_id, '-') FROM coordination_locks"),
            "file_reservation---");
}

TEST_F(LocksTest, ARowThatAnotherProgramClosedIsOpenAgainWhenTheReservationIs) {
  const Lock lock = LockOf(Example());
  ASSERT_EQ(Write({lock}).value(), 0U);
  Script("UPDATE coordination_locks SET released_at = 1");
  ASSERT_EQ(Write({lock}).value(), 0U);
  EXPECT_EQ(FindLock(*connection_, lock.id).value(), lock);
}

TEST_F(LocksTest, ARowOfAnotherTypeIsNobodysBusiness) {
  Script(
      "INSERT INTO coordination_locks (id, type, owner, scope, pattern, created_at) "
      "VALUES ('01a', 'named_lock', 'ic', 's', 'p', 1)");
  EXPECT_EQ(Write({LockOf(Example())}).value(), 0U);
  EXPECT_EQ(Text("SELECT type || owner FROM coordination_locks"), "named_lockic");
  EXPECT_EQ(FindLock(*connection_, "01a").value(), std::nullopt);
}

TEST_F(LocksTest, ARowThatTheTableRefusesDoesNotKeepOthersOut) {
  Script("CREATE UNIQUE INDEX picky ON coordination_locks (pattern)");
  std::vector<Lock> locks(3, LockOf(Example()));
  locks[1].id = "01b";
  locks[2].id = "01c";
  locks[2].pattern = "docs/**";
  EXPECT_EQ(Write(locks).value(), 1U);
  EXPECT_TRUE(FindLock(*connection_, "01c").value());
  EXPECT_FALSE(FindLock(*connection_, "01b").value());
}

TEST_F(LocksTest, ColumnsOfUnexpectedTypesAreReadAllTheSame) {
  Script(
      "INSERT INTO coordination_locks (id, type, owner, scope, pattern, exclusive, "
      "created_at, expires_at) "
      "VALUES ('x', 'file_reservation', x'00ff', 1.5, 'p', 'yes', 'today', 'never')");
  EXPECT_TRUE(FindLock(*connection_, "x").value());
}

TEST_F(LocksTest, WithoutTheTableEverythingFails) {
  Script("DROP TABLE coordination_locks");
  const auto found = FindLock(*connection_, "x");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), Errc::kForeignSchema);
  EXPECT_THAT(found.error().message(), ::testing::HasSubstr("run 'ic init'"));
  EXPECT_FALSE(Write({LockOf(Example())}).ok());
}

}  // namespace
}  // namespace interlock::intercore
