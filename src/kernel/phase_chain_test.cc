#include "kernel/phase_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/gate_rules.h"

namespace interlock::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PhaseChain Abcd() { return PhaseChain::Parse(R"(["a","b","c","d"])").value(); }

TEST(PhaseChainTest, ReadsNamesInOrder) {
  const PhaseChain chain = PhaseChain::Parse(R"( ["goal-formed", "X_1", "done"] )").value();
  EXPECT_THAT(chain.names(), ElementsAre("goal-formed", "X_1", "done"));
  EXPECT_EQ(chain.first(), "goal-formed");
  EXPECT_EQ(chain.last(), "done");
  EXPECT_EQ(chain.Find("X_1"), 1U);
  EXPECT_EQ(chain.Find("x_1"), std::nullopt);
  EXPECT_EQ(chain.Text(), R"(["goal-formed","X_1","done"])");
}

TEST(PhaseChainTest, TheDefaultGoesFromBrainstormToDoneInNinePhases) {
  EXPECT_EQ(PhaseChain::Default().size(), 9U);
  EXPECT_EQ(PhaseChain::Default().first(), "brainstorm");
  EXPECT_EQ(PhaseChain::Default().last(), "done");
}

TEST(PhaseChainTest, RefusesWhatIsNoChain) {
  for (const char* text : {"", "{}", "\"a\"", "[]", "[\"a\"]", "[\"a\",1]", "[\"a\",\"\"]",
                           "[\"a\",\"a\"]", "[\"a\",\"b c\"]", "[\"a\",\"b→c\"]", "[\"a\",\"b\"",
                           "[\"a\",\"b\",null]", "[[\"a\"],\"b\"]"}) {
    EXPECT_FALSE(PhaseChain::Parse(text).ok()) << text;
  }
}

TEST(PhaseChainTest, TheNextPhaseIsBehindAllSkippedOnesButNeverBehindTheLast) {
  EXPECT_EQ(Abcd().Next(0, {}), 1U);
  EXPECT_EQ(Abcd().Next(0, {"b"}), 2U);
  EXPECT_EQ(Abcd().Next(0, {"b", "c"}), 3U);
  EXPECT_EQ(Abcd().Next(0, {"b", "c", "d"}), 3U);
  EXPECT_EQ(Abcd().Next(1, {"b"}), 2U);
}

TEST(PhaseChainTest, BetweenLeavesOutTheStartAndTakesTheEnd) {
  EXPECT_THAT(Abcd().Between(0, 2), ElementsAre("b", "c"));
  EXPECT_THAT(Abcd().Between(1, 1), IsEmpty());
}

std::string GatesError(const char* text) {
  const auto rules = ParseGateRules(text, PhaseChain::Parse(R"(["a","b","c"])").value());
  return rules ? "" : rules.error().message();
}

TEST(GateRulesTest, AreKeptWithCapitalKeysAndAllOfThem) {
  const auto rules = ParseGateRules(
      R"({"b→c":[],"a→b":[{"CHECK":"verdict_clean"},
          {"check":"artifact_exists","Phase":"a","tier":"hard"}]})",
      PhaseChain::Parse(R"(["a","b","c"])").value());
  ASSERT_TRUE(rules.ok()) << rules.error();
  EXPECT_EQ(*rules, R"({"a→b":[{"Check":"verdict_clean","Phase":"","Tier":""},)"
                    R"({"Check":"artifact_exists","Phase":"a","Tier":"hard"}],"b→c":[]})");
}

TEST(GateRulesTest, EveryStepMustBeThereAndNoOther) {
  EXPECT_THAT(GatesError(R"({"a→b":[]})"), HasSubstr("b→c"));
  EXPECT_THAT(GatesError(R"({"a→b":[],"b→c":[],"a→c":[]})"), HasSubstr("'a→c' is not a step"));
  EXPECT_THAT(GatesError(R"({"a→b":[],"b→c":[],"x":[]})"), HasSubstr("'x' is not a step"));
  EXPECT_THAT(GatesError("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(GatesError("{"), HasSubstr("line 1"));
}

TEST(GateRulesTest, RefusesUnknownChecksAndTiers) {
  EXPECT_THAT(GatesError(R"({"a→b":[{"check":"luck"}],"b→c":[]})"), HasSubstr("luck"));
  EXPECT_THAT(GatesError(R"({"a→b":[{}],"b→c":[]})"), HasSubstr("unknown check ''"));
  EXPECT_THAT(GatesError(R"({"a→b":[{"check":"verdict_clean","tier":"x"}],"b→c":[]})"),
              HasSubstr("hard or soft"));
  EXPECT_THAT(GatesError(R"({"a→b":{},"b→c":[]})"), HasSubstr("must be an array"));
  EXPECT_THAT(GatesError(R"({"a→b":["verdict_clean"],"b→c":[]})"), HasSubstr("a→b"));
}

TEST(GateRulesTest, DefaultsAskForWhatThePhaseMade) {
  EXPECT_THAT(DefaultChecks("planned", "executing"), ElementsAre("artifact_exists"));
  EXPECT_THAT(DefaultChecks("executing", "review"), ElementsAre("agents_complete"));
  EXPECT_THAT(DefaultChecks("polish", "reflect"), IsEmpty());
}

}  // namespace
}  // namespace interlock::kernel
