#include "store/mirror.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/events.h"
#include "store/reservations.h"
#include "store/store_fixture.h"

namespace interlock::store {
namespace {

using domain::Access;
using domain::Cursor;
using domain::Reservation;
using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
namespace event_type = domain::event_type;

constexpr db::Sql kSpoilMark = "UPDATE meta SET value = ?1 WHERE key = 'intercore_mirror'";

class StoreMirrorTest : public StoreTest {
 protected:
  Reservation Grant(const std::string& id) {
    const Reservation reservation{.id = id,
                                  .project = "p",
                                  .agent = "a",
                                  .pattern = "src/" + id,
                                  .literal = true,
                                  .access = Access::kExclusive,
                                  .reason = "because \"it\"",
                                  .fence = 1,
                                  .created_at = clock_.Now(),
                                  .expires_at = clock_.Now() + minutes(30)};
    const auto pattern = ParseClaim(reservation.pattern, true).value();
    EXPECT_TRUE(Write<void>([&](db::Transaction& tx) -> Result<void> {
                  IL_TRY_VOID(InsertReservation(tx, reservation, pattern));
                  return AppendReservationEvent(tx, event_type::kReservationCreated, reservation,
                                                "a", clock_.Now());
                }).ok());
    return reservation;
  }
  Reservation Change(Reservation reservation, std::string_view type) {
    EXPECT_TRUE(Write<void>([&](db::Transaction& tx) -> Result<void> {
                  IL_TRY_VOID(UpdateReservation(tx, reservation));
                  return AppendReservationEvent(tx, type, reservation, "a", clock_.Now());
                }).ok());
    return reservation;
  }
  void Sweep() {
    EXPECT_TRUE(Write<void>([&](db::Transaction& tx) -> Result<void> {
                  IL_TRY(const auto swept,
                         SweepReservations(tx, {.expired_before = clock_.Now(), .limit = 100}));
                  for (const Reservation& one : swept) {
                    IL_TRY_VOID(AppendReservationEvent(tx, event_type::kReservationExpired, one,
                                                       "a", clock_.Now()));
                  }
                  return {};
                }).ok());
  }
  void Other(const std::string& id) {
    EXPECT_TRUE(Write<Cursor>([&](db::Transaction& tx) {
                  return AppendEvent(tx, {.type = "t", .project = "p", .entity_id = id});
                }).ok());
  }
  ReservationChanges Read(Cursor after, std::size_t rows_max = 100) {
    return ReadReservationChanges(connection(), after, rows_max).value();
  }
};

TEST_F(StoreMirrorTest, WhatChangedIsGivenOnceAndAsItIsNow) {
  Reservation first = Grant("1");
  const Reservation second = Grant("2");
  Other("2");
  first.agent = "b";
  first.released_at = clock_.Now();
  Change(first, event_type::kReservationReleased);
  EXPECT_THAT(Read(0).changed, ElementsAre(first, second));
  EXPECT_THAT(Read(0, 1).changed, ElementsAre(first)) << "also where its end is not yet looked at";
}

TEST_F(StoreMirrorTest, PagesCoverTheLogAndSayWhereItEnds) {
  for (const char* id : {"1", "2", "3"}) Grant(id);
  Other("x");
  ReservationChanges page = Read(0, 2);
  EXPECT_EQ(page.reached, 2);
  EXPECT_FALSE(page.ended);
  page = Read(page.reached, 2);
  EXPECT_EQ(page.changed.size(), 1U);
  EXPECT_EQ(page.reached, 4);
  EXPECT_FALSE(page.ended);
  page = Read(page.reached, 2);
  EXPECT_THAT(page.changed, IsEmpty());
  EXPECT_EQ(page.reached, 4);
  EXPECT_TRUE(page.ended);
}

TEST_F(StoreMirrorTest, WhatWasSweptIsGivenWithTheTimeOfItsEnd) {
  Reservation swept = Grant("1");
  clock_.Advance(hours(1));
  Sweep();
  swept.released_at = clock_.Now();
  EXPECT_THAT(Read(0).changed, ElementsAre(swept));
  EXPECT_THAT(Read(1).changed, ElementsAre(swept));
  EXPECT_THAT(Read(0, 1).changed, IsEmpty()) << "its end comes with a later event";
}

TEST_F(StoreMirrorTest, AnEventWithoutItsReservationIsPassedOver) {
  EXPECT_TRUE(Write<Cursor>([&](db::Transaction& tx) {
                return AppendEvent(tx, {.type = event_type::kReservationExpired,
                                        .project = "p",
                                        .entity_id = "gone",
                                        .data = "{\"no\":1}"});
              }).ok());
  const ReservationChanges changes = Read(0);
  EXPECT_THAT(changes.changed, IsEmpty());
  EXPECT_EQ(changes.reached, 1);
}

TEST_F(StoreMirrorTest, APlaceThatIsNoLongerInTheLogIsGoneButTheBeginningNeverIs) {
  for (const char* id : {"1", "2", "3"}) Grant(id);
  ASSERT_TRUE(
      Write<std::int64_t>([&](db::Transaction& tx) { return PruneEvents(tx, 2, 10); }).ok());
  EXPECT_EQ(ReadReservationChanges(connection(), 1, 10).error().code(), Errc::kGone);
  EXPECT_EQ(Read(0).changed.size(), 1U);
}

TEST_F(StoreMirrorTest, TheMarkIsKeptAndOneThatCannotBeReadIsNone) {
  EXPECT_EQ(LoadMirrorMark(connection()).value(), MirrorMark{});
  const MirrorMark mark{.cursor = 77,
                        .last_id = "r",
                        .last_owner = "the \"owner\"\n",
                        .last_expires_at = 5,
                        .last_released_at = 4};
  ASSERT_TRUE(Write<void>([&](db::Transaction& tx) { return SaveMirrorMark(tx, mark); }).ok());
  EXPECT_EQ(LoadMirrorMark(connection()).value(), mark);
  for (const char* text : {"", "{}", "12", R"({"cursor":-1})"}) {
    ASSERT_TRUE(connection().Run(kSpoilMark, text).ok());
    EXPECT_EQ(LoadMirrorMark(connection()).value(), MirrorMark{}) << text;
  }
}

}  // namespace
}  // namespace interlock::store
