#include "crash/ledger.h"

#include <gtest/gtest.h>

#include <string>

namespace interlock::crash {
namespace {

// A ledger in which a spec was made and changed once, and the snapshot that it expects.
Ledger Written() {
  Ledger ledger;
  ledger.Acknowledge("spec s", "version=1 title=a");
  ledger.Acknowledge("spec s", "version=2 title=b");
  return ledger;
}
Snapshot Expected() {
  Snapshot snapshot;
  snapshot.things["spec s"] = {"version=2 title=b", 2};
  snapshot.log = {{1, "spec.created", "s"}, {2, "spec.updated", "s"}};
  return snapshot;
}

TEST(LedgerTest, WhatWasAcknowledgedIsThereExactlyOnce) {
  EXPECT_TRUE(Written().Check(Expected()).lies.empty());
  Snapshot lost = Expected();
  lost.things.clear();
  EXPECT_EQ(Written().Check(lost).lies.size(), 1U);
  Snapshot old = Expected();
  old.things["spec s"] = {"version=1 title=a", 1};
  EXPECT_EQ(Written().Check(old).lies.size(), 1U);
  Snapshot doubled = Expected();
  doubled.things["spec s"].changes = 3;
  EXPECT_EQ(Written().Check(doubled).lies.size(), 1U);
}

TEST(LedgerTest, WhatWasNotHeardOfIsThereWholeOrNotAtAll) {
  const auto lies = [](const Thing& thing) {
    Ledger ledger = Written();
    ledger.LoseSight("spec s", "version=3 title=*");
    Snapshot snapshot = Expected();
    snapshot.things["spec s"] = thing;
    return ledger.Check(snapshot).lies.size();
  };
  EXPECT_EQ(lies({"version=2 title=b", 2}), 0U);
  EXPECT_EQ(lies({"version=3 title=c", 3}), 0U);
  EXPECT_EQ(lies({"version=3 title=c", 2}), 1U) << "it changed without an event";
  EXPECT_EQ(lies({"version=2 title=b", 3}), 1U) << "an event without the change";
  EXPECT_EQ(lies({"version=4 title=c", 3}), 1U);
}

TEST(LedgerTest, AWriteOfSeveralThingsIsThereWholeOrNotAtAll) {
  const auto lies = [](const Thing& a, const Thing& b) {
    Ledger ledger;
    ledger.Acknowledge("reservation a", "expires=1");
    ledger.Acknowledge("reservation b", "expires=1");
    ledger.LoseSight("reservation a", "expires>=9");
    ledger.LoseSight("reservation b", "expires>=9");
    Snapshot snapshot;
    snapshot.things = {{"reservation a", a}, {"reservation b", b}};
    return ledger.Check(snapshot).lies.size();
  };
  const Thing before = {"expires=1", 1};
  const Thing after = {"expires=9", 2};
  EXPECT_EQ(lies(before, before), 0U);
  EXPECT_EQ(lies(after, after), 0U);
  EXPECT_EQ(lies(before, after), 1U);
  EXPECT_EQ(lies(after, before), 1U);
}

TEST(LedgerTest, WhatWasPromisedAtLeastIsReached) {
  const auto lies = [](const std::string& text) {
    Ledger ledger;
    ledger.Acknowledge("reservation a", "fence=1 expires=1 held");
    ledger.Acknowledge("reservation a", "fence=1 expires>=100 held");
    Snapshot snapshot;
    snapshot.things["reservation a"] = {text, 2};
    return ledger.Check(snapshot).lies.size();
  };
  EXPECT_EQ(lies("fence=1 expires=100 held"), 0U);
  EXPECT_EQ(lies("fence=1 expires=101 held"), 0U);
  EXPECT_EQ(lies("fence=1 expires=99 held"), 1U);
  EXPECT_EQ(lies("fence=1 expires=1 held"), 1U);
  EXPECT_EQ(lies("fence=1 expires=101 released"), 1U);
  EXPECT_EQ(lies("fence=2 expires=101 held"), 1U);
  EXPECT_EQ(lies("fence=1 held"), 1U);
}

TEST(LedgerTest, WhatWasDeletedStaysAway) {
  const auto lies = [](const Snapshot& snapshot) {
    Ledger ledger = Written();
    ledger.Acknowledge("spec s", "");
    std::size_t found = ledger.Check(snapshot).lies.size();
    return found + Strangers(snapshot, {&ledger}).size();
  };
  Snapshot deleted = Expected();
  deleted.things["spec s"] = {"", 3};
  deleted.log.push_back({3, "spec.archived", "s"});
  EXPECT_EQ(lies(deleted), 0U);
  Snapshot back = deleted;
  back.things["spec s"].text = "version=2 title=b";
  EXPECT_EQ(lies(back), 1U);
  EXPECT_EQ(lies(Expected()), 1U) << "and without the event";
}

TEST(LedgerTest, AfterACheckEverythingIsCertain) {
  Ledger ledger = Written();
  ledger.LoseSight("spec s", "version=3 title=*");
  EXPECT_FALSE(ledger.IsCertain("spec s"));
  Snapshot snapshot = Expected();
  snapshot.things["spec s"] = {"version=3 title=c", 3};
  EXPECT_EQ(ledger.Check(snapshot).happened, 1);
  EXPECT_TRUE(ledger.IsCertain("spec s"));
  EXPECT_EQ(ledger.Text("spec s"), "version=3 title=c");
  EXPECT_EQ(ledger.Check(Expected()).lies.size(), 1U) << "it went away again";
}

TEST(LedgerTest, WhatNobodyWasGrantedIsFound) {
  const Ledger ledger = Written();
  EXPECT_TRUE(Strangers(Expected(), {&ledger}).empty());
  Snapshot more = Expected();
  more.things["spec refused"] = {"version=1 title=x", 0};
  EXPECT_EQ(Strangers(more, {&ledger}).size(), 1U);
  Snapshot told = Expected();
  told.log.push_back({3, "spec.created", "refused"});
  EXPECT_EQ(Strangers(told, {&ledger}).size(), 1U);
  Ledger asked;
  asked.LoseSight("spec refused", "version=1 title=x");
  EXPECT_EQ(Strangers(more, {&ledger, &asked}).size(), 1U) << "Check() has not found it";
}

TEST(LedgerTest, ALogOrAFenceThatGoesBackIsFound) {
  Snapshot before = Expected();
  before.fences = {{1, "a"}, {4, "b"}};
  EXPECT_TRUE(Contradictions(before, before).empty());
  Snapshot more = before;
  more.log.push_back({5, "spec.updated", "s"});
  more.fences[5] = "c";
  EXPECT_TRUE(Contradictions(before, more).empty());
  EXPECT_EQ(Contradictions(more, before).size(), 2U);
  Snapshot reused = before;
  reused.log[1].entity = "t";
  EXPECT_EQ(Contradictions(before, reused).size(), 1U);
  Snapshot below = before;
  below.fences[3] = "c";
  EXPECT_EQ(Contradictions(before, below).size(), 1U);
}

TEST(LedgerTest, FieldsAreFoundByTheirWholeName) {
  EXPECT_EQ(FieldOf("id=1 agent_id=2 fence=3", "fence"), "3");
  EXPECT_EQ(FieldOf("agent_id=2 id=1", "id"), "1");
  EXPECT_EQ(FieldOf("id=1", "fence"), "");
}

}  // namespace
}  // namespace interlock::crash
