#include "kernel/run_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/run_agents.h"
#include "kernel/run_artifacts.h"
#include "kernel/run_fixture.h"

namespace interlock::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RunProgressTest : public RunsTest {
 protected:
  RunProgressTest() { EXPECT_TRUE(Create({.run = Abcd()}).ok()); }
};

TEST_F(RunProgressTest, ARunGoesThroughItsPhasesAndIsCompletedInTheLast) {
  now_ = 1001;
  const auto first = Advance();
  ASSERT_TRUE(first.ok()) << first.error();
  EXPECT_TRUE(first->advanced());
  EXPECT_EQ(first->event.gate_result, "none");
  EXPECT_EQ(first->event.gate_tier, "none");
  EXPECT_EQ(first->event.reason, std::nullopt);
  EXPECT_EQ(Find().updated_at, 1001);
  ASSERT_TRUE(Advance("hurry").ok());
  EXPECT_EQ(Find().status, "active");
  now_ = 1003;
  ASSERT_TRUE(Advance().ok());
  EXPECT_EQ(Find().phase, "d");
  EXPECT_EQ(Find().status, "completed");
  EXPECT_EQ(Find().completed_at, 1003);
  EXPECT_THAT(Events(), ElementsAre("advance a-b", "advance b-c", "advance c-d"));
  const auto after = Advance();
  ASSERT_FALSE(after.ok());
  EXPECT_EQ(after.error().exit_code(), 1);
  EXPECT_EQ(Events().size(), 3U);
}

TEST_F(RunProgressTest, EveryEventSaysWhoseItIs) {
  const Origin traced{.now = 1, .trace_id = "t", .span_id = "s", .parent_span_id = "ps"};
  ASSERT_TRUE(
      Write([&](Transaction& tx) { return AdvanceRun(tx, "r", std::nullopt, traced); }).ok());
  ASSERT_TRUE(Advance().ok());
  const auto events = PhaseEventsOf(connection(), "r").value();
  EXPECT_EQ(events.at(0).envelope,
            R"({"policy_version":"phase-machine/v1","caller_identity":"phase.store",)"
            R"("capability_scope":"run:r","trace_id":"t","span_id":"s","parent_span_id":"ps",)"
            R"("input_artifact_refs":["phase:a"],"output_artifact_refs":["phase:b"]})");
  EXPECT_THAT(*events.at(1).envelope, HasSubstr(R"("trace_id":"r",)"));
}

TEST_F(RunProgressTest, ARunThatDoesNotAdvanceByItselfNeedsAReason) {
  ASSERT_TRUE(Set({.auto_advance = false}).ok());
  const auto paused = Advance();
  ASSERT_TRUE(paused.ok());
  EXPECT_FALSE(paused->advanced());
  EXPECT_EQ(paused->event.type, "pause");
  EXPECT_EQ(paused->event.reason, "auto_advance disabled");
  EXPECT_EQ(Find().phase, "a");
  const auto pushed = Advance("I looked at it");
  ASSERT_TRUE(pushed.ok());
  EXPECT_TRUE(pushed->advanced());
  EXPECT_EQ(pushed->event.reason, "I looked at it");
  EXPECT_THAT(Events(), ElementsAre("set a-a", "pause a-b", "advance a-b"));
}

TEST_F(RunProgressTest, SkippedPhasesArePassedOver) {
  ASSERT_TRUE(Skip("b").ok());
  ASSERT_TRUE(Skip("c").ok());
  ASSERT_TRUE(Skip("c").ok()) << "it is skipped already, so nothing happens";
  EXPECT_THAT(Events(), ElementsAre("skip a-b", "skip a-c"));
  ASSERT_TRUE(Advance().ok());
  EXPECT_EQ(Find().phase, "d");
  EXPECT_EQ(Find().status, "completed");
}

TEST_F(RunProgressTest, OnlyAPhaseAheadCanBeSkippedAndNotTheLast) {
  ASSERT_TRUE(Advance().ok());
  for (const char* phase : {"a", "b", "d", "x", ""}) {
    const auto skipped = Skip(phase);
    ASSERT_FALSE(skipped.ok()) << phase;
    EXPECT_EQ(skipped.error().exit_code(), 1) << phase;
  }
  EXPECT_EQ(Events().size(), 1U);
  ASSERT_TRUE(End("r", kRunCancelled).ok());
  EXPECT_EQ(Skip("c").error().exit_code(), 1);
}

TEST_F(RunProgressTest, AnAdvanceTellsWhatIsDueInTheNewPhase) {
  NewRun wanted{.run = {.id = "s", .project_dir = "/a \"b\"", .goal = "g"}};
  wanted.actions = {
      {.phase = "brainstorm-reviewed",
       .command = "/second",
       .args = R"(["${artifact:plan}","${artifact:none}","${run_id}:${project_dir}","${x"])",
       .priority = 2},
      {.phase = "brainstorm-reviewed", .command = "/first", .priority = -1},
      {.phase = "strategized", .command = "/later"}};
  ASSERT_TRUE(Create(wanted).ok());
  ASSERT_TRUE(Write([&](Transaction& tx) -> Result<void> {
                for (const char* path : {"old", "n\\ew\n"}) {
                  IL_TRY_VOID(AddArtifact(
                      tx, {.id = path, .run_id = "s", .phase = "p", .path = path, .type = "plan"}));
                }
                return AddAgent(tx, {.id = "ag", .run_id = "s"});
              }).ok());
  const auto step =
      Write([&](Transaction& tx) { return AdvanceRun(tx, "s", std::nullopt, origin()); });
  ASSERT_TRUE(step.ok()) << step.error();
  EXPECT_EQ(step->active_agents, 1);
  EXPECT_THAT(step->next_checks, ElementsAre("artifact_exists"));
  ASSERT_EQ(step->actions.size(), 2U);
  EXPECT_EQ(step->actions[0].command, "/first");
  EXPECT_EQ(step->actions[1].args, R"(["n\\ew\n","${artifact:none}","s:/a \"b\"","${x"])");
}

