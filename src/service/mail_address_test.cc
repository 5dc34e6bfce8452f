// Mail that is addressed by name.

#include <gmock/gmock.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "service/mail_fixture.h"
#include "testing/on_threads.h"
#include "testing/random.h"

namespace interlock::service {
namespace {

using domain::ContactPolicy;
using domain::KnownRecipient;
using domain::UnknownRecipient;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Delivery = Mail::Delivery;
using Draft = Mail::Draft;
using Texts = std::vector<std::string>;

constexpr db::Sql kInbox =
    "SELECT CAST(cursor AS TEXT) || ' ' || kind FROM inbox WHERE project = ?1 AND agent = ?2 "
    "ORDER BY cursor";
constexpr db::Sql kSenders = "SELECT sender FROM messages ORDER BY cursor";
constexpr db::Sql kInboxRows = "SELECT count(*) FROM inbox";
constexpr db::Sql kThreads =
    "SELECT agent || ' ' || message_count || ' ' || posted FROM thread_members ORDER BY agent";

Draft To(Texts to) {
  return {.project = "p", .from = "s", .body = "text", .addresses = {.to = std::move(to)}};
}

class MailAddressTest : public MailTest {
 protected:
  Texts Inbox(std::string_view agent, std::string_view project = "p") {
    return Rows(kInbox, {project, agent});
  }
  NewAgent Named(std::string id, std::string name) {
    return {.id = std::move(id), .name = std::move(name), .last_seen = clock_.Now()};
  }
};

TEST_F(MailAddressTest, ANameReachesTheAgentAndTheAnswerSaysWhom) {
  Register(Named("1", "ann"));
  Register(Named("2", "bob"));
  Draft draft = To({"ann", "2", "nobody"});
  draft.addresses.bcc = {"bob"};
  draft.thread_id = "t";
  const Delivery sent = Send(draft).value();
  EXPECT_EQ(sent.received, (Texts{"1", "2", "nobody"}));
  EXPECT_THAT(sent.known,
              ElementsAre(KnownRecipient{"ann", "1", "ann"}, KnownRecipient{"2", "2", "bob"},
                          KnownRecipient{"bob", "2", "bob"}));
  EXPECT_THAT(sent.unknown, ElementsAre(UnknownRecipient{"nobody"}));
  EXPECT_THAT(Inbox("1"), ElementsAre("1 to"));
  EXPECT_THAT(Inbox("2"), ElementsAre("1 to"));
  EXPECT_THAT(Inbox("nobody"), ElementsAre("1 to"));
  EXPECT_EQ(Count(kInboxRows), 3);
  EXPECT_THAT(Rows(kThreads), ElementsAre("1 1 0", "2 1 0", "nobody 1 0", "s 1 1"));
}

TEST_F(MailAddressTest, ASenderMayUseItsName) {
  Register(Named("1", "ann"));
  Register({.id = "2", .policy = ContactPolicy::kContactsOnly, .contacts = {"1"}});
  Draft draft = To({"2"});
  draft.from = "ann";
  EXPECT_EQ(Send(draft).value().received, Texts{"2"});
  EXPECT_THAT(Rows(kSenders), ElementsAre("1"));
  ASSERT_TRUE(Broadcast({.project = "p", .from = "ann", .topic = "t", .body = "b"}).ok());
  EXPECT_THAT(Inbox("1"), IsEmpty()) << "its own broadcast";
  EXPECT_THAT(Inbox("2"), ElementsAre("1 to", "2 to"));
}

TEST_F(MailAddressTest, AContactThatWasAddedByNameStaysOneWhenItRegisters) {
  Register({.id = "2", .policy = ContactPolicy::kContactsOnly, .contacts = {"ann"}});
  Register(Named("1", "ann"));
  Draft draft = To({"2"});
  draft.from = "ann";
  EXPECT_EQ(Send(draft).value().received, Texts{"2"});
}

TEST_F(MailAddressTest, AnAmbiguousNameSendsNothing) {
  Register(Named("1", "ann"));
  Register(Named("2", "ann"));
  Register(Named("3", "bob"));
  for (Draft draft :
       {To({"bob", "ann"}), Draft{.project = "p", .from = "ann", .addresses = {.to = {"bob"}}}}) {
    const auto refused = Send(std::move(draft));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().slug(), "ambiguous_recipient");
  }
  EXPECT_EQ(Count(kInboxRows), 0);
  clock_.Advance(minutes(6));
  Register({.id = "4", .name = "ann", .last_seen = clock_.Now()});
  EXPECT_EQ(Send(To({"ann"})).value().received, Texts{"4"});
}

TEST_F(MailAddressTest, APolicyIsThatOfTheNamedAgent) {
  Register({.id = "1", .policy = ContactPolicy::kBlockAll, .name = "ann"});
  const Delivery refused = Send(To({"ann"})).value();
  EXPECT_TRUE(refused.refused());
  EXPECT_EQ(refused.denied, Texts{"1"});
  EXPECT_THAT(refused.known, ElementsAre(KnownRecipient{"ann", "1", "ann"}));
  const Delivery partly = Send(To({"ann", "nobody"})).value();
  EXPECT_EQ(partly.denied, Texts{"1"});
  EXPECT_EQ(partly.received, Texts{"nobody"});
}

TEST_F(MailAddressTest, AnAddressOfAnotherProjectIsUnknownAndOnlySomeSendersHearWhere) {
  Register({.id = "1", .project = "q", .name = "ann"});
  const Delivery told = Send(To({"ann", "1", "nobody"})).value();
  EXPECT_THAT(told.unknown, ElementsAre(UnknownRecipient{"ann", "q"}, UnknownRecipient{"1", "q"},
                                        UnknownRecipient{"nobody"}));
  EXPECT_THAT(told.known, IsEmpty());
  EXPECT_EQ(told.received, (Texts{"ann", "1", "nobody"}));
  Draft draft = To({"ann", "1", "nobody"});
  draft.sight = Mail::Sight::kOwnProject;
  const Delivery untold = Send(draft).value();
  EXPECT_THAT(untold.unknown, ElementsAre(UnknownRecipient{"ann"}, UnknownRecipient{"1"},
                                          UnknownRecipient{"nobody"}));
}

TEST_F(MailAddressTest, AnAgentThatLeftIsUnknownAndItsMailIsKept) {
  Register(Named("1", "ann"));
  Register({.id = "2", .project = "q", .name = "bob"});
  Deregister("1");
  Deregister("2");
  Draft draft = To({"1"});
  draft.id = "i";
  draft.addresses.cc = {"2"};
  draft.addresses.bcc = {"ann"};
  const Delivery sent = Send(draft).value();
  EXPECT_THAT(sent.known, IsEmpty());
  EXPECT_THAT(sent.unknown, ElementsAre(UnknownRecipient{.to = "1", .left = true},
                                        UnknownRecipient{.to = "2", .project = "q", .left = true},
                                        UnknownRecipient{.to = "ann"}));
  EXPECT_EQ(sent.received, (Texts{"1", "2", "ann"}));
  EXPECT_THAT(Inbox("1"), ElementsAre("1 to")) << "kept for the case that it comes back";
  Register(Named("3", "ann"));
  EXPECT_EQ(Send(draft).value(), sent) << "a repeated message gets the first answer";
  draft.sight = Mail::Sight::kOwnProject;
  EXPECT_THAT(Send(draft).value().unknown,
              ElementsAre(UnknownRecipient{.to = "1", .left = true}, UnknownRecipient{.to = "2"},
                          UnknownRecipient{.to = "ann"}))
      << "nothing of another project is told";
  draft.id = {};
  EXPECT_THAT(Send(draft).value().unknown,
              ElementsAre(UnknownRecipient{.to = "1", .left = true}, UnknownRecipient{.to = "2"}));
}

TEST_F(MailAddressTest, ARepeatedMessageGetsTheFirstAnswerWhateverTheNamesMeanNow) {
  Register(Named("1", "ann"));
  Register({.id = "9", .project = "q", .name = "zoe"});
  Draft draft = To({"ann", "bob", "zoe"});
  draft.id = "i";
  draft.from = "ann";
  const Delivery first = Send(draft).value();
  EXPECT_THAT(first.known, ElementsAre(KnownRecipient{"ann", "1", "ann"}));
  EXPECT_THAT(first.unknown, ElementsAre(UnknownRecipient{"bob"}, UnknownRecipient{"zoe", "q"}));
  clock_.Advance(minutes(10));
  Register(Named("2", "ann"));
  Register(Named("3", "ann"));
  Register(Named("4", "bob"));
  Deregister("1");
  Deregister("9");
  EXPECT_EQ(Send(draft).value(), first);
  draft.addresses.to = {"zoe", "bob", "ann"};
  EXPECT_EQ(Send(draft).value(), first);
  EXPECT_EQ(Count(kInboxRows), 3);

  Draft by_key = draft;
  by_key.sight = Mail::Sight::kOwnProject;
  EXPECT_THAT(Send(by_key).value().unknown,
              ElementsAre(UnknownRecipient{"bob"}, UnknownRecipient{"zoe"}));
  draft.addresses.to = {"ann", "bob"};
  EXPECT_EQ(Send(draft).error().slug(), "message_id_conflict");
}

// While agents of the name come and go, each message reaches exactly one of them, or is kept under
// the name while nobody has it, or is refused.
TEST_F(MailAddressTest, EachMessageReachesExactlyOneWhileAgentsOfTheNameComeAndGo) {
  constexpr int kSends = testing::kSlowBuild ? 30 : 200;
  std::atomic<int> accepted = 0;
  testing::OnThreads(3, [&](int thread) {
    for (int i = 0; i < kSends; ++i) {
      if (thread == 0) {
        Register(Named("x" + std::to_string(i), "ann"));
        if (i > 0) Deregister("x" + std::to_string(i - 1));
        continue;
      }
      const auto sent = Send(To({"ann"}));
      if (!sent.ok()) {
        EXPECT_EQ(sent.error().slug(), "ambiguous_recipient");
        continue;
      }
      ++accepted;
      EXPECT_EQ(sent->received.size(), 1U);
      EXPECT_EQ(sent->known.size() + sent->unknown.size(), 1U);
    }
  });
  EXPECT_EQ(Count(kInboxRows), accepted);
}

}  // namespace
}  // namespace interlock::service
