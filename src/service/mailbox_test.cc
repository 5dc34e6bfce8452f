// Asking for new mail again and again, which mostly needs no read: what was answered is never
// missed.

#include "service/mailbox.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <string>

#include "service/mail_fixture.h"
#include "testing/on_threads.h"
#include "testing/random.h"

namespace interlock::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Bend = BentDatabase::Bend;

class PollingTest : public MailTest {
 protected:
  Texts Poll(domain::Cursor after, std::int64_t limit = 100) {
    return ReadInbox({.project = "p", .agent = "a", .after = after, .limit = limit});
  }
  Result<Mail::Delivery> SendTo(const std::string& agent, const std::string& id) {
    return Send(
        {.project = "p", .from = "s", .id = id, .body = "text", .addresses = {.to = {agent}}});
  }
  std::size_t ReadsOf(domain::Cursor after) {
    const std::size_t before = database_->reads();
    EXPECT_THAT(Poll(after), IsEmpty());
    return database_->reads() - before;
  }
};

TEST_F(PollingTest, ThatNothingCameIsReadOnce) {
  EXPECT_EQ(ReadsOf(0), 1U);
  EXPECT_EQ(ReadsOf(0), 0U);
  const auto sent = SendTo("a", "m1");
  EXPECT_THAT(Poll(0), ElementsAre("m1"));
  EXPECT_EQ(ReadsOf(sent->cursor), 0U);
}

TEST_F(PollingTest, WhatCameForOthersDisturbsNobody) {
  EXPECT_EQ(ReadsOf(0), 1U);
  ASSERT_TRUE(SendTo("b", "m1").ok());
  EXPECT_EQ(ReadsOf(0), 0U);
}

TEST_F(PollingTest, CursorBeyondTheLogIsRefusedAlsoWhenNothingIsNew) {
  const auto poll_ahead = [this](domain::Cursor after) {
    const auto read = TryReadInbox({.project = "p", .agent = "a", .after = after, .limit = 9});
    return read.ok() ? "answered" : std::string(read.error().slug());
  };
  EXPECT_EQ(poll_ahead(1'000'000), "cursor_ahead");
  const auto sent = SendTo("a", "m1");
  EXPECT_THAT(Poll(0), ElementsAre("m1"));
  EXPECT_EQ(ReadsOf(sent->cursor), 0U);
  EXPECT_EQ(poll_ahead(sent->cursor + 1), "cursor_ahead");
  EXPECT_EQ(poll_ahead(1'000'000), "cursor_ahead");
}

TEST_F(PollingTest, APageThatIsFullSaysNothingOfTheEnd) {
  ASSERT_TRUE(SendTo("a", "m1").ok());
  const auto second = SendTo("a", "m2");
  Storage restarted(*database_, system_clock_);
  mailbox_ = std::make_unique<Mailbox>(restarted, clock_);
  EXPECT_THAT(Poll(0, 1), ElementsAre("m1"));
  EXPECT_THAT(Poll(second->cursor - 1, 1), ElementsAre("m2"));
  EXPECT_EQ(ReadsOf(second->cursor), 1U);
  restarted.Stop();
}

TEST_F(PollingTest, AMessageOfUnknownOutcomeIsSeenIfItIsThere) {
  EXPECT_EQ(ReadsOf(0), 1U);
  database_->BendNextWrite(Bend::kUnknownAfterwards);
  EXPECT_EQ(SendTo("a", "m1").error().code(), Errc::kOutcomeUnknown);
  EXPECT_THAT(Poll(0), ElementsAre("m1"));
}

TEST_F(PollingTest, AMessageThatWasRolledBackAndRunAgainIsSeen) {
  EXPECT_EQ(ReadsOf(0), 1U);
  database_->BendNextWrite(Bend::kBusyAfterwards);
  ASSERT_TRUE(SendTo("a", "m1").ok());
  EXPECT_THAT(Poll(0), ElementsAre("m1"));
}

TEST_F(PollingTest, ABroadcastIsSeen) {
  RegisterAll({{.id = "a"}, {.id = "s"}});
  EXPECT_EQ(ReadsOf(0), 1U);
  const auto sent =
      Broadcast({.project = "p", .from = "s", .topic = "news", .body = "to everybody"});
  EXPECT_THAT(Poll(0), ElementsAre(sent->message_id));
}

TEST_F(PollingTest, AnInboxOfEveryProjectIsAlwaysRead) {
  EXPECT_THAT(ReadInbox({.agent = "a", .limit = 10}), IsEmpty());
  ASSERT_TRUE(SendTo("a", "m1").ok());
  EXPECT_THAT(ReadInbox({.agent = "a", .limit = 10}), ElementsAre("m1"));
}

