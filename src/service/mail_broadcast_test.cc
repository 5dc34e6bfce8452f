// Mail to everybody in a project.

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "service/mail_fixture.h"

namespace interlock::service {
namespace {

using domain::ContactPolicy;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Announcement = Mail::Announcement;
using Delivery = Mail::Delivery;

constexpr db::Sql kInbox =
    "SELECT project || ' ' || agent || ' ' || kind FROM inbox ORDER BY project, agent";
constexpr db::Sql kMessages =
    "SELECT id || ' ' || sender || ' ' || topic || ' ' || subject || ' ' || body FROM messages";
constexpr db::Sql kEvents = "SELECT type || ' ' || entity_id || ' ' || agent FROM events";
constexpr db::Sql kInboxRows = "SELECT count(*) FROM inbox";
constexpr db::Sql kEventRows = "SELECT count(*) FROM events";

Announcement From(std::string from) {
  return {.project = "p", .from = std::move(from), .topic = " News ", .subject = "s", .body = "b"};
}

using BroadcastTest = MailTest;

TEST_F(BroadcastTest, GoesToEveryLivingAgentOfTheProjectButTheSender) {
  RegisterAll({{.id = "a"}, {.id = "b"}, {.id = "c"}, {.id = "gone"}});
  RegisterAll({{.id = "other", .project = "q"}, {.id = "nowhere", .project = ""}});
  Deregister("gone");
  const auto sent = Broadcast(From("b"));
  ASSERT_TRUE(sent.ok());
  EXPECT_THAT(sent->received, UnorderedElementsAre("a", "c"));
  EXPECT_THAT(sent->denied, IsEmpty());
  EXPECT_EQ(sent->cursor, 1);
  EXPECT_THAT(Rows(kInbox), ElementsAre("p a to", "p c to"));
  EXPECT_THAT(Rows(kMessages), ElementsAre(sent->message_id + " b news s b"));
  EXPECT_THAT(Rows(kEvents), ElementsAre("message.created " + sent->message_id + " b"));
}

TEST_F(BroadcastTest, WithoutAProjectItReachesOnlyThoseWithoutOne) {
  RegisterAll({{.id = "a"}, {.id = "nowhere", .project = ""}});
  Announcement announcement = From("x");
  announcement.project = "";
  EXPECT_THAT(Broadcast(announcement)->received, ElementsAre("nowhere"));
  EXPECT_THAT(Rows(kInbox), ElementsAre(" nowhere to"));
}

TEST_F(BroadcastTest, WhereNobodyElseIsNothingIsKept) {
  Register({.id = "a"});
  const auto sent = Broadcast(From("a"));
  ASSERT_TRUE(sent.ok());
  EXPECT_EQ(*sent, Delivery{});
  EXPECT_FALSE(sent->refused());
  EXPECT_EQ(Count(kEventRows), 0);
}

TEST_F(BroadcastTest, PoliciesFilterAndAThreadOpensNothing) {
  RegisterAll({{.id = "open"},
               {.id = "blocks", .policy = ContactPolicy::kBlockAll},
               {.id = "friend", .policy = ContactPolicy::kContactsOnly, .contacts = {"x"}},
               {.id = "choosy", .policy = ContactPolicy::kContactsOnly}});
  // It has posted, in a thread and outside.
  for (const char* thread : {"t", ""}) {
    ASSERT_TRUE(
        Send({.project = "p", .from = "choosy", .thread_id = thread, .addresses = {.to = {"x"}}})
            .ok());
  }
  const auto sent = Broadcast(From("x"));
  EXPECT_THAT(sent->received, UnorderedElementsAre("open", "friend"));
  EXPECT_THAT(sent->denied, UnorderedElementsAre("blocks", "choosy"));
  EXPECT_EQ(Count(kInboxRows), 2 + 2);

  Register({.id = "open", .policy = ContactPolicy::kBlockAll});
  Register({.id = "friend", .policy = ContactPolicy::kBlockAll});
  const std::int64_t events = Count(kEventRows);
  const auto refused = Broadcast(From("x"));
  ASSERT_TRUE(refused.ok());
  EXPECT_TRUE(refused->refused());
  EXPECT_EQ(refused->denied.size(), 4U);
  EXPECT_EQ(refused->message_id, "");
  EXPECT_EQ(Count(kEventRows), events);
}

TEST_F(BroadcastTest, WhatIsBlankIsNamedAndDoesNotCount) {
  for (int i = 0; i < 20; ++i) {
    for (std::string Announcement::* field :
         {&Announcement::from, &Announcement::topic, &Announcement::body}) {
      Announcement announcement = From("x");
      announcement.*field = i % 2 == 0 ? "" : " \n";
      const auto sent = Broadcast(announcement);
      ASSERT_FALSE(sent.ok());
      EXPECT_EQ(sent.error().http_status(), 400);
      EXPECT_THAT(sent.error().message(), HasSubstr("is empty"));
    }
  }
  EXPECT_TRUE(Broadcast(From("x")).ok());
}

TEST_F(BroadcastTest, TheEleventhWithinAMinuteIsRefusedEvenWhenNobodyWasReached) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(Broadcast(From("x")).ok()) << i;
    clock_.Advance(std::chrono::seconds(3));
  }
  const std::size_t writes = database_->writes();
  const auto refused = Broadcast(From("x"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().http_status(), 429);
  EXPECT_EQ(refused.error().details().at(0).first, "retry_after");
  const auto wait = std::get<std::int64_t>(refused.error().details()[0].second);
  EXPECT_GE(wait, 30);
  EXPECT_LE(wait, 31);
  EXPECT_EQ(database_->writes(), writes) << "it is counted before the recipients are looked up";

  // Each agent in each project has a count of its own, also where the texts run together.
  EXPECT_TRUE(Broadcast(From("y")).ok());
  Announcement announcement = From("x");
  announcement.project = "q";
  announcement.from = "x";
  EXPECT_TRUE(Broadcast(announcement).ok());
  announcement.project = "";
  announcement.from = "px";
  EXPECT_TRUE(Broadcast(announcement).ok());

  clock_.Advance(std::chrono::seconds(wait) + Duration(1));
  EXPECT_TRUE(Broadcast(From("x")).ok());
}

TEST_F(BroadcastTest, FiveThousandAgentsHearOfItInOneTransaction) {
  constexpr std::size_t kAgents = 5000;
  std::vector<NewAgent> agents(kAgents);
  for (std::size_t i = 0; i < kAgents; ++i) agents[i].id = "agent-" + std::to_string(i);
  RegisterAll(agents);
  const auto sent = Broadcast(From("agent-17"));
  ASSERT_TRUE(sent.ok()) << sent.error();
  EXPECT_EQ(sent->received.size(), kAgents - 1);
  EXPECT_EQ(Count(kInboxRows), static_cast<std::int64_t>(kAgents - 1));
  EXPECT_EQ(Count(kEventRows), 1);
  EXPECT_EQ(database_->writes(), 1U);
}

}  // namespace
}  // namespace interlock::service
