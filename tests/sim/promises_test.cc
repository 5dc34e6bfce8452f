#include "sim/promises.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "glob/budget.h"
#include "glob/overlap.h"
#include "glob/pattern.h"
#include "sim/paths.h"

namespace interlock::sim {
namespace {

namespace event_type = domain::event_type;
using domain::ReceiptKind;
using domain::ReceiptOutcome;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Each test shows that a promise holds on what is right, and is broken by what is wrong: a checker
// that cannot fail proves nothing.

TEST(PathSpaceTest, PathsInCommonMeanThatPatternsOverlap) {
  const PathSpace& space = PathSpace::Get();
  for (std::size_t a = 0; a < space.patterns().size(); ++a) {
    for (std::size_t b = 0; b < space.patterns().size(); ++b) {
      glob::Budget budget;
      const auto one = glob::Pattern::Parse(space.patterns()[a]).value();
      const auto other = glob::Pattern::Parse(space.patterns()[b]).value();
      const bool overlap = glob::Overlap(one, other, budget).value().has_value();
      EXPECT_EQ(space.Overlap(a, b), overlap) << space.patterns()[a] << " " << space.patterns()[b];
    }
  }
}

class PromisesTest : public ::testing::Test {
 protected:
  std::vector<std::string> TakeBroken() {
    std::vector<std::string> all = promises_.violations.all();
    promises_.violations = {};
    return all;
  }
  static LoggedEvent Event(Cursor cursor, std::string type, std::string id = "x") {
    return {.cursor = cursor, .type = std::move(type), .project = "p", .entity_id = std::move(id)};
  }
  static LoggedEvent Mail(Cursor cursor, std::string id, std::vector<std::string> recipients) {
    LoggedEvent event = Event(cursor, event_type::kMessageCreated, std::move(id));
    event.recipients = std::move(recipients);
    return event;
  }
  static HoldRow Row(std::string id, std::string agent, std::string_view pattern) {
    return {.id = std::move(id),
            .project = "p",
            .agent = std::move(agent),
            .pattern = PathSpace::Get().IndexOf(pattern),
            .exclusive = true,
            .reason = "r",
            .fence = 1,
            .expires_at = kNow + minutes(10),
            .version = 1};
  }
  void See(std::vector<HoldRow> rows, std::vector<LoggedEvent> events = {}) {
    promises_.holds.See(rows, events, now_);
  }

  static constexpr Timestamp kNow{1'000'000'000'000};
  Timestamp now_ = kNow;
  Promises promises_{minutes(2)};
};

// ---- The log

TEST_F(PromisesTest, LogRisesByOneAndKeepsWhatItShowed) {
  LogPromise& log = promises_.log;
  log.See(std::vector{Event(1, "a"), Event(2, "b")}, 0, 0);
  log.See(std::vector{Event(3, "c")}, 2, 2);
  log.SeeAgain(std::vector{Event(2, "b"), Event(3, "c")}, 3);
  EXPECT_THAT(TakeBroken(), IsEmpty());

  log.See(std::vector{Event(5, "e")}, 2, 3);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("5 follows 3")));
  log.See(std::vector{Event(3, "c")}, 2, 3);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("3 follows 3")));
}

TEST_F(PromisesTest, LogLosesNothingInARestart) {
  LogPromise& log = promises_.log;
  log.See(std::vector{Event(1, "a"), Event(2, "b")}, 0, 0);
  log.SeeAgain(std::vector{Event(1, "a")}, 1);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("ends at 1")));
  log.SeeAgain(std::vector{Event(1, "a"), Event(2, "other")}, 2);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("is other")));
}

TEST_F(PromisesTest, LogIsNotRemovedBeforeItIsHandedOut) {
  LogPromise& log = promises_.log;
  log.See(std::vector{Event(1, "a"), Event(2, "b")}, 2, 1);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("removed up to 2")));
  log.See({}, 1, 2);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("are back")));
}

// ---- Holds