TEST_F(PollingTest, MailUnderABareNameIsReadWithTheAgentsOwnAndThenKnown) {
  ASSERT_TRUE(SendTo("ann", "m1").ok());
  Register({.id = "a", .name = "ann"});
  EXPECT_THAT(Poll(0), ElementsAre("m1"));
  const auto own = SendTo("ann", "m2");
  EXPECT_THAT(own->received, ElementsAre("a"));
  EXPECT_THAT(Poll(0), ElementsAre("m1", "m2"));
  EXPECT_THAT(Poll(0, 1), ElementsAre("m1"));
  EXPECT_EQ(ReadsOf(own->cursor), 0U) << "both inboxes are known to end there";
  // As a letter to a holder is put there, whoever has the name by then.
  storage_->inboxes().Delivered("p", "ann", own->cursor + 1);
  EXPECT_EQ(ReadsOf(own->cursor), 1U);
}

TEST_F(PollingTest, MailUnderABareNameIsInOneInboxWhoeverComesAndGoes) {
  const auto inbox = [this](const std::string& id) {
    return ReadInbox({.project = "p", .agent = id, .limit = 9});
  };
  ASSERT_TRUE(SendTo("ann", "m1").ok());
  Register({.id = "a", .name = "ann", .last_seen = clock_.Now()});
  EXPECT_THAT(inbox("a"), ElementsAre("m1"));
  Register({.id = "b", .name = "ann", .last_seen = clock_.Now()});
  EXPECT_THAT(inbox("a"), ElementsAre("m1"));
  EXPECT_THAT(inbox("b"), IsEmpty());
  clock_.Advance(std::chrono::minutes(6));
  Register({.id = "c", .name = "ann", .last_seen = clock_.Now()});
  EXPECT_THAT(inbox("a"), IsEmpty());
  EXPECT_THAT(inbox("b"), IsEmpty());
  EXPECT_THAT(inbox("c"), ElementsAre("m1"));
  Deregister("a");
  Deregister("b");
  EXPECT_THAT(inbox("c"), ElementsAre("m1"));
  Deregister("c");
  EXPECT_THAT(inbox("c"), IsEmpty());
  EXPECT_THAT(inbox("ann"), ElementsAre("m1"));
}

TEST_F(PollingTest, AnInboxByNameIsAlwaysRead) {
  const auto by_name = [this] { return ReadInbox({.project = "p", .agent = "ann", .limit = 9}); };
  ASSERT_TRUE(SendTo("ann", "m1").ok());
  EXPECT_THAT(by_name(), ElementsAre("m1"));
  Register({.id = "a", .name = "ann"});
  ASSERT_TRUE(SendTo("a", "m2").ok());
  EXPECT_THAT(by_name(), ElementsAre("m1", "m2"));
  Deregister("a");
  EXPECT_THAT(by_name(), ElementsAre("m1")) << "nobody has the name";
}

// The inbox is forgotten between the delivery and the commit, and read in between.
TEST_F(PollingTest, AMessageIsSeenThoughItsInboxWasForgottenBeforeTheCommit) {
  Storage small(*database_, system_clock_, {.inboxes_max = 2});
  mail_ = std::make_unique<Mail>(small, clock_, ids_);
  mailbox_ = std::make_unique<Mailbox>(small, clock_);
  database_->AfterEachWrite([this](db::Transaction&) -> Result<void> {
    EXPECT_THAT(Poll(0), IsEmpty());
    return {};
  });
  ASSERT_TRUE(Send({.project = "p",
                    .from = "s",
                    .id = "m1",
                    .body = "text",
                    .addresses = {.to = {"a", "b", "c"}}})
                  .ok());
  EXPECT_THAT(Poll(0), ElementsAre("m1"));
  small.Stop();
}

// Whoever has sent and was answered finds the message at once, though others poll the same inbox
// and teach what they saw a moment ago.
TEST_F(PollingTest, WhatWasAnsweredIsInTheInboxAtOnce) {
  constexpr int kSenders = 2;
  constexpr int kLetters = testing::kSlowBuild ? 60 : 500;
  std::atomic<int> sending = kSenders;
  std::atomic<domain::Cursor> newest = 0;
  const auto send_all = [&](int sender) {
    for (int i = 0; i < kLetters; ++i) {
      const std::string id = std::to_string(sender) + "-" + std::to_string(i);
      const auto sent = SendTo("a", id);
      ASSERT_TRUE(sent.ok()) << sent.error();
      const Texts found = Poll(sent->cursor - 1);
      ASSERT_FALSE(found.empty()) << id;
      ASSERT_EQ(found.front(), id);
      newest = sent->cursor;
    }
  };
  testing::OnThreads(kSenders + 4, [&](int thread) {
    if (thread < kSenders) {
      send_all(thread);
      --sending;
    }
    while (sending > 0) Poll(newest);
  });
}

}  // namespace
}  // namespace interlock::service
