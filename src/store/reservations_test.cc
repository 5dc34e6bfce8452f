#include "store/reservations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "domain/event.h"
#include "glob/hostile_pattern.h"
#include "glob/overlap.h"
#include "store/agents.h"
#include "store/events.h"
#include "store/store_fixture.h"
#include "testing/seeded_random.h"

namespace interlock::store {
namespace {

using domain::Access;
using domain::Conflict;
using domain::HolderState;
using domain::Reservation;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;
using Names = std::vector<std::string>;

class ReservationsTest : public StoreTest {
 protected:
  // Grants without asking anybody.
  Reservation Grant(const std::string& agent, const std::string& pattern,
                    Access access = Access::kExclusive, const std::string& project = "p",
                    Duration lease = minutes(30)) {
    auto granted = Write<Reservation>([&](db::Transaction& tx) -> Result<Reservation> {
      IL_TRY(const std::int64_t fence, TakeFence(tx, project));
      Reservation reservation{.id = "r" + std::to_string(++granted_),
                              .project = project,
                              .agent = agent,
                              .pattern = pattern,
                              .access = access,
                              .reason = reason_,
                              .fence = fence,
                              .created_at = clock_.Now(),
                              .expires_at = clock_.Now() + lease};
      IL_TRY(const glob::Pattern parsed, ParseClaim(pattern, false));
      IL_TRY_VOID(InsertReservation(tx, reservation, parsed));
      return reservation;
    });
    return granted.value();
  }
  void Release(const Reservation& reservation) {
    ASSERT_TRUE(Write<void>([&](db::Transaction& tx) {
                  return SetReleased(tx, reservation.id, clock_.Now());
                }).ok());
  }
  void Register(const std::string& id, const std::string& name) {
    const std::array hash = {static_cast<std::byte>(++registered_)};
    const domain::Agent agent = {
        .id = id, .project = "p", .session_id = id, .name = name, .last_seen = clock_.Now()};
    ASSERT_TRUE(
        Write<void>([&](db::Transaction& tx) { return InsertAgent(tx, agent, hash); }).ok());
  }

  std::vector<Conflict> Conflicts(const std::string& agent, const std::string& pattern,
                                  Access access = Access::kExclusive,
                                  const std::string& project = "p") {
    const glob::Pattern parsed = ParseClaim(pattern, false).value();
    glob::Budget budget;
    return FindConflicts(connection(), {project, agent, parsed, access},
                         {clock_.Now(), minutes(5), domain::kNoSightings}, budget)
        .value();
  }
  Names Ids(const std::vector<Conflict>& conflicts) {
    Names ids;
    for (const Conflict& conflict : conflicts) ids.push_back(conflict.reservation_id.value_or("-"));
    return ids;
  }
  Names Ids(const std::vector<Reservation>& reservations) {
    Names ids;
    for (const Reservation& reservation : reservations) ids.push_back(reservation.id);
    return ids;
  }

  std::string reason_ = "because";

