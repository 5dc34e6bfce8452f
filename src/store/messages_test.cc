#include "store/messages.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "base/utf8.h"
#include "store/message_row.h"
#include "store/store_fixture.h"
#include "testing/deaf_listener.h"

namespace interlock::store {
namespace {

using domain::Addresses;
using domain::Cursor;
using domain::Message;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::string_literals;

Message To(std::string id, std::vector<std::string> to) {
  return {.id = std::move(id),
          .project = "p",
          .sender = "sender",
          .body = "text",
          .addresses = {.to = std::move(to)},
          .created_at = {5}};
}

class MessagesTest : public StoreTest {
 protected:
  Result<Cursor> Insert(const Outgoing& outgoing) {
    return Write<Cursor>(
        [&](db::Transaction& tx) { return InsertMessage(tx, outgoing, listener_); });
  }
  Cursor Insert(const Message& message) { return Insert(MakeOutgoing(message)).value(); }

  // Rows of a statement as "a|b|c", NULL as "-".
  std::vector<std::string> Rows(const db::Sql& sql, int columns) {
    std::vector<std::string> rows;
    const auto ran = connection().ForEach(sql, [&](const db::Row& row) {
      std::string text;
      for (int i = 0; i < columns; ++i) {
        text += (i > 0 ? "|" : "") + (row.IsNull(i) ? "-" : row.String(i));
      }
      rows.push_back(std::move(text));
    });
    EXPECT_TRUE(ran.ok());
    return rows;
  }
  std::vector<std::string> Inbox() {
    return Rows(
        "SELECT project, agent, CAST(cursor AS TEXT), kind, CAST(ack_required AS TEXT), "
        "CAST(read_at AS TEXT), CAST(ack_at AS TEXT) FROM inbox ORDER BY cursor, agent",
        7);
  }
  std::vector<std::string> Threads() {
    return Rows(
        "SELECT project, thread_id, agent, CAST(last_cursor AS TEXT), "
        "CAST(message_count AS TEXT), CAST(posted AS TEXT) FROM thread_members "
        "ORDER BY project, thread_id, agent",
        6);
  }
  SentMessage Sent(std::string_view project, std::string_view id) {
    auto found = FindSentMessage(connection(), project, id);
    EXPECT_TRUE(found.ok() && found->has_value());
    return **found;
  }

