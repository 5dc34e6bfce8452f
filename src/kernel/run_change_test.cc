#include "kernel/run_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/run_fixture.h"

namespace interlock::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Remedy(const Error& error) {
  for (const auto& [key, value] : error.details()) {
    if (key == "do") return std::get<std::string>(value);
  }
  return {};
}

std::vector<std::string> Ids(const std::vector<Run>& runs) {
  std::vector<std::string> ids;
  ids.reserve(runs.size());
  for (const kernel::Run& run : runs) ids.push_back(run.id);
  return ids;
}

class RunChangeTest : public RunsTest {
 protected:
  NewRun OfBead(std::string id, std::string bead, std::string project = "/p") {
    NewRun wanted{.run = Abcd(std::move(id))};
    wanted.run.bead_id = std::move(bead);
    wanted.run.project_dir = std::move(project);
    return wanted;
  }
  std::vector<std::string> List(const RunFilter& filter) {
    return Ids(ListRuns(connection(), filter).value());
  }
  std::optional<std::string> Current(const std::optional<std::string>& project,
                                     const std::optional<std::string>& session = std::nullopt) {
    const auto run = CurrentRun(connection(), project, session).value();
    return run ? std::optional(run->id) : std::nullopt;
  }
};

TEST_F(RunChangeTest, ANewRunKeepsEverythingItWasMadeWith) {
  NewRun wanted{.run = Abcd()};
  kernel::Run& run = wanted.run;
  run.complexity = 5;
  run.scope_id = "s";
  run.metadata = "{}";
  run.token_budget = 7;
  run.budget_warn_pct = 9;
  run.goal_id = "gid";
  run.max_dispatches = 3;
  run.budget_enforce = true;
  run.max_agents = 4;
  run.gate_rules = "{\"x\":1}";
  run.bead_id = "b";
  run.session_id = "sid";
  wanted.actions = {{.phase = "b", .command = "/work"}};
  ASSERT_TRUE(Create(wanted).ok());
  const kernel::Run found = Find();
  EXPECT_EQ(found.status, "active");
  EXPECT_EQ(found.phase, "a");
  EXPECT_EQ(found.created_at, 1000);
  EXPECT_EQ(found.updated_at, 1000);
  EXPECT_EQ(found.completed_at, std::nullopt);
  EXPECT_EQ(found.complexity, 5);
  EXPECT_EQ(found.scope_id, "s");
  EXPECT_EQ(found.metadata, "{}");
  EXPECT_EQ(found.token_budget, 7);
  EXPECT_EQ(found.budget_warn_pct, 9);
  EXPECT_EQ(found.goal_id, "gid");
  EXPECT_EQ(found.max_dispatches, 3);
  EXPECT_TRUE(found.budget_enforce);
  EXPECT_EQ(found.max_agents, 4);
  EXPECT_EQ(found.gate_rules, "{\"x\":1}");
  EXPECT_EQ(found.bead_id, "b");
  EXPECT_EQ(found.session_id, "sid");
  EXPECT_TRUE(found.auto_advance);
  EXPECT_EQ(ListActions(connection(), "r", "b").value().size(), 1U);
}

TEST_F(RunChangeTest, ARunWhoseActionsCannotBeAddedIsNotMadeEither) {
  NewRun wanted{.run = Abcd()};
  wanted.actions = {{.phase = "b", .command = "/work"}, {.phase = "b", .command = "/work"}};
  EXPECT_FALSE(Create(wanted).ok());
  EXPECT_FALSE(FindRun(connection(), "r").ok());
}

TEST_F(RunChangeTest, ALowLevelOfDelegationLetsAPersonAdvance) {
  for (const auto& [payload, expected] :
       std::vector<std::pair<std::string, bool>>{{"0", false},
                                                 {"\"1\"", false},
                                                 {"\"L1\"", false},
                                                 {"2", true},
                                                 {"\"L10\"", true},
                                                 {"\"\"", true}}) {
    Sql("DELETE FROM runs; DELETE FROM state; INSERT INTO state (key, scope_id, payload, "
        "updated_at) VALUES ('kernel.autonomy.delegation_level', 'global', '" +
        payload + "', 1)");
    ASSERT_TRUE(Create({.run = Abcd()}).ok());
    EXPECT_EQ(Find().auto_advance, expected) << payload;
  }
}

