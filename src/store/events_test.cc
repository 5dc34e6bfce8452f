#include "store/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "store/message_row.h"
#include "store/store_fixture.h"

namespace interlock::store {
namespace {

using domain::Cursor;
using domain::Event;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr db::Sql kAddMessage =
    "INSERT INTO messages (cursor, project, id, sender, subject, body, importance, ack_required, "
    "recipients, created_at) VALUES (?1, ?2, CAST(?1 AS TEXT), 's', '', '', '', 0, ?3, 0)";
constexpr db::Sql kAddInbox =
    "INSERT INTO inbox (project, agent, cursor, kind, ack_required) VALUES (?1, ?2, ?3, 'to', 0)";
constexpr db::Sql kSpoilPruned = "UPDATE meta SET value = 'x' WHERE key = 'events_pruned_through'";

constexpr std::int64_t kDay = 86'400'000'000;

class EventsTest : public StoreTest {
 protected:
  Cursor Append(const std::string& project, const std::string& type = "t",
                Timestamp created_at = {1}, const std::string& data = "") {
    return Write<Cursor>([&](db::Transaction& tx) {
             return AppendEvent(tx, {.type = type,
                                     .project = project,
                                     .entity_id = "e",
                                     .created_at = created_at,
                                     .data = data});
           })
        .value();
  }
  // A message.created in p, with its row and those of its recipients.
  Cursor AppendMessage(const domain::Addresses& addresses) {
    const Cursor cursor = Append("p", domain::event_type::kMessageCreated);
    const std::string recipients = RecipientsText({.received = addresses});
    EXPECT_TRUE(connection().Run(kAddMessage, cursor, "p", recipients).ok());
    for (const auto* list : {&addresses.to, &addresses.cc, &addresses.bcc}) {
      for (const std::string& agent : *list) {
        EXPECT_TRUE(connection().Run(kAddInbox, "p", agent, cursor).ok());
      }
    }
    return cursor;
  }
  EventChunk Read(const EventQuery& query) { return ReadEvents(connection(), query).value(); }
  DeliveredChunk Delivered(Cursor after, std::size_t rows_max) {
    return ReadDelivered(connection(), after, rows_max).value();
  }
  std::vector<Cursor> Cursors(const EventQuery& query) {
    std::vector<Cursor> cursors;
    for (const Event& event : Read(query).events) cursors.push_back(event.cursor);
    return cursors;
  }
  OldEvents Find(const OldEventsQuery& query) { return FindOldEvents(connection(), query).value(); }
  std::int64_t PruneThrough(Cursor through, std::size_t rows_max = 500) {
    return Write<std::int64_t>(
               [&](db::Transaction& tx) { return PruneEvents(tx, through, rows_max); })
        .value();
  }
  // What one look finds, removed.
  std::int64_t Prune(const OldEventsQuery& query) {
    const OldEvents old = Find(query);
    return old.through ? PruneThrough(*old.through) : 0;
  }
  void AppendAndPrune(int appended, Cursor through) {
    for (int i = 0; i < appended; ++i) Append("p");
    EXPECT_EQ(PruneThrough(through), through);
  }
};

TEST_F(EventsTest, CursorsRiseFromEventToEventAcrossProjects) {
  Cursor last = 0;
  for (const char* project : {"p", "q", "", "p"}) {
    const Cursor cursor = Append(project);
    EXPECT_GT(cursor, last);
    last = cursor;
  }
}

TEST_F(EventsTest, AnEventIsReadAsItWasAppended) {
  const Event event{.cursor = 1,
                    .type = "t",
                    .project = "p",
                    .entity_id = "e",
                    .agent = "a",
                    .created_at = {1'767'323'045'000'006},
                    .data = R"({"k":1})"};
  ASSERT_TRUE(Write<Cursor>([&](db::Transaction& tx) { return AppendEvent(tx, event); }).ok());
  EXPECT_THAT(Read({}).events, ElementsAre(event));
  EXPECT_EQ(Delivered(0, 10).events.at(0).event, event);
}

TEST_F(EventsTest, AProjectsEventsAreItsOwnAndTheEmptyOneIsAProjectToo) {
  for (const char* project : {"p", "", "q", "p"}) Append(project);
  EXPECT_THAT(Cursors({.project = "p"}), ElementsAre(1, 4));
  EXPECT_THAT(Cursors({.project = ""}), ElementsAre(2));
  EXPECT_THAT(Cursors({}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Cursors({.project = "p", .after = 1}), ElementsAre(4));
  EXPECT_THAT(Cursors({.after = 1, .through = 3}), ElementsAre(2, 3));
}

TEST_F(EventsTest, AReaderThatFindsNothingMoreStandsAtTheEndOfTheLog) {
  Append("p");
  Append("q");
  Append("q");
  const EventChunk chunk = Read({.project = "p"});
  EXPECT_TRUE(chunk.ended);
  EXPECT_EQ(chunk.reached, 3);  // else a quiet project's readers would expire with the others' rows
  EXPECT_EQ(Read({.project = "p", .through = 2}).reached, 2);
  EXPECT_EQ(Read({.after = 3}).reached, 3);
}

TEST_F(EventsTest, PagesOfAnySizeAddUpToTheLog) {
  for (int i = 0; i < 20; ++i) Append(i % 3 == 0 ? "q" : "p", i % 2 == 0 ? "even" : "odd");
  const std::vector<Cursor> all =
      Cursors({.project = "p", .wants = [](std::string_view type) { return type == "odd"; }});
  ASSERT_EQ(all.size(), 7U);
  for (std::size_t rows = 1; rows <= 15; ++rows) {
    for (std::size_t events = 1; events <= 8; ++events) {
      EventQuery query{.project = "p",
                       .wants = [](std::string_view type) { return type == "odd"; },
                       .events_max = events,
                       .rows_max = rows};
      std::vector<Cursor> seen;
      for (int pages = 0; pages < 50; ++pages) {
        const EventChunk chunk = Read(query);
        EXPECT_LE(chunk.events.size(), events);
        for (const Event& event : chunk.events) seen.push_back(event.cursor);
        if (chunk.ended) break;
        ASSERT_GT(chunk.reached, query.after) << "a page that does not move never ends";
        query.after = chunk.reached;
      }
      EXPECT_EQ(seen, all) << rows << " rows, " << events << " events";
    }
  }
}

TEST_F(EventsTest, APageEndsWhenItsBytesAreReachedAndHoldsAtLeastOne) {
  for (int i = 0; i < 3; ++i) Append("p", "t", {1}, '"' + std::string(100, 'x') + '"');
  EXPECT_THAT(Cursors({.bytes_max = 1}), ElementsAre(1));
  EXPECT_THAT(Cursors({.bytes_max = 150}), ElementsAre(1, 2));
  EXPECT_FALSE(Read({.bytes_max = 150}).ended);
}

TEST_F(EventsTest, AnAgentHearsOfItsOwnMessagesOnlyAndOfAllElse) {
  Append("p", domain::event_type::kAgentUpdated);
  AppendMessage({.to = {"a", "b"}});
  AppendMessage({.to = {"b"}, .bcc = {"a"}});
  AppendMessage({.to = {"b"}, .cc = {"c"}});
  Append("p", domain::event_type::kMessageRead);
  EXPECT_THAT(Cursors({.project = "p", .recipient = "a"}), ElementsAre(1, 2, 3, 5));
  EXPECT_THAT(Cursors({.project = "p", .recipient = "b"}), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(Cursors({.project = "p", .recipient = "c"}), ElementsAre(1, 4, 5));
  EXPECT_THAT(Cursors({.project = "p", .recipient = "c", .or_recipient = "a"}),
              ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(Cursors({.project = "p"}), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(EventsTest, DeliveredEventsCarryEveryRecipientHoweverAddressed) {
  AppendMessage({.to = {"a"}, .cc = {"b"}, .bcc = {"c"}});
  Append("q");
  const DeliveredChunk read = Delivered(0, 10);
  ASSERT_EQ(read.events.size(), 2U);
  EXPECT_THAT(read.events[0].recipients, ElementsAre("a", "b", "c"));
  EXPECT_THAT(read.events[1].recipients, IsEmpty());
  EXPECT_TRUE(read.ended);
  EXPECT_EQ(Delivered(0, 1).events.size(), 1U);
  EXPECT_FALSE(Delivered(0, 1).ended);
  EXPECT_EQ(Delivered(1, 10).events.at(0).event.cursor, 2);
}

TEST_F(EventsTest, DeliveredEventsWithMuchDataComeInSmallerChunks) {
  const std::string megabyte = '"' + std::string(1'000'000, 'x') + '"';
  for (int i = 0; i < 9; ++i) Append("p", "t", {1}, megabyte);
  Cursor after = 0;
  int reads = 0;
  for (bool ended = false; !ended; ++reads) {
    const DeliveredChunk chunk = Delivered(after, 100);
    for (const DeliveredEvent& delivered : chunk.events) {
      EXPECT_EQ(delivered.event.cursor, after + 1);
      after = delivered.event.cursor;
    }
    EXPECT_LE(chunk.events.size(), 5U);
    ended = chunk.ended;
  }
  EXPECT_EQ(after, 9);
  EXPECT_EQ(reads, 2);
}

TEST_F(EventsTest, ABadListOfRecipientsDoesNotStopTheLog) {
  const Cursor cursor = Append("p", domain::event_type::kMessageCreated);
  ASSERT_TRUE(connection().Run(kAddMessage, cursor, "p", "{").ok());
  Append("p");
  EXPECT_EQ(Delivered(0, 10).events.size(), 2U);
}

TEST_F(EventsTest, OnlyThePrefixOfOldEventsIsRemoved) {
  Append("p", "t", {1 * kDay});
  Append("p", "t", {2 * kDay});
  Append("p", "t", {9 * kDay});
  Append("p", "t", {3 * kDay});  // the clock was set back; what comes before is still young
  EXPECT_EQ(Prune({.now = {10 * kDay}, .older_than = {5 * kDay}, .through = 4}), 2);
  EXPECT_THAT(Cursors({}), ElementsAre(3, 4));
  EXPECT_EQ(Prune({.now = {10 * kDay}, .older_than = {5 * kDay}, .through = 4}), 0);
  EXPECT_EQ(Prune({.now = {20 * kDay}, .older_than = {15 * kDay}, .through = 4}), 2);
}

TEST_F(EventsTest, AnEventFromTheFutureIsAsOldAsItsNeighbour) {
  Append("p", "t", {1 * kDay});
  Append("p", "t", {99 * kDay});
  EXPECT_EQ(Prune({.now = {10 * kDay}, .older_than = {5 * kDay}, .through = 9}), 1);
  Append("p", "t", {2 * kDay});
  Append("p", "t", {99 * kDay});
  Append("p", "t", {8 * kDay});
  EXPECT_EQ(Prune({.now = {10 * kDay}, .older_than = {5 * kDay}, .through = 9}), 2);
  EXPECT_THAT(Cursors({}), ElementsAre(4, 5));
}

TEST_F(EventsTest, ARowOfEventsFromTheFutureIsPassedOverLookByLook) {
  for (int i = 0; i < 7; ++i) Append("p", "t", {(99 - i) * kDay});
  Append("p", "t", {2 * kDay});
  Append("p", "t", {8 * kDay});
  OldEventsQuery query{.now = {10 * kDay}, .older_than = {5 * kDay}, .through = 99, .rows_max = 3};
  for (const Cursor reached : {3, 6}) {
    const OldEvents old = Find(query);
    EXPECT_FALSE(old.through);
    EXPECT_FALSE(old.ended);
    EXPECT_EQ(old.reached, reached);
    EXPECT_EQ(old.reached_until.micros, (100 - reached) * kDay) << "the earliest of these dates";
    query.after = old.reached;
  }
  const OldEvents old = Find(query);
  EXPECT_EQ(old.through, 8) << "and with it all before";
  EXPECT_EQ(old.reached, 8);
  EXPECT_TRUE(old.ended) << "the next is young";
}

TEST_F(EventsTest, ALookSeesNoEventBeyondItsBoundAndChangesNothing) {
  for (int i = 0; i < 5; ++i) Append("p");
  const OldEvents old = Find({.now = {kDay}, .older_than = {kDay}, .through = 3});
  EXPECT_EQ(old.through, 3);
  EXPECT_TRUE(old.ended);
  const OldEvents none = Find({.now = {kDay}, .older_than = {kDay}, .after = 3, .through = 3});
  EXPECT_FALSE(none.through);
  EXPECT_EQ(none.reached, 3);
  EXPECT_EQ(Cursors({}).size(), 5U);
}

TEST_F(EventsTest, PruningGoesInBatchesAndNotPastItsBound) {
  for (int i = 0; i < 10; ++i) Append("p");
  EXPECT_EQ(PrunedThrough(connection()).value(), 0);
  EXPECT_EQ(PruneThrough(7, 3), 3);
  EXPECT_EQ(PrunedThrough(connection()).value(), 3);
  EXPECT_EQ(PruneThrough(7, 3), 3);
  EXPECT_EQ(PruneThrough(7, 3), 1);
  EXPECT_EQ(PruneThrough(7, 3), 0);
  EXPECT_EQ(PrunedThrough(connection()).value(), 7);
  EXPECT_THAT(Cursors({}), ElementsAre(8, 9, 10));
}

TEST_F(EventsTest, ACursorExpiresExactlyWhenSomethingAfterItIsGone) {
  AppendAndPrune(10, 5);
  EXPECT_TRUE(RefuseExpired(connection(), 0).ok());  // from the oldest kept
  for (Cursor cursor = 1; cursor < 5; ++cursor) {
    const Result<void> refused = RefuseExpired(connection(), cursor);
    ASSERT_FALSE(refused.ok()) << cursor;
    EXPECT_EQ(refused.error().http_status(), 410);
    EXPECT_EQ(refused.error().slug(), "cursor_expired");
    ASSERT_EQ(refused.error().details().size(), 1U);
    EXPECT_EQ(refused.error().details()[0].first, "oldest_cursor");
    EXPECT_EQ(std::get<std::int64_t>(refused.error().details()[0].second), 6);
    EXPECT_FALSE(ReadEvents(connection(), {.after = cursor}).ok());
  }
  for (Cursor cursor = 5; cursor < 12; ++cursor) {
    EXPECT_TRUE(RefuseExpired(connection(), cursor).ok()) << cursor;
  }
  EXPECT_THAT(Cursors({}), ElementsAre(6, 7, 8, 9, 10));
  EXPECT_THAT(Cursors({.after = 5}), ElementsAre(6, 7, 8, 9, 10));
}

TEST_F(EventsTest, CursorBeyondTheEndOfTheLogIsAheadAndNoOtherIs) {
  EXPECT_TRUE(RefuseAhead(connection(), 0).ok());
  EXPECT_FALSE(RefuseAhead(connection(), 1).ok());
  for (int i = 0; i < 3; ++i) Append("p");
  EXPECT_TRUE(RefuseAhead(connection(), 3).ok());
  EXPECT_TRUE(ReadEvents(connection(), {.project = "q", .after = 3}).ok());
  for (const Cursor ahead : {Cursor{4}, std::numeric_limits<Cursor>::max()}) {
    const Result<void> refused = RefuseAhead(connection(), ahead);
    ASSERT_FALSE(refused.ok()) << ahead;
    EXPECT_EQ(refused.error().http_status(), 409);
    EXPECT_EQ(refused.error().slug(), "cursor_ahead");
    ASSERT_EQ(refused.error().details().size(), 1U);
    EXPECT_EQ(refused.error().details()[0].first, "newest");
    EXPECT_EQ(refused.error().details()[0].second, Error::Value(3));
    EXPECT_EQ(ReadEvents(connection(), {.after = ahead}).error().slug(), "cursor_ahead");
    EXPECT_EQ(ReadEvents(connection(), {.project = "p", .after = ahead}).error().slug(),
              "cursor_ahead");
  }
}

TEST_F(EventsTest, CursorOfRemovedEventsIsNotAhead) {
  AppendAndPrune(3, 3);
  EXPECT_TRUE(RefuseAhead(connection(), 3).ok());
  EXPECT_TRUE(ReadEvents(connection(), {.after = 3}).ok());
  EXPECT_EQ(ReadEvents(connection(), {.after = 4}).error().details().at(0).second, Error::Value(3));
}

TEST_F(EventsTest, AnEmptiedLogKeepsItsPlaceAndGivesNoCursorTwice) {
  EXPECT_EQ(NewestCursor(connection()).value(), 0);
  AppendAndPrune(3, 3);
  EXPECT_EQ(NewestCursor(connection()).value(), 3);
  EXPECT_EQ(Read({}).reached, 3);
  EXPECT_EQ(RefuseExpired(connection(), 1).error().details().at(0).second, Error::Value(4));
  EXPECT_TRUE(RefuseExpired(connection(), 3).ok());
  EXPECT_EQ(Append("p"), 4);
}

TEST_F(EventsTest, APlaceThatCannotBeReadIsSaidInsteadOfGuessed) {
  AppendAndPrune(3, 2);
  ASSERT_TRUE(connection().Run(kSpoilPruned).ok());
  const auto read = ReadEvents(connection(), {.after = 1});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Errc::kCorrupt);
}

}  // namespace
}  // namespace interlock::store
