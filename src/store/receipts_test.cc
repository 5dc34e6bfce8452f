#include "store/receipts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/mailbox_fixture.h"

namespace interlock::store {
namespace {

using domain::ReceiptKind;
using domain::ReceiptOutcome;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ReceiptsTest : public MailboxTest {
 protected:
  ReceiptOutcome Give(ReceiptKind kind, const std::string& id, const std::string& agent,
                      const std::string& project = "p") {
    const auto outcome = Write<ReceiptOutcome>([&](db::Transaction& tx) {
      return RecordReceipt(tx, {kind, project, id, agent, clock_.Now()});
    });
    EXPECT_TRUE(outcome.ok()) << outcome.error();
    return outcome.value();
  }
  // The events of receipts: "type entity agent data".
  std::vector<std::string> Events() {
    static constexpr db::Sql kSelect =
        "SELECT type, entity_id, agent, data, project FROM events "
        "WHERE type <> 'message.created' ORDER BY cursor";
    std::vector<std::string> events;
    EXPECT_TRUE(connection()
                    .ForEach(kSelect,
                             [&](const db::Row& row) {
                               events.push_back(
                                   row.String(4) + ":" + row.String(0) + " " + row.String(1) + " " +
                                   row.OptionalString(2).value_or("-") + " " + row.String(3));
                             })
                    .ok());
    return events;
  }
  std::int64_t Stamps() {
    return Number("SELECT coalesce(sum(read_at), 0) + coalesce(sum(ack_at), 0) FROM inbox");
  }
};

TEST_F(ReceiptsTest, TheFirstTimeStaysAndMakesTheOnlyEvent) {
  Send();
  const std::int64_t first = clock_.Now().micros;
  EXPECT_EQ(Give(ReceiptKind::kRead, "m1", "a"), ReceiptOutcome::kRecorded);
  clock_.Advance(std::chrono::seconds(5));
  EXPECT_EQ(Give(ReceiptKind::kRead, "m1", "a"), ReceiptOutcome::kAlreadyThere);
  EXPECT_EQ(Number("SELECT read_at FROM inbox"), first);
  EXPECT_EQ(Number("SELECT ack_at IS NULL FROM inbox"), 1) << "read does not acknowledge";
  EXPECT_THAT(Events(), ElementsAre(R"(p:message.read m1 a {"agent":"a"})"));
  EXPECT_EQ(Give(ReceiptKind::kAck, "m1", "a"), ReceiptOutcome::kRecorded);
  EXPECT_EQ(Give(ReceiptKind::kAck, "m1", "a"), ReceiptOutcome::kAlreadyThere);
  EXPECT_EQ(Number("SELECT ack_at FROM inbox"), clock_.Now().micros);
  EXPECT_THAT(Events(), ElementsAre(R"(p:message.read m1 a {"agent":"a"})",
                                    R"(p:message.ack m1 a {"agent":"a"})"));
}

TEST_F(ReceiptsTest, EachRecipientHasItsOwn) {
  Send({.project = "p", .addresses = {.to = {"a", "b"}, .cc = {"c"}}});
  EXPECT_EQ(Give(ReceiptKind::kRead, "m1", "c"), ReceiptOutcome::kRecorded);
  EXPECT_EQ(Give(ReceiptKind::kRead, "m1", "a"), ReceiptOutcome::kRecorded);
  EXPECT_EQ(Number("SELECT COUNT(*) FROM inbox WHERE read_at IS NULL"), 1);
  EXPECT_EQ(Number("SELECT read_at IS NULL FROM inbox WHERE agent = 'b'"), 1);
}

TEST_F(ReceiptsTest, ABlindCopyIsNeverNamed) {
  Send({.project = "p", .addresses = {.to = {"a"}, .bcc = {"secret"}}});
  EXPECT_EQ(Give(ReceiptKind::kRead, "m1", "secret"), ReceiptOutcome::kRecorded);
  EXPECT_EQ(Give(ReceiptKind::kAck, "m1", "secret"), ReceiptOutcome::kRecorded);
  EXPECT_THAT(Events(), ElementsAre("p:message.read m1 - {}", "p:message.ack m1 - {}"));
}

TEST_F(ReceiptsTest, WithoutAnAgentItIsTheOnlyRecipientHoweverAddressed) {
  Send();
  Send({.project = "p", .addresses = {.bcc = {"b"}}});
  EXPECT_EQ(Give(ReceiptKind::kRead, "m1", ""), ReceiptOutcome::kRecorded);
  EXPECT_EQ(Give(ReceiptKind::kRead, "m2", ""), ReceiptOutcome::kRecorded);
  Send({.project = "p", .addresses = {.to = {"a"}, .bcc = {"b"}}});  // either may have answered
  Send({.project = "p", .addresses = {.to = {"a"}, .cc = {"b"}}});
  Send({.project = "p", .addresses = {.bcc = {"a", "b"}}});
  const std::int64_t before = Stamps();
  EXPECT_EQ(Give(ReceiptKind::kRead, "m3", ""), ReceiptOutcome::kNobodyNamed);
  EXPECT_EQ(Give(ReceiptKind::kRead, "m4", ""), ReceiptOutcome::kNobodyNamed);
  EXPECT_EQ(Give(ReceiptKind::kRead, "m5", ""), ReceiptOutcome::kNobodyNamed);
  EXPECT_EQ(Stamps(), before);
  EXPECT_THAT(Events(),
              ElementsAre(R"(p:message.read m1 a {"agent":"a"})", "p:message.read m2 - {}"));
}

TEST_F(ReceiptsTest, StrangersAndUnknownMessagesChangeNothing) {
  Send();
  Send({.id = "m1", .project = "q", .addresses = {.to = {"b"}}});
  EXPECT_EQ(Give(ReceiptKind::kAck, "none", "a"), ReceiptOutcome::kNoSuchMessage);
  EXPECT_EQ(Give(ReceiptKind::kAck, "m1", "b"), ReceiptOutcome::kNotARecipient);
  EXPECT_EQ(Give(ReceiptKind::kAck, "m1", "s"), ReceiptOutcome::kNotARecipient);
  EXPECT_EQ(Give(ReceiptKind::kAck, "m1", "a", ""), ReceiptOutcome::kNoSuchMessage);
  EXPECT_EQ(Stamps(), 0);
  EXPECT_THAT(Events(), IsEmpty());
  EXPECT_EQ(Give(ReceiptKind::kAck, "m1", "b", "q"), ReceiptOutcome::kRecorded);
  EXPECT_EQ(Number("SELECT COUNT(*) FROM inbox WHERE project = 'p' AND ack_at IS NULL"), 1);
}

}  // namespace
}  // namespace interlock::store
