#include "store/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/utf8.h"
#include "store/mailbox_fixture.h"

namespace interlock::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ThreadsTest : public MailboxTest {
 protected:
  domain::Cursor Post(const std::string& thread, const std::string& body = "",
                      domain::Addresses addresses = {}, const std::string& project = "p") {
    return Send(
        {.project = project, .thread_id = thread, .body = body, .addresses = std::move(addresses)});
  }
  std::vector<domain::ThreadSummary> Of(domain::ThreadsQuery query) {
    if (query.limit == 0) query.limit = 50;
    return ListThreads(connection(), query).value();
  }
  std::vector<std::string> Names(const domain::ThreadsQuery& query) {
    std::vector<std::string> names;
    for (const domain::ThreadSummary& thread : Of(query)) names.push_back(thread.thread_id);
    return names;
  }
};

TEST_F(ThreadsTest, SenderAndEveryRecipientHaveTheThread) {
  Post("t", "hello", {.to = {"a"}, .cc = {"b"}, .bcc = {"c"}});
  for (const std::string agent : {"s", "a", "b", "c"}) {
    const auto threads = Of({.project = "p", .agent = agent});
    ASSERT_EQ(threads.size(), 1u) << agent;
    EXPECT_EQ(threads[0], (domain::ThreadSummary{.thread_id = "t",
                                                 .last_cursor = 1,
                                                 .message_count = 1,
                                                 .last_from = "s",
                                                 .last_body = "hello",
                                                 .last_at = clock_.Now()}));
  }
  EXPECT_THAT(Names({.project = "p", .agent = "nobody"}), IsEmpty());
}

TEST_F(ThreadsTest, ThreadsOfAnAgentAndOfItsBareNameAreMerged) {
  Post("old", "", {.to = {"ann"}});
  Post("both", "first", {.to = {"ann"}});
  Post("new", "", {.to = {"a"}});
  Post("both", "second", {.to = {"a"}});
  Post("other", "", {.to = {"b"}});
  const domain::ThreadsQuery query = {.project = "p", .agent = "a", .or_name = "ann"};
  EXPECT_THAT(Names(query), ElementsAre("both", "new", "old"));
  const auto both = Of(query).at(0);
  EXPECT_EQ(both.message_count, 2);
  EXPECT_EQ(both.last_body, "second");
  EXPECT_THAT(Names({.project = "p", .agent = "a", .or_name = "ann", .before = 4, .limit = 1}),
              ElementsAre("new"));
}

TEST_F(ThreadsTest, AMemberSeesOnlyWhatReachedIt) {
  Post("t", "to both", {.to = {"a", "b"}});
  Post("t", "to b alone", {.to = {"b"}});
  const auto of_a = Of({.project = "p", .agent = "a"});
  ASSERT_EQ(of_a.size(), 1u);
  EXPECT_EQ(of_a[0].last_body, "to both");
  EXPECT_EQ(of_a[0].message_count, 1);
  EXPECT_EQ(Of({.project = "p", .agent = "b"})[0].message_count, 2);
}

TEST_F(ThreadsTest, TheNewestComesFirstAndPagesGoBack) {
  for (const char* thread : {"t1", "t2", "t3", "t4"}) Post(thread);
  Post("t1");
  Post("x", "", {}, "q");
  EXPECT_THAT(Names({.project = "p", .agent = "a"}), ElementsAre("t1", "t4", "t3", "t2"));
  const auto first = Of({.project = "p", .agent = "a", .limit = 2});
  ASSERT_EQ(first.size(), 2u);
  EXPECT_THAT(Names({.project = "p", .agent = "a", .before = first[1].last_cursor, .limit = 2}),
              ElementsAre("t3", "t2"));
  EXPECT_THAT(Names({.project = "p", .agent = "a", .before = 2}), IsEmpty());
  EXPECT_THAT(Names({.project = "", .agent = "a"}), IsEmpty());
}

TEST_F(ThreadsTest, TheLastBodyIsCutBetweenCharacters) {
  const std::string filler(198, 'x');
  const struct {
    std::string body;
    std::string shown;
  } kCases[] = {
      {filler + "ab", filler + "ab"},
      {filler + "abc", filler + "ab"},
      {filler + "é", filler + "é"},
      {filler + "aé", filler + "a"},
      {filler + "€", filler},
      {filler + "a€", filler + "a"},
      {filler + "😀", filler},
      {std::string("a\0b", 3), std::string("a\0b", 3)},
      {"", ""},
  };
  int i = 0;
  for (const auto& c : kCases) {
    const std::string thread = "t" + std::to_string(++i);
    Post(thread, c.body);
    const auto threads = Of({.project = "p", .agent = "a", .limit = 1});
    ASSERT_EQ(threads.at(0).thread_id, thread);
    EXPECT_EQ(threads[0].last_body, c.shown);
    EXPECT_TRUE(IsUtf8(threads[0].last_body));
  }
}

TEST_F(ThreadsTest, AThreadIsReadInTheOrderOfItsCursors) {
  const domain::Cursor first = Post("t");
  Post("other");
  clock_.JumpWallClock(std::chrono::seconds(-100));
  Post("t");
  Post("t", "", {}, "q");
  Post("t");
  const auto ids = [&](const domain::ThreadQuery& query) {
    KeepingSink sink;
    EXPECT_TRUE(ReadThread(connection(), query, sink).ok());
    return sink.ids();
  };
  EXPECT_THAT(ids({.project = "p", .thread_id = "t", .limit = 9}), ElementsAre("m1", "m3", "m5"));
  EXPECT_THAT(ids({.project = "p", .thread_id = "t", .after = first, .limit = 1}),
              ElementsAre("m3"));
  EXPECT_THAT(ids({.project = "p", .thread_id = "none", .limit = 9}), IsEmpty());
  EXPECT_THAT(ids({.project = "", .thread_id = "t", .limit = 9}), IsEmpty());
}

TEST_F(ThreadsTest, CursorBeyondTheLogIsRefused) {
  const domain::Cursor last = Post("t");
  KeepingSink sink;
  const domain::ThreadQuery whole{.project = "p", .thread_id = "t", .after = last, .limit = 9};
  EXPECT_TRUE(ReadThread(connection(), whole, sink).ok());
  domain::ThreadQuery ahead = whole;
  ahead.after = last + 1;
  EXPECT_EQ(ReadThread(connection(), ahead, sink).error().slug(), "cursor_ahead");
  EXPECT_TRUE(ListThreads(connection(), {.project = "p", .agent = "a", .before = last}).ok());
  EXPECT_EQ(
      ListThreads(connection(), {.project = "p", .agent = "a", .before = last + 1}).error().slug(),
      "cursor_ahead");
}

}  // namespace
}  // namespace interlock::store