TEST_F(PromisesTest, OverlappingExclusiveHoldsBreakExclusion) {
  HoldRow other = Row("2", "b", "a/*");
  other.fence = 2;
  See({Row("1", "a", "a/x"), other});
  EXPECT_THAT(TakeBroken(), ::testing::Contains(HasSubstr("exclusion")));
}

TEST_F(PromisesTest, WhatMayBeHeldAtOnceBreaksNothing) {
  HoldRow same_agent = Row("2", "a", "a/*");
  HoldRow apart = Row("3", "b", "b/x");
  HoldRow elsewhere = Row("4", "c", "a/x");
  same_agent.fence = 2;
  apart.fence = 3;
  elsewhere.project = "q";
  See({Row("1", "a", "a/x"), same_agent, apart, elsewhere});
  HoldRow shared = Row("5", "a", "top");
  HoldRow shared_too = Row("6", "b", "*");
  shared.exclusive = shared_too.exclusive = false;
  shared.fence = 4;
  shared_too.fence = 5;
  See({Row("1", "a", "a/x"), same_agent, apart, elsewhere, shared, shared_too});
  EXPECT_THAT(TakeBroken(), IsEmpty());
}

TEST_F(PromisesTest, WhatRanOutHoldsNothingUnlessItIsRenewed) {
  HoldRow first = Row("1", "a", "a/x");
  See({first});
  now_ = first.expires_at;
  promises_.holds.Tick(now_);
  HoldRow second = Row("2", "b", "a/x");
  second.fence = 2;
  second.expires_at = now_ + minutes(10);
  See({first, second});
  now_ = kNow;  // the clock is set back: the first one has run out all the same
  promises_.holds.Tick(now_);
  See({first, second});
  EXPECT_THAT(TakeBroken(), IsEmpty());

  first.version = 2;
  first.expires_at = now_ + minutes(20);
  See({first, second});
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("exclusion")));
}

TEST_F(PromisesTest, FencesRiseWithEveryGrant) {
  HoldRow one = Row("1", "a", "a/x");
  one.fence = 5;
  See({one});
  HoldRow old = Row("2", "a", "top");
  old.fence = 5;
  See({one, old});
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("fence: does not rise")));
  HoldRow handed_on = one;
  handed_on.agent = "b";
  handed_on.version = 2;
  See({handed_on, old});
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("fence: granted under an old one")));
  now_ = one.expires_at;
  promises_.holds.Tick(now_);
  HoldRow renewed = handed_on;
  renewed.version = 3;
  renewed.expires_at = now_ + minutes(1);
  See({renewed, old});
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("fence: granted under an old one")));
}

TEST_F(PromisesTest, HoldsNeitherVanishNorComeBack) {
  See({Row("1", "a", "a/x")});
  See({});
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("without an event")));
  HoldRow again = Row("2", "a", "a/x");
  again.fence = 2;
  See({}, {Event(1, event_type::kReservationReleased, "2")});
  See({again});
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("back after its end")));
}

TEST_F(PromisesTest, NoLeaseGetsShorter) {
  HoldRow row = Row("1", "a", "a/x");
  See({row});
  row.expires_at = kNow + minutes(20);
  See({row});
  EXPECT_THAT(TakeBroken(), IsEmpty());
  row.expires_at = kNow + minutes(10);
  See({row});
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("ends sooner than before: 1")));
}

TEST_F(PromisesTest, WhatHasEndedIsKnownWithItsPlaceInTheLog) {
  See({Row("1", "a", "a/x")});
  See({}, {{.cursor = 7, .type = "reservation.released", .entity_id = "1"}});
  EXPECT_THAT(TakeBroken(), IsEmpty());
  EXPECT_TRUE(promises_.holds.HasEnded("1"));
  EXPECT_TRUE(promises_.holds.HasEndedAfter("1", 6));
  EXPECT_FALSE(promises_.holds.HasEndedAfter("1", 7));
  EXPECT_FALSE(promises_.holds.HasEndedAfter("2", 0));
}