TEST_F(RunProgressTest, ARollbackUndoesThePhasesBehindTheOneItGoesTo) {
  ASSERT_TRUE(Skip("b").ok());
  ASSERT_TRUE(Advance().ok());
  ASSERT_TRUE(Write([&](Transaction& tx) -> Result<void> {
                for (const char* phase : {"a", "b", "c", "d"}) {
                  IL_TRY_VOID(
                      AddArtifact(tx, {.id = phase, .run_id = "r", .phase = phase, .path = "f"}));
                }
                IL_TRY_VOID(AddAgent(tx, {.id = "g1", .run_id = "r"}));
                return AddAgent(tx, {.id = "g2", .run_id = "r", .status = "completed"});
              }).ok());
  Sql("INSERT INTO dispatches (id, status, project_dir, scope_id, created_at) VALUES "
      "('d1', 'running', '/p', 'r', 1), ('d2', 'completed', '/p', 'r', 1), "
      "('d3', 'spawned', '/p', 'other', 1)");
  const RollbackPlan plan = PlanRunRollback(connection(), "r", "a").value();
  EXPECT_THAT(plan.phases, ElementsAre("b", "c"));
  EXPECT_EQ(Events().size(), 2U) << "a plan changes nothing";
  now_ = 5000;
  const auto back = GoBack("a");
  ASSERT_TRUE(back.ok()) << back.error();
  EXPECT_EQ(back->marked_artifacts, 2);
  EXPECT_EQ(back->failed_agents, 1);
  EXPECT_EQ(back->cancelled_dispatches, 1);
  EXPECT_EQ(Find().phase, "a");
  EXPECT_EQ(Find().updated_at, 5000);
  std::vector<std::string> statuses;
  const std::vector<Artifact> artifacts = ListArtifacts(connection(), "r", std::nullopt).value();
  statuses.reserve(artifacts.size());
  for (const Artifact& artifact : artifacts) {
    statuses.push_back(artifact.status);
  }
  EXPECT_THAT(statuses, ElementsAre("active", "rolled_back", "rolled_back", "active"));
  ASSERT_TRUE(Advance().ok());
  EXPECT_EQ(Find().phase, "b") << "the mark to skip it is gone";
  EXPECT_THAT(Events(), ElementsAre("skip a-b", "advance a-c", "rollback c-a", "advance a-b"));
}

TEST_F(RunProgressTest, ARollbackKeepsTheMarksOfPhasesThatItDoesNotUndo) {
  ASSERT_TRUE(Advance().ok());
  ASSERT_TRUE(Skip("c").ok());
  ASSERT_TRUE(GoBack("a").ok());
  ASSERT_TRUE(Advance().ok());
  ASSERT_TRUE(Advance().ok());
  EXPECT_EQ(Find().phase, "d");
}

TEST_F(RunProgressTest, OnlyAPhaseBehindCanBeGoneBackTo) {
  ASSERT_TRUE(Advance().ok());
  for (const char* phase : {"b", "c", "d", "x", ""}) {
    EXPECT_EQ(GoBack(phase).error().exit_code(), 1) << phase;
  }
  EXPECT_EQ(GoBack("a", "none").error().code(), Errc::kNotFound);
  for (const std::string_view status : {kRunCancelled, kRunFailed, kRunAbandoned}) {
    Sql("UPDATE runs SET status = '" + std::string(status) + "'");
    EXPECT_EQ(GoBack("a").error().exit_code(), 1) << status;
  }
  EXPECT_EQ(Events().size(), 1U);
}

TEST_F(RunProgressTest, ACompletedRunComesBackUnlessItsBeadIsTaken) {
  NewRun wanted{.run = Abcd("s1")};
  wanted.run.bead_id = "b";
  ASSERT_TRUE(Create(wanted).ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        Write([&](Transaction& tx) { return AdvanceRun(tx, "s1", std::nullopt, origin()); }).ok());
  }
  wanted.run.id = "s2";
  ASSERT_TRUE(Create(wanted).ok()) << "a completed run does not block";
  const auto taken = GoBack("a", "s1");
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().exit_code(), 1);
  EXPECT_THAT(taken.error().message(), HasSubstr("UNIQUE"));
  EXPECT_THAT(taken.error().message(), HasSubstr("s2"));
  EXPECT_EQ(Find("s1").status, "completed");
  EXPECT_EQ(Events("s1").size(), 3U);
  ASSERT_TRUE(End("s2", kRunCancelled).ok());
  ASSERT_TRUE(GoBack("a", "s1").ok());
  EXPECT_EQ(Find("s1").status, "active");
  EXPECT_EQ(Find("s1").completed_at, std::nullopt);
}

TEST_F(RunProgressTest, AFileThatAnotherProgramBrokeIsAnErrorAndNotAnAnswer) {
  Sql("UPDATE runs SET phase = 'nowhere'");
  EXPECT_EQ(Advance().error().exit_code(), 2);
  Sql("UPDATE runs SET phases = 'nonsense'");
  EXPECT_EQ(Advance().error().exit_code(), 2);
  EXPECT_THAT(Events(), IsEmpty());
}

}  // namespace
}  // namespace interlock::kernel