 private:
  int granted_ = 0;
  int registered_ = 0;
};

TEST_F(ReservationsTest, AConflictSaysAllThatIsKnownOfWhatIsInTheWay) {
  Register("a", "Quiet Fox");
  const Reservation held = Grant("a", "src/*.cc");
  clock_.Advance(minutes(6));
  const std::vector<Conflict> conflicts = Conflicts("b", "src/main.*");
  EXPECT_THAT(conflicts, ElementsAre(Conflict{.reservation_id = held.id,
                                              .agent = "a",
                                              .held_by = "Quiet Fox",
                                              .pattern = "src/*.cc",
                                              .access = Access::kExclusive,
                                              .reason = "because",
                                              .fence = 1,
                                              .expires_at = held.expires_at,
                                              .last_seen = held.created_at,
                                              .holder_state = HolderState::kStale,
                                              .requested = "src/main.*",
                                              .witness = "src/main.cc"}));
}

// They may be thousands, of 4 KiB each.
TEST_F(ReservationsTest, TheReasonsOfManyConflictsAreNotAllTold) {
  constexpr std::size_t kHolds = 200;
  reason_ = std::string(4000, 'x');
  for (std::size_t i = 0; i < kHolds; ++i) Grant("a", std::to_string(i));
  const std::vector<Conflict> conflicts = Conflicts("b", "*");
  EXPECT_EQ(conflicts.size(), kHolds);
  std::size_t bytes = 0;
  for (const Conflict& one : conflicts) bytes += one.reason.size();
  EXPECT_GT(bytes, std::size_t{240} * 1024);
  EXPECT_LE(bytes, std::size_t{256} * 1024);
  EXPECT_LT(RefusalJson("b", {"*"}, conflicts, 32'000).size(), 40'000U);
  EXPECT_GT(RefusalJson("b", {"*"}, conflicts, 32'000).size(), 32'000U);
}

// However small the budget: it finds what is in the way, or says that it could not.
TEST_F(ReservationsTest, WhatIsTooMuchToCompareIsNeverTakenForFree) {
  for (int i = 0; i < 20; ++i) Grant("b", "**/*.x" + std::to_string(i));
  Grant("b", "src/*a*b*.c");
  const glob::Pattern claim = ParseClaim("src/*b*a*.c", false).value();
  int too_complex = 0;
  int found = 0;
  for (std::int64_t steps = 0; found < 10; ++steps) {
    glob::Budget budget(steps);
    const auto conflicts = FindConflicts(connection(), {"p", "a", claim, Access::kExclusive},
                                         {clock_.Now(), minutes(5), domain::kNoSightings}, budget);
    if (conflicts.ok()) {
      ASSERT_EQ(conflicts->size(), 1U) << steps;
      ++found;
    } else {
      ASSERT_EQ(conflicts.error().code(), Errc::kPatternTooComplex) << steps;
      ++too_complex;
    }
  }
  EXPECT_GT(too_complex, 20 * 60) << "to read a row costs, too";
}

// However they are met: by one claim, or by one after the other.
TEST_F(ReservationsTest, HostilePatternsCostWhatItTakesToParseThem) {
  constexpr int kHolds = 100;
  for (int i = 0; i < kHolds; ++i) {
    Grant("b", glob::Branches(glob::Repeat("*a", 28) + std::to_string(i), "bcdefghi"));
  }
  const glob::Pattern claim = ParseClaim("src/*.cc", false).value();
  const store::Claim asked = {"p", "a", claim, Access::kExclusive};
  for (int again = 0; again < 2; ++again) {  // what was parsed before costs no less
    glob::Budget budget;
    const auto found = FindConflicts(connection(), asked,
                                     {clock_.Now(), minutes(5), domain::kNoSightings}, budget);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code(), Errc::kPatternTooComplex);
  }
}

TEST_F(ReservationsTest, ComparedHoldsAreNotComparedAgain) {
  const auto tell = [&](const Reservation& one, std::string_view type) {
    ASSERT_TRUE(Write<void>([&](db::Transaction& tx) {
                  return AppendReservationEvent(tx, type, one, one.agent, clock_.Now());
                }).ok());
  };
  const Reservation old = Grant("b", "src/old");
  tell(old, domain::event_type::kReservationCreated);
  const Compared then = {.cursor = NewestCursor(connection()).value(), .now = clock_.Now()};
  const glob::Pattern claim = ParseClaim("src/*", false).value();
  const auto since = [&] {
    glob::Budget budget;
    return Ids(FindConflicts(connection(), {"p", "a", claim, Access::kExclusive, then},
                             {clock_.Now(), minutes(5), domain::kNoSightings}, budget)
                   .value());
  };
  EXPECT_THAT(since(), IsEmpty());
  const Reservation fresh = Grant("b", "src/new");
  tell(fresh, domain::event_type::kReservationCreated);
  tell(Grant("b", "lib/new"), domain::event_type::kReservationCreated);
  tell(Grant("b", "src/far", Access::kExclusive, "q"), domain::event_type::kReservationCreated);
  EXPECT_EQ(since(), Names{fresh.id});
  tell(old, domain::event_type::kReservationTransferred);
  EXPECT_EQ(since(), (Names{old.id, fresh.id}));
  Release(fresh);
  EXPECT_EQ(since(), Names{old.id});
  Grant("b", "src/unknown");
  EXPECT_EQ(since(), Names{old.id});
  clock_.JumpWallClock(-minutes(1));  // what had run out may hold again, so all is compared
  EXPECT_EQ(since().size(), 2U);
}

TEST_F(ReservationsTest, AnUnregisteredHolderIsNamedByItsId) {
  Grant("ghost", "a");
  const auto conflicts = Conflicts("b", "a");
  ASSERT_EQ(conflicts.size(), 1U);
  EXPECT_EQ(conflicts[0].held_by, "ghost");
  EXPECT_EQ(conflicts[0].last_seen, std::nullopt);
  EXPECT_EQ(conflicts[0].holder_state, HolderState::kUnknown);
}

TEST_F(ReservationsTest, WhoConflictsWithWhom) {
  Grant("a", "x", Access::kExclusive);
  Grant("a", "y", Access::kShared);
  const struct {
    std::string agent, pattern;
    Access access;
    Names in_the_way;
  } kCases[] = {
      {"b", "x", Access::kExclusive, {"r1"}}, {"b", "x", Access::kShared, {"r1"}},
      {"b", "y", Access::kExclusive, {"r2"}}, {"b", "y", Access::kShared, {}},
      {"a", "x", Access::kExclusive, {}},     {"b", "**", Access::kExclusive, {"r1", "r2"}},
      {"", "x", Access::kShared, {"r1"}},     {"b", "z", Access::kExclusive, {}},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Ids(Conflicts(c.agent, c.pattern, c.access)), c.in_the_way)
        << c.agent << " " << c.pattern;
  }
  EXPECT_THAT(Conflicts("b", "x", Access::kExclusive, "q"), IsEmpty()) << "another project";
}

TEST_F(ReservationsTest, WhatRanOutOrWasReleasedHoldsNothing) {
  const Reservation first = Grant("a", "x", Access::kExclusive, "p", minutes(1));
  const Reservation second = Grant("a", "y");
  EXPECT_EQ(Ids(Conflicts("b", "{x,y}")), (Names{"r1", "r2"}));
  clock_.Advance(minutes(1) - Duration(1));
  EXPECT_EQ(Ids(Conflicts("b", "x")), Names{"r1"});
  clock_.Advance(Duration(1));
  EXPECT_THAT(Conflicts("b", "x"), IsEmpty());
  Release(second);
  EXPECT_THAT(Conflicts("b", "y"), IsEmpty());
  EXPECT_EQ(FindReservation(connection(), first.id).value(), first) << "it is still there";
}

TEST_F(ReservationsTest, APathIsInTheWayOfPathsBelowAndAboveIt) {
  Grant("a", "src");
  Grant("a", "lib/x/y.cc");
  Grant("a", "doc/{a,b}");
  const struct {
    const char* asked;
    Names in_the_way;
    const char* witness;
  } kCases[] = {
      {"src/a.cc", {"r1"}, "src/a.cc"},
      {"src/a/b/c.cc", {"r1"}, "src/a/b/c.cc"},
      {"src/*.cc", {"r1"}, "src/.cc"},
      {"srcs/a.cc", {}, ""},
      {"lib", {"r2"}, "lib/x/y.cc"},
      {"lib/x", {"r2"}, "lib/x/y.cc"},
      {"lib/*", {}, ""},
      {"lib/x/y.cc/z", {"r2"}, "lib/x/y.cc/z"},
      {"doc/b/c", {"r3"}, "doc/b/c"},
      {"doc/c/b", {}, ""},
      {"doc", {"r3"}, "doc/a"},
  };
  for (const auto& one : kCases) {
    const std::vector<Conflict> found = Conflicts("b", one.asked);
    EXPECT_EQ(Ids(found), one.in_the_way) << one.asked;
    EXPECT_EQ(found.empty() ? "" : found[0].witness, one.witness) << one.asked;
  }
}

// A file of a version in which the key of a path had no slash, and patterns were accepted that are
// refused today.
TEST(ReservationsMigrationTest, OldRowsAreStillInTheWay) {
  constexpr db::Sql kInsertOld =
      "INSERT INTO reservations (id, project, agent, pattern, literal, canonical, prefix, "
      "is_exclusive, reason, fence, created_at, expires_at) "
      "VALUES (?1, 'p', 'a', ?2, 0, ?2, ?3, 1, '', ?4, 0, ?5)";
  const testing::TempDb temp;
  testing::FakeClock clock;
  const auto connection = temp.Open();
  const db::Schema whole = ServerSchema();
  const db::Schema before = {whole.program, whole.steps.first(7)};
  ASSERT_TRUE(db::Migrator(before, {.database = temp.path()}, clock).Run(*connection).ok());
  const std::string deep = "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18";
  const std::array<std::array<std::string, 2>, 9> kRows = {{{"src", "src"},
                                                            {"lib/a.cc", "lib/a.cc"},
                                                            {deep, deep},
                                                            {"dir/*.cc", "dir/"},
                                                            {"@(y|z)", "@(y|z)"},
                                                            {"**/{1..3}", ""},
                                                            {"~/x", "~/x"},
                                                            {"doc/{a,b", "doc/{a,b"},
                                                            {"win\\*.cc", "win*.cc"}}};
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i + 1);
    ASSERT_TRUE(connection
                    ->Run(kInsertOld, "old" + std::to_string(number), kRows[i][0], kRows[i][1],
                          number, (clock.Now() + minutes(30)).micros)
                    .ok());
  }
  ASSERT_TRUE(db::Migrator(whole, {.database = temp.path()}, clock).Run(*connection).ok());
  const auto in_the_way = [&](const std::string& pattern) {
    const glob::Pattern parsed = ParseClaim(pattern, false).value();
    glob::Budget budget;
    const auto found = FindConflicts(*connection, {"p", "b", parsed, Access::kExclusive},
                                     {clock.Now(), minutes(5), domain::kNoSightings}, budget);
    Names ids;
    for (const Conflict& one : found.value()) ids.push_back(*one.reservation_id);
    return ids;
  };
  EXPECT_EQ(in_the_way("src/x.cc"), (Names{"old1", "old6"}));
  EXPECT_EQ(in_the_way("lib/*"), (Names{"old2", "old6"}));
  EXPECT_EQ(in_the_way("l*/a.cc"), Names{"old2"});
  EXPECT_EQ(in_the_way(deep + "/*"), (Names{"old3", "old6"}));
  EXPECT_EQ(in_the_way("1/*/3/*/5/*/7/*/9/*/11/*/13/*/15/*/17/*"), (Names{"old3", "old6"}));
  EXPECT_EQ(in_the_way("dir/x.*"), Names{"old4"});
  EXPECT_EQ(in_the_way("?(y*"), Names{"old5"});
  EXPECT_EQ(in_the_way("x/[{]*"), Names{"old6"});
  EXPECT_EQ(in_the_way("[~]/*"), (Names{"old6", "old7"}));
  EXPECT_EQ(in_the_way("doc/\\{*"), (Names{"old6", "old8"}));
  EXPECT_EQ(in_the_way("win[*]*"), Names{"old9"});
}

