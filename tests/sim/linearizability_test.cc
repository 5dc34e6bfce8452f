#include "sim/linearizability.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/reservation_model.h"
#include "testing/random.h"
#include "testing/seeded_random.h"

namespace interlock::sim {
namespace {

using testing::Below;

// ---- Histories by hand ----

struct Span {
  std::int64_t begin;
  std::int64_t end;
};

Seen Of(std::string agent, std::int64_t fence, std::string id, std::string pattern = "g/a",
        bool exclusive = true) {
  return {.id = std::move(id),
          .agent = std::move(agent),
          .pattern = std::move(pattern),
          .exclusive = exclusive,
          .fence = fence,
          .expires_at = 100};
}
Seen Until(std::int64_t expires_at, Seen seen) {
  seen.expires_at = expires_at;
  return seen;
}

Operation Reserve(Span span, const Seen& got) {
  return {.call = Call::kReserve,
          .agent = got.agent,
          .pattern = got.pattern,
          .exclusive = got.exclusive,
          .heard = Heard::kDone,
          .seen = {got},
          .begin = span.begin,
          .end = span.end};
}
Operation Refused(Span span, std::string agent, std::vector<Seen> by, std::string pattern = "g/a") {
  return {.call = Call::kReserve,
          .agent = std::move(agent),
          .pattern = std::move(pattern),
          .exclusive = true,
          .heard = Heard::kConflict,
          .seen = std::move(by),
          .begin = span.begin,
          .end = span.end};
}
Operation ReserveUnheard(Span span, std::string agent, std::string pattern = "g/a") {
  return {.call = Call::kReserve,
          .agent = std::move(agent),
          .pattern = std::move(pattern),
          .exclusive = true,
          .begin = span.begin,
          .end = span.end};
}
Operation Look(Span span, std::vector<Seen> all) {
  return {.call = Call::kLook,
          .agent = "nobody",
          .pattern = "g/*",
          .heard = Heard::kDone,
          .seen = std::move(all),
          .begin = span.begin,
          .end = span.end};
}
Operation Release(Span span, std::string agent, std::string id, Heard heard = Heard::kDone) {
  return {.call = Call::kRelease,
          .agent = std::move(agent),
          .pattern = "g/a",
          .id = std::move(id),
          .heard = heard,
          .begin = span.begin,
          .end = span.end};
}
Operation Renew(Span span, std::string agent, std::string id, Heard heard,
                std::vector<Seen> seen = {}) {
  return {.call = Call::kRenew,
          .agent = std::move(agent),
          .pattern = "g/a",
          .id = std::move(id),
          .heard = heard,
          .seen = std::move(seen),
          .begin = span.begin,
          .end = span.end};
}
Operation Transfer(Span span, std::string from, std::string to, std::string id, Heard heard,
                   std::vector<Seen> seen = {}) {
  return {.call = Call::kTransfer,
          .agent = std::move(from),
          .pattern = "g/a",
          .id = std::move(id),
          .to_agent = std::move(to),
          .heard = heard,
          .seen = std::move(seen),
          .begin = span.begin,
          .end = span.end};
}

void ExpectExplained(const History& history) {
  const Judgement judgement = CheckGroup(history);
  EXPECT_TRUE(judgement.linearizable) << judgement.explanation;
  EXPECT_EQ(CheckFences(history).value_or(""), "");
}
void ExpectRefused(const History& history) { EXPECT_FALSE(CheckGroup(history).linearizable); }

TEST(LinearizabilityTest, WhatOneServerCouldHaveAnsweredIsExplained) {
  const Seen held = Of("ada", 1, "r1");
  ExpectExplained({});
  ExpectExplained({Reserve({1, 2}, held), Refused({3, 4}, "bob", {held}), Look({5, 6}, {held}),
                   Renew({7, 8}, "ada", "r1", Heard::kDone, {held}),
                   Renew({9, 10}, "bob", "r1", Heard::kForbidden), Reserve({11, 12}, held),
                   Release({13, 14}, "ada", "r1"), Look({15, 16}, {}),
                   Release({17, 18}, "ada", "r1", Heard::kGone),
                   Reserve({19, 20}, Of("bob", 2, "r2"))});
}

TEST(LinearizabilityTest, AtTheSameTimeEitherOrderWillDo) {
  const Seen held = Of("ada", 1, "r1");
  ExpectExplained({Reserve({1, 10}, held), Look({2, 3}, {}), Look({4, 5}, {held})});
  ExpectExplained({Refused({1, 9}, "bob", {held}), Reserve({2, 8}, held)});
  // Bob was granted it after Ada let go, though Ada heard of that last.
  ExpectExplained({Reserve({1, 2}, held), Release({3, 9}, "ada", "r1"),
                   Reserve({4, 5}, Of("bob", 2, "r2")), Look({6, 7}, {Of("bob", 2, "r2")})});
}

TEST(LinearizabilityTest, TwoHoldersOfOnePathAreFound) {
  ExpectRefused({Reserve({1, 2}, Of("ada", 1, "r1")), Reserve({3, 4}, Of("bob", 2, "r2"))});
  ExpectRefused({Reserve({1, 4}, Of("ada", 1, "r1")), Reserve({2, 3}, Of("bob", 2, "r2"))});
  ExpectRefused({Reserve({1, 2}, Of("ada", 1, "r1", "g/*")), Reserve({3, 4}, Of("bob", 2, "r2"))});
  ExpectRefused({Reserve({1, 2}, Of("ada", 1, "r1", "g/a", false)),
                 Reserve({3, 4}, Of("bob", 2, "r2", "g/*", true))});
  ExpectExplained({Reserve({1, 2}, Of("ada", 1, "r1", "g/a", false)),
                   Reserve({3, 4}, Of("bob", 2, "r2", "g/*", false))});
  ExpectExplained(
      {Reserve({1, 2}, Of("ada", 1, "r1")), Reserve({3, 4}, Of("bob", 2, "r2", "g/b"))});
}

TEST(LinearizabilityTest, AnAcknowledgedWriteThatIsLostIsFound) {
  const Seen held = Of("ada", 1, "r1");
  ExpectRefused({Reserve({1, 2}, held), Look({3, 4}, {})});
  ExpectRefused({Reserve({1, 2}, held), Release({3, 4}, "ada", "r1"), Look({5, 6}, {held})});
  ExpectRefused(
      {Reserve({1, 2}, held), Release({3, 4}, "ada", "r1"), Release({5, 6}, "ada", "r1")});
  ExpectRefused({Reserve({1, 2}, held), Renew({3, 4}, "ada", "r1", Heard::kGone)});
  ExpectRefused({Reserve({1, 2}, held), Reserve({3, 4}, Of("ada", 2, "r2"))});
}

TEST(LinearizabilityTest, ARenewalThatIsLostIsFound) {
  const Seen held = Of("ada", 1, "r1");
  const Seen longer = Until(150, held);
  const History renewed = {Reserve({1, 2}, held),
                           Renew({3, 4}, "ada", "r1", Heard::kDone, {longer})};
  const History refreshed = {Reserve({1, 2}, held), Reserve({3, 4}, longer)};
  for (const History& history : {renewed, refreshed}) {
    const auto then = [&](const Operation& next) {
      History longer_history = history;
      longer_history.push_back(next);
      return longer_history;
    };
    for (const Seen& seen : {held, longer, Until(151, held)}) {
      const auto expect = seen.expires_at == 150 ? ExpectExplained : ExpectRefused;
      expect(then(Look({5, 6}, {seen})));
      expect(then(Refused({5, 6}, "bob", {seen})));
      Seen given = Until(seen.expires_at, Of("bob", 2, "r1"));
      expect(then(Transfer({5, 6}, "ada", "bob", "r1", Heard::kDone, {given})));
    }
    // The next one begins where this one ended.
    ExpectRefused(then(Renew({5, 6}, "ada", "r1", Heard::kDone, {Until(149, held)})));
    ExpectRefused(then(Reserve({5, 6}, Until(149, held))));
    ExpectExplained(then(Renew({5, 6}, "ada", "r1", Heard::kDone, {Until(160, held)})));
  }
  // A transfer changes nothing of it.
  const Seen given = Until(150, Of("bob", 2, "r1"));
  ExpectRefused({Reserve({1, 2}, held), Transfer({3, 4}, "ada", "bob", "r1", Heard::kNothing),
                 Look({5, 6}, {given})});
  // Somebody saw it, and then it was as before.
  ExpectRefused({Reserve({1, 2}, held), Renew({3, 10}, "ada", "r1", Heard::kDone, {longer}),
                 Look({4, 5}, {longer}), Look({6, 7}, {held})});
}

TEST(LinearizabilityTest, ARenewalThatWasNeverHeardOfMayHaveHappenedOrNot) {
  const Seen held = Of("ada", 1, "r1");
  const Seen longer = Until(150, held);
  for (const Operation& unheard :
       {Renew({3, 4}, "ada", "r1", Heard::kNothing), ReserveUnheard({3, 4}, "ada")}) {
    const History begun = {Reserve({1, 2}, held), unheard};
    const auto then = [&](const Seen& first, const Seen& second) {
      History history = begun;
      history.push_back(Look({5, 6}, {first}));
      history.push_back(Look({7, 8}, {second}));
      return history;
    };
    ExpectExplained(then(held, held));
    ExpectExplained(then(longer, longer));
    ExpectRefused(then(Until(99, held), Until(99, held)));
    ExpectRefused(then(held, longer));
    ExpectRefused(then(longer, held));
    ExpectRefused(then(longer, Until(151, held)));
  }
  // Of a grant that nobody heard of the first answer tells the end.
  ExpectExplained({ReserveUnheard({1, 2}, "ada"), Look({3, 4}, {longer}), Look({5, 6}, {longer})});
  ExpectRefused({ReserveUnheard({1, 2}, "ada"), Look({3, 4}, {longer}), Look({5, 6}, {held})});
}

TEST(LinearizabilityTest, ARefusalWithoutReasonIsFound) {
  const Seen held = Of("ada", 1, "r1");
  ExpectRefused({Refused({1, 2}, "bob", {held}), Reserve({3, 4}, held)});
  ExpectRefused({Reserve({1, 2}, held), Refused({3, 4}, "ada", {held})});
  ExpectRefused(
      {Reserve({1, 2}, held), Release({3, 4}, "ada", "r1"), Refused({5, 6}, "bob", {held})});
  // One of the two in the way is not named.
  ExpectRefused({Reserve({1, 2}, held), Reserve({3, 4}, Of("eve", 2, "r2", "g/b")),
                 Refused({5, 6}, "bob", {held}, "g/*")});
}

TEST(LinearizabilityTest, WhoWaitsMayBeInTheWay) {
  const Seen held = Of("ada", 1, "r1", "g/b");
  Operation refused = Refused({3, 4}, "bob", {}, "g/*");
  refused.waiters = 1;
  ExpectExplained({refused});
  ExpectRefused({Reserve({1, 2}, held), refused});
  refused.seen = {held};
  ExpectExplained({Reserve({1, 2}, held), refused});
  ExpectRefused({refused});
  // Granted in the end, while others were refused it in the meantime.
  ExpectExplained({Reserve({1, 2}, held), Reserve({3, 20}, Of("bob", 2, "r2", "g/*")), refused,
                   Release({5, 6}, "ada", "r1"), Look({7, 8}, {Of("bob", 2, "r2", "g/*")})});
}

TEST(LinearizabilityTest, ATransferIsANewGrantToAnother) {
  const Seen held = Of("ada", 1, "r1");
  const Seen given = Of("bob", 2, "r1");
  ExpectExplained({Reserve({1, 2}, held),
                   Transfer({3, 4}, "ada", "bob", "r1", Heard::kDone, {given}),
                   Renew({5, 6}, "ada", "r1", Heard::kForbidden),
                   Renew({7, 8}, "bob", "r1", Heard::kDone, {given}), Look({9, 10}, {given})});
  ExpectRefused({Reserve({1, 2}, held),
                 Transfer({3, 4}, "ada", "bob", "r1", Heard::kDone, {Of("bob", 1, "r1")})});
  ExpectRefused({Reserve({1, 2}, held), Transfer({3, 4}, "ada", "bob", "r1", Heard::kDone, {given}),
                 Renew({5, 6}, "ada", "r1", Heard::kDone, {held})});
  ExpectRefused({Reserve({1, 2}, held), Transfer({3, 4}, "ada", "bob", "r1", Heard::kDone, {given}),
                 Look({5, 6}, {held})});
  // The owner keeps what overlaps, so two would hold it.
  const Seen wide = Of("ada", 2, "r2", "g/*");
  ExpectRefused({Reserve({1, 2}, held), Reserve({3, 4}, wide),
                 Transfer({5, 6}, "ada", "bob", "r1", Heard::kDone, {Of("bob", 3, "r1")})});
  ExpectExplained({Reserve({1, 2}, held), Reserve({3, 4}, wide),
                   Transfer({5, 6}, "ada", "bob", "r1", Heard::kConflict, {wide})});
}

TEST(LinearizabilityTest, WhatIsHandedToWhoHoldsTheSameBecomesPartOfThat) {
  const auto shared = [](const char* agent, std::int64_t fence, const char* id) {
    Seen seen = Of(agent, fence, id);
    seen.exclusive = false;
    return seen;
  };
  const History before = {Reserve({1, 2}, shared("ada", 1, "r1")),
                          Reserve({3, 4}, shared("bob", 2, "r2"))};
  const auto then = [&](const Seen& given, const std::vector<Seen>& left) {
    History history = before;
    history.push_back(Transfer({5, 6}, "ada", "bob", "r1", Heard::kDone, {given}));
    history.push_back(Look({7, 8}, left));
    return history;
  };
  const Seen one = shared("bob", 3, "r2");
  ExpectExplained(then(one, {one}));
  ExpectRefused(then(one, {one, shared("ada", 1, "r1")}));
  const Seen moved = shared("bob", 3, "r1");
  ExpectRefused(then(moved, {moved}));
  ExpectRefused(then(moved, {moved, shared("bob", 2, "r2")}));
  // Until the later of both ends, whichever it is.
  const auto ends = [&](std::int64_t handed, std::int64_t own, std::int64_t both) {
    return History{Reserve({1, 2}, Until(handed, shared("ada", 1, "r1"))),
                   Reserve({3, 4}, Until(own, shared("bob", 2, "r2"))),
                   Transfer({5, 6}, "ada", "bob", "r1", Heard::kDone, {Until(both, one)})};
  };
  ExpectExplained(ends(100, 150, 150));
  ExpectExplained(ends(150, 100, 150));
  ExpectRefused(ends(150, 100, 100));
  ExpectRefused(ends(100, 150, 100));
  ExpectRefused(ends(100, 150, 151));
}

TEST(LinearizabilityTest, WhatWasNeverHeardOfMayHaveHappenedOrNot) {
  const Seen held = Of("ada", 1, "r1");
  const Span open{1, Operation::kNever};
  for (const Span span : {Span{1, 2}, open}) {
    ExpectExplained({ReserveUnheard(span, "ada"), Look({3, 4}, {})});
    ExpectExplained({ReserveUnheard(span, "ada"), Look({3, 4}, {held}), Look({5, 6}, {held})});
    ExpectExplained({ReserveUnheard(span, "ada"), Reserve({3, 4}, held),
                     Reserve({5, 6}, Of("bob", 2, "r2", "g/b"))});
    ExpectExplained({ReserveUnheard(span, "ada"), Reserve({3, 4}, Of("bob", 2, "r2", "g/b")),
                     Reserve({5, 6}, held)});
    // It was there and went, though nobody let it go; it came back.
    ExpectRefused({ReserveUnheard(span, "ada"), Look({3, 4}, {held}), Look({5, 6}, {})});
    ExpectRefused({ReserveUnheard(span, "ada"), Look({3, 4}, {held}), Release({5, 6}, "ada", "r1"),
                   Look({7, 8}, {held})});
    ExpectRefused({ReserveUnheard(span, "ada"), Look({3, 4}, {Of("eve", 1, "r1")})});
    ExpectRefused({ReserveUnheard(span, "ada"), Look({3, 4}, {held, Of("ada", 2, "r2")})});
  }
}

TEST(LinearizabilityTest, AfterItsEndNothingComesOfIt) {
  const Seen held = Of("ada", 1, "r1");
  ExpectExplained(
      {ReserveUnheard({1, Operation::kNever}, "ada"), Look({3, 4}, {}), Look({5, 6}, {held})});
  ExpectRefused({ReserveUnheard({1, 2}, "ada"), Look({3, 4}, {}), Look({5, 6}, {held})});
  ExpectExplained(
      {Reserve({1, 2}, held), Release({3, 4}, "ada", "r1", Heard::kNothing), Look({5, 6}, {})});
  ExpectRefused({Reserve({1, 2}, held), Release({3, 4}, "ada", "r1", Heard::kNothing),
                 Look({5, 6}, {held}), Look({7, 8}, {})});
  ExpectExplained({Reserve({1, 2}, held), Transfer({3, 4}, "ada", "bob", "r1", Heard::kNothing),
                   Look({5, 6}, {Of("bob", 2, "r1")})});
  ExpectRefused({Reserve({1, 2}, held), Transfer({3, 4}, "ada", "bob", "r1", Heard::kNothing),
                 Look({5, 6}, {Of("bob", 1, "r1")})});
}

TEST(LinearizabilityTest, AFenceThatGoesBackOrRepeatsIsFound) {
  ExpectRefused({Reserve({1, 2}, Of("ada", 2, "r1")), Release({3, 4}, "ada", "r1"),
                 Reserve({5, 6}, Of("bob", 1, "r2"))});
  ExpectRefused({Reserve({1, 2}, Of("ada", 1, "r1")), Look({3, 4}, {Of("ada", 2, "r1")})});
  // A grant of which nothing was heard lies between those around it.
  ExpectRefused({Reserve({1, 2}, Of("eve", 5, "r0", "g/b")), ReserveUnheard({3, 4}, "ada"),
                 Look({5, 6}, {Of("eve", 5, "r0", "g/b"), Of("ada", 4, "r1")})});
  ExpectRefused({ReserveUnheard({3, 4}, "ada"), Look({5, 6}, {Of("ada", 3, "r1")}),
                 Reserve({7, 8}, Of("bob", 2, "r2", "g/b"))});
  // Between groups.
  EXPECT_TRUE(CheckFences(
      {Reserve({1, 2}, Of("ada", 2, "r1", "g/a")), Reserve({3, 4}, Of("bob", 1, "r2", "h/a"))}));
  EXPECT_FALSE(CheckFences(
      {Reserve({1, 3}, Of("ada", 2, "r1", "g/a")), Reserve({2, 4}, Of("bob", 1, "r2", "h/a"))}));
  EXPECT_TRUE(CheckFences(
      {Reserve({1, 3}, Of("ada", 1, "r1", "g/a")), Reserve({2, 4}, Of("bob", 1, "r2", "h/a"))}));
  EXPECT_FALSE(
      CheckFences({ReserveUnheard({1, 2}, "ada"), Reserve({3, 4}, Of("bob", 2, "r2", "h/a")),
                   Reserve({5, 6}, Of("ada", 1, "r1", "g/a"))}));
}

TEST(LinearizabilityTest, GroupsAreJudgedEachByItself) {
  const History history = {Reserve({1, 2}, Of("ada", 1, "r1", "g/a")),
                           Reserve({3, 4}, Of("bob", 2, "r2", "h/*")),
                           Reserve({5, 6}, Of("eve", 3, "r3", "h/b"))};
  const Judgement judgement = CheckGroups(history);
  EXPECT_FALSE(judgement.linearizable);
  EXPECT_TRUE(judgement.explanation.starts_with("group h: nothing explains\n  [5, 6]"))
      << judgement.explanation;
  EXPECT_TRUE(CheckGroups({history[0], history[1]}).linearizable);
}

// ---- Against all orders ----

// Some order of the operations that are left explains them, each before whatever began after its
// end. The slow and obvious way.
bool SomeOrder(const Reserved& state, const std::vector<const Operation*>& left) {
  std::int64_t first_end = Operation::kNever;
  for (const Operation* operation : left) first_end = std::min(first_end, operation->end);
  if (left.empty()) return true;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i]->begin > first_end) continue;
    std::vector<const Operation*> others = left;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const auto after = Step(state, *left[i]);
    if (after && SomeOrder(*after, others)) return true;
    if (left[i]->heard == Heard::kNothing && SomeOrder(state, others)) return true;
  }
  return false;
}

