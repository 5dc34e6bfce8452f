#include "store/message_retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "store/events.h"
#include "store/mailbox_fixture.h"
#include "store/receipts.h"
#include "store/threads.h"
#include "testing/random.h"
#include "testing/seeded_random.h"

namespace interlock::store {
namespace {

using testing::Below;
using ::testing::ElementsAre;

class MessageRetentionTest : public MailboxTest {
 protected:
  void Give(domain::ReceiptKind kind, const std::string& id, const std::string& agent) {
    const auto given = Write<domain::ReceiptOutcome>([&](db::Transaction& tx) {
      return RecordReceipt(tx, {kind, "p", id, agent, clock_.Now()});
    });
    EXPECT_TRUE(given.ok());
  }
  void Read(const std::string& id, const std::string& agent = "a") {
    Give(domain::ReceiptKind::kRead, id, agent);
  }
  // The events of all that was sent are gone.
  void ForgetEvents() {
    constexpr domain::Cursor kAll = std::numeric_limits<domain::Cursor>::max();
    ASSERT_TRUE(Write<std::int64_t>([](db::Transaction& tx) {
                  return PruneEvents(tx, kAll, 10'000);
                }).ok());
  }
  DoneMessages Find(domain::Cursor after, std::int64_t rows_max, Timestamp older_than) {
    const auto found = FindDoneMessages(connection(), {.now = now_.value_or(Later()),
                                                       .older_than = older_than,
                                                       .after = after,
                                                       .rows_max = rows_max});
    EXPECT_TRUE(found.ok()) << found.error();
    return found.value();
  }
  std::int64_t Prune(const std::vector<domain::Cursor>& cursors) {
    const auto removed =
        Write<std::int64_t>([&](db::Transaction& tx) { return PruneMessages(tx, cursors); });
    EXPECT_TRUE(removed.ok()) << removed.error();
    return removed.value();
  }
  // A whole pass: how many it removed.
  std::int64_t Pass(Timestamp older_than, std::int64_t rows_max = 100) {
    std::int64_t removed = 0;
    DoneMessages found;
    ForgetEvents();
    while (!found.ended) {
      const domain::Cursor at = found.reached;
      found = Find(at, rows_max, older_than);
      EXPECT_TRUE(found.ended || found.reached > at);
      removed += Prune(found.cursors);
    }
    return removed;
  }
  std::vector<std::string> Left() {
    static constexpr db::Sql kSelect = "SELECT id FROM messages ORDER BY cursor";
    std::vector<std::string> ids;
    EXPECT_TRUE(connection()
                    .ForEach(kSelect, [&](const db::Row& row) { ids.push_back(row.String(0)); })
                    .ok());
    return ids;
  }
  Timestamp Later() { return clock_.Now() + Duration(1); }

  std::optional<Timestamp> now_;  // of a pass; nothing = a little later
};

TEST_F(MessageRetentionTest, OnlyWhatEverybodyIsDoneWithGoes) {
  Send({.project = "p", .addresses = {.to = {"a"}, .cc = {"b"}, .bcc = {"c"}}});
  Send({.project = "p", .ack_required = true});
  Send();
  for (const char* agent : {"a", "b"}) Read("m1", agent);
  Read("m2");
  Read("m3");
  EXPECT_EQ(Pass(clock_.Now()), 0) << "a message of this very moment is not older";
  EXPECT_EQ(Pass(Later()), 1);
  EXPECT_THAT(Left(), ElementsAre("m1", "m2"));
  Read("m1", "c");
  EXPECT_EQ(Pass(Later()), 1);
  Give(domain::ReceiptKind::kAck, "m2", "a");
  EXPECT_EQ(Pass(Later()), 1);
  EXPECT_EQ(Number("SELECT COUNT(*) FROM inbox"), 0);
  EXPECT_EQ(Pass(Later()), 0);
}

TEST_F(MessageRetentionTest, AMessageStaysAsLongAsItsEvent) {
  Send();
  const domain::Cursor second = Send();
  const domain::Cursor third = Send();
  for (const char* id : {"m1", "m2", "m3"}) Read(id);
  EXPECT_TRUE(Find(0, 100, Later()).cursors.empty()) << "no event is gone yet";
  ASSERT_TRUE(
      Write<std::int64_t>([&](db::Transaction& tx) { return PruneEvents(tx, second, 500); }).ok());
  const DoneMessages found = Find(0, 100, Later());
  EXPECT_EQ(found.cursors.size(), 2U);
  EXPECT_TRUE(found.ended);
  ForgetEvents();
  EXPECT_THAT(Find(second, 100, Later()).cursors, ElementsAre(third));
}

TEST_F(MessageRetentionTest, YoungerMailStaysAlsoBeforeOlderAndADateToComeSaysNothing) {
  clock_.JumpWallClock(std::chrono::hours(1));
  Send();
  now_ = Later();
  clock_.JumpWallClock(std::chrono::hours(-1));
  Send();
  Read("m1");
  Read("m2");
  EXPECT_EQ(Pass(Later(), 1), 1);
  EXPECT_THAT(Left(), ElementsAre("m1")) << "its date has come, and is young";
  now_.reset();
  EXPECT_EQ(Pass(Later(), 1), 1);
}

TEST_F(MessageRetentionTest, WhatIsGoneOrNotDoneIsLeftOut) {
  const domain::Cursor first = Send();
  const domain::Cursor second = Send();
  Read("m1");
  EXPECT_EQ(Prune({first, second, 77}), 1);
  EXPECT_EQ(Prune({first}), 0);
  EXPECT_THAT(Left(), ElementsAre("m2"));
}

TEST_F(MessageRetentionTest, ABadListOfRecipientsHoldsUpNobody) {
  Send();
  Send();
  Read("m2");
  ASSERT_TRUE(connection().Run("UPDATE messages SET recipients = '{' WHERE id = 'm1'").ok());
  EXPECT_EQ(Pass(Later()), 1);
  EXPECT_THAT(Left(), ElementsAre("m1"));
}

TEST_F(MessageRetentionTest, ALookIsBoundedByRowsAndGoesOnWhereItStopped) {
  for (int i = 0; i < 6; ++i) {
    Send({.project = "p", .addresses = {.to = {"a", "b", "c"}}});
    for (const char* agent : {"a", "b", "c"}) Read("m" + std::to_string(i + 1), agent);
  }
  ForgetEvents();
  const DoneMessages first = Find(0, 8, Later());
  EXPECT_EQ(Prune(first.cursors), 2) << "four rows each";
  EXPECT_FALSE(first.ended);
  const DoneMessages second = Find(first.reached, 1, Later());
  EXPECT_EQ(Prune(second.cursors), 1) << "at least one";
  EXPECT_GT(second.reached, first.reached);
  EXPECT_THAT(Left(), ElementsAre("m4", "m5", "m6"));
}

TEST_F(MessageRetentionTest, AThreadIsAsIfThePrunedMessageHadNeverBeen) {
  const auto post = [&](std::vector<std::string> to) {
    Send({.project = "p", .thread_id = "t", .addresses = {.to = std::move(to)}});
  };
  post({"a", "s"});
  post({"b"});
  post({"a"});
  Read("m3");
  EXPECT_EQ(Pass(Later()), 1);
  const auto of = [&](const std::string& agent) {
    return ListThreads(connection(), {.project = "p", .agent = agent, .limit = 9}).value();
  };
  ASSERT_EQ(of("a").size(), 1u);
  EXPECT_EQ(of("a")[0].message_count, 1);
  const auto cursor_of_m1 = Number("SELECT cursor FROM messages WHERE id = 'm1'");
  EXPECT_EQ(of("a")[0].last_cursor, cursor_of_m1);
  EXPECT_EQ(of("s")[0].message_count, 2);
  EXPECT_EQ(of("s")[0].last_cursor, Number("SELECT cursor FROM messages WHERE id = 'm2'"));
  Read("m2", "b");
  EXPECT_EQ(Pass(Later()), 1);
  EXPECT_TRUE(of("b").empty()) << "it has no message left there";
  EXPECT_EQ(of("s")[0].last_cursor, cursor_of_m1);
  EXPECT_EQ(Number("SELECT posted FROM thread_members WHERE agent = 's'"), 1);
}

// What thread_members must hold, worked out from the messages that are left.
TEST_F(MessageRetentionTest, ThreadMembersStayExactWhateverIsPruned) {
  std::mt19937_64 rng(testing::TestSeed());
  const std::vector<std::string> agents = {"a", "b", "c", "d"};
  std::map<std::string, domain::Message> messages;
  for (int i = 0; i < 60; ++i) {
    domain::Message message{.project = "p",
                            .sender = agents[Below(rng, 4)],
                            .thread_id = "t" + std::to_string(Below(rng, 3))};
    message.id = "r" + std::to_string(i);
    std::set<std::string> to;
    for (std::size_t n = 0; n <= Below(rng, 3); ++n) to.insert(agents[Below(rng, 4)]);
    message.addresses.to.assign(to.begin(), to.end());
    message.cursor = Send(message);
    messages[message.id] = message;
  }
  for (int round = 0; round < 6; ++round) {
    for (const auto& [id, message] : messages) {
      for (const std::string& agent : message.addresses.to) {
        if (Below(rng, 4) == 0) Read(id, agent);
      }
    }
    Pass(Later(), 1 + static_cast<std::int64_t>(Below(rng, 20)));
    std::map<std::pair<std::string, std::string>, std::pair<domain::Cursor, std::int64_t>> want;
    for (const std::string& id : Left()) {
      const domain::Message& message = messages.at(id);
      std::set<std::string> members(message.addresses.to.begin(), message.addresses.to.end());
      members.insert(message.sender);
      for (const std::string& agent : members) {
        auto& [last, count] = want[{message.thread_id, agent}];
        last = std::max(last, message.cursor);
        ++count;
      }
    }
    decltype(want) have;
    static constexpr db::Sql kSelect =
        "SELECT thread_id, agent, last_cursor, message_count FROM thread_members";
    ASSERT_TRUE(connection()
                    .ForEach(kSelect,
                             [&](const db::Row& row) {
                               have[{row.String(0), row.String(1)}] = {row.Int(2), row.Int(3)};
                             })
                    .ok());
    EXPECT_EQ(have, want) << "round " << round;
  }
  EXPECT_LT(Left().size(), messages.size());
}

}  // namespace
}  // namespace interlock::store