  testing::DeafListener listener_;
};

TEST_F(MessagesTest, EveryFieldComesBackWithEveryCharacterThereIs) {
  std::string all = "\0 nul\x01\x1f\x7f \"\\/"s;
  for (const char32_t c : {U'é', U'\u2028', U'\uFEFF', U'\uFFFD', U'\uFFFF'}) AppendUtf8(all, c);
  for (char32_t plane = 0; plane <= 16; ++plane) AppendUtf8(all, plane * 0x10000 + 0xABC);
  ASSERT_TRUE(IsUtf8(all));
  Message message = {.cursor = 0,
                     .id = "id" + all,
                     .project = "project" + all,
                     .sender = "sender" + all,
                     .thread_id = "thread" + all,
                     .topic = "topic" + all,
                     .subject = "subject" + all,
                     .body = "body" + all,
                     .importance = "importance" + all,
                     .ack_required = true,
                     .addresses = {.to = {"to" + all}, .cc = {"cc" + all}, .bcc = {"bcc" + all}},
                     .created_at = {1'767'323'045'000'006}};
  message.cursor = Insert(message);
  const SentMessage sent = Sent(message.project, message.id);
  EXPECT_EQ(sent.message, message);
  EXPECT_EQ(sent.received, message.addresses);
  EXPECT_TRUE(sent.denied.empty());
}

TEST_F(MessagesTest, AMessageHasTheCursorOfItsEventWhichTellsNeitherBodyNorRecipients) {
  Message message = To("m", {"alice-to"});
  message.addresses.cc = {"bob-cc"};
  message.addresses.bcc = {"carol-bcc"};
  message.body = "the body";
  EXPECT_EQ(Insert(message), 1);
  message.id = "m2";
  message.thread_id = "t";
  message.subject = "s";
  message.topic = "x";
  message.importance = "high";
  message.ack_required = true;
  EXPECT_EQ(Insert(message), 2);
  EXPECT_THAT(
      Rows("SELECT CAST(cursor AS TEXT), type, project, entity_id, agent, "
           "CAST(created_at AS TEXT), data FROM events ORDER BY cursor",
           7),
      ElementsAre(R"(1|message.created|p|m|sender|5|{"id":"m","from":"sender"})",
                  R"(2|message.created|p|m2|sender|5|{"id":"m2","from":"sender","thread_id":"t",)"
                  R"("subject":"s","topic":"x","importance":"high","ack_required":true})"));
  EXPECT_EQ(Sent("p", "m").message.cursor, 1);
  EXPECT_EQ(Sent("p", "m2").message.cursor, 2);
}

TEST_F(MessagesTest, CopiesAndBlindCopiesAreDeliveredLikeAnyOther) {
  Message message = To("m", {"a"});
  message.addresses.cc = {"b"};
  message.addresses.bcc = {"c"};
  Insert(message);
  message.id = "m2";
  message.ack_required = true;
  Insert(message);
  EXPECT_THAT(Inbox(), ElementsAre("p|a|1|to|0|-|-", "p|b|1|cc|0|-|-", "p|c|1|bcc|0|-|-",
                                   "p|a|2|to|1|-|-", "p|b|2|cc|1|-|-", "p|c|2|bcc|1|-|-"));
  EXPECT_THAT(Threads(), IsEmpty());
}

TEST_F(MessagesTest, AMessageCountsOncePerMemberOfItsThreadAlsoForASenderWhoWritesToItself) {
  Message message = To("m1", {"sender", "a"});
  message.thread_id = "t";
  message.addresses.bcc = {"b"};
  Insert(message);
  EXPECT_THAT(Threads(), ElementsAre("p|t|a|1|1|0", "p|t|b|1|1|0", "p|t|sender|1|1|1"));
  EXPECT_THAT(Inbox(), ElementsAre("p|a|1|to|0|-|-", "p|b|1|bcc|0|-|-", "p|sender|1|to|0|-|-"));

  message.id = "m2";
  message.sender = "a";
  message.addresses = {.to = {"sender"}};
  Insert(message);
  EXPECT_THAT(Threads(), ElementsAre("p|t|a|2|2|1", "p|t|b|1|1|0", "p|t|sender|2|2|1"));
  message.id = "m3";
  message.thread_id = "other";
  Insert(message);
  message.id = "m1";
  message.project = "q";
  message.thread_id = "t";
  Insert(message);
  EXPECT_THAT(Threads(),
              ElementsAre("p|other|a|3|1|1", "p|other|sender|3|1|0", "p|t|a|2|2|1", "p|t|b|1|1|0",
                          "p|t|sender|2|2|1", "q|t|a|4|1|1", "q|t|sender|4|1|0"));
}

TEST_F(MessagesTest, WhoIsDeniedIsRememberedAndReceivesNothing) {
  Message message = To("m", {"a", "b"});
  message.addresses.cc = {"c"};
  message.addresses.bcc = {"d", "e"};
  message.thread_id = "t";
  const Addresses received = {.to = {"b"}, .cc = {}, .bcc = {"d"}};
  const Addresses denied = {.to = {"a"}, .cc = {"c"}, .bcc = {"e"}};
  ASSERT_TRUE(Insert(WithDenied(MakeOutgoing(message), received, denied)).ok());
  EXPECT_THAT(Inbox(), ElementsAre("p|b|1|to|0|-|-", "p|d|1|bcc|0|-|-"));
  EXPECT_THAT(Threads(), ElementsAre("p|t|b|1|1|0", "p|t|d|1|1|0", "p|t|sender|1|1|1"));
  const SentMessage sent = Sent("p", "m");
  EXPECT_TRUE(domain::SaysTheSame(sent.message, message));
  EXPECT_EQ(sent.received, received);
  EXPECT_EQ(sent.denied, denied);
  // Readers see those who received it.
  EXPECT_THAT(
      Rows("SELECT recipients FROM messages", 1),
      ElementsAre(R"({"to":["b"],"bcc":["d"],"denied":{"to":["a"],"cc":["c"],"bcc":["e"]}})"));
}

TEST_F(MessagesTest, AnIdNamesOneMessageOfAProject) {
  Insert(To("m", {"a"}));
  Message other = To("m", {"b"});
  other.project = "";
  other.topic = "news";
  Insert(other);
  EXPECT_EQ(Sent("p", "m").message.addresses.to, std::vector<std::string>{"a"});
  EXPECT_EQ(Sent("", "m").message.addresses.to, std::vector<std::string>{"b"});
  EXPECT_EQ(FindSentMessage(connection(), "p", "M").value(), std::nullopt);
  EXPECT_EQ(FindSentMessage(connection(), "q", "m").value(), std::nullopt);
  EXPECT_THAT(Rows("SELECT project, thread_id, topic FROM messages ORDER BY cursor", 3),
              ElementsAre("p|-|-", "|-|news"));

  const auto again = Insert(MakeOutgoing(To("m", {"c"})));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code(), Errc::kConstraint);
  EXPECT_EQ(Inbox().size(), 2U);
  EXPECT_EQ(Insert(To("m2", {"c"})), 3);
}

TEST_F(MessagesTest, RecipientsThatCannotBeReadAreReportedAsCorrupt) {
  Insert(To("m", {"a"}));
  ASSERT_TRUE(connection_->RunScript("UPDATE messages SET recipients = 'x'").ok());
  const auto found = FindSentMessage(connection(), "p", "m");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), Errc::kCorrupt);
}

}  // namespace
}  // namespace interlock::store