TEST_F(RunChangeTest, ABeadHasOneActiveRunPerProject) {
  ASSERT_TRUE(Create(OfBead("r1", "b")).ok());
  const auto second = Create(OfBead("r2", "b"));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().exit_code(), 1);
  EXPECT_THAT(second.error().message(), HasSubstr("UNIQUE"));
  EXPECT_THAT(second.error().message(), HasSubstr("r1"));
  EXPECT_THAT(Remedy(second.error()), HasSubstr("ic run abandon r1"));
  EXPECT_THAT(Remedy(second.error()), HasSubstr("--takeover-after"));
  EXPECT_TRUE(Create(OfBead("r3", "b", "/q")).ok()) << "another project";
  EXPECT_TRUE(Create(OfBead("r4", "c")).ok()) << "another bead";
  EXPECT_TRUE(Create({.run = Abcd("r5")}).ok()) << "no bead never blocks";
  EXPECT_TRUE(Create({.run = Abcd("r6")}).ok());
  ASSERT_TRUE(End("r1", kRunAbandoned).ok());
  EXPECT_TRUE(Create(OfBead("r7", "b")).ok()) << "the bead is free again";
}

TEST_F(RunChangeTest, TheTableItselfRefusesASecondActiveRun) {
  ASSERT_TRUE(Create(OfBead("r1", "b")).ok());
  ASSERT_TRUE(Create(OfBead("r2", "c")).ok());
  constexpr db::Sql kForce = "UPDATE runs SET bead_id = 'b' WHERE id = 'r2'";
  const auto forced = connection().Run(kForce);
  ASSERT_FALSE(forced.ok());
  EXPECT_EQ(forced.error().code(), Errc::kConstraint);
}

TEST_F(RunChangeTest, TakeoverAbandonsARunThatNobodyTouched) {
  ASSERT_TRUE(Create(OfBead("r1", "b")).ok());
  NewRun wanted = OfBead("r2", "b");
  wanted.takeover_after_s = 60;
  now_ = 1059;
  EXPECT_FALSE(Create(wanted).ok()) << "touched 59 s ago";
  EXPECT_THAT(Events("r1"), IsEmpty()) << "a refusal leaves nothing behind";
  now_ = 1060;
  const auto taken = Create(wanted);
  ASSERT_TRUE(taken.ok()) << taken.error();
  EXPECT_EQ(taken->abandoned, "r1");
  EXPECT_EQ(Find("r1").status, "abandoned");
  EXPECT_EQ(Find("r1").completed_at, 1060);
  EXPECT_THAT(Events("r1"), ElementsAre("abandon a-a"));
  EXPECT_THAT(*PhaseEventsOf(connection(), "r1").value().at(0).reason, HasSubstr("r2"));
}

TEST_F(RunChangeTest, TakeoverDoesNotMindAClockThatWasSetBack) {
  ASSERT_TRUE(Create(OfBead("r1", "b")).ok());
  NewRun wanted = OfBead("r2", "b");
  wanted.takeover_after_s = 0;
  now_ = 999;
  EXPECT_TRUE(Create(wanted).ok());
}

TEST_F(RunChangeTest, TakeoverOfAPortfolioAbandonsItsChildren) {
  NewRun parent = OfBead("p1", "b", "");
  const std::vector<ChildRun> children = {{"c1", "/x"}, {"c2", "/y"}};
  ASSERT_TRUE(
      Write([&](Transaction& tx) { return CreatePortfolio(tx, parent, children, origin()); }).ok());
  parent.run.id = "p2";
  parent.takeover_after_s = 0;
  ASSERT_TRUE(Create(parent).ok());
  EXPECT_THAT(List({.status = "active"}), ElementsAre("p2"));
  EXPECT_THAT(Events("c1"), ElementsAre("abandon a-a"));
}