TEST_F(PromisesTest, SweeperTakesNothingThatHoldsOrWhoseOwnerLives) {
  LoggedEvent swept = Event(1, event_type::kReservationExpired, "1");
  See({Row("1", "a", "a/x")});
  swept.created_at = now_;
  See({}, {swept});
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("took what holds")));

  HoldRow row = Row("2", "a", "a/x");
  row.fence = 2;
  See({row});
  now_ = row.expires_at + minutes(1);
  promises_.holds.Tick(now_);
  promises_.holds.SeeAgents(std::vector{AgentRow{.id = "a", .last_seen = now_ - minutes(1)}});
  swept.entity_id = "2";
  swept.created_at = now_;
  See({}, {swept});
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("its owner lives")));

  row.id = "3";
  row.fence = 3;
  See({row});
  promises_.holds.SeeAgents(std::vector{AgentRow{.id = "a", .last_seen = now_ - minutes(2)}});
  swept.entity_id = "3";
  See({}, {swept});
  EXPECT_THAT(TakeBroken(), IsEmpty());
}

TEST_F(PromisesTest, OwnerThatWasHeardOfLosesNothingToSweeperOrForce) {
  int cursor = 0;
  const auto end = [&](std::string_view type, const std::string& by) {
    HoldRow row = Row(std::to_string(++cursor), "a", "a/x");
    row.fence = cursor;
    See({row});
    now_ = row.expires_at + minutes(1);
    promises_.holds.Tick(now_);
    promises_.holds.SeeAgents(std::vector{AgentRow{.id = "a", .last_seen = now_ - minutes(9)}});
    promises_.holds.Heard("a", now_ - minutes(1));
    LoggedEvent ended = Event(cursor, std::string(type), row.id);
    ended.agent = by;
    ended.created_at = now_;
    See({}, {ended});
    return TakeBroken();
  };
  EXPECT_THAT(end(event_type::kReservationExpired, "a"), ElementsAre(HasSubstr("sweeper: its")));
  EXPECT_THAT(end(event_type::kReservationReleased, "b"), ElementsAre(HasSubstr("force: its")));
  EXPECT_THAT(end(event_type::kReservationReleased, "a"), IsEmpty());
}

TEST_F(PromisesTest, SignThatMayBeForgottenIsOwedNothing) {
  See({Row("1", "a", "a/x")});
  now_ = Row("1", "a", "a/x").expires_at + minutes(1);
  promises_.holds.Tick(now_);
  promises_.holds.SeeAgents(std::vector{AgentRow{.id = "a", .last_seen = now_ - minutes(9)}});
  promises_.holds.Heard("a", now_);
  promises_.holds.ForgetHeard();
  LoggedEvent swept = Event(1, event_type::kReservationExpired, "1");
  swept.created_at = now_;
  See({}, {swept});
  EXPECT_THAT(TakeBroken(), IsEmpty());
}

// What a heartbeat of "a" is found to break that renews for 15 minutes.
class HeartbeatPromisesTest : public PromisesTest {
 protected:
  std::vector<std::string> Broken(const std::string& project = "p") {
    promises_.holds.Renewed({.project = project, .agent = "a", .lease = minutes(15)}, now_, now_);
    return TakeBroken();
  }
  const HoldRow held_ = Row("1", "a", "a/x");
};

TEST_F(HeartbeatPromisesTest, AllThatTheAgentHoldsIsKept) {
  HoldRow other = Row("2", "a", "b/x");
  other.fence = 2;
  See({held_, other});
  other.expires_at = kNow + minutes(15);
  See({held_, other});
  EXPECT_THAT(Broken(), ElementsAre(HasSubstr("does not keep what its agent holds: 1 of a")));
  EXPECT_THAT(Broken("q"), IsEmpty());
  HoldRow kept = held_;
  kept.expires_at = kNow + minutes(15) - std::chrono::microseconds(1);
  See({kept, other});
  EXPECT_EQ(Broken().size(), 1U);
  kept.expires_at = kNow + minutes(15);
  See({kept, other});
  EXPECT_THAT(Broken(), IsEmpty());
  EXPECT_EQ(promises_.holds.renewals_checked(), 6U);
}

