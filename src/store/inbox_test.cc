#include "store/inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/mailbox_fixture.h"
#include "store/mailboxes.h"
#include "store/receipts.h"
#include "store/schema.h"
#include "store/threads.h"
#include "store/topics.h"

namespace interlock::store {
namespace {

using domain::AddressKind;
using domain::InboxCounts;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class InboxTest : public MailboxTest {
 protected:
  std::vector<std::string> Ids(const domain::InboxQuery& query) {
    KeepingSink sink;
    EXPECT_TRUE(ReadInbox(connection(), query, sink).ok());
    return sink.ids();
  }
  std::vector<std::string> Stale(const domain::StaleAcksQuery& query) {
    KeepingSink sink;
    EXPECT_TRUE(ReadStaleAcks(connection(), query, sink).ok());
    return sink.ids();
  }
  domain::ReceiptOutcome Give(domain::ReceiptKind kind, const std::string& id,
                              const std::string& agent) {
    return Write<domain::ReceiptOutcome>([&](db::Transaction& tx) {
             return RecordReceipt(tx, {kind, "p", id, agent, clock_.Now()});
           })
        .value();
  }
};

TEST_F(InboxTest, PagesFollowEachOtherWithoutGapOrDouble) {
  std::vector<domain::Cursor> cursors;
  cursors.reserve(5);
  for (int i = 0; i < 5; ++i) cursors.push_back(Send());
  const auto page = [&](domain::Cursor after) {
    return Ids({.project = "p", .agent = "a", .after = after, .limit = 2});
  };
  EXPECT_THAT(page(0), ElementsAre("m1", "m2"));
  EXPECT_THAT(page(cursors[1]), ElementsAre("m3", "m4"));
  EXPECT_THAT(page(cursors[3]), ElementsAre("m5"));
  EXPECT_THAT(page(cursors[4]), IsEmpty());
}

TEST_F(InboxTest, CursorBeyondTheLogIsRefusedAndOneBeyondTheInboxIsNot) {
  Send();
  const domain::Cursor newest = Send({.project = "q", .topic = "build"});
  const auto read = [&](const domain::InboxQuery& query) {
    KeepingSink sink;
    return ReadInbox(connection(), query, sink);
  };
  const auto inbox = [](std::optional<std::string> project, domain::Cursor after) {
    return domain::InboxQuery{
        .project = std::move(project), .agent = "a", .after = after, .limit = 9};
  };
  for (const std::optional<std::string>& project : {std::optional<std::string>("p"), {}}) {
    EXPECT_TRUE(read(inbox(project, newest)).ok());
    for (const domain::Cursor ahead : {newest + 1, std::numeric_limits<domain::Cursor>::max()}) {
      EXPECT_EQ(read(inbox(project, ahead)).error().slug(), "cursor_ahead") << ahead;
    }
  }
  KeepingSink sink;
  EXPECT_EQ(ReadTopic(connection(),
                      {.project = "q", .topic = "build", .after = newest + 1, .limit = 9}, sink)
                .error()
                .slug(),
            "cursor_ahead");
}

TEST_F(InboxTest, EverybodyAddressedHasItOnceAndKnowsHow) {
  Send({.project = "p", .addresses = {.to = {"a"}, .cc = {"b"}, .bcc = {"c"}}});
  const struct {
    std::string agent;
    AddressKind kind;
  } kCases[] = {{"a", AddressKind::kTo}, {"b", AddressKind::kCc}, {"c", AddressKind::kBcc}};
  for (const auto& c : kCases) {
    KeepingSink sink;
    ASSERT_TRUE(
        ReadInbox(connection(), {.project = "p", .agent = c.agent, .limit = 10}, sink).ok());
    ASSERT_EQ(sink.kept().size(), 1u) << c.agent;
    EXPECT_EQ(sink.kept()[0].kind, c.kind);
    EXPECT_EQ(sink.kept()[0].to, R"(["a"])");
    EXPECT_EQ(sink.kept()[0].cc, R"(["b"])");
    EXPECT_EQ(sink.kept()[0].bcc, R"(["c"])");
  }
  EXPECT_THAT(Ids({.project = "p", .agent = "s", .limit = 10}), IsEmpty());
}

TEST_F(InboxTest, AProjectIsReadAloneAndNoneMeansAll) {
  Send({.project = "p"});
  Send({.project = "q"});
  Send({.project = ""});
  EXPECT_THAT(Ids({.project = "p", .agent = "a", .limit = 10}), ElementsAre("m1"));
  EXPECT_THAT(Ids({.project = "", .agent = "a", .limit = 10}), ElementsAre("m3"));
  EXPECT_THAT(Ids({.agent = "a", .limit = 10}), ElementsAre("m1", "m2", "m3"));
  EXPECT_THAT(Ids({.agent = "a", .after = 1, .limit = 1}), ElementsAre("m2"));
}

// Every way to cut the mail of three projects into pages, in runs and in turns.
TEST_F(InboxTest, PagesOfAllProjectsAreInTheOrderOfCursorsWithoutGapOrDouble) {
  std::vector<std::string> all;
  for (const char* project : {"p", "p", "q", "", "q", "p", "", "", "q", "q", "p", "r"}) {
    Send({.project = project});
    Send({.project = project, .addresses = {.to = {"another"}}});
    all.push_back("m" + std::to_string(sent_ - 1));
  }
  for (std::int64_t limit = 1; limit <= 13; ++limit) {
    std::vector<std::string> read;
    domain::Cursor after = 0;
    bool ended = false;
    while (!ended) {
      KeepingSink sink;
      const auto end =
          ReadInbox(connection(), {.agent = "a", .after = after, .limit = limit}, sink).value();
      ended = end.has_value();
      ASSERT_LE(std::ssize(sink.kept()), limit);
      ASSERT_EQ(ended, std::ssize(sink.kept()) < limit);
      for (const std::string& id : sink.ids()) read.push_back(id);
      if (!sink.kept().empty()) after = sink.kept().back().cursor;
    }
    EXPECT_EQ(read, all) << limit;
  }
}

// Somebody took the message out of the file by hand.
TEST_F(InboxTest, AMessageThatIsGoneIsLeftOutOfAllProjectsAndNothingElse) {
  for (const char* project : {"p", "p", "q", "p", "q"}) Send({.project = project});
  ASSERT_TRUE(connection().Run("DELETE FROM messages WHERE id = 'm2'").ok());
  EXPECT_THAT(Ids({.agent = "a", .limit = 10}), ElementsAre("m1", "m3", "m4", "m5"));
}

TEST_F(InboxTest, ASinkThatHasEnoughEndsTheReadOfAllProjectsToo) {
  for (const char* project : {"p", "q", "p", "q"}) Send({.project = project});
  for (std::size_t enough = 1; enough <= 4; ++enough) {
    KeepingSink sink(enough);
    const auto end = ReadInbox(connection(), {.agent = "a", .limit = 10}, sink);
    ASSERT_TRUE(end.ok());
    EXPECT_FALSE(end->has_value()) << "what is behind the page is not known";
    EXPECT_EQ(sink.kept().size(), enough);
    EXPECT_EQ(sink.kept().back().id, "m" + std::to_string(enough));
  }
}

TEST_F(InboxTest, ASinkThatHasEnoughEndsTheReadAndKeepsWhatItHas) {
  for (int i = 0; i < 4; ++i) Send();
  KeepingSink sink(2);
  ASSERT_TRUE(ReadInbox(connection(), {.project = "p", .agent = "a", .limit = 10}, sink).ok());
  EXPECT_THAT(sink.ids(), ElementsAre("m1", "m2"));
  ASSERT_TRUE(ReadInbox(connection(), {.project = "p", .agent = "a", .limit = 10}, sink).ok());
  EXPECT_THAT(sink.ids(), ElementsAre("m1", "m2")) << "a second run begins anew";
}

TEST_F(InboxTest, CountsGoDownAsMailIsRead) {
  Send();
  Send({.project = "p", .addresses = {.to = {"b"}, .cc = {"a"}}});
  Send({.project = "p", .addresses = {.to = {"b"}, .bcc = {"a"}}});
  Send({.project = "q"});
  EXPECT_EQ(CountInbox(connection(), "p", "a").value(), (InboxCounts{.total = 3, .unread = 3}));
  Give(domain::ReceiptKind::kRead, "m2", "a");
  EXPECT_EQ(CountInbox(connection(), "p", "a").value(), (InboxCounts{.total = 3, .unread = 2}));
  Give(domain::ReceiptKind::kAck, "m1", "a");
  EXPECT_EQ(CountInbox(connection(), "p", "a").value(), (InboxCounts{.total = 3, .unread = 2}))
      << "an acknowledgement does not say that it was read";
  EXPECT_EQ(CountInbox(connection(), "p", "nobody").value(), InboxCounts{});
  EXPECT_EQ(CountInbox(connection(), "", "a").value(), InboxCounts{});
}

TEST_F(InboxTest, StaleAcksAreOldestFirstAndOnlyThoseThatWait) {
  const Timestamp start = clock_.Now();
  Send({.project = "p", .ack_required = true});
  Send({.project = "p"});
  clock_.Advance(std::chrono::seconds(10));
  Send({.project = "p", .ack_required = true, .addresses = {.to = {"b"}, .cc = {"a"}}});
  Send({.project = "q", .ack_required = true});
  Send({.project = "p", .ack_required = true});
  EXPECT_THAT(Stale({.project = "p", .agent = "a", .limit = 9}), ElementsAre("m1", "m3", "m5"));
  EXPECT_THAT(Stale({.project = "p", .agent = "a", .limit = 2}), ElementsAre("m1", "m3"));
  EXPECT_THAT(Stale({.project = "p", .agent = "a", .created_until = start, .limit = 9}),
              ElementsAre("m1"));
  EXPECT_THAT(
      Stale({.project = "p", .agent = "a", .created_until = {{start.micros - 1}}, .limit = 9}),
      IsEmpty());
  Give(domain::ReceiptKind::kRead, "m3", "a");
  Give(domain::ReceiptKind::kAck, "m1", "a");
  Give(domain::ReceiptKind::kAck, "m3", "b");
  KeepingSink sink;
  ASSERT_TRUE(ReadStaleAcks(connection(), {.project = "p", .agent = "a", .limit = 9}, sink).ok());
  EXPECT_THAT(sink.ids(), ElementsAre("m3", "m5"));
  EXPECT_EQ(sink.kept()[0].kind, AddressKind::kCc);
  EXPECT_EQ(sink.kept()[0].read_at, clock_.Now());
  EXPECT_EQ(sink.kept()[1].read_at, std::nullopt);
}

// How SQLite would run one of the statements.
std::string PlanOf(sqlite::Connection& connection, std::string_view name) {
  std::string plan;
  for (const db::NamedSql& statement : Statements()) {
    if (statement.name != name) continue;
    const auto lines = connection.QueryPlan(statement.sql);
    if (!lines.ok()) return lines.error().message();
    for (const std::string& line : *lines) plan += line + "\n";
  }
  return plan;
}

// The plan test refuses scans; this one pins which index is walked, in which order and how far, so
// that a page costs the same whatever is stored around it.
TEST_F(InboxTest, EveryReadIsARangeOfItsIndexWithoutSorting) {
  const struct {
    std::string_view statement;
    std::string first_line;
  } kCases[] = {
      {"kReadInbox", "SEARCH i USING PRIMARY KEY (project=? AND agent=? AND cursor>?)"},
      {"kCounts", "SEARCH mailboxes USING PRIMARY KEY (project=? AND agent=?)"},
      {"kReadStaleAcks", "SEARCH w USING COVERING INDEX inbox_unacked (project=? AND agent=?"},
      {"kReadThread",
       "SEARCH m USING INDEX messages_of_thread (project=? AND thread_id=? AND rowid>?)"},
      {"kReadTopic", "SEARCH m USING INDEX messages_of_topic (project=? AND topic=? AND rowid>?)"},
  };
  for (const auto& c : kCases) {
    const std::string plan = PlanOf(*connection_, c.statement);
    EXPECT_THAT(plan.substr(0, plan.find('\n')), HasSubstr(c.first_line)) << c.statement;
    EXPECT_EQ(plan.find("TEMP B-TREE"), std::string::npos) << c.statement << "\n" << plan;
  }
}

// Two ranges merged, of which no more is read than the page takes.
TEST_F(InboxTest, WhatIsInAllProjectsIsMergedWithoutSorting) {
  const std::string plan = PlanOf(*connection_, "kNextAnywhere");
  EXPECT_THAT(plan, HasSubstr("MERGE (UNION ALL)"));
  EXPECT_THAT(plan,
              HasSubstr("SEARCH inbox USING PRIMARY KEY (project=? AND agent=? AND cursor>?"));
  // Some releases of SQLite say that they need nothing but the index, others do not.
  EXPECT_THAT(plan, AnyOf(HasSubstr("SEARCH mailboxes USING INDEX mailboxes_at_home (agent=?)"),
                          HasSubstr("SEARCH mailboxes USING COVERING INDEX mailboxes_at_home "
                                    "(agent=?)")));
  EXPECT_THAT(plan, HasSubstr("SEARCH inbox_abroad USING PRIMARY KEY (agent=? AND cursor>?)"));
  EXPECT_EQ(plan.find("TEMP B-TREE"), std::string::npos) << plan;
}

TEST_F(InboxTest, MailUnderABareNameIsMergedInOrderWithoutDoubles) {
  Send({.project = "p", .ack_required = true, .addresses = {.to = {"ann"}}});       // m1
  Send({.project = "p", .ack_required = true, .addresses = {.to = {"a"}}});         // m2
  Send({.project = "q", .addresses = {.to = {"a", "ann"}}});                        // m3
  Send({.project = "p", .ack_required = true, .addresses = {.to = {"a", "ann"}}});  // m4
  Send({.project = "p", .ack_required = true, .addresses = {.cc = {"ann"}}});       // m5
  const domain::BareName ann = {"p", "ann"};
  EXPECT_THAT(Ids({.project = "p", .agent = "a", .limit = 9, .also = ann}),
              ElementsAre("m1", "m2", "m4", "m5"));
  EXPECT_THAT(Ids({.project = "p", .agent = "a", .after = 1, .limit = 2, .also = ann}),
              ElementsAre("m2", "m4"));
  EXPECT_THAT(Ids({.project = "q", .agent = "a", .limit = 9, .also = ann}), ElementsAre("m3"));
  EXPECT_THAT(Ids({.agent = "a", .limit = 9, .also = ann}),
              ElementsAre("m1", "m2", "m3", "m4", "m5"));
  EXPECT_THAT(Stale({.project = "p", .agent = "a", .limit = 9, .also = ann}),
              ElementsAre("m1", "m2", "m4", "m5"));
  EXPECT_EQ(CountInbox(connection(), "p", "a", "ann").value(),
            (InboxCounts{.total = 4, .unread = 4}));
  EXPECT_EQ(Give(domain::ReceiptKind::kRead, "m4", "ann"), domain::ReceiptOutcome::kRecorded);
  EXPECT_EQ(CountInbox(connection(), "p", "a", "ann").value(),
            (InboxCounts{.total = 4, .unread = 4}))
      << "a message in both is as it is in the agent's own";
  EXPECT_EQ(Give(domain::ReceiptKind::kRead, "m1", "ann"), domain::ReceiptOutcome::kRecorded);
  EXPECT_EQ(CountInbox(connection(), "p", "a", "ann").value(),
            (InboxCounts{.total = 4, .unread = 3}));
  EXPECT_EQ(Give(domain::ReceiptKind::kAck, "m4", "ann"), domain::ReceiptOutcome::kRecorded);
  EXPECT_EQ(Give(domain::ReceiptKind::kAck, "m5", "ann"), domain::ReceiptOutcome::kRecorded);
  EXPECT_THAT(Stale({.project = "p", .agent = "a", .limit = 9, .also = ann}),
              ElementsAre("m1", "m2", "m4"));
}

TEST_F(InboxTest, MailUnderABareNameIsMergedWithoutSorting) {
  for (const char* statement : {"kNextOrUnderName", "kNextAnywhereOrUnderName", "kNextStaleAcks"}) {
    const std::string plan = PlanOf(*connection_, statement);
    EXPECT_THAT(plan, HasSubstr("MERGE (UNION ALL)")) << plan;
    EXPECT_EQ(plan.find("TEMP B-TREE"), std::string::npos) << plan;
  }
}

// The threads of an agent are sorted, and nobody else's are looked at; messages are read for those
// of the page only.
TEST_F(InboxTest, ThreadsAreSortedBeforeTheirMessagesAreRead) {
  const std::string plan = PlanOf(*connection_, "kListThreads");
  const std::size_t found =
      plan.find("SEARCH a USING COVERING INDEX thread_members_of_agent (project=? AND agent=?)");
  const std::size_t row =
      plan.find("SEARCH t USING PRIMARY KEY (project=? AND thread_id=? AND agent=?)");
  const std::size_t sorted = plan.find("TEMP B-TREE");
  const std::size_t read = plan.find("SEARCH m USING INTEGER PRIMARY KEY");
  EXPECT_LT(found, row) << plan;
  EXPECT_LT(row, sorted) << plan;
  EXPECT_LT(sorted, read) << plan;
}

TEST_F(InboxTest, TopicsAreReadByCursorAndProject) {
  Send({.project = "p", .topic = "build"});
  Send({.project = "p", .topic = "other"});
  Send({.project = "q", .topic = "build"});
  Send({.project = "p"});
  const domain::Cursor last = Send({.project = "p", .topic = "build"});
  const auto ids = [&](const domain::TopicQuery& query) {
    KeepingSink sink;
    EXPECT_TRUE(ReadTopic(connection(), query, sink).ok());
    return sink.ids();
  };
  EXPECT_THAT(ids({.project = "p", .topic = "build", .limit = 9}), ElementsAre("m1", "m5"));
  EXPECT_THAT(ids({.project = "p", .topic = "build", .limit = 1}), ElementsAre("m1"));
  EXPECT_THAT(ids({.project = "p", .topic = "build", .after = 1, .limit = 9}), ElementsAre("m5"));
  EXPECT_THAT(ids({.project = "p", .topic = "build", .after = last, .limit = 9}), IsEmpty());
  EXPECT_THAT(ids({.project = "p", .topic = "", .limit = 9}), IsEmpty());
}

}  // namespace
}  // namespace interlock::store
