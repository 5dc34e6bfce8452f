#include "service/reservations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/utf8.h"
#include "service/grant.h"
#include "service/reservations_fixture.h"
#include "store/events.h"
#include "testing/on_threads.h"
#include "testing/random.h"

namespace interlock::service {
namespace {

using domain::Access;
using domain::Reservation;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Texts = std::vector<std::string>;
using Verdict = Reservations::Verdict;
using Granted = Reservations::Granted;
using Refused = Reservations::Refused;

constexpr db::Sql kEventTypes = "SELECT type FROM events ORDER BY cursor";
constexpr db::Sql kLastActor = "SELECT agent FROM events ORDER BY cursor DESC LIMIT 1";

class ReservationsServiceTest : public ReservationsTest {
 protected:
  static Reservations::Wish Wish(const std::string& agent, Texts patterns) {
    return {.project = "p",
            .agent = agent,
            .patterns = std::move(patterns),
            .access = Access::kExclusive};
  }
  Verdict Reserve(Reservations::Wish wish) {
    return Run(reservations_.Reserve(std::move(wish))).value();
  }
  Reservation Grant(const std::string& agent, const std::string& pattern) {
    return std::get<Granted>(Reserve(Wish(agent, {pattern}))).reservations.at(0);
  }
  Asker BeginWait(const std::string& agent, const std::string& pattern,
                  seconds patience = seconds(20)) {
    Reservations::Wish wish = Wish(agent, {pattern});
    wish.patience = patience;
    return Begin(reservations_, std::move(wish));
  }
  Texts Events() {
    Texts types;
    EXPECT_TRUE(
        file_.Open()
            ->ForEach(kEventTypes, [&](const db::Row& row) { types.push_back(row.String(0)); })
            .ok());
    return types;
  }
  Result<void> Release(const Reservation& reservation, const std::string& agent) {
    return Run(reservations_.Release({.id = reservation.id, .agent = agent}));
  }

  // All that is held, so many times more.
  void CopyHolds(std::int64_t times);

