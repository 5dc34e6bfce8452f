#include "domain/agent.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace interlock::domain {
namespace {

using std::chrono::microseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Timestamp kNow = {1'767'323'045'000'000};

TEST(AgentTest, ASessionIsAUuidInOneOfFourForms) {
  for (const char* text : {
           "0198c5e2-7b1c-7d3e-8f00-0123456789ab",
           "0198C5E2-7B1C-7D3E-8F00-0123456789AB",
           "0198c5e27b1c7d3e8f000123456789ab",
           "{0198c5e2-7b1c-7d3e-8f00-0123456789ab}",
           "urn:uuid:0198c5e2-7b1c-7d3e-8f00-0123456789ab",
           "URN:UUID:0198C5E2-7B1C-7D3E-8F00-0123456789AB",
           "00000000-0000-0000-0000-000000000000",
       }) {
    EXPECT_TRUE(IsSessionId(text)) << text;
  }
  for (const char* text : {
           "",
           "{",
           "{}",
           "x",
           "urn:uuid:",
           "0198c5e2-7b1c-7d3e-8f00-0123456789a",
           "0198c5e2-7b1c-7d3e-8f00-0123456789abc",
           "0198c5e2-7b1c-7d3e-8f00-0123456789ag",
           "0198c5e27b1c-7d3e-8f00-0123456789ab-",
           "0198c5e27b1c7d3e8f000123456789ag",
           "{0198c5e2-7b1c-7d3e-8f00-0123456789ab",
           "0198c5e2-7b1c-7d3e-8f00-0123456789ab}",
           "{0198c5e27b1c7d3e8f000123456789ab}",
           "urn:uuid:0198c5e27b1c7d3e8f000123456789ab",
           "urn:uuid:{0198c5e2-7b1c-7d3e-8f00-0123456789ab}",
           "urn-uuid:0198c5e2-7b1c-7d3e-8f00-0123456789ab",
           " 0198c5e2-7b1c-7d3e-8f00-0123456789ab",
       }) {
    EXPECT_FALSE(IsSessionId(text)) << text;
  }
}

TEST(AgentTest, ASessionIsTakenOverFromWhoeverIsStaleGoneOrTheSame) {
  const SessionFacts fresh = {.last_seen = kNow - minutes(5) + microseconds(1)};
  EXPECT_FALSE(MayTakeOver(fresh, kNow));
  EXPECT_FALSE(MayTakeOver({.last_seen = kNow}, kNow));
  EXPECT_FALSE(MayTakeOver({.last_seen = kNow + minutes(60)}, kNow)) << "the clock was put back";
  EXPECT_TRUE(MayTakeOver({.last_seen = kNow - minutes(5)}, kNow));
  EXPECT_TRUE(MayTakeOver({.last_seen = kNow, .deregistered = true}, kNow));
  EXPECT_TRUE(MayTakeOver({.last_seen = kNow, .token_shown = true}, kNow));
  const SessionProof token = SessionProof::kToken;
  EXPECT_FALSE(MayTakeOver({.last_seen = kNow - minutes(60), .proof = token}, kNow));
  EXPECT_FALSE(MayTakeOver({.last_seen = kNow, .deregistered = true, .proof = token}, kNow));
  EXPECT_TRUE(MayTakeOver({.last_seen = kNow, .token_shown = true, .proof = token}, kNow));
}

TEST(AgentTest, FocusIsKnownForTwoSeconds) {
  using enum FocusState;
  for (const FocusState focus : {kUnknown, kAtPrompt, kToolUse, kThinking}) {
    EXPECT_EQ(CurrentFocus(focus, kNow, kNow), focus);
    EXPECT_EQ(CurrentFocus(focus, kNow - seconds(2), kNow), focus);
    EXPECT_EQ(CurrentFocus(focus, kNow - seconds(2) - microseconds(1), kNow), kUnknown);
    EXPECT_EQ(CurrentFocus(focus, kNow + microseconds(1), kNow), kUnknown);
    EXPECT_EQ(CurrentFocus(focus, {}, kNow), kUnknown) << "never told";
    EXPECT_EQ(ParseFocusState(Name(focus)), focus);
  }
  EXPECT_EQ(Name(kAtPrompt), "at-prompt");
  EXPECT_EQ(Name(kToolUse), "tool-use");
  EXPECT_EQ(Name(kThinking), "thinking");
  for (const char* name : {"", "at_prompt", "Thinking", "thinking "}) {
    EXPECT_EQ(ParseFocusState(name), std::nullopt) << name;
  }
}

TEST(AgentTest, OneCapabilityOfSeveralIsEnoughAndItMustBeTheSame) {
  Agent agent;
  const std::vector<std::string> wanted = {"build", "review"};
  EXPECT_FALSE(HasAnyCapability(agent, wanted));
  agent.capabilities.emplace();
  EXPECT_FALSE(HasAnyCapability(agent, wanted));
  agent.capabilities = Capabilities{"Build", "reviews"};
  EXPECT_FALSE(HasAnyCapability(agent, wanted));
  agent.capabilities = Capabilities{"test", "build"};
  EXPECT_TRUE(HasAnyCapability(agent, wanted));
  EXPECT_FALSE(HasAnyCapability(agent, {}));
}

TEST(AgentTest, MetadataReadsTrimmedAndEmptyWhereThereIsNone) {
  Agent agent;
  EXPECT_EQ(MetadataText(agent, "repo"), "");
  agent.metadata = Metadata{{"repo", " a b\n"}};
  EXPECT_EQ(MetadataText(agent, "repo"), "a b");
  EXPECT_EQ(MetadataText(agent, "Repo"), "");
}

}  // namespace
}  // namespace interlock::domain