TEST_F(HeartbeatPromisesTest, WhatMayHaveComeLaterOrRanOutNeedNotBeKept) {
  See({held_});  // granted in the same look
  EXPECT_THAT(Broken(), IsEmpty());
  HoldRow anew = held_;
  anew.fence = 2;
  See({anew});
  EXPECT_THAT(Broken(), IsEmpty());
  See({anew});
  EXPECT_EQ(Broken().size(), 1U);
  now_ = anew.expires_at;
  See({anew});
  EXPECT_THAT(Broken(), IsEmpty());
  EXPECT_EQ(promises_.holds.renewals_checked(), 1U);
}

TEST_F(HeartbeatPromisesTest, WhatTwoHoldSinceAClockWasSetBackNeedNotBeKept) {
  HoldRow theirs = Row("2", "b", "a/*");
  theirs.fence = 2;
  theirs.expires_at = kNow + minutes(5);
  See({held_, theirs});
  See({held_, theirs});
  EXPECT_THAT(TakeBroken(), ::testing::Contains(HasSubstr("exclusion")));
  EXPECT_THAT(Broken(), IsEmpty());
  now_ = theirs.expires_at;
  See({held_, theirs});
  EXPECT_EQ(Broken().size(), 1U);
}

// ---- Turns

TurnsPromise::Claim Wanting(std::string agent, std::string_view pattern, std::uint64_t asked_at) {
  return {.project = "p",
          .agent = std::move(agent),
          .patterns = {PathSpace::Get().IndexOf(pattern)},
          .exclusive = true,
          .asked_at = asked_at};
}

TEST_F(PromisesTest, WhoCameLaterIsServedLater) {
  TurnsPromise& turns = promises_.turns;
  turns.Wait(1, Wanting("a", "a/x", 1));
  turns.Granted(Wanting("b", "a/*", 2), {});  // perhaps the first one does not stand in line yet
  turns.AllStandInLine(3);
  turns.Granted(Wanting("b", "a/*", 2), {});                                  // it came before
  turns.Granted(Wanting("b", "b/x", 4), {});                                  // elsewhere
  turns.Granted(Wanting("b", "a/*", 4), std::vector{Row("1", "b", "a/**")});  // had it already
  EXPECT_THAT(TakeBroken(), IsEmpty());
  turns.Granted(Wanting("b", "a/*", 4), {});
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("b was served at once")));
  turns.Leave(1, 5);
  turns.Granted(Wanting("b", "a/*", 4), {});
  EXPECT_THAT(TakeBroken(), IsEmpty());
}

TEST_F(PromisesTest, WhoIsRefusedInFavourOfAnotherIsToldOfOneWhoWaits) {
  TurnsPromise& turns = promises_.turns;
  turns.Wait(1, Wanting("a", "a/x", 1));
  turns.Refused(Wanting("b", "a/*", 2), "a");
  turns.HangUp(1);  // it may stand in line until it is answered
  turns.Refused(Wanting("b", "a/*", 3), "a");
  turns.Leave(1, 4);
  turns.Refused(Wanting("b", "a/*", 3), "a");  // it was there when that was asked
  EXPECT_THAT(TakeBroken(), IsEmpty());
  turns.Refused(Wanting("b", "a/*", 5), "a");
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("in favour of a, who did not wait")));
  turns.Wait(2, Wanting("c", "b/x", 5));
  turns.Refused(Wanting("b", "a/*", 6), "c");  // it waits for something else
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("in favour of c")));
  EXPECT_EQ(turns.checks(), 5U);
}

TEST_F(PromisesTest, NobodyWaitsForNothing) {
  TurnsPromise& turns = promises_.turns;
  turns.Wait(1, Wanting("a", "a/x", 1));
  turns.AllStandInLine(1);
  turns.Wait(2, Wanting("b", "a/*", 2));
  turns.Wait(3, Wanting("c", "a/y", 3));  // only the second one is in its way
  turns.CheckAllBlocked(std::vector{Row("1", "d", "a/x")});
  EXPECT_THAT(TakeBroken(), IsEmpty());
  turns.CheckAllBlocked(std::vector{Row("1", "a", "a/x"), Row("2", "d", "b/x")});
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("a waits for nothing")));
  turns.CheckAllBlocked({});
  EXPECT_EQ(TakeBroken().size(), 3U);
}