  UuidMaker uuids_{clock_, random_};
  Reservations reservations_{*storage_, clock_, uuids_, {}, {.held_max = 3}};
};

TEST_F(ReservationsServiceTest, AConflictIsRefusedWithEveryReasonAndWritesNothing) {
  Grant("a", "src/*.cc");
  Grant("b", "docs/*");
  const Verdict verdict = Reserve(Wish("c", {"src/main.cc", "docs/x"}));
  EXPECT_THAT(std::get<Refused>(verdict).conflicts, SizeIs(2));
  EXPECT_THAT(Run(reservations_.ListOfProject("p")).value(), SizeIs(2)) << "all or nothing";
  EXPECT_THAT(Events(), ElementsAre("reservation.created", "reservation.created"));
}

TEST_F(ReservationsServiceTest, TheSameClaimAgainIsTheSameReservationWithTheLaterEnd) {
  Reservations::Wish wish = Wish("a", {"x"});
  wish.ttl_minutes = 60;
  const Reservation first = std::get<Granted>(Reserve(wish)).reservations.at(0);
  wish.ttl_minutes = 10;
  wish.reason = "again";
  const Reservation second = std::get<Granted>(Reserve(wish)).reservations.at(0);
  EXPECT_EQ(second.id, first.id);
  EXPECT_EQ(second.fence, first.fence);
  EXPECT_EQ(second.expires_at, first.expires_at);
  EXPECT_EQ(second.reason, "again");
  wish.patterns = {"./x", "y", "x"};
  const auto batch = std::get<Granted>(Reserve(wish)).reservations;
  EXPECT_EQ(batch.at(0).id, first.id);
  EXPECT_EQ(batch.at(2).id, first.id);
  EXPECT_NE(batch.at(1).id, first.id);
}

TEST_F(ReservationsServiceTest, OnlySharedClaimsShare) {
  using enum Access;
  const struct {
    Access held, asked;
    const char* held_pattern;
    const char* asked_pattern;
    bool granted;
  } kCases[] = {
      {kShared, kShared, "src/*", "src/a", true},
      {kShared, kExclusive, "src/*", "src/a", false},
      {kExclusive, kShared, "src/*", "src/a", false},
      {kExclusive, kExclusive, "src/*", "src/a", false},
      {kExclusive, kExclusive, "src/a", "src/*", false},
      {kExclusive, kExclusive, "*.cc", "main.*", false},
      {kExclusive, kExclusive, "src/*", "docs/*", true},
      {kExclusive, kExclusive, "src/*", "src/a/b", true},
  };
  int number = 0;
  for (const auto& one : kCases) {
    const std::string project = std::to_string(++number);
    Reservations::Wish held = Wish("a", {one.held_pattern});
    Reservations::Wish asked = Wish("b", {one.asked_pattern});
    held.project = asked.project = project;
    held.access = one.held;
    asked.access = one.asked;
    ASSERT_TRUE(std::holds_alternative<Granted>(Reserve(held)));
    EXPECT_EQ(std::holds_alternative<Granted>(Reserve(asked)), one.granted)
        << one.held_pattern << " " << one.asked_pattern;
    asked.project += " other";
    EXPECT_TRUE(std::holds_alternative<Granted>(Reserve(asked))) << "projects are apart";
  }
}

TEST_F(ReservationsServiceTest, AnAgentHoldsOnlySoMany) {
  EXPECT_TRUE(std::holds_alternative<Granted>(Reserve(Wish("a", {"1", "2", "3"}))));
  const auto refused = Run(reservations_.Reserve(Wish("a", {"4"})));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().http_status(), 429);
  EXPECT_EQ(refused.error().slug(), "reservation_limit");
  EXPECT_TRUE(std::holds_alternative<Granted>(Reserve(Wish("a", {"3"})))) << "it has that one";
  clock_.Advance(minutes(31));
  EXPECT_TRUE(std::holds_alternative<Granted>(Reserve(Wish("a", {"4"}))));
}

TEST_F(ReservationsServiceTest, OfManyWhoAskAtOnceOneIsGranted) {
  const int rounds = testing::kSlowBuild ? 5 : 30;
  for (int round = 0; round < rounds; ++round) {
    std::atomic<int> granted = 0;
    testing::OnThreads(8, [&](int t) {
      const std::string pattern = t % 2 == 0 ? "src/*.cc" : "src/main.*";
      Reservations::Wish wish = Wish(std::to_string(t), {pattern});
      wish.project = std::to_string(round);
      if (std::holds_alternative<Granted>(Reserve(std::move(wish)))) ++granted;
    });
    EXPECT_EQ(granted, 1);
  }
}

TEST_F(ReservationsServiceTest, WhatIsReleasedGoesToWhoeverWaitedLongest) {
  const Reservation held = Grant("a", "x");
  auto second = BeginWait("b", "x");
  auto third = BeginWait("c", "{x,y}");
  EXPECT_THAT(std::get<Refused>(Reserve(Wish("d", {"y"}))).conflicts, SizeIs(1))
      << "somebody waits for it";
  ASSERT_TRUE(Release(held, "a").ok());
  const Reservation next = std::get<Granted>(second.get().value()).reservations.at(0);
  EXPECT_EQ(reservations_.waiting(), 1U);
  ASSERT_TRUE(Release(next, "b").ok());
  EXPECT_TRUE(std::holds_alternative<Granted>(third.get().value()));
  EXPECT_EQ(reservations_.waiting(), 0U);
}

TEST_F(ReservationsServiceTest, WhoeverWaitsInVainLearnsItsPlace) {
  Grant("a", "x");
  auto second = BeginWait("b", "x", seconds(25));
  auto third = BeginWait("c", "x");
  clock_.Advance(seconds(20));
  const Verdict last = third.get().value();
  EXPECT_EQ(std::get<Refused>(last).queue_position, 2U);
  EXPECT_THAT(std::get<Refused>(last).conflicts, SizeIs(2)) << "the holder, and who waits longer";
  clock_.Advance(seconds(5));
  EXPECT_EQ(std::get<Refused>(second.get().value()).queue_position, 1U);
  EXPECT_EQ(reservations_.waiting(), 0U);
}

TEST_F(ReservationsServiceTest, WaitsThatCouldNeverEndAreEnded) {
  Grant("a", "x");
  Grant("b", "y");
  auto first = BeginWait("a", "y");
  const auto second = BeginWait("b", "x").get().value();
  EXPECT_THAT(std::get<Reservations::Deadlocked>(second).agents, ElementsAre("b", "a"));
  clock_.Advance(seconds(20));
  EXPECT_TRUE(std::holds_alternative<Refused>(first.get().value()));
}

TEST_F(ReservationsServiceTest, StoppingEndsEveryWait) {
  Grant("a", "x");
  auto waiting = BeginWait("b", "x");
  reservations_.StopWaits();
  EXPECT_EQ(waiting.get().error().code(), Errc::kUnavailable);
}

TEST_F(ReservationsServiceTest, WhoMayDoWhatWithAReservation) {
  const Reservation held = Grant("a", "x");
  const Reservations::Ref other = {.id = held.id, .agent = "b"};
  for (const Error& refused :
       {Release(held, "b").error(), Run(reservations_.Renew(other, 5)).error(),
        Run(reservations_.Transfer(other, "b")).error()}) {
    EXPECT_EQ(refused.http_status(), 403);
    // The owner and the honest ways, not how to pose as the owner.
    EXPECT_THAT(refused.message(),
                AllOf(HasSubstr("belongs to a: ask that agent"), HasSubstr("wait until it ends at"),
                      HasSubstr("stale"), Not(HasSubstr("X-Agent-ID"))));
  }
  EXPECT_THAT(Release(held, "").error().message(),
              HasSubstr("belongs to a, and the request does not say who asks: send your own"));
  EXPECT_EQ(Run(reservations_.Get({.id = held.id, .project = "q"})).error().http_status(), 404);
  EXPECT_EQ(Run(reservations_.Release({.id = "none", .agent = "a"})).error().http_status(), 404);

  clock_.Advance(minutes(1));
  const Reservation moved =
      std::get<Granted>(Run(reservations_.Transfer({.id = held.id, .agent = "a"}, "b")).value())
          .reservations.at(0);
  EXPECT_EQ(moved.agent, "b");
  EXPECT_GT(moved.fence, held.fence);
  EXPECT_EQ(moved.created_at, clock_.Now()) << "b holds it since now";
  EXPECT_EQ(Run(reservations_.Get({.id = held.id})).value(), moved);
  EXPECT_EQ(Release(held, "a").error().http_status(), 403);
  EXPECT_TRUE(Release(held, "b").ok());
  EXPECT_EQ(Release(held, "b").error().http_status(), 404);
  EXPECT_THAT(Events(), ElementsAre("reservation.created", "reservation.transferred",
                                    "reservation.released"));
}

TEST_F(ReservationsServiceTest, WhatRanOutIsRenewedOnlyWhereNobodyElseCame) {
  const Reservation held = Grant("a", "x");
  const Reservations::Ref ref = {.id = held.id, .agent = "a"};
  clock_.Advance(minutes(31));
  const Reservation again =
      std::get<Granted>(Run(reservations_.Renew(ref, 5)).value()).reservations.at(0);
  EXPECT_EQ(again.id, held.id);
  EXPECT_GT(again.fence, held.fence) << "a new grant";
  EXPECT_EQ(again.created_at, clock_.Now()) << "as of now";
  clock_.Advance(minutes(6));
  Grant("b", "x");
  EXPECT_THAT(std::get<Refused>(Run(reservations_.Renew(ref, 5)).value()).conflicts, SizeIs(1));
}

TEST_F(ReservationsServiceTest, WhatIsInAnotherProjectIsNotThere) {
  const Reservation held = Grant("a", "x");
  const Reservations::Ref there = {.id = held.id, .project = "q", .agent = "a"};
  EXPECT_EQ(Run(reservations_.Renew(there, 5)).error().http_status(), 404);
  EXPECT_EQ(Run(reservations_.Transfer(there, "b")).error().http_status(), 404);
  EXPECT_EQ(Run(reservations_.Release(there)).error().http_status(), 404);
  EXPECT_EQ(Run(reservations_.ForceRelease(there, "")).error().http_status(), 404);
  EXPECT_TRUE(Run(reservations_.Release({.id = held.id, .project = "p", .agent = "a"})).ok());
}

TEST_F(ReservationsServiceTest, ATransferIsOfWhatHoldsAndToWhomMayHoldIt) {
  const Reservation old = Grant("a", "x");
  clock_.Advance(minutes(31));
  EXPECT_EQ(Run(reservations_.Transfer({.id = old.id, .agent = "a"}, "b")).error().http_status(),
            404);
  const Reservation held = Grant("a", "y");
  for (const char* pattern : {"1", "2", "3"}) Grant("b", pattern);
  const auto refused = Run(reservations_.Transfer({.id = held.id, .agent = "a"}, "b"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().slug(), "reservation_limit");
}

TEST_F(ReservationsServiceTest, WhatIsHandedToWhoHoldsTheSameIsHeldOnce) {
  Reservations::Wish wish = Wish("a", {"x"});
  wish.access = Access::kShared;
  wish.ttl_minutes = 60;
  wish.reason = "reading";
  const Reservation handed = std::get<Granted>(Reserve(wish)).reservations.at(0);
  wish = Wish("b", {"./x", "1", "2"});  // as many as it may hold
  wish.access = Access::kShared;
  const Reservation its_own = std::get<Granted>(Reserve(wish)).reservations.at(0);
  const Reservation one =
      std::get<Granted>(Run(reservations_.Transfer({.id = handed.id, .agent = "a"}, "b")).value())
          .reservations.at(0);
  EXPECT_EQ(one.id, its_own.id);
  EXPECT_EQ(one.agent, "b");
  EXPECT_EQ(one.expires_at, handed.expires_at) << "the later end";
  EXPECT_EQ(one.reason, "reading");
  EXPECT_GT(one.fence, its_own.fence);
  EXPECT_EQ(Run(reservations_.Get({.id = one.id})).value(), one);
  EXPECT_TRUE(Run(reservations_.Get({.id = handed.id})).value().released_at);
  EXPECT_THAT(Run(reservations_.ListOfProject("p")).value(), SizeIs(3));
  const Texts events = Events();
  EXPECT_THAT(Texts(events.end() - 2, events.end()),
              ElementsAre("reservation.released", "reservation.transferred"));
}

TEST_F(ReservationsServiceTest, NothingThatIsRenewedBecomesShorterOrLosesItsReason) {
  Reservations::Wish wish = Wish("a", {"x"});
  wish.ttl_minutes = 60;
  wish.reason = "refactor";
  const Reservation held = std::get<Granted>(Reserve(wish)).reservations.at(0);
  const Verdict renewed = Run(reservations_.Renew({.id = held.id, .agent = "a"}, 5)).value();
  EXPECT_EQ(std::get<Granted>(renewed).reservations.at(0), held);
  clock_.Advance(minutes(1));
  EXPECT_EQ(Grant("a", "x"), held) << "with the time of its grant";
}

TEST_F(ReservationsServiceTest, WhoWaitsToShareIsNotInTheWayOfWhoShares) {
  Grant("a", "x");
  Reservations::Wish wish = Wish("b", {"x", "y"});
  wish.access = Access::kShared;
  wish.patience = seconds(20);
  auto waiting = Begin(reservations_, wish);
  Reservations::Wish shared = Wish("c", {"y"});
  EXPECT_TRUE(std::holds_alternative<Refused>(Reserve(shared)));
  shared.access = Access::kShared;
  EXPECT_TRUE(std::holds_alternative<Granted>(Reserve(shared)));
  reservations_.StopWaits();
  EXPECT_FALSE(waiting.get().ok());
}

TEST_F(ReservationsServiceTest, WhoWaitsIsNotInItsOwnWay) {
  Grant("b", "x");
  auto waiting = BeginWait("a", "{x,y}");
  Grant("a", "y");
  reservations_.StopWaits();
  EXPECT_FALSE(waiting.get().ok());
}

// a shares src/* and makes one of its files its own, past b, whom that was not in the way of.
TEST_F(ReservationsServiceTest, ACircleThroughWhatWasGrantedPastAWaitIsFound) {
  Reservations::Wish shared = Wish("a", {"src/*"});
  shared.access = Access::kShared;
  Reserve(shared);
  Grant("b", "z");
  Grant("d", "y");
  Reservations::Wish wish = Wish("b", {"src/a", "y"});
  wish.access = Access::kShared;
  wish.patience = seconds(20);
  auto b = Begin(reservations_, wish);
  Grant("a", "src/a");
  const auto answer = BeginWait("a", "z").get();
  ASSERT_TRUE(answer.ok());
  const auto* deadlocked = std::get_if<Reservations::Deadlocked>(&*answer);
  ASSERT_NE(deadlocked, nullptr);
  EXPECT_THAT(deadlocked->agents, ElementsAre("a", "b"));
  reservations_.StopWaits();
  EXPECT_FALSE(b.get().ok());
}

TEST_F(ReservationsServiceTest, AHolderThatIsGoneMayBeRelievedAndIsTold) {
  const Reservation held = Grant("ghost", "x");
  ASSERT_TRUE(Run(reservations_.ForceRelease({.id = held.id, .agent = "b"}, "I need it")).ok());
  EXPECT_TRUE(std::holds_alternative<Granted>(Reserve(Wish("b", {"x"}))));
  EXPECT_THAT(Events(), ElementsAre("reservation.created", "message.created",
                                    "reservation.released", "reservation.created"));
}

TEST_F(ReservationsServiceTest, WhatOverlapsNeverEndsInTheHandsOfTwo) {
  Grant("a", "src/**");
  const Reservation file = Grant("a", "src/main.cc");
  const Reservations::Ref ref = {.id = file.id, .agent = "a"};
  const auto refused = std::get<Refused>(Run(reservations_.Transfer(ref, "b")).value());
  ASSERT_THAT(refused.conflicts, SizeIs(1));
  EXPECT_EQ(refused.conflicts[0].pattern, "src/**");
  EXPECT_EQ(Run(reservations_.Get({.id = file.id})).value().agent, "a");
}

TEST_F(ReservationsServiceTest, AClockSetBackGivesNobodyWhatAnotherWasGranted) {
  const Reservation old = Grant("a", "x");
  clock_.Advance(minutes(31));
  Grant("b", "x");
  clock_.JumpWallClock(-minutes(31));  // both are within their time now
  const auto renewed = Run(reservations_.Renew({.id = old.id, .agent = "a"}, 30)).value();
  EXPECT_TRUE(std::holds_alternative<Refused>(renewed));
  EXPECT_TRUE(std::holds_alternative<Refused>(Reserve(Wish("a", {"x"}))));
}

TEST_F(ReservationsServiceTest, WhatRanOutAndWasReservedAgainIsRenewedOnce) {
  const Reservation old = Grant("a", "x");
  clock_.Advance(minutes(31));
  const Reservation fresh = Grant("a", "./x");
  const Verdict verdict = Run(reservations_.Renew({.id = old.id, .agent = "a"}, 60)).value();
  const Reservation renewed = std::get<Granted>(verdict).reservations.at(0);
  EXPECT_EQ(renewed.id, fresh.id);
  EXPECT_EQ(renewed.fence, fresh.fence);
  EXPECT_EQ(renewed.expires_at, clock_.Now() + minutes(60));
  EXPECT_THAT(Run(reservations_.ListOfProject("p")).value(), SizeIs(1));
  EXPECT_THAT(Events(),
              ElementsAre("reservation.created", "reservation.created", "reservation.renewed"));
}

TEST_F(ReservationsServiceTest, WhatOneHoldsAlreadyIsNotForThoseWhoWait) {
  Grant("a", "{src,docs}/**");
  auto waiting = BeginWait("b", "src/**");
  EXPECT_TRUE(std::holds_alternative<Granted>(Reserve(Wish("a", {"src/*.cc"}))));
  EXPECT_TRUE(std::holds_alternative<Refused>(Reserve(Wish("a", {"*/x"})))) << "more than it holds";
  reservations_.StopWaits();
  EXPECT_FALSE(waiting.get().ok());
}

// What takes too long to find out counts as not held.
TEST_F(ReservationsServiceTest, WhatCannotBeShownToBeHeldIsForThoseWhoWait) {
  const std::string tail(25, '?');
  Grant("a", "*a" + tail);
  auto waiting = BeginWait("b", "a" + std::string(25, 'x'));
  EXPECT_TRUE(std::holds_alternative<Refused>(Reserve(Wish("a", {"*?" + tail}))));
  reservations_.StopWaits();
  EXPECT_FALSE(waiting.get().ok());
}

constexpr db::Sql kCopyHolds =
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) "
    "INSERT INTO reservations (id, project, agent, pattern, literal, canonical, prefix, "
    "is_exclusive, reason, fence, created_at, expires_at) SELECT id || i, project, agent, pattern, "
    "literal, canonical, prefix, is_exclusive, reason, fence, created_at, expires_at "
    "FROM reservations, n";

void ReservationsServiceTest::CopyHolds(std::int64_t times) {
  const auto connection = file_.Open();
  ASSERT_TRUE(connection->BeginExclusive().ok());
  db::Transaction tx(*connection);
  ASSERT_TRUE(tx->Run(kCopyHolds, times).ok());
  ASSERT_TRUE(connection->Commit().ok());
}

// More than is compared under the lock, less than is too much.
TEST_F(ReservationsServiceTest, ClaimsThatTakeLongToCompareAreDecided) {
  Grant("b", "*.b");
  CopyHolds(5'000);
  const Reservation mine = Grant("a", "src/x");
  EXPECT_THAT(std::get<Refused>(Reserve(Wish("c", {"src/x/y"}))).conflicts, SizeIs(1));
  EXPECT_THAT(std::get<Refused>(Reserve(Wish("c", {"x.b"}))).conflicts, SizeIs(5'001));
  EXPECT_EQ(Grant("a", "src/x").id, mine.id) << "the same again";
  const auto renewed = Run(reservations_.Renew({.id = mine.id, .agent = "a"}, 60)).value();
  EXPECT_TRUE(std::holds_alternative<Granted>(renewed));
  const auto moved = Run(reservations_.Transfer({.id = mine.id, .agent = "a"}, "c")).value();
  EXPECT_EQ(std::get<Granted>(moved).reservations.at(0).agent, "c");
  auto waiting = BeginWait("d", "src/x");
  EXPECT_FALSE(waiting.answered());
  ASSERT_TRUE(Release(mine, "c").ok());
  EXPECT_TRUE(std::holds_alternative<Granted>(waiting.get().value()));
}

// Between the look beside the lock and the decision under it somebody else comes.
TEST_F(ReservationsServiceTest, GrantsAfterTheLookAreFound) {
  const auto connection = file_.Open();
  Claims claims;
  claims.project = "p";
  claims.agent = "a";
  claims.access = Access::kExclusive;
  claims.all.push_back(
      {.pattern = glob::Pattern::Parse("src/*").value(), .id = "mine", .same_as = 0});
  const store::Compared before = {.cursor = store::NewestCursor(*connection).value(),
                                  .now = clock_.Now()};
  const GrantRules rules = {.now = clock_.Now(),
                            .grace = minutes(5),
                            .held_max = 3,
                            .effort = {.holds_steps = kStepsUnderLock, .compared_at = before}};
  const auto decide = [&] {
    EXPECT_TRUE(connection->BeginExclusive().ok());
    db::Transaction tx(*connection);
    const Tried tried = TryGrant(tx, claims, rules, {}).value();
    connection->Rollback();
    return std::holds_alternative<Granted>(tried.verdict);
  };
  EXPECT_TRUE(decide());
  const Reservation other = Grant("b", "src/x");
  EXPECT_FALSE(decide());
  ASSERT_TRUE(Release(other, "b").ok());
  EXPECT_TRUE(decide());
}

// A batch pays for all its patterns together, those that are easy to compare included.
TEST_F(ReservationsServiceTest, ABatchOfHostilePatternsIsRefusedAsAWhole) {
  Reservations roomy(*storage_, clock_, uuids_, {}, {});
  Reservations::Wish wish = Wish("a", {});
  for (int i = 0; i < 64; ++i) {
    std::string text = "{";
    for (char32_t c = 0; c < 900; ++c) {
      if (c % 20 == 0) text += c == 0 ? "x" : ",x";
      text += '[';
      AppendUtf8(text, 0x400 + c);
      text += ']';
    }
    wish.patterns.push_back(text + std::to_string(i) + ",y}");
  }
  const auto refused = Run(roomy.Reserve(wish));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().slug(), "pattern_too_complex");
}

TEST_F(ReservationsServiceTest, WhatIsTooMuchToCompareIsRefusedAndWritesNothing) {
  Grant("b", "**/*.b");
  CopyHolds(34'000);
  const auto refused = Run(reservations_.Reserve(Wish("a", {"src/x.b"})));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().http_status(), 400);
  EXPECT_EQ(refused.error().slug(), "pattern_too_complex");
  const auto checked = Run(reservations_.Check({.project = "p", .pattern = "src/x.b"}));
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().slug(), "pattern_too_complex");
  EXPECT_THAT(Events(), ElementsAre("reservation.created"));
  EXPECT_THAT(Run(reservations_.ListOfAgent({.agent = "a", .project = "p"})).value(), IsEmpty());
}

// b waits for much that is far from what a asks for, but takes long to tell from it, and for that.
TEST_F(ReservationsServiceTest, WhatIsTooMuchToCompareWithThoseWhoWaitIsRefused) {
  Reservations roomy(*storage_, clock_, uuids_, {}, {});
  Grant("c", "y");
  Reservations::Wish wish = Wish("b", {});
  for (int i = 0; i < 20; ++i) wish.patterns.push_back("*" + std::string(3900 + i, 'y') + "/*");
  wish.patterns.insert(wish.patterns.end(), {"y", "*x"});
  wish.patience = seconds(20);
  auto waiting = Begin(roomy, wish);
  const auto refused = Run(roomy.Reserve(Wish("a", {"*" + std::string(3900, 'x') + "*"})));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().slug(), "pattern_too_complex");
  EXPECT_THAT(Run(roomy.ListOfAgent({.agent = "a", .project = "p"})).value(), IsEmpty());
  roomy.StopWaits();
  EXPECT_FALSE(waiting.get().ok());
}

TEST_F(ReservationsServiceTest, WhoWaitsGetsWhatRunsOutWithoutASweep) {
  Grant("a", "x");
  clock_.Advance(minutes(30) - seconds(5));
  auto waiting = BeginWait("b", "x");
  clock_.Advance(seconds(5));
  EXPECT_TRUE(std::holds_alternative<Granted>(waiting.get().value()));
}

// Its alarm is at the last expiry, and follows what is released before.
TEST_F(ReservationsServiceTest, WhoWaitsForManyPathsIsGrantedThemWhenTheLastIsFree) {
  for (const bool released : {false, true}) {
    SCOPED_TRACE(released);
    const Reservation first = Grant("a", "x");
    clock_.Advance(seconds(5));
    const Reservation last = Grant("b", "y");
    clock_.Advance(minutes(30) - seconds(10));  // 5 s are left of x, 10 s of y
    auto waiting = BeginWait("c", "**");
    EXPECT_TRUE(!released || Release(last, "b").ok());
    clock_.Advance(seconds(5));
    if (!released) clock_.Advance(seconds(5));
    const auto answer = waiting.get();
    ASSERT_TRUE(answer.ok());
    const Reservation held = std::get<Granted>(*answer).reservations.at(0);
    EXPECT_EQ(held.created_at, released ? first.expires_at : last.expires_at);
    ASSERT_TRUE(Release(held, "c").ok());
  }
}

// A renewal that is a new grant may go past those who wait, who then wait for its owner.
TEST_F(ReservationsServiceTest, ACircleThroughARenewalIsFound) {
  const Reservation old = Grant("a", "x");
  clock_.Advance(minutes(31));
  Grant("b", "y");
  Grant("d", "z");
  auto b = BeginWait("b", "{x,z}");
  ASSERT_TRUE(std::holds_alternative<Granted>(
      Run(reservations_.Renew({.id = old.id, .agent = "a"}, 30)).value()));
  const auto answer = BeginWait("a", "y").get();
  ASSERT_TRUE(answer.ok());
  const auto* deadlocked = std::get_if<Reservations::Deadlocked>(&*answer);
  ASSERT_NE(deadlocked, nullptr);
  EXPECT_THAT(deadlocked->agents, ElementsAre("a", "b"));
  reservations_.StopWaits();
  EXPECT_FALSE(b.get().ok());
}

TEST_F(ReservationsServiceTest, TextsAndListsAreBounded) {
  const std::string long_text(5000, 'x');
  Reservations::Wish wish = Wish(long_text, {"x"});
  EXPECT_EQ(Run(reservations_.Reserve(wish)).error().http_status(), 400);
  wish = Wish("a", {"x"});
  wish.reason = long_text;
  EXPECT_EQ(Run(reservations_.Reserve(wish)).error().http_status(), 400);
  wish.reason = std::string("a\0b", 3);
  EXPECT_EQ(Run(reservations_.Reserve(wish)).error().http_status(), 400);
  EXPECT_EQ(Run(reservations_.Reserve(Wish("a", Texts(65, "x")))).error().http_status(), 400);
  EXPECT_EQ(Run(reservations_.Reserve(Wish("a", {long_text}))).error().http_status(), 400);
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(ReservationsServiceTest, WhatNobodyHeardOfIsTakenBackUnlessItWasAskedForAgain) {
  Claims claims;
  claims.project = "p";
  claims.agent = "a";
  claims.lease = minutes(30);
  for (const char* file : {"x", "y"}) {
    claims.all.push_back({.pattern = glob::Pattern::Parse(file).value(),
                          .id = std::string("new-") + file,
                          .same_as = claims.all.size()});
  }
  const auto write = [&](auto fn) {
    const auto connection = file_.Open();
    EXPECT_TRUE(connection->BeginExclusive().ok());
    db::Transaction tx(*connection);
    auto result = fn(tx);
    EXPECT_TRUE(connection->Commit().ok());
    return result;
  };
  const GrantRules rules = {.now = clock_.Now(), .grace = minutes(5), .held_max = 256};
  ASSERT_TRUE(write([&](db::Transaction& tx) { return TryGrant(tx, claims, rules, {}); }).ok());
  Reservations::Wish again = Wish("a", {"y"});
  again.access = Access::kShared;
  again.ttl_minutes = 1;
  ASSERT_TRUE(std::holds_alternative<Granted>(Reserve(again))) << "it now knows that it has y";
  claims.agent = "the name of a";
  const auto undone =
      write([&](db::Transaction& tx) { return UndoGrant(tx, claims, clock_.Now()); }).value();
  ASSERT_THAT(undone, SizeIs(1));
  EXPECT_EQ(undone[0].pattern, "x");
  EXPECT_EQ(
      *file_.Open()->One(kLastActor, [](const db::Row& row) { return row.String(0); }).value(),
      "a");
  EXPECT_THAT(Run(reservations_.ListOfProject("p")).value(), SizeIs(1));
}

TEST_F(ReservationsServiceTest, ARenewalThatIsANewGrantCountsToo) {
  const Reservation old = Grant("a", "old");
  clock_.Advance(minutes(31));
  EXPECT_TRUE(std::holds_alternative<Granted>(Reserve(Wish("a", {"1", "2", "3"}))));
  const auto renewed = Run(reservations_.Renew({.id = old.id, .agent = "a"}, 30));
  ASSERT_FALSE(renewed.ok());
  EXPECT_EQ(renewed.error().http_status(), 429);
}

TEST_F(ReservationsServiceTest, ACircleThroughAGrantIsFound) {
  const Reservation x = Grant("b", "x");
  Grant("d", "y");
  Grant("a", "z");
  auto e = BeginWait("e", "x");
  auto a = BeginWait("a", "{x,y}");
  ASSERT_TRUE(Release(x, "b").ok());
  ASSERT_TRUE(std::holds_alternative<Granted>(e.get().value()));
  const auto again = BeginWait("e", "z").get();  // a waits for e, and e for a
  ASSERT_TRUE(again.ok());
  const auto* deadlocked = std::get_if<Reservations::Deadlocked>(&*again);
  ASSERT_NE(deadlocked, nullptr);
  EXPECT_THAT(deadlocked->agents, ElementsAre("e", "a"));
  reservations_.StopWaits();
  EXPECT_FALSE(a.get().ok());
}

// a is granted x, for which b waits, while a waits for what b holds on another connection.
TEST_F(ReservationsServiceTest, ACircleThroughAGrantToWhoWaitsElsewhereIsFound) {
  const Reservation x = Grant("c", "x");
  Grant("b", "y");
  auto first = BeginWait("a", "x");
  auto b = BeginWait("b", "x");
  auto second = BeginWait("a", "y");
  ASSERT_TRUE(Release(x, "c").ok());
  ASSERT_TRUE(std::holds_alternative<Granted>(first.get().value()));
  const auto answer = second.get();
  ASSERT_TRUE(answer.ok());
  const auto* deadlocked = std::get_if<Reservations::Deadlocked>(&*answer);
  ASSERT_NE(deadlocked, nullptr);
  EXPECT_THAT(deadlocked->agents, ElementsAre("a", "b"));
  EXPECT_FALSE(b.answered()) << "a may let go of x yet";
  reservations_.StopWaits();
  EXPECT_FALSE(b.get().ok());
}

TEST_F(ReservationsServiceTest, OnlyWhoListensHearsOfARefusal) {
  std::vector<domain::Event> heard;
  Reservations telling(
      *storage_, clock_, uuids_, {},
      {.publish_live = [&](const domain::Event& event) { heard.push_back(event); }});
  Grant("a", "x");
  ASSERT_TRUE(Run(telling.Reserve(Wish("b", {"x", "y"}))).ok());
  ASSERT_THAT(heard, SizeIs(1));
  EXPECT_EQ(heard[0].type, "reservation.conflict");
  EXPECT_EQ(heard[0].cursor, 0);
  EXPECT_EQ(heard[0].agent, "b");
  EXPECT_THAT(heard[0].data, ::testing::HasSubstr(R"("path_patterns":["x","y"])"));
  EXPECT_THAT(Events(), ElementsAre("reservation.created"));
}

}  // namespace
}  // namespace interlock::service
