#include "store/contacts.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "store/agents.h"
#include "store/store_fixture.h"
#include "testing/counting_connection.h"

namespace interlock::store {
namespace {

using domain::ContactPolicy;
using Names = std::vector<std::string>;
using testing::CountingConnection;

constexpr db::Sql kJoinThread =
    "INSERT INTO thread_members (project, thread_id, agent, last_cursor, message_count, posted) "
    "VALUES (?1, ?2, ?3, 1, 1, ?4)";

class ContactsTest : public StoreTest {
 protected:
  bool Add(std::string_view agent, std::string_view contact) {
    return Write<bool>(
               [&](db::Transaction& tx) { return AddContact(tx, agent, contact, clock_.Now()); })
        .value();
  }
  bool Remove(std::string_view agent, std::string_view contact) {
    return Write<bool>([&](db::Transaction& tx) { return RemoveContact(tx, agent, contact); })
        .value();
  }
  Names List(std::string_view agent) { return ListContacts(connection(), agent).value(); }

  void Register(const std::string& id, ContactPolicy mail,
                ContactPolicy live = ContactPolicy::kContactsOnly) {
    const std::array hash = {static_cast<std::byte>(++registered_ >> 8),
                             static_cast<std::byte>(registered_)};
    const domain::Agent agent = {.id = id,
                                 .project = "p",
                                 .session_id = id,
                                 .name = id,
                                 .policies = {.mail = mail, .live = live}};
    ASSERT_TRUE(
        Write<void>([&](db::Transaction& tx) { return InsertAgent(tx, agent, hash); }).ok());
  }
  void JoinThread(std::string_view project, std::string_view thread, std::string_view agent,
                  int posted) {
    ASSERT_TRUE(connection().Run(kJoinThread, project, thread, agent, posted).ok());
  }
  RecipientFacts FactsOf(const std::string& recipient, std::string_view thread) {
    const Names recipients = {recipient};
    return FindRecipientFacts(connection(),
                              {.project = "p", .sender = "sender", .thread_id = thread}, recipients)
        .value()
        .at(0);
  }