// The index of prefixes must never hide what the exact comparison would find.
TEST_F(ReservationsTest, WhatTheIndexGivesIsWhatComparingAllWouldGive) {
  std::mt19937_64 random(testing::TestSeed());
  const std::array<std::string, 9> kParts = {"a", "b",     "*",    "**", "a*",
                                             "?", "{a,b}", "[ab]", "c.x"};
  const auto pattern = [&] {
    std::string text;
    for (std::size_t depth = random() % 4;; --depth) {
      text += kParts[random() % kParts.size()];
      if (depth == 0) return text;
      text += '/';
    }
  };
  std::vector<Reservation> all;
  all.reserve(150);
  for (int i = 0; i < 150; ++i) all.push_back(Grant("a", pattern()));
  for (int i = 0; i < 150; ++i) {
    const std::string asked = pattern();
    const glob::Pattern parsed = ParseClaim(asked, false).value();
    Names expected;
    for (const Reservation& held : all) {
      const auto other = ParseClaim(held.pattern, false);
      if (glob::Overlap(parsed, *other).value()) expected.push_back(held.id);
    }
    EXPECT_EQ(Ids(Conflicts("b", asked)), expected) << asked;
  }
}

TEST_F(ReservationsTest, TheSameClaimIsTheSamePathsHoweverTheyAreWritten) {
  const Reservation held = Grant("a", "src/{x,y}");
  const auto same = [&](const std::string& agent, const std::string& text, Access access) {
    const glob::Pattern pattern = ParseClaim(text, false).value();
    return FindSame(connection(), {"p", agent, pattern, access}, clock_.Now()).value();
  };
  EXPECT_EQ(same("a", "./src//{y,x}", Access::kExclusive), held);
  EXPECT_EQ(same("a", "src/{x,y}", Access::kShared), std::nullopt);
  EXPECT_EQ(same("b", "src/{x,y}", Access::kExclusive), std::nullopt);
  EXPECT_EQ(same("a", "src/x", Access::kExclusive), std::nullopt);
  EXPECT_EQ(CountHeldBy(connection(), "p", "a", clock_.Now()).value(), 1);
  clock_.Advance(minutes(30));
  EXPECT_EQ(same("a", "src/{x,y}", Access::kExclusive), std::nullopt);
  EXPECT_EQ(CountHeldBy(connection(), "p", "a", clock_.Now()).value(), 0);
}

