#include "service/inbox_marks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "testing/on_threads.h"
#include "testing/random.h"

namespace interlock::service {
namespace {

TEST(InboxMarksTest, OfAnUnknownInboxNothingIsKnown) {
  InboxMarks marks;
  EXPECT_FALSE(marks.EndsBy("p", "a", 100));
}

TEST(InboxMarksTest, AnInboxEndsWithWhatWasDelivered) {
  InboxMarks marks;
  marks.Delivered("p", "a", 5);
  EXPECT_FALSE(marks.EndsBy("p", "a", 5)) << "the delivery may yet be rolled back";
  marks.Learn("q", "b", {.last = 0, .seen = 6});
  EXPECT_FALSE(marks.EndsBy("p", "a", 4));
  EXPECT_TRUE(marks.EndsBy("p", "a", 5));
  EXPECT_TRUE(marks.EndsBy("p", "a", 6));
  EXPECT_FALSE(marks.EndsBy("p", "b", 6));
  EXPECT_FALSE(marks.EndsBy("q", "a", 6));
}

TEST(InboxMarksTest, AnInboxEndsWhereAReadFoundItsEnd) {
  InboxMarks marks;
  marks.Learn("p", "a", {.last = 7, .seen = 8});
  EXPECT_FALSE(marks.EndsBy("p", "a", 6));
  EXPECT_TRUE(marks.EndsBy("p", "a", 7));
  EXPECT_TRUE(marks.EndsBy("p", "a", 8));
}

TEST(InboxMarksTest, CursorBeyondWhatAnyReadSawIsLeftToTheDatabase) {
  InboxMarks marks;
  marks.Learn("p", "a", {.last = 7, .seen = 8});
  EXPECT_FALSE(marks.EndsBy("p", "a", 9));
  marks.Delivered("p", "b", 9);
  EXPECT_FALSE(marks.EndsBy("p", "a", 9));
  marks.Learn("p", "b", {.last = 9, .seen = 9});
  EXPECT_TRUE(marks.EndsBy("p", "a", 9));
}

TEST(InboxMarksTest, AReadThatMissedADeliveryDoesNotHideIt) {
  InboxMarks marks;
  marks.Delivered("p", "a", 9);  // after the snapshot of the read
  marks.Learn("p", "a", {.last = 3, .seen = 8});
  EXPECT_FALSE(marks.EndsBy("p", "a", 8));
}

TEST(InboxMarksTest, AReadThatMissedADeliveryDoesNotHideItWhenTheInboxWasForgotten) {
  InboxMarks marks(2);
  marks.Delivered("p", "a", 9);
  marks.Delivered("p", "b", 10);
  marks.Delivered("p", "c", 10);  // one too many
  marks.Learn("p", "a", {.last = 3, .seen = 8});
  marks.Learn("p", "b", {.last = 3, .seen = 9});
  EXPECT_FALSE(marks.EndsBy("p", "a", 8));
  EXPECT_FALSE(marks.EndsBy("p", "b", 9));
  marks.Learn("p", "a", {.last = 9, .seen = 10});
  EXPECT_TRUE(marks.EndsBy("p", "a", 9));
}

TEST(InboxMarksTest, ReadsMakeInboxesForgottenToo) {
  InboxMarks marks(2);
  marks.Delivered("p", "a", 9);
  marks.Learn("p", "b", {.last = 0, .seen = 8});
  marks.Learn("p", "c", {.last = 0, .seen = 8});  // one too many
  marks.Learn("p", "a", {.last = 3, .seen = 8});
  EXPECT_FALSE(marks.EndsBy("p", "a", 8));
}

TEST(InboxMarksTest, NamesThatNoMailCanReachAreNotKept) {
  InboxMarks marks;
  const std::string longest(256, 'x');
  marks.Learn(longest, longest, {.last = 7, .seen = 7});
  EXPECT_TRUE(marks.EndsBy(longest, longest, 7));
  marks.Learn(longest, longest + "x", {.last = 7, .seen = 7});
  EXPECT_FALSE(marks.EndsBy(longest, longest + "x", 7));
}

TEST(InboxMarksTest, AKnownInboxIsNotTooMany) {
  InboxMarks marks(2);
  marks.Delivered("p", "a", 1);
  marks.Delivered("p", "b", 2);
  marks.Delivered("p", "a", 3);
  marks.Learn("p", "a", {.last = 3, .seen = 3});
  EXPECT_TRUE(marks.EndsBy("p", "b", 2));
  EXPECT_TRUE(marks.EndsBy("p", "a", 3));
}

// One delivers and commits, others read what is committed and teach what they saw, however late,
// while inboxes are forgotten all the time, also inside a transaction. Nobody may be told that
// nothing follows what came before a committed message.
TEST(InboxMarksTest, NoCommittedMessageIsHiddenFromAnyThread) {
  constexpr domain::Cursor kMessages = testing::kSlowBuild ? 3'000 : 30'000;
  InboxMarks marks(3);
  std::atomic<domain::Cursor> committed = 0;
  testing::OnThreads(4, [&](int thread) {
    if (thread == 0) {
      for (domain::Cursor cursor = 1; cursor <= kMessages; ++cursor) {
        marks.Delivered("p", "a", cursor);
        marks.Delivered("p", "other " + std::to_string(cursor % 5), cursor);
        committed = cursor;
        marks.Delivered("p", "more " + std::to_string(cursor % 5), cursor);
      }
      return;
    }
    while (committed < kMessages) {
      const domain::Cursor seen = committed;
      ASSERT_FALSE(marks.EndsBy("p", "a", seen - 1)) << seen;
      marks.Learn("p", "a", {.last = seen, .seen = seen});
    }
  });
}

}  // namespace
}  // namespace interlock::service
