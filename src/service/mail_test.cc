#include "service/mail.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "service/mail_fixture.h"
#include "testing/on_threads.h"

namespace interlock::service {
namespace {

using domain::ContactPolicy;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Bend = BentDatabase::Bend;
using Delivery = Mail::Delivery;
using Draft = Mail::Draft;
using Texts = std::vector<std::string>;

constexpr db::Sql kInbox =
    "SELECT CAST(cursor AS TEXT) || ' ' || kind FROM inbox WHERE project = ?1 AND agent = ?2 "
    "ORDER BY cursor";
constexpr db::Sql kThreads =
    "SELECT agent || ' ' || message_count || ' ' || posted FROM thread_members ORDER BY agent";
constexpr db::Sql kEventData = "SELECT coalesce(data, '') FROM events ORDER BY cursor";
constexpr db::Sql kBodies = "SELECT body FROM messages ORDER BY cursor";
constexpr db::Sql kTopics = "SELECT topic FROM messages ORDER BY cursor";
constexpr db::Sql kEvents = "SELECT count(*) FROM events";
constexpr db::Sql kMessages = "SELECT count(*) FROM messages";
constexpr db::Sql kInboxRows = "SELECT count(*) FROM inbox";

Draft To(Texts to) {
  return {.project = "p", .from = "s", .body = "text", .addresses = {.to = std::move(to)}};
}
Draft WithId(std::string id, Draft draft) {
  draft.id = std::move(id);
  return draft;
}

class SendTest : public MailTest {
 protected:
  Texts Inbox(std::string_view agent, std::string_view project = "p") {
    return Rows(kInbox, {project, agent});
  }
};

TEST_F(SendTest, ReachesEveryAddressOnceHoweverItIsNamed) {
  Draft draft = To({"a", "b", "a"});
  draft.addresses.cc = {"b", "c"};
  draft.addresses.bcc = {"c", "d", "a"};
  const auto sent = Send(draft);
  ASSERT_TRUE(sent.ok());
  EXPECT_EQ(Uuid::Parse(sent->message_id)->version(), 7);
  EXPECT_EQ(sent->cursor, 1);
  EXPECT_EQ(sent->received, (Texts{"a", "b", "c", "d"}));
  EXPECT_THAT(sent->denied, IsEmpty());
  EXPECT_THAT(Inbox("a"), ElementsAre("1 to"));
  EXPECT_THAT(Inbox("b"), ElementsAre("1 to"));
  EXPECT_THAT(Inbox("c"), ElementsAre("1 cc"));
  EXPECT_THAT(Inbox("d"), ElementsAre("1 bcc"));
  EXPECT_EQ(Count(kInboxRows), 4);
  EXPECT_EQ(Count(kEvents), 1);
}

TEST_F(SendTest, WhatIsMissingOrBlankIsNamedAndNothingIsKept) {
  struct Case {
    std::string field;
    std::string where;  // in the message
    std::function<void(Draft&)> spoil;
  };
  const std::vector<Case> cases = {
      {"from", "`from`", [](Draft& d) { d.from = ""; }},
      {"from", "`from`", [](Draft& d) { d.from = " \t\n"; }},
      {"to", "`to`", [](Draft& d) { d.addresses = {.cc = {"c"}}; }},
      {"to", "`to[1]`", [](Draft& d) { d.addresses.to = {"a", ""}; }},
      {"cc", "`cc[0]`", [](Draft& d) { d.addresses.cc = {" "}; }},
      {"bcc", "`bcc[2]`", [](Draft& d) { d.addresses.bcc = {"x", "y", "\r\n"}; }},
  };
  for (const Case& c : cases) {
    Draft draft = To({"a"});
    c.spoil(draft);
    const auto sent = Send(draft);
    ASSERT_FALSE(sent.ok()) << c.where;
    EXPECT_EQ(sent.error().code(), Errc::kInvalidArgument);
    EXPECT_THAT(sent.error().message(), HasSubstr(c.where));
    ASSERT_EQ(sent.error().details().size(), 1U);
    EXPECT_EQ(sent.error().details()[0].second, Error::Value(c.field));
  }
  EXPECT_EQ(database_->writes(), 0U);
}

TEST_F(SendTest, AnEmptyBodyAndANoteToOneselfAreFine) {
  Draft draft = To({"s"});
  draft.body = "";
  EXPECT_TRUE(Send(draft).ok());
  EXPECT_THAT(Inbox("s"), ElementsAre("1 to"));
  Register({.id = "s", .policy = ContactPolicy::kBlockAll});
  EXPECT_TRUE(Send(draft).ok());
  EXPECT_THAT(Inbox("s"), ElementsAre("1 to", "2 to"));
}

TEST_F(SendTest, AnIdThatNoPathCanNameIsRefused) {
  for (const char* id : {"..", ".", "a//b", "a/../b", "/lead", "trail/", "./a"}) {
    const auto refused = Send(WithId(id, To({"a"})));
    ASSERT_FALSE(refused.ok()) << id;
    EXPECT_EQ(refused.error().http_status(), 400) << id;
  }
  for (const char* id : {"a/b", "...", "a..b", ".a"}) EXPECT_TRUE(Send(WithId(id, To({"a"}))).ok());
}

TEST_F(SendTest, TenThousandRecipientsAreRefusedAndAThousandAreNot) {
  Texts many;
  for (int i = 0; i < 10'000; ++i) many.push_back("agent-" + std::to_string(i));
  const auto refused = Send(To(many));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().http_status(), 400);
  EXPECT_EQ(refused.error().slug(), "too_many_recipients");
  EXPECT_THAT(refused.error().message(), HasSubstr("10000"));

  const auto once = Send(To(Texts(2'000, "twice")));
  ASSERT_TRUE(once.ok()) << "each counts once";
  EXPECT_EQ(once->received, Texts{"twice"});

  many.resize(1000);
  Draft draft = To({many.begin(), many.begin() + 400});
  draft.addresses.cc = {many.begin() + 400, many.begin() + 800};
  draft.addresses.bcc = {many.begin() + 800, many.end()};
  const auto sent = Send(draft);
  ASSERT_TRUE(sent.ok());
  EXPECT_EQ(sent->received, many);
  EXPECT_EQ(Count(kInboxRows), 1001);
  draft.addresses.to.push_back("one-more");
  EXPECT_FALSE(Send(draft).ok());
}

TEST_F(SendTest, ASenderAmongTheRecipientsCountsOnceInItsThread) {
  Draft draft = To({"s", "a"});
  draft.thread_id = "t";
  ASSERT_TRUE(Send(draft).ok());
  EXPECT_THAT(Rows(kThreads), ElementsAre("a 1 0", "s 1 1"));
  draft.from = "a";
  draft.addresses = {.to = {"s"}, .cc = {"s", "a"}};
  ASSERT_TRUE(Send(draft).ok());
  EXPECT_THAT(Rows(kThreads), ElementsAre("a 2 1", "s 2 1"));
}

TEST_F(SendTest, ABlindCopyIsNeitherInTheLogNorInAnotherInbox) {
  Draft draft = To({"a"});
  draft.body = "secret body";
  draft.addresses.bcc = {"hidden"};
  ASSERT_TRUE(Send(draft).ok());
  for (const std::string& data : Rows(kEventData)) {
    EXPECT_EQ(data.find("hidden"), std::string::npos);
    EXPECT_EQ(data.find("secret"), std::string::npos);
  }
  EXPECT_THAT(Inbox("a"), ElementsAre("1 to"));
  EXPECT_THAT(Inbox("hidden"), ElementsAre("1 bcc"));
}

TEST_F(SendTest, TopicsAreFoldedAndEveryOtherCharacterIsKept) {
  std::string body("\0\x01 \"\\", 5);
  for (char32_t plane = 0; plane <= 16; ++plane) AppendUtf8(body, plane * 0x10000 + 0xFFFD);
  Draft draft = WithId("i", To({"a"}));
  draft.topic = "  Build BROKEN ";
  draft.body = body;
  ASSERT_TRUE(Send(draft).ok());
  EXPECT_THAT(Rows(kTopics), ElementsAre("build broken"));
  EXPECT_THAT(Rows(kBodies), ElementsAre(body));
  draft.topic = "build broken";
  EXPECT_TRUE(Send(draft).ok());
  EXPECT_EQ(Count(kMessages), 1);
}

// ---- the same request again

TEST_F(SendTest, TheSameRequestAgainGivesTheFirstAnswerAndAddsNothing) {
  Draft draft = WithId("i", To({"a", "b"}));
  draft.thread_id = "t";
  draft.addresses.cc = {"c", "d"};
  const Delivery first = Send(draft).value();
  EXPECT_EQ(first.message_id, "i");
  // Later, from whom nobody wants mail any more, in another order, with an address twice.
  clock_.Advance(std::chrono::hours(1));
  for (const char* id : {"a", "b", "c", "d"}) {
    Register({.id = id, .policy = ContactPolicy::kBlockAll});
  }
  draft.addresses = {.to = {"b", "a", "b"}, .cc = {"d", "a", "c"}};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Send(draft).value(), first);
  EXPECT_EQ(Count(kMessages), 1);
  EXPECT_EQ(Count(kEvents), 1);
  EXPECT_EQ(Count(kInboxRows), 4);
  EXPECT_THAT(Rows(kThreads), ElementsAre("a 1 0", "b 1 0", "c 1 0", "d 1 0", "s 1 1"));
}

TEST_F(SendTest, TheSameIdWithAnythingElseInItIsAConflict) {
  Draft first = WithId("i", To({"a", "b"}));
  first.addresses.cc = {"c"};
  ASSERT_TRUE(Send(first).ok());
  const std::vector<std::function<void(Draft&)>> changes = {
      [](Draft& d) { d.from = "another"; },
      [](Draft& d) { d.thread_id = "t"; },
      [](Draft& d) { d.topic = "t"; },
      [](Draft& d) { d.subject = "t"; },
      [](Draft& d) { d.body += ' '; },
      [](Draft& d) { d.importance = "high"; },
      [](Draft& d) { d.ack_required = true; },
      [](Draft& d) { d.addresses.to = {"a"}; },
      [](Draft& d) { d.addresses.to.emplace_back("z"); },
      [](Draft& d) { d.addresses.bcc.emplace_back("z"); },
      [](Draft& d) { std::swap(d.addresses.to[0], d.addresses.cc[0]); },
      [](Draft& d) { d.addresses.cc.clear(); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Draft draft = first;
    changes[i](draft);
    const auto sent = Send(draft);
    ASSERT_FALSE(sent.ok()) << "change " << i;
    EXPECT_EQ(sent.error().slug(), "message_id_conflict");
    EXPECT_EQ(sent.error().http_status(), 409);
  }
  EXPECT_THAT(Rows(kBodies), ElementsAre("text"));
  EXPECT_EQ(Count(kEvents), 1);
}

TEST_F(SendTest, ProjectsAreApart) {
  Draft draft = WithId("i", To({"a"}));
  ASSERT_TRUE(Send(draft).ok());
  draft.project = "";
  draft.body = "another";
  const auto sent = Send(draft);
  ASSERT_TRUE(sent.ok());
  EXPECT_EQ(sent->cursor, 2);
  EXPECT_THAT(Inbox("a", "p"), ElementsAre("1 to"));
  EXPECT_THAT(Inbox("a", ""), ElementsAre("2 to"));
  EXPECT_THAT(Inbox("a", "q"), IsEmpty());
}

TEST_F(SendTest, FiftyThatSendTheSameAtOnceMakeOneMessageAndHearTheSame) {
  constexpr int kSenders = 50;
  std::vector<Result<Delivery>> answers(kSenders, Error(Errc::kInternal, "none"));
  testing::OnThreads(kSenders, [&](int t) {
    Draft draft = WithId("same", To({"a", "b"}));
    if (t % 2 == 1) std::ranges::reverse(draft.addresses.to);
    answers[static_cast<std::size_t>(t)] = Send(draft);
  });
  for (const auto& answer : answers) {
    ASSERT_TRUE(answer.ok()) << answer.error();
    EXPECT_EQ(answer.value(), answers[0].value());
  }
  EXPECT_EQ(Count(kMessages), 1);
  EXPECT_EQ(Count(kEvents), 1);
  EXPECT_EQ(Count(kInboxRows), 2);
}

TEST_F(SendTest, AWriteThatIsRunAgainSendsOnce) {
  for (const char* id : {"", "chosen"}) {
    const std::size_t before = database_->writes();
    database_->BendNextWrite(Bend::kBusyAfterwards);
    Draft draft = WithId(id, To({"a"}));
    draft.thread_id = "t";
    ASSERT_TRUE(Send(draft).ok());
    EXPECT_EQ(database_->writes(), before + 2);
  }
  EXPECT_EQ(Count(kMessages), 2);
  EXPECT_EQ(Count(kEvents), 2);
  EXPECT_EQ(Inbox("a").size(), 2U);
  EXPECT_THAT(Rows(kThreads), ElementsAre("a 2 0", "s 2 1"));
}

TEST_F(SendTest, WhoDoesNotHearTheOutcomeMayAskAgain) {
  const Draft draft = WithId("i", To({"a"}));
  database_->BendNextWrite(Bend::kUnknownAfterwards);
  const auto lost = Send(draft);
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().code(), Errc::kOutcomeUnknown);
  const auto again = Send(draft);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->cursor, 1);
  EXPECT_EQ(Count(kEvents), 1);
}

// ---- contact policies

TEST_F(SendTest, WhoDoesNotWantItIsNamedAndTheOthersReceiveIt) {
  RegisterAll({{.id = "open"},
               {.id = "blocks", .policy = ContactPolicy::kBlockAll},
               {.id = "choosy", .policy = ContactPolicy::kContactsOnly},
               {.id = "friend", .policy = ContactPolicy::kContactsOnly, .contacts = {"s"}},
               {.id = "auto", .policy = ContactPolicy::kAuto}});
  Draft draft = WithId("i", To({"choosy", "open"}));
  draft.addresses.cc = {"blocks", "friend", "unknown"};
  draft.addresses.bcc = {"auto"};
  const auto sent = Send(draft);
  ASSERT_TRUE(sent.ok());
  EXPECT_FALSE(sent->refused());
  EXPECT_EQ(sent->received, (Texts{"open", "friend", "unknown"}));
  EXPECT_EQ(sent->denied, (Texts{"choosy", "blocks", "auto"}));
  EXPECT_EQ(Count(kInboxRows), 3);
  EXPECT_THAT(Inbox("friend"), ElementsAre("1 cc"));

  // The same again, though the policies would now say otherwise; and without the denied ones it is
  // another request.
  Register({.id = "choosy"});
  Register({.id = "open", .policy = ContactPolicy::kBlockAll});
  EXPECT_EQ(Send(draft).value(), *sent);
  EXPECT_EQ(Count(kInboxRows), 3);
  std::erase(draft.addresses.cc, "blocks");
  EXPECT_EQ(Send(draft).error().slug(), "message_id_conflict");
}

TEST_F(SendTest, WhatNobodyWantsIsRefusedAndLeavesNoTrace) {
  Register({.id = "a", .policy = ContactPolicy::kBlockAll});
  Register({.id = "b", .policy = ContactPolicy::kContactsOnly, .contacts = {"another"}});
  Draft draft = WithId("i", To({"a"}));
  draft.thread_id = "t";
  draft.addresses.bcc = {"b"};
  const auto sent = Send(draft);
  ASSERT_TRUE(sent.ok());
  EXPECT_TRUE(sent->refused());
  EXPECT_EQ(*sent, (Delivery{.denied = {"a", "b"}, .known = {{"a", "a", "a"}, {"b", "b", "b"}}}));
  EXPECT_EQ(Count(kEvents), 0);
  EXPECT_EQ(Count(kMessages), 0);
  EXPECT_THAT(Rows(kThreads), IsEmpty());
  // It was never sent, so it may be tried again.
  Register({.id = "b"});
  EXPECT_EQ(Send(draft)->received, Texts{"b"});
}

TEST_F(SendTest, WhoHasPostedInAThreadMayBeAnsweredThereAndOnlyThere) {
  Register({.id = "choosy", .policy = ContactPolicy::kContactsOnly});
  Draft draft = To({"choosy", "other"});
  draft.thread_id = "t";
  EXPECT_EQ(Send(draft)->denied, Texts{"choosy"});  // the sender has posted now; that opens nothing
  EXPECT_EQ(Send(draft)->denied, Texts{"choosy"});

  Draft asks = To({"s"});
  asks.from = "choosy";
  asks.thread_id = "t";
  ASSERT_TRUE(Send(asks).ok());
  EXPECT_THAT(Send(draft)->denied, IsEmpty());
  Draft stranger = draft;  // who only knows what the thread is called
  stranger.from = "stranger";
  stranger.addresses.to = {"choosy"};
  EXPECT_TRUE(Send(stranger)->refused());
  draft.thread_id = "another";
  EXPECT_EQ(Send(draft)->denied, Texts{"choosy"});
  draft.thread_id = "";
  EXPECT_EQ(Send(draft)->denied, Texts{"choosy"});
  draft.thread_id = "t";
  draft.project = "q";
  EXPECT_EQ(Send(draft)->denied, Texts{"choosy"});
}

}  // namespace
}  // namespace interlock::service