// Operations whose answers are now and then true by chance.
History RandomHistory(std::mt19937_64& rng) {
  const std::vector<std::string> agents = {"ada", "bob"};
  const std::vector<std::string> patterns = {"g/a", "g/*"};
  const std::vector<std::string> ids = {"r1", "r2"};
  const auto some_seen = [&] {
    const Seen seen = Of(agents[Below(rng, 2)], static_cast<std::int64_t>(1 + Below(rng, 3)),
                         ids[Below(rng, 2)], patterns[Below(rng, 2)], Below(rng, 4) != 0);
    return Until(static_cast<std::int64_t>(1 + Below(rng, 2)), seen);
  };
  std::vector<std::int64_t> ticks(12);
  for (std::size_t i = 0; i < ticks.size(); ++i) ticks[i] = static_cast<std::int64_t>(i);
  std::ranges::shuffle(ticks, rng);
  History history;
  const std::size_t count = 2 + Below(rng, 4);
  for (std::size_t i = 0; i < count; ++i) {
    Operation one{.call = static_cast<Call>(Below(rng, 5)),
                  .agent = agents[Below(rng, 2)],
                  .pattern = patterns[Below(rng, 2)],
                  .exclusive = Below(rng, 4) != 0};
    one.id = ids[Below(rng, 2)];
    one.to_agent = agents[Below(rng, 2)];
    one.heard = static_cast<Heard>(Below(rng, 6));
    if (one.call == Call::kReserve) {
      one.seen = {some_seen()};
      if (one.heard == Heard::kDone) {
        one.seen[0].agent = one.agent;
        one.seen[0].pattern = one.pattern;
        one.seen[0].exclusive = one.exclusive;
      }
    } else if (one.call != Call::kRelease) {
      for (std::size_t k = Below(rng, 3); k > 0; --k) one.seen.push_back(some_seen());
    }
    one.waiters = Below(rng, 8) == 0 ? 1 : 0;
    one.begin = std::min(ticks[2 * i], ticks[2 * i + 1]);
    one.end = std::max(ticks[2 * i], ticks[2 * i + 1]);
    if (one.heard == Heard::kNothing && Below(rng, 2) == 0) one.end = Operation::kNever;
    history.push_back(std::move(one));
  }
  return history;
}

TEST(LinearizabilityTest, TheSearchAgreesWithTryingEveryOrder) {
  std::mt19937_64 rng(testing::TestSeed());
  int explained = 0;
  const int rounds = testing::kSlowBuild ? 4'000 : 20'000;
  for (int round = 0; round < rounds; ++round) {
    const History history = RandomHistory(rng);
    std::vector<const Operation*> all;
    for (const Operation& one : history) all.push_back(&one);
    const bool expected = SomeOrder({}, all);
    explained += expected ? 1 : 0;
    std::string text;
    for (const Operation& one : history) text += Text(one) + "\n";
    ASSERT_EQ(CheckGroup(history).linearizable, expected) << text;
  }
  EXPECT_GT(explained, rounds / 100);
  EXPECT_LT(explained, rounds * 99 / 100);
}

}  // namespace
}  // namespace interlock::sim
