#include "service/wait_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace interlock::service {
namespace {

using domain::Access;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Next = WaitQueue::Next;
using Ticket = WaitQueue::Ticket;
using Blockers = WaitQueue::Blockers;
using Hold = WaitQueue::Hold;
using Reach = WaitQueue::Reach;

class WaitQueueTest : public ::testing::Test {
 protected:
  Ticket Join(const std::string& agent, const std::string& project = "p",
              Reach reach = Reach::kProject) {
    auto wanted = std::make_shared<WaitQueue::Wanted>();
    wanted->project = project;
    wanted->agent = agent;
    wanted->reach = reach;
    wanted->registered = agent.starts_with("id-");
    wanted->access = Access::kExclusive;
    const Ticket ticket = queue_.Join(wanted, [this, agent] { ++woken_[agent]; }).value();
    return ticket;
  }
  Next EndTry(Ticket ticket, Blockers blockers) {
    return queue_.EndTry(ticket, std::move(blockers), now_);
  }
  Next Try(Ticket ticket, Blockers blockers) {
    queue_.BeginTry(ticket);
    return EndTry(ticket, std::move(blockers));
  }
  void Gone(const std::string& id) { queue_.Gone(std::vector<std::string>{id}); }

  WaitQueue queue_{4};
  Timestamp now_ = {0};
  std::map<std::string, int> woken_;
};

TEST_F(WaitQueueTest, WhoeverCameEarlierInTheProjectStandsBefore) {
  const Ticket a = Join("a");
  Join("b", "q");
  const Ticket c = Join("c");
  EXPECT_LT(a, c);
  EXPECT_THAT(queue_.Before("p", a), IsEmpty());
  ASSERT_EQ(queue_.Before("p", c).size(), 1U);
  EXPECT_EQ(queue_.Before("p", c)[0].ticket, a);
  EXPECT_EQ(queue_.Before("p", c + 1).size(), 2U);
  queue_.Leave(a);
  queue_.Leave(a);
  EXPECT_THAT(queue_.Before("p", c), IsEmpty());
  EXPECT_EQ(queue_.size(), 2U);
}

TEST_F(WaitQueueTest, OnlyThoseAreWokenWhoseWayIsFree) {
  const Ticket a = Join("a");
  const Ticket b = Join("b");
  EXPECT_EQ(Try(a, {.holds = {{"r1", "x"}, {"r2", "y"}}}), Next::kSleep);
  EXPECT_EQ(Try(b, {.holds = {{"r2", "y"}}, .waits = {{a, 0}}}), Next::kSleep);
  Gone("r1");
  EXPECT_EQ(woken_["a"], 0) << "there is still r2";
  Gone("r2");
  EXPECT_EQ(woken_["a"], 1);
  EXPECT_EQ(woken_["b"], 0) << "a comes first";
  Gone("r2");
  EXPECT_EQ(woken_["a"], 1) << "it is no longer in the way";
  queue_.Leave(a);
  EXPECT_EQ(woken_["b"], 1);
}

// A wait that was granted is in the way as what it holds now, and so is seen in a circle.
TEST_F(WaitQueueTest, WhatAnEarlierWaitWasGrantedTakesItsPlace) {
  for (const bool during_a_try : {false, true}) {
    SCOPED_TRACE(during_a_try);
    const Ticket e = Join("e");
    const Ticket a = Join("a");
    const std::vector<Hold> granted = {{"r0", "e"}, {"r1", "e"}};
    const Blockers in_the_way = {.holds = {{"rd", "d"}}, .waits = {{e, 1}}};
    if (during_a_try) {
      queue_.BeginTry(a);
      queue_.Leave(e, granted, now_);
      EXPECT_EQ(EndTry(a, in_the_way), Next::kSleep);
    } else {
      EXPECT_EQ(Try(a, in_the_way), Next::kSleep);
      queue_.Leave(e, granted, now_);
    }
    const Ticket again = Join("e");
    EXPECT_EQ(Try(again, {.holds = {{"ra", "a"}}}), Next::kGiveUp);
    woken_.clear();
    Gone("rd");
    Gone("r0");
    EXPECT_EQ(woken_["a"], 0) << "r1 is still there";
    Gone("r1");
    EXPECT_EQ(woken_["a"], 1);
    queue_.Leave(a);
    queue_.Leave(again);
  }
}

// Whoever waits for many paths tries when the last of them can be free, not once for each.
TEST_F(WaitQueueTest, ItRestsUntilAllThatIsInTheWayHasRunOut) {
  const Ticket a = Join("a");
  const Ticket b = Join("b");
  EXPECT_EQ(Try(a, {.holds = {{"r5", "x", {5}}, {"r9", "y", {9}}, {"r7", "z", {7}}}}),
            Next::kSleep);
  EXPECT_EQ(queue_.RestUntil(a), Timestamp{9});
  Gone("r5");
  EXPECT_EQ(woken_["a"], 0);
  Gone("r9");
  EXPECT_EQ(woken_["a"], 1) << "its alarm is too late now";
  EXPECT_EQ(queue_.RestUntil(a), Timestamp{7});

  EXPECT_EQ(Try(b, {.holds = {{"r7", "z", {7}}}, .waits = {{a, 0}}}), Next::kSleep);
  EXPECT_EQ(queue_.RestUntil(b), WaitQueue::kNever) << "a comes first";
  queue_.Leave(a, std::vector<Hold>{{"ra", "a", {20}}}, now_);
  EXPECT_EQ(woken_["b"], 1);
  EXPECT_EQ(queue_.RestUntil(b), Timestamp{20});
  queue_.LookAgainIn("p");
  EXPECT_EQ(queue_.RestUntil(b), std::nullopt) << "to be tried at once";
  queue_.BeginTry(b);
  EXPECT_EQ(EndTry(b, {.holds = {{"ra", "a", {20}}}}), Next::kSleep);
  EXPECT_EQ(queue_.RestUntil(b), Timestamp{20});
  Gone("ra");
  EXPECT_EQ(queue_.RestUntil(b), std::nullopt);
}

// What ran out while one rested is in nobody's way, unless it was renewed: only a look tells.
TEST_F(WaitQueueTest, WhatMayHaveRunOutMakesACircleOnlyWhenItWasLookedAtAgain) {
  const Ticket a = Join("a");
  const Ticket b = Join("b");
  EXPECT_EQ(Try(a, {.holds = {{"rb", "b", {5}}, {"rx", "x", {9}}}}), Next::kSleep);
  now_ = {6};
  EXPECT_EQ(Try(b, {.holds = {{"ra", "a", {9}}}}), Next::kSleep) << "rb has run out";
  EXPECT_EQ(woken_["a"], 1) << "or has it?";
  EXPECT_EQ(queue_.RestUntil(a), std::nullopt);
  EXPECT_EQ(Try(a, {.holds = {{"rb", "b", {12}}, {"rx", "x", {9}}}}), Next::kSleep);
  EXPECT_THAT(queue_.Deadlock(b), ElementsAre("b", "a")) << "it was renewed";
}

TEST_F(WaitQueueTest, WhatGoesToAnotherIsLookedAtAgain) {
  const Ticket a = Join("a");
  EXPECT_EQ(Try(a, {.holds = {{"r1", "x"}, {"r2", "y"}}}), Next::kSleep);
  queue_.Moved(std::vector<std::string>{"r1"});
  EXPECT_EQ(woken_["a"], 1);
  queue_.Moved(std::vector<std::string>{"r9"});
  EXPECT_EQ(woken_["a"], 1);
  queue_.LookAgain(std::vector<Ticket>{a, a + 1});
  EXPECT_EQ(woken_["a"], 2);
  queue_.BeginTry(a);
  queue_.Moved(std::vector<std::string>{"r1"});
  EXPECT_EQ(EndTry(a, {.holds = {{"r1", "x"}}}), Next::kTryAgain);
}

TEST_F(WaitQueueTest, ACircleLeadsThroughProjectsWhereTheAgentsAreKnownToBeTheSame) {
  using Circle = std::vector<std::string>;
  const struct {
    const char* a;
    const char* b;
    Reach reach_of_a, reach_of_b;
    bool circle;
  } kCases[] = {
      {"id-a", "id-b", Reach::kEverywhere, Reach::kEverywhere, true},
      {"id-a", "b", Reach::kEverywhere, Reach::kEverywhere, false},  // another b
      {"a", "id-b", Reach::kEverywhere, Reach::kEverywhere, false},
      {"id-a", "id-b", Reach::kProject, Reach::kEverywhere, false},  // it may lie about being a
      {"id-a", "id-b", Reach::kEverywhere, Reach::kProject, false},
  };
  for (const auto& one : kCases) {
    SCOPED_TRACE(std::string(one.a) + one.b);
    const Ticket a = Join(one.a, "p", one.reach_of_a);
    const Ticket b = Join(one.b, "q", one.reach_of_b);
    EXPECT_EQ(Try(a, {.holds = {{"rb", one.b}}}), Next::kSleep);
    EXPECT_EQ(Try(b, {.holds = {{"ra", one.a}}}), one.circle ? Next::kGiveUp : Next::kSleep);
    EXPECT_EQ(queue_.Deadlock(b), one.circle ? Circle({one.b, one.a}) : Circle());
    queue_.Leave(a);
    queue_.Leave(b);
  }
}

// c works in p with a key of p; a and b work in both projects.
TEST_F(WaitQueueTest, ACircleMayPassThroughWaitsOfOneProjectAndTellsThemNothingOfOthers) {
  const Ticket a = Join("id-a", "p", Reach::kEverywhere);
  const Ticket b = Join("id-b", "q", Reach::kEverywhere);
  const Ticket c = Join("c", "p");
  EXPECT_EQ(Try(c, {.holds = {{"rb", "id-b"}}}), Next::kSleep);
  EXPECT_EQ(Try(a, {.holds = {{"rc", "c"}}}), Next::kSleep);
  EXPECT_EQ(Try(b, {.holds = {{"ra", "id-a"}}}), Next::kSleep) << "c is younger";
  EXPECT_THAT(queue_.Deadlock(c), ElementsAre("c", "id-a"));
}

// Two agents of one name in two projects: what the one reaches is not reached by the other.
TEST_F(WaitQueueTest, AWaitOfTheSameNameElsewhereHidesNoCircle) {
  const Ticket other = Join("b", "q");
  const Ticket b = Join("b", "p");
  const Ticket a = Join("a", "p");
  EXPECT_EQ(Try(other, {.holds = {{"rx", "x"}}}), Next::kSleep);
  EXPECT_EQ(Try(b, {.holds = {{"ra", "a"}}}), Next::kSleep);
  EXPECT_EQ(Try(a, {.holds = {{"rb", "b"}}}), Next::kGiveUp);
}

TEST_F(WaitQueueTest, ACircleThatClosesAgainIsFoundAgain) {
  const Ticket a = Join("a");
  const Ticket b = Join("b");
  EXPECT_EQ(Try(a, {.holds = {{"rb", "b"}, {"rx", "x"}}}), Next::kSleep);
  Gone("rb");  // b let go, and waits for a
  EXPECT_EQ(Try(b, {.holds = {{"ra", "a"}}}), Next::kSleep);
  Gone("rx");
  EXPECT_EQ(Try(a, {.holds = {{"rb2", "b"}}}), Next::kSleep) << "b holds something again";
  EXPECT_THAT(queue_.Deadlock(b), ElementsAre("b", "a"));
}

// A wake-up that is lost here is a request that waits until its time is up.
TEST_F(WaitQueueTest, WhatChangesDuringATryIsNotMissed) {
  const Ticket a = Join("a");
  const Ticket b = Join("b");
  queue_.BeginTry(b);
  Gone("r1");
  EXPECT_EQ(EndTry(b, {.holds = {{"r1", "x"}}}), Next::kTryAgain);
  queue_.BeginTry(b);
  Gone("r1");
  EXPECT_EQ(EndTry(b, {.holds = {{"r1", "x"}, {"r2", "y"}}}), Next::kSleep);
  Gone("r2");
  EXPECT_EQ(woken_["b"], 1) << "r1 went during the try";
  queue_.BeginTry(b);
  queue_.Leave(a);
  EXPECT_EQ(EndTry(b, {.waits = {{a, 0}}}), Next::kTryAgain);
  queue_.BeginTry(b);
  Gone("r9");
  EXPECT_EQ(EndTry(b, {.holds = {{"r1", "x"}}}), Next::kSleep) << "another one's";
}

TEST_F(WaitQueueTest, OfACircleTheYoungestGivesUp) {
  const Ticket a = Join("a");
  const Ticket b = Join("b");
  const Ticket c = Join("c");
  EXPECT_EQ(Try(a, {.holds = {{"rb", "b"}}}), Next::kSleep);
  EXPECT_EQ(Try(b, {.holds = {{"rc", "c"}}}), Next::kSleep);
  EXPECT_EQ(Try(c, {.holds = {{"other", "d"}, {"ra", "a"}}}), Next::kGiveUp);
  EXPECT_THAT(queue_.Deadlock(c), ElementsAre("c", "a", "b"));
  EXPECT_THAT(queue_.Deadlock(a), IsEmpty());
}

TEST_F(WaitQueueTest, TheYoungestIsWokenWhenAnOlderOneClosesTheCircle) {
  const Ticket a = Join("a");
  const Ticket b = Join("b");
  EXPECT_EQ(Try(b, {.holds = {{"ra", "a"}}}), Next::kSleep);
  EXPECT_EQ(Try(a, {.holds = {{"rb", "b"}}}), Next::kSleep) << "it is the older one";
  EXPECT_EQ(woken_["b"], 1);
  EXPECT_THAT(queue_.Deadlock(b), ElementsAre("b", "a"));
}

TEST_F(WaitQueueTest, AChainIsNoCircleNorIsAHolderThatDoesNotWait) {
  const Ticket a = Join("a");
  const Ticket b = Join("b");
  EXPECT_EQ(Try(a, {.holds = {{"rx", "x"}}}), Next::kSleep);
  EXPECT_EQ(Try(b, {.holds = {{"ra", "a"}}, .waits = {{a, 0}}}), Next::kSleep);
  EXPECT_THAT(queue_.Deadlock(b), IsEmpty());
  Gone("rx");
  EXPECT_EQ(Try(a, {.holds = {{"rb", "b"}}}), Next::kSleep);
  EXPECT_THAT(queue_.Deadlock(b), ElementsAre("b", "a"));
}

TEST_F(WaitQueueTest, WhoWaitsBehindAWaitOfAnAgentDoesNotWaitForAllOfIt) {
  const Ticket a = Join("a");
  const Ticket b = Join("b");
  const Ticket other = Join("a");
  EXPECT_EQ(Try(a, {.holds = {{"rc", "c"}}}), Next::kSleep);
  EXPECT_EQ(Try(b, {.holds = {{"rc", "c"}}, .waits = {{a, 0}}}), Next::kSleep);
  EXPECT_EQ(Try(other, {.holds = {{"rb", "b"}}}), Next::kSleep) << "a holds nothing";
  queue_.Leave(a, std::vector<Hold>{{"ra", "a"}}, now_);  // now it does
  EXPECT_EQ(woken_["a"], 1);
  EXPECT_THAT(queue_.Deadlock(other), ElementsAre("a", "b"));
  EXPECT_EQ(queue_.RestUntil(other), std::nullopt) << "it gives up at once";
}

// a is granted what b and c wait for, and waits for both of them elsewhere.
TEST_F(WaitQueueTest, EveryCircleThatAGrantClosesIsBroken) {
  const Ticket granted = Join("a");
  const Ticket b = Join("b");
  const Ticket c = Join("c");
  const Ticket a = Join("a");
  EXPECT_EQ(Try(granted, {.holds = {{"rx", "x"}}}), Next::kSleep);
  EXPECT_EQ(Try(c, {.waits = {{granted, 0}}}), Next::kSleep);
  EXPECT_EQ(Try(a, {.holds = {{"rb", "b"}, {"rc", "c", {5}}}}), Next::kSleep);
  EXPECT_EQ(Try(b, {.waits = {{granted, 0}, {c, 0}}}), Next::kSleep);
  now_ = {6};
  queue_.Leave(granted, std::vector<Hold>{{"ra", "a", {20}}}, now_);
  EXPECT_THAT(queue_.Deadlock(a), ElementsAre("a", "b")) << "rc has run out";
  EXPECT_THAT(queue_.Deadlock(b), IsEmpty());
  EXPECT_THAT(queue_.Deadlock(c), IsEmpty());
}

TEST_F(WaitQueueTest, AGrantThatClosesNoCircleEndsNoWait) {
  const Ticket granted = Join("a");
  const Ticket b = Join("b");
  const Ticket elsewhere = Join("a", "q");
  EXPECT_EQ(Try(b, {.waits = {{granted, 0}}}), Next::kSleep);
  EXPECT_EQ(Try(elsewhere, {.holds = {{"rb", "b"}}}), Next::kSleep) << "another a and b";
  queue_.Leave(granted, std::vector<Hold>{{"ra", "a"}}, now_);
  EXPECT_THAT(queue_.Deadlock(b), IsEmpty());
  EXPECT_THAT(queue_.Deadlock(elsewhere), IsEmpty());
}

TEST_F(WaitQueueTest, EveryCircleThatOneClosesIsBroken) {
  const Ticket a = Join("a");
  const Ticket b = Join("b");
  const Ticket c = Join("c");
  EXPECT_EQ(Try(b, {.holds = {{"ra", "a"}}}), Next::kSleep);
  EXPECT_EQ(Try(c, {.holds = {{"ra", "a"}}}), Next::kSleep);
  EXPECT_EQ(Try(a, {.holds = {{"rb", "b"}, {"rc", "c"}}}), Next::kSleep);
  EXPECT_THAT(queue_.Deadlock(b), ElementsAre("b", "a"));
  EXPECT_THAT(queue_.Deadlock(c), ElementsAre("c", "a"));
}

TEST_F(WaitQueueTest, AFullQueueAndAStoppedOneLetNobodyIn) {
  for (const char* agent : {"a", "b", "c", "d"}) Join(agent);
  auto wanted = std::make_shared<WaitQueue::Wanted>();
  EXPECT_EQ(queue_.Join(wanted, [] {}).error().code(), Errc::kUnavailable);
  queue_.Leave(1);
  queue_.Stop();
  EXPECT_EQ(woken_["d"], 1);
  EXPECT_EQ(queue_.Join(wanted, [] {}).error().code(), Errc::kUnavailable);
  EXPECT_EQ(Try(2, {.holds = {{"r", "x"}}}), Next::kStopped);
}

}  // namespace
}  // namespace interlock::service