TEST_F(RunChangeTest, WorkOnARunKeepsItFromBeingTakenOver) {
  ASSERT_TRUE(Create(OfBead("r1", "b")).ok());
  now_ = 1050;
  ASSERT_TRUE(Write([&](Transaction& tx) { return TouchRun(tx, "r1", now_); }).ok());
  NewRun wanted = OfBead("r2", "b");
  wanted.takeover_after_s = 60;
  now_ = 1060;
  EXPECT_FALSE(Create(wanted).ok());
}

TEST_F(RunChangeTest, APortfolioHasOneChildPerProject) {
  NewRun parent{.run = Abcd("p")};
  parent.run.project_dir = "";
  parent.run.complexity = 4;
  parent.run.metadata = "{\"m\":1}";
  parent.run.token_budget = 5;
  parent.run.scope_id = "s";
  parent.run.gate_rules = "{}";
  const std::vector<ChildRun> children = {{"c1", "/x"}, {"c2", "/y"}};
  ASSERT_TRUE(
      Write([&](Transaction& tx) { return CreatePortfolio(tx, parent, children, origin()); }).ok());
  EXPECT_THAT(List({.parent = "p"}), ElementsAre("c2", "c1"));
  EXPECT_THAT(List({.portfolios_only = true}), ElementsAre("p"));
  const kernel::Run child = Find("c1");
  EXPECT_EQ(child.goal, "g");
  EXPECT_EQ(child.phase, "a");
  EXPECT_EQ(child.complexity, 4);
  EXPECT_EQ(child.metadata, "{\"m\":1}");
  EXPECT_EQ(child.token_budget, std::nullopt);
  EXPECT_EQ(child.scope_id, std::nullopt);
  EXPECT_EQ(child.gate_rules, std::nullopt);
  ASSERT_TRUE(End("c2", kRunCancelled).ok());
  EXPECT_EQ(End("p", kRunCancelled).value(), 1) << "only the child that was active";
  EXPECT_THAT(Events("c1"), ElementsAre("cancel a-a"));
  EXPECT_THAT(Events("c2"), ElementsAre("cancel a-a"));
}

TEST_F(RunChangeTest, ARunEndsOnce) {
  ASSERT_TRUE(Create({.run = Abcd()}).ok());
  ASSERT_TRUE(End("r", kRunCancelled).ok());
  for (const std::string_view status : {kRunCancelled, kRunAbandoned}) {
    const auto again = End("r", status);
    ASSERT_FALSE(again.ok());
    EXPECT_EQ(again.error().exit_code(), 1);
  }
  EXPECT_EQ(Find().status, "cancelled");
  EXPECT_THAT(Events(), ElementsAre("cancel a-a"));
  EXPECT_EQ(End("x", kRunCancelled).error().code(), Errc::kNotFound);
}

TEST_F(RunChangeTest, ListsCombineAllTheirConditions) {
  now_ = 1;
  ASSERT_TRUE(Create(OfBead("r1", "b")).ok());
  ASSERT_TRUE(End("r1", kRunCancelled).ok());
  ASSERT_TRUE(Create(OfBead("r2", "b")).ok());
  now_ = 2;
  NewRun other = OfBead("r3", "b", "/q");
  other.run.session_id = "s";
  other.run.scope_id = "sc";
  ASSERT_TRUE(Create(other).ok());
  EXPECT_THAT(List({}), ElementsAre("r3", "r2", "r1")) << "newest first, also within a second";
  EXPECT_THAT(List({.project = "/p"}), ElementsAre("r2", "r1"));
  EXPECT_THAT(List({.project = "/p", .bead = "b", .status = "active"}), ElementsAre("r2"));
  EXPECT_THAT(List({.status = "active"}), ElementsAre("r3", "r2"));
  EXPECT_THAT(List({.bead = "b", .session = "s"}), ElementsAre("r3"));
  EXPECT_THAT(List({.status = "active", .scope = "sc"}), ElementsAre("r3"));
  EXPECT_THAT(List({.status = "cancelled", .scope = "sc"}), IsEmpty());
  EXPECT_THAT(List({.portfolios_only = true}), IsEmpty());
}

