#include "store/agents.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "store/fake_sightings.h"
#include "store/store_fixture.h"

namespace interlock::store {
namespace {

using std::chrono::seconds;

constexpr Timestamp kNow = {1'767'323'045'000'000};

using Hash = std::array<std::byte, 32>;
Hash HashOf(int number) {
  Hash hash = {};
  hash[31] = static_cast<std::byte>(number);
  return hash;
}

domain::Agent Someone(const std::string& id, Timestamp seen = kNow) {
  return {.id = id,
          .project = "p",
          .session_id = "session of " + id,
          .name = "name of " + id,
          .created_at = kNow,
          .last_seen = seen};
}

constexpr db::Sql kSpoil = "UPDATE agents SET capabilities = ?2 WHERE id = ?1";

class AgentsTest : public StoreTest {
 protected:
  // In with the number's hash as its token's.
  void Insert(const domain::Agent& agent, int token) {
    ASSERT_TRUE(Write<void>([&](db::Transaction& tx) {
                  return InsertAgent(tx, agent, HashOf(token));
                }).ok());
  }
  std::vector<std::string> Ids(std::optional<std::string_view> project, std::int64_t limit = 100) {
    std::vector<std::string> ids;
    const auto take = [&ids](const domain::Agent& agent) { ids.push_back(agent.id); };
    EXPECT_TRUE(ListAgents(connection(), project, limit, sightings_, take).ok());
    return ids;
  }
  Timestamp LastSeen(const std::string& id) {
    return FindAgent(connection(), id).value().value().last_seen;
  }
  bool Raise(const std::string& id, Timestamp at) {
    return Write<bool>([&](db::Transaction& tx) { return RaiseLastSeen(tx, id, at); }).value();
  }

  FakeSightings sightings_;
};

TEST_F(AgentsTest, AnAgentReadsBackAsItWasWrittenAndAsItWasReplaced) {
  domain::Agent agent = Someone("a");
  agent.capabilities = domain::Capabilities{"build", "über", ""};
  agent.metadata = domain::Metadata{{"repo", "x\"y"}, {"", ""}};
  agent.status = "busy";
  agent.policies = {.mail = domain::ContactPolicy::kBlockAll, .live = domain::ContactPolicy::kAuto};
  agent.focus = domain::FocusState::kAtPrompt;
  agent.focus_at = kNow + seconds(1);
  Insert(agent, 1);
  EXPECT_EQ(FindAgent(connection(), "a").value(), agent);
  EXPECT_EQ(FindAgent(connection(), "b").value(), std::nullopt);

  domain::Agent other = Someone("a", kNow + seconds(9));
  other.project = "q";
  other.session_id = "another";
  other.deregistered_at = kNow + seconds(10);
  ASSERT_TRUE(
      Write<void>([&](db::Transaction& tx) { return ReplaceAgent(tx, other, HashOf(2)); }).ok());
  EXPECT_EQ(FindAgent(connection(), "a").value(), other);
}

TEST_F(AgentsTest, NothingSentAndSomethingEmptyStayTwoThings) {
  domain::Agent empty = Someone("e");
  empty.capabilities.emplace();
  empty.metadata.emplace();
  Insert(Someone("n"), 1);
  Insert(empty, 2);
  EXPECT_EQ(FindAgent(connection(), "n").value()->capabilities, std::nullopt);
  EXPECT_EQ(FindAgent(connection(), "n").value()->metadata, std::nullopt);
  EXPECT_EQ(FindAgent(connection(), "e").value(), empty);
  EXPECT_NE(AgentJson(Someone("n")).find(R"("capabilities":null,"metadata":null)"),
            std::string::npos);
  EXPECT_NE(AgentJson(empty).find(R"("capabilities":[],"metadata":{})"), std::string::npos);
}

TEST_F(AgentsTest, ATokenFindsItsAgentWhileThatLives) {
  Insert(Someone("a"), 1);
  Insert(Someone("b"), 2);
  EXPECT_EQ(FindAgentByToken(connection(), HashOf(2)).value()->id, "b");
  EXPECT_EQ(FindAgentByToken(connection(), HashOf(3)).value(), std::nullopt);
  EXPECT_EQ(FindAgentByToken(connection(), db::Blob()).value(), std::nullopt);
  ASSERT_TRUE(Write<void>([](db::Transaction& tx) { return SetDeregistered(tx, "b", kNow); }).ok());
  EXPECT_EQ(FindAgentByToken(connection(), HashOf(2)).value(), std::nullopt);
  EXPECT_EQ(FindAgentByToken(connection(), HashOf(1)).value()->id, "a");
}

TEST_F(AgentsTest, ASessionIsFoundInItsProjectOnlyAndKnowsItsToken) {
  Insert(Someone("a"), 1);
  domain::Agent elsewhere = Someone("b");
  elsewhere.project = "q";
  elsewhere.session_id = "session of a";
  Insert(elsewhere, 2);
  const auto find = [&](std::string_view project, std::optional<db::Blob> shown) {
    return FindSession(connection(), project, "session of a", shown).value();
  };
  const Hash one = HashOf(1);
  const Hash two = HashOf(2);
  EXPECT_EQ(find("p", std::nullopt)->agent.id, "a");
  EXPECT_FALSE(find("p", std::nullopt)->token_matches);
  EXPECT_TRUE(find("p", one)->token_matches);
  EXPECT_FALSE(find("p", two)->token_matches);
  EXPECT_FALSE(find("p", db::Blob())->token_matches);
  EXPECT_EQ(find("q", two)->agent.id, "b");
  EXPECT_TRUE(find("q", two)->token_matches);
  EXPECT_EQ(find("", one), std::nullopt);
  ASSERT_TRUE(Write<void>([](db::Transaction& tx) { return SetDeregistered(tx, "a", kNow); }).ok());
  EXPECT_EQ(find("p", std::nullopt)->agent.deregistered_at, kNow) << "its session is still its own";
}

TEST_F(AgentsTest, TheFileItselfRefusesASecondOwnerOfASession) {
  Insert(Someone("a"), 1);
  domain::Agent second = Someone("b");
  second.session_id = "session of a";
  const auto inserted =
      Write<void>([&](db::Transaction& tx) { return InsertAgent(tx, second, HashOf(2)); });
  ASSERT_FALSE(inserted.ok());
  EXPECT_EQ(inserted.error().code(), Errc::kConstraint);
}

TEST_F(AgentsTest, TheLastSeenStandsFirstAndTheGoneNowhere) {
  Insert(Someone("old", kNow - seconds(50)), 1);
  Insert(Someone("new", kNow), 2);
  Insert(Someone("gone", kNow + seconds(1)), 3);
  Insert(Someone("tie", kNow - seconds(50)), 4);
  domain::Agent elsewhere = Someone("elsewhere", kNow - seconds(10));
  elsewhere.project = "";
  Insert(elsewhere, 5);
  ASSERT_TRUE(
      Write<void>([](db::Transaction& tx) { return SetDeregistered(tx, "gone", kNow); }).ok());
  using Names = std::vector<std::string>;
  EXPECT_EQ(Ids("p"), (Names{"new", "tie", "old"}));
  EXPECT_EQ(Ids(""), (Names{"elsewhere"}));
  EXPECT_EQ(Ids(std::nullopt), (Names{"new", "elsewhere", "tie", "old"}));
  EXPECT_EQ(Ids("p", 1), (Names{"new"}));
  EXPECT_EQ(Ids(std::nullopt, 2), (Names{"new", "elsewhere"}));
  EXPECT_EQ(CountAgentsSeen(connection(), kNow - seconds(10), sightings_).value(), 2);
}

TEST_F(AgentsTest, ListAndCountUseTheNewerTime) {
  Insert(Someone("a", kNow - seconds(40)), 1);
  Insert(Someone("b", kNow - seconds(30)), 2);
  Insert(Someone("c", kNow - seconds(20)), 3);
  Insert(Someone("gone", kNow - seconds(50)), 4);
  domain::Agent elsewhere = Someone("elsewhere", kNow - seconds(60));
  elsewhere.project = "q";
  Insert(elsewhere, 5);
  ASSERT_TRUE(
      Write<void>([](db::Transaction& tx) { return SetDeregistered(tx, "gone", kNow); }).ok());
  sightings_.seen = {{"a", kNow - seconds(25)},
                     {"b", kNow - seconds(35)},  // older than what is stored
                     {"gone", kNow},
                     {"nobody", kNow},
                     {"elsewhere", kNow}};
  using Names = std::vector<std::string>;
  EXPECT_EQ(Ids("p"), (Names{"c", "a", "b"}));
  EXPECT_EQ(Ids("p", 2), (Names{"c", "a"}));
  EXPECT_EQ(Ids("q"), (Names{"elsewhere"}));
  EXPECT_EQ(Ids(std::nullopt), (Names{"elsewhere", "c", "a", "b"}));
  EXPECT_EQ(Ids(std::nullopt, 1), (Names{"elsewhere"}));
  std::vector<Timestamp> times;
  const auto take = [&times](const domain::Agent& agent) { times.push_back(agent.last_seen); };
  ASSERT_TRUE(ListAgents(connection(), "p", 10, sightings_, take).ok());
  EXPECT_EQ(times,
            (std::vector<Timestamp>{kNow - seconds(20), kNow - seconds(25), kNow - seconds(30)}));
  EXPECT_EQ(CountAgentsSeen(connection(), kNow - seconds(10), sightings_).value(), 1);
  EXPECT_EQ(CountAgentsSeen(connection(), kNow - seconds(25), sightings_).value(), 3);
  EXPECT_EQ(CountAgentsSeen(connection(), kNow - seconds(90), sightings_).value(), 4);
}

TEST_F(AgentsTest, LastSeenIsRaisedAndNeverLowered) {
  Insert(Someone("a"), 1);
  EXPECT_FALSE(Raise("a", kNow - seconds(1)));
  EXPECT_FALSE(Raise("nobody", kNow));
  EXPECT_EQ(LastSeen("a"), kNow);
  EXPECT_TRUE(Raise("a", kNow + seconds(1)));
  EXPECT_TRUE(Raise("a", kNow + seconds(2)));
  EXPECT_EQ(LastSeen("a"), kNow + seconds(2));
  ASSERT_TRUE(Write<void>([](db::Transaction& tx) { return SetDeregistered(tx, "a", kNow); }).ok());
  EXPECT_FALSE(Raise("a", kNow + seconds(3)));
}

TEST_F(AgentsTest, ASightingMovesTheTimeAndKeepsAFocusThatItDoesNotName) {
  Insert(Someone("a"), 1);
  const auto see = [&](const Sighting& sighting) {
    return Write<bool>([&](db::Transaction& tx) { return RecordSighting(tx, sighting); }).value();
  };
  const auto now = [&] { return *FindAgent(connection(), "a").value(); };
  const Timestamp first = kNow + seconds(1);
  const Timestamp second = kNow + seconds(2);
  EXPECT_TRUE(see({"a", "p", domain::FocusState::kThinking, first}));
  EXPECT_TRUE(see({"a", std::nullopt, std::nullopt, second}));
  EXPECT_EQ(now().last_seen, second);
  EXPECT_EQ(now().focus, domain::FocusState::kThinking);
  EXPECT_EQ(now().focus_at, first);
  EXPECT_FALSE(see({"a", "q", domain::FocusState::kAtPrompt, kNow}));
  EXPECT_FALSE(see({"a", "", std::nullopt, kNow}));
  EXPECT_FALSE(see({"b", std::nullopt, std::nullopt, kNow}));
  EXPECT_EQ(now().last_seen, second);
  ASSERT_TRUE(Write<void>([](db::Transaction& tx) { return SetDeregistered(tx, "a", kNow); }).ok());
  EXPECT_FALSE(see({"a", "p", std::nullopt, kNow}));
}

TEST_F(AgentsTest, ANameIsTakenByTheLivingOfTheProjectOnly) {
  Insert(Someone("a"), 1);
  EXPECT_TRUE(IsNameTaken(connection(), "p", "name of a").value());
  EXPECT_FALSE(IsNameTaken(connection(), "p", "Name of a").value());
  EXPECT_FALSE(IsNameTaken(connection(), "q", "name of a").value());
  ASSERT_TRUE(Write<void>([](db::Transaction& tx) { return SetDeregistered(tx, "a", kNow); }).ok());
  EXPECT_FALSE(IsNameTaken(connection(), "p", "name of a").value());
}

TEST_F(AgentsTest, AChangeOfOnePartLeavesTheOthers) {
  domain::Agent agent = Someone("a");
  agent.capabilities = domain::Capabilities{"build"};
  Insert(agent, 1);
  Insert(Someone("b"), 2);
  const domain::Policies policies = {.mail = domain::ContactPolicy::kContactsOnly,
                                     .live = domain::ContactPolicy::kBlockAll};
  ASSERT_TRUE(Write<void>([&](db::Transaction& tx) -> Result<void> {
                IL_TRY_VOID(SetMetadata(tx, "a", {{"k", "v"}}, kNow + seconds(3)));
                return SetPolicies(tx, "a", policies);
              }).ok());
  agent.metadata = domain::Metadata{{"k", "v"}};
  agent.last_seen = kNow + seconds(3);
  agent.policies = policies;
  EXPECT_EQ(FindAgent(connection(), "a").value(), agent);
  ASSERT_TRUE(Write<void>([](db::Transaction& tx) {
                return SetDeregistered(tx, "a", kNow + seconds(4));
              }).ok());
  agent.status = "deregistered";
  agent.deregistered_at = kNow + seconds(4);
  EXPECT_EQ(FindAgent(connection(), "a").value(), agent);
  EXPECT_EQ(FindAgent(connection(), "b").value(), Someone("b"));
}

TEST_F(AgentsTest, AnAgentIsShownInWholeSecondsWithoutSecretsOrPolicies) {
  domain::Agent agent = Someone("a", {kNow.micros + 999'999});
  agent.capabilities = domain::Capabilities{"x"};
  agent.metadata = domain::Metadata{{"k", "v"}};
  agent.status = "idle";
  EXPECT_EQ(AgentJson(agent),
            R"({"agent_id":"a","session_id":"session of a","name":"name of a","project":"p",)"
            R"("capabilities":["x"],"metadata":{"k":"v"},"status":"idle",)"
            R"("last_seen":"2026-01-02T03:04:05Z","created_at":"2026-01-02T03:04:05Z"})");
  EXPECT_EQ(PoliciesJson("a", {}),
            R"({"agent_id":"a","policy":"open","live_contact_policy":"contacts_only"})");
}

TEST_F(AgentsTest, AColumnThatIsNoJsonIsReportedAsCorrupt) {
  Insert(Someone("a"), 1);
  for (const char* text : {"[1]", "{}", "[", "null"}) {
    ASSERT_TRUE(connection().Run(kSpoil, "a", text).ok());
    const auto found = FindAgent(connection(), "a");
    ASSERT_FALSE(found.ok()) << text;
    EXPECT_EQ(found.error().code(), Errc::kCorrupt);
    EXPECT_FALSE(ListAgents(connection(), "p", 10, sightings_, [](const domain::Agent&) {}).ok());
  }
}

TEST_F(AgentsTest, AgentsAreFoundByNameTheLastSeenFirst) {
  domain::Agent one = Someone("1", kNow);
  domain::Agent two = Someone("2", kNow + seconds(2));
  domain::Agent other = Someone("3", kNow + seconds(1));
  one.name = two.name = other.name = "ann";
  other.project = "q";
  Insert(one, 1);
  Insert(two, 2);
  Insert(other, 3);
  const auto ids = [&](std::optional<std::string_view> project, std::int64_t limit) {
    std::string all;
    const auto found = FindByName(connection(), project, "ann", limit);
    for (const AgentCard& card : found.value()) all += card.id;
    return all;
  };
  EXPECT_EQ(ids("p", 9), "21");
  EXPECT_EQ(ids("p", 1), "2");
  EXPECT_EQ(ids("q", 9), "3");
  EXPECT_EQ(ids("r", 9), "");
  EXPECT_EQ(ids(std::nullopt, 9), "231");
  ASSERT_TRUE(
      Write<void>([&](db::Transaction& tx) { return SetDeregistered(tx, "2", kNow); }).ok());
  EXPECT_EQ(ids("p", 9), "1");

  const auto card = FindCard(connection(), "2").value();
  ASSERT_TRUE(card.has_value());
  EXPECT_EQ(card->name, "ann");
  EXPECT_EQ(card->project, "p");
  EXPECT_EQ(card->last_seen, kNow + seconds(2));
  EXPECT_FALSE(card->living);
  EXPECT_FALSE(FindCard(connection(), "ann").value().has_value());
}

TEST_F(AgentsTest, ATextIsAnIdANameBothOrNeither) {
  domain::Agent one = Someone("1");
  one.name = "ann";
  Insert(one, 1);
  domain::Agent two = Someone("2");
  two.name = "1";
  Insert(two, 2);
  const auto use = [&](std::string_view text) {
    const TextUse found = FindTextUse(connection(), text).value();
    return std::string(found.is_id ? "id " : "") + (found.is_name ? "name" : "");
  };
  EXPECT_EQ(use("1"), "id name");
  EXPECT_EQ(use("2"), "id ");
  EXPECT_EQ(use("ann"), "name");
  EXPECT_EQ(use("bob"), "");
}

}  // namespace
}  // namespace interlock::store