TEST_F(PromisesTest, NoCircleOfWaitsIsLeft) {
  TurnsPromise& turns = promises_.turns;
  const std::vector holds = {Row("1", "a", "a/x"), Row("2", "b", "a/y"), Row("3", "c", "b/x")};
  turns.Wait(1, Wanting("a", "a/y", 1));
  turns.Wait(2, Wanting("b", "b/x", 2));
  turns.Wait(3, Wanting("d", "a/*", 3));  // behind the others, and in nobody's way
  turns.CheckNoCircle(holds);
  EXPECT_THAT(TakeBroken(), IsEmpty());
  turns.Wait(4, Wanting("c", "a/x", 4));
  turns.CheckNoCircle(holds);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("a circle that nobody was told of")));
  turns.ClockJumped();
  turns.CheckNoCircle(holds);
  EXPECT_THAT(TakeBroken(), IsEmpty());
}

// ---- Tags

TEST_F(PromisesTest, WhatWasRefusedIsNotThere) {
  TagsPromise& tags = promises_.tags;
  tags.Asked("done");
  tags.Seen("done");
  tags.Answered("done", TagsPromise::Outcome::kDone);
  tags.Asked("either");
  tags.Answered("either", TagsPromise::Outcome::kUnknown);
  tags.Seen("either");
  tags.Asked("repeated");
  tags.Asked("repeated");
  tags.Answered("repeated", TagsPromise::Outcome::kNotDone);
  tags.Seen("repeated");
  tags.Answered("repeated", TagsPromise::Outcome::kDone);
  EXPECT_THAT(TakeBroken(), IsEmpty());

  tags.Asked("late");
  tags.Answered("late", TagsPromise::Outcome::kNotDone);
  tags.Seen("late");
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("refused, but there: late")));
  tags.Asked("early");
  tags.Seen("early");
  tags.Answered("early", TagsPromise::Outcome::kNotDone);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("refused, but there: early")));
  tags.Asked("lost");
  tags.Answered("lost", TagsPromise::Outcome::kDone);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("done, but not there: lost")));
  tags.Seen("of nobody");
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("nobody asked")));
  tags.SeenOnce("done");
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("there twice: done")));
}

// ---- Mail

TEST_F(PromisesTest, MessagesAreKeptOnceAsTheyWereAnswered) {
  MailPromise& mail = promises_.mail;
  mail.See(Mail(1, "m", {"a", "b"}), 0);
  mail.Answered({.message_id = "m", .cursor = 1, .received = {"b", "a"}});
  EXPECT_THAT(TakeBroken(), IsEmpty());
  mail.Answered({.message_id = "m", .cursor = 1, .received = {"a"}});
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("not as answered")));
  mail.Answered({.message_id = "n", .cursor = 2, .received = {"a"}});
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("not there: n")));
  mail.See(Mail(2, "m", {"a"}), 0);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("m at 1 and at 2")));
  mail.See(Mail(4, "m", {"a"}), 1);  // the first one was old, and is forgotten
  EXPECT_THAT(TakeBroken(), IsEmpty());
  mail.See(Mail(3, "empty", {}), 0);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("kept for nobody")));
}

TEST_F(PromisesTest, InboxesShowEachMessageOnceInOrder) {
  MailPromise& mail = promises_.mail;
  for (const Cursor cursor : {1, 2, 3, 4}) {
    mail.See(Mail(cursor, std::to_string(cursor), {"a"}), 0);
  }
  const auto read = [&](Cursor after, std::size_t limit, std::vector<Cursor> cursors,
                        Cursor pruned_through = 0) {
    mail.Read({.agent = "a", .after = after, .limit = limit, .cursors = std::move(cursors)},
              pruned_through);
    return TakeBroken().empty();
  };
  EXPECT_TRUE(read(0, 2, {1, 2}));
  EXPECT_TRUE(read(2, 5, {3, 4}));
  EXPECT_TRUE(read(0, 5, {2, 4}, 3));   // the others were old
  EXPECT_FALSE(read(0, 5, {1, 2, 3}));  // the last one is missing
  EXPECT_FALSE(read(0, 2, {1, 3}));
  EXPECT_FALSE(read(0, 3, {1, 1, 2}));
  EXPECT_FALSE(read(2, 3, {2, 3, 4}));
  EXPECT_FALSE(read(0, 5, {1, 2, 3, 4, 5}));
  EXPECT_FALSE(read(0, 1, {1, 2}));
}