TEST_F(ReservationsTest, FencesRiseInEachProjectAndAreNotGivenAgain) {
  EXPECT_EQ(Grant("a", "x").fence, 1);
  EXPECT_EQ(Grant("a", "y").fence, 2);
  EXPECT_EQ(Grant("a", "x", Access::kExclusive, "q").fence, 1);
  clock_.Advance(minutes(60));
  ASSERT_EQ(Write<std::vector<Reservation>>([&](db::Transaction& tx) {
              return SweepReservations(tx, {.expired_before = clock_.Now(), .limit = 10});
            })->size(),
            3U);
  EXPECT_EQ(Grant("a", "z").fence, 3) << "though no reservation is left";
}

// Whichever of the three writes it: the rest stays, and the change shows in its version.
TEST_F(ReservationsTest, AChangeOfOneThingLeavesTheRest) {
  const Reservation first = Grant("a", "x");
  const Reservation second = Grant("a", "y");
  ASSERT_EQ(FindUnchanged(connection(), second.id).value(), second);
  Reservation extended = first;
  extended.expires_at = first.expires_at + minutes(5);
  ASSERT_TRUE(Write<void>([&](db::Transaction& tx) {
                return SetExpiry(tx, first.id, extended.expires_at);
              }).ok());
  EXPECT_EQ(FindReservation(connection(), first.id).value(), extended);
  EXPECT_EQ(FindUnchanged(connection(), first.id).value(), std::nullopt);
  Reservation released = second;
  released.released_at = clock_.Now();
  Release(second);
  EXPECT_EQ(FindReservation(connection(), second.id).value(), released);
  EXPECT_EQ(FindUnchanged(connection(), second.id).value(), std::nullopt);
  EXPECT_THAT(ListHeldBy(connection(), "p", "a", clock_.Now()).value(), ElementsAre(extended));
}

