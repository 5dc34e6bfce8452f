#include "store/mailboxes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "db/migrate.h"
#include "store/inbox.h"
#include "store/mailbox_fixture.h"
#include "store/message_retention.h"
#include "store/messages.h"
#include "store/receipts.h"
#include "store/schema.h"

namespace interlock::store {
namespace {

using domain::InboxCounts;
using ::testing::ElementsAre;

class Unheard final : public domain::DeliveryListener {
 public:
  void Delivered(std::string_view, std::string_view, domain::Cursor) override {}
};

// Mailboxes whose numbers are not those of the rows in inbox.
constexpr db::Sql kWrong =
    "SELECT COUNT(*) FROM (SELECT 1 FROM (SELECT project, agent, total, unread FROM mailboxes "
    "UNION ALL SELECT project, agent, COUNT(*), COUNT(*) - COUNT(read_at) FROM inbox "
    "GROUP BY project, agent) GROUP BY project, agent, total, unread HAVING COUNT(*) <> 2)";

class MailboxesTest : public MailboxTest {
 protected:
  // As the server sends, and not as tests put rows into tables.
  domain::Cursor Post(const std::string& id, domain::Addresses addresses) {
    const Outgoing outgoing = MakeOutgoing({.id = id,
                                            .project = "p",
                                            .sender = "s",
                                            .addresses = std::move(addresses),
                                            .created_at = clock_.Now()});
    return Write<domain::Cursor>([&](db::Transaction& tx) {
             Unheard unheard;
             return InsertMessage(tx, outgoing, unheard);
           })
        .value();
  }
  domain::ReceiptOutcome Give(domain::ReceiptKind kind, const std::string& id,
                              const std::string& agent) {
    return Write<domain::ReceiptOutcome>([&](db::Transaction& tx) {
             return RecordReceipt(tx, {kind, "p", id, agent, clock_.Now()});
           })
        .value();
  }
  // Reads the message for `a`, and has it removed.
  void Remove(const std::string& project, const std::string& id) {
    ASSERT_TRUE(Write<std::int64_t>([&](db::Transaction& tx) -> Result<std::int64_t> {
                  IL_TRY_VOID(RecordReceipt(
                      tx, {domain::ReceiptKind::kRead, project, id, "a", clock_.Now()}));
                  const auto cursor = static_cast<domain::Cursor>(std::stoi(id.substr(1)));
                  return PruneMessages(tx, std::span(&cursor, 1));
                }).ok());
    EXPECT_EQ(Number(kWrong), 0);
  }
  std::vector<std::string> Abroad() {
    static constexpr db::Sql kAbroad =
        "SELECT project || ' ' || agent || ' ' || cursor FROM inbox_abroad ORDER BY agent, cursor";
    std::vector<std::string> all;
    EXPECT_TRUE(connection()
                    .ForEach(kAbroad, [&](const db::Row& row) { all.push_back(row.String(0)); })
                    .ok());
    return all;
  }
  InboxCounts Counts(const std::string& agent) {
    EXPECT_EQ(Number(kWrong), 0);
    return CountInbox(connection(), "p", agent).value();
  }
};

TEST_F(MailboxesTest, MailIsCountedForEachRecipientHoweverAddressed) {
  Post("m1", {.to = {"a"}, .cc = {"b"}, .bcc = {"c"}});
  Post("m2", {.to = {"a"}});
  EXPECT_EQ(Counts("a"), (InboxCounts{.total = 2, .unread = 2}));
  EXPECT_EQ(Counts("b"), (InboxCounts{.total = 1, .unread = 1}));
  EXPECT_EQ(Counts("c"), (InboxCounts{.total = 1, .unread = 1}));
  EXPECT_EQ(Counts("s"), InboxCounts{});
}

TEST_F(MailboxesTest, WhatIsReadTwiceIsReadOnceAndAnAcknowledgementReadsNothing) {
  Post("m1", {.to = {"a"}});
  Post("m2", {.to = {"a"}});
  EXPECT_EQ(Give(domain::ReceiptKind::kRead, "m1", "a"), domain::ReceiptOutcome::kRecorded);
  EXPECT_EQ(Give(domain::ReceiptKind::kRead, "m1", "a"), domain::ReceiptOutcome::kAlreadyThere);
  EXPECT_EQ(Give(domain::ReceiptKind::kRead, "m1", "b"), domain::ReceiptOutcome::kNotARecipient);
  EXPECT_EQ(Give(domain::ReceiptKind::kAck, "m2", "a"), domain::ReceiptOutcome::kRecorded);
  EXPECT_EQ(Counts("a"), (InboxCounts{.total = 2, .unread = 1}));
}

TEST_F(MailboxesTest, WhatIsRemovedIsCountedNoMoreAndAnEmptyMailboxIsGone) {
  const domain::Cursor first = Post("m1", {.to = {"a", "b"}});
  const domain::Cursor second = Post("m2", {.to = {"a"}});
  for (const auto& [id, agent] : {std::pair("m1", "a"), {"m1", "b"}, {"m2", "a"}}) {
    Give(domain::ReceiptKind::kRead, id, agent);
  }
  const auto prune = [&](domain::Cursor cursor) {
    return Write<std::int64_t>(
               [&](db::Transaction& tx) { return PruneMessages(tx, std::span(&cursor, 1)); })
        .value();
  };
  EXPECT_EQ(prune(first), 1);
  EXPECT_EQ(Counts("a"), (InboxCounts{.total = 1, .unread = 0}));
  EXPECT_EQ(Counts("b"), InboxCounts{});
  EXPECT_EQ(prune(second), 1);
  EXPECT_EQ(Counts("a"), InboxCounts{});
  EXPECT_EQ(Number("SELECT COUNT(*) FROM mailboxes"), 0);
}

TEST_F(MailboxesTest, ASendThatFailsCountsNothing) {
  const auto sent = Write<void>([&](db::Transaction& tx) -> Result<void> {
    IL_TRY_VOID(CountDelivered(tx, "p", "a", 1));
    return Error(Errc::kInvalidArgument, "after all not");
  });
  EXPECT_FALSE(sent.ok());
  EXPECT_EQ(Counts("a"), InboxCounts{});
}

// Its first project is its home; a mailbox that comes after that one is gone may be the next.
TEST_F(MailboxesTest, MailOutsideItsHomeIsAbroadAsLongAsItIsThere) {
  Send({.project = "q"});
  Send({.project = "p"});
  Send({.project = "q"});
  Send({.project = "", .addresses = {.to = {"b"}}});
  EXPECT_THAT(Abroad(), ElementsAre("p a 2"));
  Send({.project = "", .addresses = {.to = {"a", "b"}}});
  EXPECT_THAT(Abroad(), ElementsAre("p a 2", " a 5"));
  Remove("q", "m1");
  Remove("q", "m3");  // the receipts, too, are events, and have a cursor each
  EXPECT_EQ(Number("SELECT COUNT(*) FROM mailboxes WHERE agent = 'a' AND home = 1"), 0);
  Send({.project = "r"});
  Send({.project = "q"});
  EXPECT_THAT(Abroad(), ElementsAre("p a 2", " a 5", "q a 9"));
  EXPECT_EQ(Number("SELECT COUNT(*) FROM mailboxes WHERE agent = 'a' AND home = 1"), 1);
  Remove("p", "m2");
  EXPECT_THAT(Abroad(), ElementsAre(" a 5", "q a 9"));
  KeepingSink sink;
  ASSERT_TRUE(ReadInbox(connection(), {.agent = "a", .limit = 9}, sink).ok());
  EXPECT_THAT(sink.ids(), ElementsAre("m5", "m6", "m7"));
}

// A file of the version before, with mail in it.
TEST(MailboxesMigrationTest, WhatWasInInboxesBeforeIsCounted) {
  const testing::TempDb temp;
  testing::FakeClock clock;
  const auto connection = temp.Open();
  const db::Schema whole = ServerSchema();
  const db::Schema before = {whole.program, whole.steps.first(6)};
  ASSERT_TRUE(db::Migrator(before, {.database = temp.path()}, clock).Run(*connection).ok());
  ASSERT_TRUE(connection
                  ->Run("INSERT INTO inbox (project, agent, cursor, kind, ack_required, read_at) "
                        "VALUES ('q', 'a', 1, 'to', 0, NULL), ('q', 'a', 2, 'cc', 1, 5), "
                        "('q', 'a', 3, 'to', 0, NULL), ('p', 'a', 4, 'to', 0, 7), "
                        "('', 'b', 5, 'bcc', 0, NULL)")
                  .ok());
  ASSERT_TRUE(db::Migrator(whole, {.database = temp.path()}, clock).Run(*connection).ok());
  EXPECT_EQ(CountInbox(*connection, "q", "a").value(), (InboxCounts{.total = 3, .unread = 2}));
  EXPECT_EQ(CountInbox(*connection, "p", "a").value(), (InboxCounts{.total = 1, .unread = 0}));
  EXPECT_EQ(CountInbox(*connection, "", "b").value(), (InboxCounts{.total = 1, .unread = 1}));
  EXPECT_EQ(CountInbox(*connection, "p", "b").value(), InboxCounts{});
  EXPECT_EQ(connection
                ->One("SELECT group_concat(agent || project || cursor || home) "
                      "FROM inbox_abroad JOIN mailboxes USING (project, agent)",
                      [](const db::Row& row) { return row.String(0); })
                .value(),
            "ap40");
  EXPECT_EQ(connection
                ->One("SELECT COUNT(*) FROM mailboxes WHERE home = 1",
                      [](const db::Row& row) { return row.Int(0); })
                .value(),
            2);
}

}  // namespace
}  // namespace interlock::store