  int registered_ = 0;
};

TEST_F(ContactsTest, AContactIsOneWayAndCountsOnce) {
  EXPECT_TRUE(Add("a", "c"));
  EXPECT_TRUE(Add("a", "b"));
  EXPECT_FALSE(Add("a", "b"));
  EXPECT_EQ(List("a"), (Names{"b", "c"}));
  EXPECT_EQ(List("b"), Names{});
  EXPECT_FALSE(Remove("b", "a"));
  EXPECT_TRUE(Remove("a", "b"));
  EXPECT_FALSE(Remove("a", "b"));
  EXPECT_EQ(List("a"), Names{"c"});
}

TEST_F(ContactsTest, AnEventNamesTheContact) {
  EXPECT_EQ(ContactJson("a\"b"), R"({"contact":"a\"b"})");
}

TEST_F(ContactsTest, FactsAreThoseOfTheRecipientNotOfTheSender) {
  Register("sender", ContactPolicy::kBlockAll, ContactPolicy::kBlockAll);
  Register("r", ContactPolicy::kAuto, ContactPolicy::kOpen);
  ASSERT_TRUE(Add("sender", "r"));
  JoinThread("p", "t", "sender", 1);
  RecipientFacts facts = FactsOf("r", "t");
  EXPECT_EQ(facts.agent, "r");
  EXPECT_EQ(facts.policies,
            (domain::Policies{.mail = ContactPolicy::kAuto, .live = ContactPolicy::kOpen}));
  EXPECT_FALSE(facts.sender_is_contact);
  EXPECT_FALSE(facts.posted_in_thread);
  ASSERT_TRUE(Add("r", "sender"));
  facts = FactsOf("r", "t");
  EXPECT_TRUE(facts.sender_is_contact);
  EXPECT_FALSE(facts.posted_in_thread);
}

TEST_F(ContactsTest, OnlyHavingPostedInThatThreadOfThatProjectCounts) {
  Register("r", ContactPolicy::kContactsOnly);
  JoinThread("p", "received", "r", 0);
  JoinThread("q", "t", "r", 1);
  JoinThread("p", "", "r", 1);
  EXPECT_FALSE(FactsOf("r", "received").posted_in_thread);
  EXPECT_FALSE(FactsOf("r", "t").posted_in_thread);
  EXPECT_FALSE(FactsOf("r", "").posted_in_thread) << "a message in no thread";
  JoinThread("p", "t", "r", 1);
  EXPECT_TRUE(FactsOf("r", "t").posted_in_thread);
  EXPECT_FALSE(FactsOf("r", "T").posted_in_thread);
}

TEST_F(ContactsTest, TheSenderIsInAThreadByWhatItSentOrReceivedThere) {
  Register("r", ContactPolicy::kContactsOnly);
  JoinThread("p", "sent", "sender", 1);
  JoinThread("p", "received", "sender", 0);
  JoinThread("q", "t", "sender", 1);
  JoinThread("p", "t", "r", 1);
  EXPECT_TRUE(FactsOf("r", "sent").sender_is_in_thread);
  EXPECT_TRUE(FactsOf("r", "received").sender_is_in_thread);
  EXPECT_FALSE(FactsOf("r", "t").sender_is_in_thread);
  EXPECT_FALSE(FactsOf("r", "").sender_is_in_thread);
}

TEST_F(ContactsTest, WhoeverNobodyRegisteredHasTheDefaults) {
  ASSERT_TRUE(Add("stranger", "sender"));
  const RecipientFacts facts = FactsOf("stranger", "t");
  EXPECT_EQ(facts.agent, "stranger");
  EXPECT_EQ(facts.policies, domain::Policies{});
}

TEST_F(ContactsTest, ADeregisteredAgentKeepsWhatItHasSet) {
  Register("r", ContactPolicy::kBlockAll);
  ASSERT_TRUE(Write<void>([](db::Transaction& tx) { return SetDeregistered(tx, "r", {1}); }).ok());
  EXPECT_EQ(FactsOf("r", "").policies.mail, ContactPolicy::kBlockAll);
}

// Nothing that could be found would matter.
TEST_F(ContactsTest, WhoIsOpenToEverybodyIsAskedNothingFurther) {
  Register("open", ContactPolicy::kOpen, ContactPolicy::kContactsOnly);
  Register("careful", ContactPolicy::kContactsOnly, ContactPolicy::kOpen);
  for (const char* agent : {"open", "careful"}) ASSERT_TRUE(Add(agent, "sender"));
  const struct {
    std::string agent;
    bool live;
    bool asked;
  } kCases[] = {{"open", false, false},
                {"open", true, true},
                {"careful", false, true},
                {"careful", true, true}};
  for (const auto& c : kCases) {
    const Names recipients = {c.agent};
    CountingConnection counting(connection());
    const auto facts =
        FindRecipientFacts(counting, {.project = "p", .sender = "sender", .live = c.live},
                           recipients)
            .value();
    EXPECT_EQ(facts.at(0).sender_is_contact, c.asked) << c.agent << c.live;
    EXPECT_EQ(counting.count, c.asked ? 2 : 1) << c.agent << c.live;
  }
}

// Around the number that one statement takes: none missing, none twice, in the order asked for.
TEST_F(ContactsTest, EveryRecipientHasItsPolicyByOneStatementPerSixtyFour) {
  constexpr int kAgents = 130;
  for (int i = 0; i < kAgents; i += 2) {
    Register("r" + std::to_string(i), ContactPolicy::kBlockAll);
    if (i % 4 == 0) {
      ASSERT_TRUE(Add("r" + std::to_string(i), "sender"));
    }
  }
  for (const int size : {0, 1, 2, 7, 8, 9, 63, 64, 65, 66, 72, 128, 129}) {
    Names recipients;
    recipients.reserve(static_cast<std::size_t>(size));
    for (int i = size; i > 0; --i) recipients.push_back("r" + std::to_string(i));
    CountingConnection counting(connection());
    const auto facts =
        FindRecipientFacts(counting, {.project = "p", .sender = "sender", .thread_id = "t"},
                           recipients)
            .value();
    EXPECT_EQ(counting.count, (size + 63) / 64 + size / 2) << "and one for each that asks";
    ASSERT_EQ(facts.size(), recipients.size());
    for (std::size_t at = 0; at < facts.size(); ++at) {
      const int number = size - static_cast<int>(at);
      EXPECT_EQ(facts[at].agent, recipients[at]);
      EXPECT_EQ(facts[at].policies.mail,
                number % 2 == 0 ? ContactPolicy::kBlockAll : ContactPolicy::kOpen);
      EXPECT_EQ(facts[at].sender_is_contact, number % 4 == 0);
    }
  }
}

TEST_F(ContactsTest, ARecipientNamedTwiceHasItsFactsTwice) {
  Register("r", ContactPolicy::kBlockAll);
  const Names recipients = {"r", "x", "r"};
  const auto facts =
      FindRecipientFacts(connection(), {.project = "p", .sender = "s"}, recipients).value();
  EXPECT_EQ(facts.at(0).policies.mail, ContactPolicy::kBlockAll);
  EXPECT_EQ(facts.at(1).policies.mail, ContactPolicy::kOpen);
  EXPECT_EQ(facts.at(2).policies.mail, ContactPolicy::kBlockAll);
}

TEST_F(ContactsTest, WithinAProjectAnAgentOfAnotherIsAsOneThatNobodyRegistered) {
  Register("r", ContactPolicy::kBlockAll, ContactPolicy::kOpen);  // of project p
  ASSERT_TRUE(Add("r", "s"));
  const Names recipients = {"r", "nobody"};
  const auto facts_within = [&](std::optional<std::string_view> agents_of) {
    return FindRecipientFacts(connection(), {.project = "q", .sender = "s", .agents_of = agents_of},
                              recipients)
        .value();
  };
  const auto apart = facts_within("q");
  EXPECT_EQ(apart.at(0).policies, apart.at(1).policies);
  EXPECT_FALSE(apart.at(0).sender_is_contact);
  for (const auto agents_of : {std::optional<std::string_view>("p"), {}}) {
    EXPECT_EQ(facts_within(agents_of).at(0).policies.mail, ContactPolicy::kBlockAll);
    EXPECT_TRUE(facts_within(agents_of).at(0).sender_is_contact);
  }
}

}  // namespace
}  // namespace interlock::store