TEST_F(ReservationsTest, ListsHaveTheNewestFirst) {
  Grant("a", "x", Access::kExclusive, "p", minutes(1));
  clock_.Advance(minutes(1));
  const Reservation second = Grant("a", "y");
  clock_.Advance(minutes(1));
  Grant("b", "z");
  clock_.Advance(minutes(1));
  Grant("a", "x", Access::kExclusive, "q");
  Release(second);
  EXPECT_EQ(Ids(ListOfAgent(connection(), std::nullopt, "a", 10).value()),
            (Names{"r4", "r2", "r1"}));
  EXPECT_EQ(Ids(ListOfAgent(connection(), "p", "a", 10).value()), (Names{"r2", "r1"}));
  EXPECT_EQ(Ids(ListOfAgent(connection(), "p", "a", 1).value()), Names{"r2"});
  EXPECT_EQ(Ids(ListOfProject(connection(), "p", clock_.Now(), 10).value()), Names{"r3"});
  EXPECT_EQ(Ids(ListHeldBy(connection(), "p", "b", clock_.Now()).value()), Names{"r3"});
  EXPECT_EQ(CountActive(connection(), clock_.Now()).value(), 2);
}

TEST_F(ReservationsTest, TheSweepTakesWhatRanOutAndWhoseOwnerIsGone) {
  Grant("ghost", "a", Access::kExclusive, "p", minutes(1));
  Grant("live", "b", Access::kExclusive, "p", minutes(1));
  Grant("quiet", "c", Access::kExclusive, "p", minutes(1));
  Release(Grant("ghost", "d", Access::kExclusive, "p", minutes(1)));
  Grant("ghost", "e", Access::kExclusive, "p", minutes(60));
  Register("quiet", "Quiet");
  clock_.Advance(minutes(10));
  Register("live", "Live");
  const auto sweep = [&](std::int64_t limit) {
    return Ids(Write<std::vector<Reservation>>([&](db::Transaction& tx) {
                 return SweepReservations(tx, {.expired_before = clock_.Now(),
                                               .seen_after = clock_.Now() - minutes(5),
                                               .limit = limit});
               }).value());
  };
  EXPECT_EQ(sweep(1), Names{"r1"});
  EXPECT_EQ(sweep(10), Names{"r3"});
  EXPECT_THAT(sweep(10), IsEmpty());
  EXPECT_EQ(Write<std::int64_t>([&](db::Transaction& tx) {
              return PruneReleased(tx, clock_.Now(), 10);
            }).value(),
            1);
  EXPECT_FALSE(FindReservation(connection(), "r4").value());
  EXPECT_TRUE(FindReservation(connection(), "r2").value()) << "its owner lives";
  EXPECT_TRUE(FindReservation(connection(), "r5").value()) << "it holds";
}

TEST_F(ReservationsTest, WhatClientsSee) {
  Reservation reservation = Grant("a", "x/[id].ts");
  EXPECT_EQ(ReservationJson(reservation, clock_.Now()),
            R"({"id":"r1","agent_id":"a","project":"p","path_pattern":"x/[id].ts",)"
            R"("exclusive":true,"reason":"because","fence":1,)"
            R"("created_at":"2026-01-02T03:04:05Z","expires_at":"2026-01-02T03:34:05Z",)"
            R"("is_active":true})");
  reservation.literal = true;
  reservation.reason.clear();
  reservation.access = Access::kShared;
  reservation.released_at = clock_.Now();
  EXPECT_EQ(ReservationJson(reservation, clock_.Now()),
            R"({"id":"r1","agent_id":"a","project":"p","path_pattern":"x/[id].ts",)"
            R"("literal":true,"exclusive":false,"fence":1,)"
            R"("created_at":"2026-01-02T03:04:05Z","expires_at":"2026-01-02T03:34:05Z",)"
            R"("released_at":"2026-01-02T03:04:05Z","is_active":false})");
}

}  // namespace
}  // namespace interlock::store