TEST_F(PromisesTest, ReceiptsAreRecordedOnce) {
  MailPromise& mail = promises_.mail;
  mail.See(Mail(1, "m", {"a"}), 0);
  const MailPromise::Receipt read{.message_id = "m", .agent = "a", .kind = ReceiptKind::kRead};
  const MailPromise::Receipt ack{.message_id = "m", .agent = "a", .kind = ReceiptKind::kAck};
  mail.ReceiptAsked(read);
  mail.ReceiptAnswered(read, ReceiptOutcome::kRecorded);
  mail.ReceiptAnswered(read, ReceiptOutcome::kAlreadyThere);
  EXPECT_THAT(TakeBroken(), IsEmpty());
  mail.ReceiptAnswered(read, ReceiptOutcome::kRecorded);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("recorded twice")));
  mail.ReceiptAsked(ack);
  mail.ReceiptAnswered(ack, ReceiptOutcome::kAlreadyThere);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("before it was asked")));
  mail.ReceiptAnswered(ack, ReceiptOutcome::kNotARecipient);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("refused to a recipient")));
}

// ---- Followers

TEST_F(PromisesTest, FollowersHearEachEventOnceInOrder) {
  LoggedEvent elsewhere = Event(3, "c");
  elsewhere.project = "q";
  promises_.log.See(
      std::vector{Event(1, "a"), Mail(2, "m", {"b"}), elsewhere, Event(4, "d"), Event(5, "e")}, 0,
      5);
  const auto hears = [&](std::optional<Cursor> since, std::vector<Cursor> cursors) {
    FollowPromise follow(promises_.violations, promises_.log, "p", "a");
    follow.Join(since);
    for (const Cursor cursor : cursors) follow.Heard(cursor);
    follow.CheckCaughtUp();
    return TakeBroken().empty();
  };
  EXPECT_TRUE(hears(0, {1, 4, 5}));  // 2 is for somebody else, 3 is of another project
  EXPECT_TRUE(hears(1, {4, 5}));
  EXPECT_TRUE(hears(std::nullopt, {4, 5}));
  EXPECT_FALSE(hears(0, {1, 5}));
  EXPECT_FALSE(hears(0, {1, 4, 4, 5}));
  EXPECT_FALSE(hears(0, {1, 5, 4}));
  EXPECT_FALSE(hears(0, {1, 4}));
  EXPECT_FALSE(hears(0, {1, 2, 4, 5}));
  EXPECT_FALSE(hears(0, {1, 3, 4, 5}));
  EXPECT_FALSE(hears(0, {1, 4, 5, 6}));
}

TEST_F(PromisesTest, FollowersAreLedPastNothingAndLoseTheirPlaceOnlyWhenItIsGone) {
  promises_.log.See(std::vector{Event(1, "a"), Event(2, "b"), Event(3, "c")}, 2, 3);
  FollowPromise follow(promises_.violations, promises_.log, "p", "");
  follow.Join(1);
  EXPECT_TRUE(follow.Gone());
  follow.Join(0);
  follow.Reached(2);  // from the oldest that is kept
  EXPECT_THAT(TakeBroken(), IsEmpty());
  EXPECT_FALSE(follow.Gone());
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("which is there")));
  follow.Reached(3);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("led past 3")));
  follow.Reached(4);
  EXPECT_THAT(TakeBroken(), ElementsAre(HasSubstr("in no log")));
}

}  // namespace
}  // namespace interlock::sim
