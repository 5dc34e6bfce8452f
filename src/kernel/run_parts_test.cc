#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <limits>

#include "kernel/run_agents.h"
#include "kernel/run_artifacts.h"
#include "kernel/run_budget.h"
#include "kernel/run_fixture.h"

namespace interlock::kernel {
namespace {

using ::testing::ElementsAre;

class RunPartsTest : public RunsTest {
 protected:
  RunPartsTest() { EXPECT_TRUE(Create({.run = Abcd()}).ok()); }

  Result<std::int64_t> Add(const PhaseAction& action) {
    return Write([&](Transaction& tx) { return AddAction(tx, action, now_); });
  }
  std::vector<std::string> Commands(const std::optional<std::string>& phase = std::nullopt) {
    std::vector<std::string> commands;
    const std::vector<PhaseAction> actions = ListActions(connection(), "r", phase).value();
    commands.reserve(actions.size());
    for (const PhaseAction& action : actions) {
      commands.push_back(action.command);
    }
    return commands;
  }
  BudgetState Tell() {
    return Write([&](Transaction& tx) { return RecordBudgetEvents(tx, "r", origin()); }).value();
  }
  std::filesystem::path File(const std::string& content) {
    const auto path = temp_.directory() / "file";
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
};

TEST_F(RunPartsTest, AgentsBelongToARunThatExists) {
  const auto orphan =
      Write([&](Transaction& tx) { return AddAgent(tx, {.id = "x", .run_id = "none"}); });
  ASSERT_FALSE(orphan.ok());
  EXPECT_EQ(orphan.error().code(), Errc::kNotFound) << "the foreign key is in force";
  now_ = 2000;
  ASSERT_TRUE(Write([&](Transaction& tx) {
                return AddAgent(tx, {.id = "x", .run_id = "r", .created_at = now_});
              }).ok());
  EXPECT_EQ(Find().updated_at, 2000) << "somebody works on it";
  now_ = 3000;
  const auto set = [&](std::string_view id) {
    return Write([&](Transaction& tx) { return SetAgentStatus(tx, id, "failed", now_); });
  };
  ASSERT_TRUE(set("x").ok());
  EXPECT_EQ(set("y").error().code(), Errc::kNotFound);
  EXPECT_EQ(ListAgents(connection(), "r").value().at(0).status, "failed");
  EXPECT_EQ(ListAgents(connection(), "r").value().at(0).updated_at, 3000);
  EXPECT_EQ(CountActiveAgents(connection(), "r").value(), 0);
  EXPECT_EQ(Find().updated_at, 3000);
}

TEST_F(RunPartsTest, ArtifactsBelongToARunThatExists) {
  const auto orphan = Write([&](Transaction& tx) {
    return AddArtifact(tx, {.id = "x", .run_id = "none", .phase = "a", .path = "f"});
  });
  ASSERT_FALSE(orphan.ok());
  EXPECT_EQ(orphan.error().code(), Errc::kNotFound);
}

TEST_F(RunPartsTest, TheContentHashIsThatOfTheFile) {
  EXPECT_EQ(ContentHash(File("")),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(ContentHash(File("abc")),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ContentHash(File(std::string(1'000'000, 'a'))),
            "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_F(RunPartsTest, WhatIsNoRegularFileHasNoHashAndMakesNobodyWait) {
  EXPECT_EQ(ContentHash(temp_.directory()), std::nullopt);
  EXPECT_EQ(ContentHash(temp_.directory() / "none"), std::nullopt);
  EXPECT_EQ(ContentHash(""), std::nullopt);
  const auto pipe = temp_.directory() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ContentHash(pipe), std::nullopt);
  EXPECT_EQ(ContentHash("/dev/zero"), std::nullopt);
}

TEST_F(RunPartsTest, ActionsComeByPriorityAndThenInTheOrderOfAdding) {
  ASSERT_TRUE(Add({.run_id = "r", .phase = "a", .command = "1", .priority = 5}).ok());
  ASSERT_TRUE(Add({.run_id = "r", .phase = "b", .command = "2"}).ok());
  ASSERT_TRUE(Add({.run_id = "r", .phase = "a", .command = "3"}).ok());
  EXPECT_THAT(Commands(), ElementsAre("2", "3", "1"));
  EXPECT_THAT(Commands("a"), ElementsAre("3", "1"));
  const auto twice = Add({.run_id = "r", .phase = "a", .command = "1"});
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().exit_code(), 1);
  EXPECT_EQ(Add({.run_id = "none", .phase = "a", .command = "1"}).error().exit_code(), 2);
}

TEST_F(RunPartsTest, AnUpdateOfAnActionChangesWhatItNames) {
  ASSERT_TRUE(Add({.run_id = "r", .phase = "a", .command = "1", .args = "[1]"}).ok());
  const auto update = [&](std::string command, const ActionChange& change) {
    return Write([&](Transaction& tx) {
      return UpdateAction(tx, {.run_id = "r", .phase = "a", .command = command}, change, now_);
    });
  };
  ASSERT_TRUE(update("1", {.mode = "autonomous"}).ok());
  ASSERT_TRUE(update("1", {.priority = 7}).ok());
  EXPECT_EQ(update("2", {.priority = 7}).error().exit_code(), 1);
  const PhaseAction found = ListActions(connection(), "r", "a").value().at(0);
  EXPECT_EQ(found.args, "[1]");
  EXPECT_EQ(found.mode, "autonomous");
  EXPECT_EQ(found.priority, 7);
  const auto remove = [&] {
    return Write([&](Transaction& tx) {
      return DeleteAction(tx, {.run_id = "r", .phase = "a", .command = "1"}, now_);
    });
  };
  ASSERT_TRUE(remove().ok());
  EXPECT_EQ(remove().error().exit_code(), 1);
}

TEST_F(RunPartsTest, ActionsAreReadFromAnObjectByPhase) {
  const auto actions = ParseActions(R"({"a":{"command":"/x","args":"[\"y\"]","mode":"m"},
                                        "b":{"command":"/z","type":"t"}})");
  ASSERT_TRUE(actions.ok()) << actions.error();
  ASSERT_EQ(actions->size(), 2U);
  EXPECT_EQ((*actions)[0].args, "[\"y\"]");
  EXPECT_EQ((*actions)[0].mode, "m");
  EXPECT_EQ((*actions)[1].type, "t");
  EXPECT_EQ((*actions)[1].mode, "interactive");
  for (const char* text :
       {"", "[]", "{\"a\":1}", "{\"a\":{}}", "{\"a\":{\"command\":\"\"}}",
        "{\"a\":{\"command\":\"x\",\"args\":[1]}}", "{\"a\":{\"command\":\"x\",\"args\":\"[\"}}",
        "{\"\":{\"command\":\"x\"}}"}) {
    EXPECT_FALSE(ParseActions(text).ok()) << text;
  }
}

TEST_F(RunPartsTest, TokensAreThoseOfTheDispatchesOfTheRun) {
  Sql("INSERT INTO dispatches (id, project_dir, scope_id, created_at, input_tokens, output_tokens, "
      "cache_hits) VALUES ('d1', '/p', 'r', 1, 10, 5, NULL), ('d2', '/p', 'r', 1, 1, 2, 7), "
      "('d3', '/p', 'other', 1, 100, 100, 100)");
  const TokenUse use = TokensOf(connection(), "r").value();
  EXPECT_EQ(use.input, 11);
  EXPECT_EQ(use.output, 7);
  EXPECT_EQ(use.cache_hits, 7);
  EXPECT_EQ(use.total(), 18);
  EXPECT_EQ(TokensOf(connection(), "none").value().total(), 0);
}

TEST(JudgeBudgetTest, LimitsAreReachedExactly) {
  EXPECT_FALSE(JudgeBudget(1000, 80, 799).warning);
  EXPECT_TRUE(JudgeBudget(1000, 80, 800).warning);
  EXPECT_FALSE(JudgeBudget(1000, 80, 999).exceeded);
  EXPECT_TRUE(JudgeBudget(1000, 80, 1000).exceeded);
  EXPECT_FALSE(JudgeBudget(7, 50, 3).warning) << "3.5 is half of it";
  EXPECT_TRUE(JudgeBudget(7, 50, 4).warning);
  EXPECT_FALSE(JudgeBudget(std::nullopt, 80, 1000).exceeded);
  EXPECT_FALSE(JudgeBudget(0, 80, 1000).exceeded) << "no budget";
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(JudgeBudget(kMost, 99, kMost / 100 * 98).warning) << "no overflow";
  EXPECT_TRUE(JudgeBudget(kMost, 99, kMost).exceeded);
}

TEST_F(RunPartsTest, TheBudgetIsJudgedEveryTimeAndToldOnce) {
  Sql("UPDATE runs SET token_budget = 100; INSERT INTO dispatches (id, project_dir, scope_id, "
      "created_at, input_tokens) VALUES ('d', '/p', 'r', 1, 79)");
  EXPECT_FALSE(Tell().warning);
  EXPECT_EQ(Events().size(), 0U);
  Sql("UPDATE dispatches SET input_tokens = 80");
  const BudgetState warned = BudgetOf(connection(), "r").value();
  EXPECT_TRUE(HasUnrecordedBudgetEvent(connection(), "r", warned).value());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(Tell().warning);
    EXPECT_FALSE(HasUnrecordedBudgetEvent(connection(), "r", warned).value());
    EXPECT_THAT(Events(), ElementsAre("budget.warning -"));
  }
  Sql("UPDATE dispatches SET input_tokens = 100");
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(Tell().exceeded);
    EXPECT_THAT(Events(), ElementsAre("budget.warning -", "budget.exceeded -"));
  }
  EXPECT_EQ(BudgetOf(connection(), "none").error().exit_code(), 1);
}

}  // namespace
}  // namespace interlock::kernel