TEST_F(RunChangeTest, TheCurrentRunIsTheNewestActiveOneOfTheProject) {
  NewRun first = OfBead("r1", "b1");
  first.run.session_id = "s1";
  ASSERT_TRUE(Create(first).ok());
  ASSERT_TRUE(Create(OfBead("r0", "b2")).ok());
  now_ = 999;  // the clock went back: created_at decides, then the order of making
  ASSERT_TRUE(Create(OfBead("r2", "b3")).ok());
  now_ = 2000;
  ASSERT_TRUE(Create(OfBead("r3", "b4", "/q")).ok());
  EXPECT_EQ(Current("/p"), "r0");
  EXPECT_EQ(Current("/p", "s1"), "r1");
  EXPECT_EQ(Current("/p", "s2"), std::nullopt);
  EXPECT_EQ(Current("/q"), "r3");
  EXPECT_EQ(Current("/none"), std::nullopt);
  EXPECT_EQ(Current(std::nullopt), "r3");
  EXPECT_EQ(Current(std::nullopt, "s1"), "r1");
  ASSERT_TRUE(End("r0", kRunAbandoned).ok());
  EXPECT_EQ(Current("/p"), "r1");
}

TEST_F(RunChangeTest, SettingsChangeAloneAndLeaveAnEvent) {
  ASSERT_TRUE(Create({.run = Abcd()}).ok());
  now_ = 2000;
  ASSERT_TRUE(Set({.complexity = 1, .auto_advance = false}).ok());
  EXPECT_EQ(Find().complexity, 1);
  EXPECT_FALSE(Find().auto_advance);
  EXPECT_FALSE(Find().force_full);
  EXPECT_EQ(Find().updated_at, 2000);
  EXPECT_THAT(Events(), ElementsAre("set a-a"));
  EXPECT_EQ(PhaseEventsOf(connection(), "r").value().at(0).reason,
            R"({"auto_advance":false,"complexity":1})");
  EXPECT_EQ(Set({.max_dispatches = 3}).error().exit_code(), 1) << "no portfolio";
  EXPECT_EQ(Events().size(), 1U);
}

TEST_F(RunChangeTest, MetadataIsMergedAtEveryDepth) {
  ASSERT_TRUE(Create({.run = Abcd()}).ok());
  ASSERT_TRUE(Set({.metadata_to_merge = R"({"a":{"x":1,"l":[1,2]},"b":1})"}).ok());
  ASSERT_TRUE(Set({.metadata_to_merge = R"({"a":{"y":{"z":2},"l":[3]},"b":null})"}).ok());
  EXPECT_EQ(Find().metadata, R"({"a":{"x":1,"l":[3],"y":{"z":2}},"b":null})");
  Sql("UPDATE runs SET metadata = '[1]'");
  const auto merged = Set({.metadata_to_merge = "{}"});
  ASSERT_FALSE(merged.ok());
  EXPECT_EQ(merged.error().exit_code(), 2) << "what is there is not ours to throw away";
}

TEST_F(RunChangeTest, MetadataDoesNotGrowBeyondWhatStateMayHold) {
  ASSERT_TRUE(Create({.run = Abcd()}).ok());
  const std::string part(100'000, 'x');
  const auto merge = [&](int i) {
    return Set({.metadata_to_merge = "{\"k" + std::to_string(i) + "\":\"" + part + "\"}"});
  };
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(merge(i).ok()) << i;
  const std::optional<std::string> before = Find().metadata;
  const auto merged = merge(10);
  ASSERT_FALSE(merged.ok());
  EXPECT_EQ(merged.error().exit_code(), 2);
  EXPECT_EQ(Find().metadata, before);
}

}  // namespace
}  // namespace interlock::kernel
