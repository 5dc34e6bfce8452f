#include "service/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "service/feed_fixture.h"
#include "store/agents.h"
#include "store/message_row.h"

namespace interlock::service {
namespace {

namespace asio = boost::asio;
using domain::Cursor;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr db::Sql kAddMessage =
    "INSERT INTO messages (cursor, project, id, sender, subject, body, importance, ack_required, "
    "recipients, created_at) VALUES (?1, 'p', CAST(?1 AS TEXT), 's', '', '', '', 0, ?2, 0)";
constexpr db::Sql kAddInbox =
    "INSERT INTO inbox (project, agent, cursor, kind, ack_required) VALUES ('p', ?1, ?2, 'to', 0)";

// A message of s to `agents`, with its event.
Storage::WriteFn SendTo(const std::vector<std::string>& agents) {
  return [agents](db::Transaction& tx) -> Result<void> {
    IL_TRY(const Cursor cursor, store::AppendEvent(tx, {.type = domain::event_type::kMessageCreated,
                                                        .project = "p",
                                                        .entity_id = "m",
                                                        .agent = "s"}));
    const std::string recipients = store::RecipientsText({.received = {.to = agents}});
    IL_TRY_VOID(tx->Run(kAddMessage, cursor, recipients));
    for (const std::string& agent : agents) IL_TRY_VOID(tx->Run(kAddInbox, agent, cursor));
    return {};
  };
}

Storage::WriteFn PruneThrough(Cursor through) {
  return [through](db::Transaction& tx) -> Result<void> {
    IL_TRY_VOID(store::PruneEvents(tx, through, 500));
    return {};
  };
}

TEST_F(FeedTest, AFollowerReplaysAfterItsCursorAndGoesLive) {
  Open();
  AppendMany(5, "p");
  const auto follower = Follow({.project = "p", .since = 2});
  EXPECT_THAT(Take(*follower, 3), ElementsAre(3, 4, 5));
  AppendMany(2, "p");
  EXPECT_THAT(Take(*follower, 2), ElementsAre(6, 7));
}

TEST_F(FeedTest, ZeroIsFromTheOldestAndNoCursorIsOnlyWhatIsNew) {
  Open();
  AppendMany(2, "p");
  const auto all = Follow({.project = "p", .since = 0});
  const auto negative = Follow({.project = "p", .since = -3});
  EXPECT_THAT(Take(*all, 2), ElementsAre(1, 2));
  EXPECT_THAT(Take(*negative, 2), ElementsAre(1, 2));
  const auto fresh = Follow({.project = "p"});
  AppendMany(1, "p");
  EXPECT_THAT(Take(*fresh, 1), ElementsAre(3));
}

TEST_F(FeedTest, CursorAheadOfTheLogIsRefusedWithTheNewest) {
  Open();
  AppendMany(2, "p");
  const auto refused = Run(feed_->Follow({.project = "q", .since = 3}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().slug(), "cursor_ahead");
  EXPECT_EQ(NewestIfAhead(refused.error()), 2);
  EXPECT_EQ(Run(feed_->Page({.project = "p", .since = 3})).error().slug(), "cursor_ahead");
  EXPECT_EQ(feed_->stats().followers, 0U);
  const auto follower = Follow({.project = "p", .since = 2});
  AppendMany(1, "p");
  EXPECT_THAT(Take(*follower, 1), ElementsAre(3));
}

TEST_F(FeedTest, AServerThatStartsOnAnOldLogTakesItAsPublished) {
  Open();
  AppendMany(3, "p");
  Reset();
  Open();
  EXPECT_EQ(feed_->stats().published, 3);
}

TEST_F(FeedTest, ProjectsAreApartAndTheEmptyOneIsOneOfThem) {
  Open();
  const auto p = Follow({.project = "p", .since = 0});
  const auto empty = Follow({.project = "", .since = 0});
  for (const char* project : {"p", "", "q", "p", ""}) AppendMany(1, project);
  EXPECT_THAT(Take(*p, 2), ElementsAre(1, 4));
  EXPECT_THAT(Take(*empty, 2), ElementsAre(2, 5));
}

TEST_F(FeedTest, AnAgentHearsOfItsOwnMessagesInReplayAsLive) {
  Open();
  ASSERT_TRUE(Write(SendTo({"a", "b"})).ok());
  ASSERT_TRUE(Write(SendTo({"b"})).ok());
  AppendMany(1, "p");
  const auto a = Follow({.project = "p", .agent = "a", .since = 0});
  const auto whole = Follow({.project = "p", .since = 0});
  EXPECT_THAT(Take(*a, 2), ElementsAre(1, 3));
  EXPECT_THAT(Take(*whole, 3), ElementsAre(1, 2, 3));
  ASSERT_TRUE(Write(SendTo({"b"})).ok());
  ASSERT_TRUE(Write(SendTo({"c", "a"})).ok());
  const auto live = Run(a->Next()).value();
  ASSERT_EQ(live.size(), 1U);
  EXPECT_THAT(*live[0], HasSubstr(R"("cursor":5,)"));
  EXPECT_THAT(*live[0], HasSubstr(R"("agent":"a",)"));
  EXPECT_THAT(*live[0], HasSubstr(R"("message_id":"m")"));
  const auto again = Follow({.project = "p", .agent = "a", .since = 4});
  EXPECT_EQ(*Run(again->Next()).value().at(0), *live[0]) << "replayed as it was live";
  EXPECT_THAT(Take(*whole, 2), ElementsAre(4, 5));
}

TEST_F(FeedTest, AReplayHasTheMailUnderTheBareNameOfTheAgent) {
  Open();
  ASSERT_TRUE(Write(SendTo({"ann"})).ok());
  ASSERT_TRUE(Write(SendTo({"ann", "a"})).ok());
  ASSERT_TRUE(Write(SendTo({"b"})).ok());
  for (const std::string id : {"a", "b"}) {
    ASSERT_TRUE(Write([&](db::Transaction& tx) {
                  return store::InsertAgent(tx,
                                            {.id = id,
                                             .project = "p",
                                             .session_id = id,
                                             .name = id == "a" ? "ann" : "bob",
                                             .last_seen = clock_.Now()},
                                            std::as_bytes(std::span(id)));
                }).ok());
  }
  AppendMany(1, "p");
  const auto a = Follow({.project = "p", .agent = "a", .since = 0});
  const auto frames = Run(a->Next()).value();
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_THAT(*frames[0], AllOf(HasSubstr(R"("cursor":1,)"), HasSubstr(R"("agent":"a",)")));
  EXPECT_EQ(CursorOf(frames[1]), 2) << "once";
  EXPECT_EQ(CursorOf(frames[2]), 4);
  const auto b = Follow({.project = "p", .agent = "b", .since = 0});
  EXPECT_THAT(Take(*b, 2), ElementsAre(3, 4));
}

TEST_F(FeedTest, TypesAreFilteredInReplayAndLiveAndCanBeChanged) {
  Open();
  for (const char* type : {"a", "b", "a"}) ASSERT_TRUE(Append("p", type).ok());
  const auto follower = Follow({.project = "p", .since = 0, .types = {"a"}});
  EXPECT_THAT(Take(*follower, 2), ElementsAre(1, 3));
  for (const char* type : {"b", "a"}) ASSERT_TRUE(Append("p", type).ok());
  EXPECT_THAT(Take(*follower, 1), ElementsAre(5));
  ASSERT_TRUE(follower->Subscribe({"b"}).ok());
  ASSERT_TRUE(follower->Unsubscribe({"a"}).ok());
  for (const char* type : {"a", "b"}) ASSERT_TRUE(Append("p", type).ok());
  EXPECT_THAT(Take(*follower, 1), ElementsAre(7));
}

// What comes while the old filter holds belongs to the new one, since it comes after what is yet to
// be replayed by it.
TEST_F(FeedTest, TypesThatAreChangedDuringAReplayLeaveNoGap) {
  Open();
  for (const char* type : {"a", "b"}) ASSERT_TRUE(Append("p", type).ok());
  const auto follower = Follow({.project = "p", .since = 0, .types = {"a"}});
  ASSERT_TRUE(Append("p", "b").ok());
  while (feed_->stats().published < 3) std::this_thread::yield();
  ASSERT_TRUE(follower->Subscribe({"b"}).ok());
  ASSERT_TRUE(Append("p", "b").ok());
  EXPECT_THAT(Take(*follower, 4), ElementsAre(1, 2, 3, 4));
  ASSERT_TRUE(Append("p", "a").ok());
  EXPECT_THAT(Take(*follower, 1), ElementsAre(5));
}

TEST_F(FeedTest, TooManyTypesAreRefused) {
  Open({.types_max = 2});
  EXPECT_FALSE(Run(feed_->Follow({.project = "p", .types = {"a", "b", "c"}})).ok());
  EXPECT_FALSE(Run(feed_->Follow({.project = "p", .types = {std::string(65, 'a')}})).ok());
  EXPECT_TRUE(Run(feed_->Follow({.project = "p", .types = {std::string(64, 'a')}})).ok());
  const auto follower = Follow({.project = "p", .types = {"a", "b"}});
  const Result<void> refused = follower->Subscribe({"c"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kInvalidArgument);
  EXPECT_FALSE(follower->Unsubscribe({std::string(65, 'a')}).ok());
  ASSERT_TRUE(Append("p", "c").ok());
  ASSERT_TRUE(Append("p", "a").ok());
  EXPECT_THAT(Take(*follower, 1), ElementsAre(2)) << "nothing changed";
}

TEST_F(FeedTest, AConsumerThatStandsStillIsEndedAndDelaysNobody) {
  Open({.outbox_events_max = 10});
  const auto stalled = Follow({.project = "p"});
  const auto other = Follow({.project = "p"});
  AppendMany(1, "p");
  EXPECT_THAT(Take(*stalled, 1), ElementsAre(1));
  for (Cursor cursor = 1; cursor <= 100; ++cursor) {
    ASSERT_THAT(Take(*other, 1), ElementsAre(cursor));
    AppendMany(1, "p");
  }
  for (int i = 0; i < 2; ++i) {
    const auto ended = Run(stalled->Next());
    ASSERT_FALSE(ended.ok());
    EXPECT_EQ(WhyEnded(ended.error()), FollowEnd::kLagged);
  }
  EXPECT_EQ(feed_->stats().lagged, 1U);
  const auto resumed = Follow({.project = "p", .since = 1});
  EXPECT_EQ(Take(*resumed, 100).back(), 101);
}

TEST_F(FeedTest, AnOutboxThatOverflowsDuringTheReplayDoesNotEndIt) {
  Open({.outbox_events_max = 4});
  AppendMany(600, "p");
  const auto follower = Follow({.project = "p", .since = 0});
  std::vector<Cursor> seen = Take(*follower, 1);
  ASSERT_LT(seen.size(), 600U) << "the replay takes several reads";
  AppendMany(50, "p");
  while (seen.size() < 650) {
    const std::vector<Cursor> more = Take(*follower, 1);
    ASSERT_THAT(more, Not(IsEmpty()));
    seen.insert(seen.end(), more.begin(), more.end());
  }
  for (std::size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], static_cast<Cursor>(i) + 1);
  EXPECT_EQ(feed_->stats().lagged, 0U);
}

TEST_F(FeedTest, StoppingEndsWhoWaitsAndWhoReplaysAndLetsNobodyIn) {
  Open();
  const auto waiting = Follow({.project = "p"});
  auto ended = Spawn(asio::make_strand(io_), waiting->Next());
  AppendMany(300, "q");
  const auto replaying = Follow({.project = "q", .since = 0});
  ASSERT_FALSE(Take(*replaying, 1).empty());
  EXPECT_EQ(feed_->stats().followers, 2U);
  feed_->Stop();
  feed_->Stop();
  EXPECT_EQ(WhyEnded(ended.get().error()), FollowEnd::kStopping);
  EXPECT_EQ(WhyEnded(Run(replaying->Next()).error()), FollowEnd::kStopping);
  const auto refused = Run(feed_->Follow({.project = "p"}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kUnavailable);
  EXPECT_EQ(refused.error().slug(), "unavailable") << "as any request of a stopping server";
}

// The log as a server finds it that starts on it: nothing is read before somebody asks.
class FeedTurnsTest : public FeedTest {
 protected:
  using Turn = std::future<Result<std::vector<Frame>>>;

  // Why it ended; the test fails if that takes as long as the storage may take to give up.
  static FollowEnd EndOf(Turn& turn) {
    EXPECT_EQ(turn.wait_for(std::chrono::seconds(6)), std::future_status::ready);
    return WhyEnded(turn.get().error());
  }
  void OpenLog(std::size_t replays_max) {
    Open();
    AppendMany(3, "p");
    Reset();
    Open({.replays_max = replays_max});
  }
};

TEST_F(FeedTurnsTest, HoweverManyReplayOnlyAFewReadAtATimeAndAllGetTheirTurn) {
  constexpr std::size_t kMany = 20;
  OpenLog(2);
  std::vector<std::unique_ptr<Follower>> followers;
  followers.reserve(kMany);
  for (std::size_t i = 0; i < kMany; ++i) followers.push_back(Follow({.project = "p", .since = 0}));
  reads_->HoldAfter(0);
  std::vector<Turn> turns;
  turns.reserve(kMany);
  for (const auto& follower : followers) {
    turns.push_back(Spawn(asio::make_strand(io_), follower->Next()));
  }
  const auto asked = [this] {
    const Feed::Stats stats = feed_->stats();
    return stats.replays_running + stats.replays_waiting;
  };
  // A read is held a moment after its replay is counted as running.
  while (asked() < kMany || reads_->held() < 2U) std::this_thread::yield();
  EXPECT_EQ(feed_->stats().replays_running, 2U);
  EXPECT_EQ(reads_->held(), 2U) << "the other readers are everybody's";
  reads_->Release();
  for (auto& turn : turns) EXPECT_EQ(turn.get().value().size(), 3U);
}

TEST_F(FeedTurnsTest, OneThatGoesAwayBeforeItsTurnLeavesTheQueue) {
  OpenLog(1);
  std::vector<std::unique_ptr<Follower>> followers;
  std::vector<asio::strand<asio::io_context::executor_type>> strands;
  std::vector<Turn> turns;
  followers.reserve(3);
  for (std::size_t i = 0; i < 3; ++i) followers.push_back(Follow({.project = "p", .since = 0}));
  reads_->HoldAfter(0);
  for (std::size_t i = 0; i < 3; ++i) {
    strands.push_back(asio::make_strand(io_));
    turns.push_back(Spawn(strands[i], followers[i]->Next()));
    while (feed_->stats().replays_running + feed_->stats().replays_waiting <= i) {
      std::this_thread::yield();
    }
  }
  asio::post(strands[1], [&] { followers[1]->Close(); });
  EXPECT_EQ(EndOf(turns[1]), FollowEnd::kClosed);
  EXPECT_EQ(feed_->stats().replays_waiting, 1U);
  reads_->Release();
  EXPECT_EQ(turns[0].get().value().size(), 3U);
  EXPECT_EQ(turns[2].get().value().size(), 3U);
}

TEST_F(FeedTurnsTest, StoppingAndClosingDoNotWaitForTheReadOfAReplay) {
  OpenLog(1);
  const auto reading = Follow({.project = "p", .since = 0});
  const auto waiting = Follow({.project = "p", .since = 0});
  const auto closed = Follow({.project = "p", .since = 0});
  reads_->HoldAfter(0);
  const auto strand = asio::make_strand(io_);
  auto closed_end = Spawn(strand, closed->Next());
  while (feed_->stats().replays_running == 0) std::this_thread::yield();
  asio::post(strand, [&] { closed->Close(); });
  EXPECT_EQ(EndOf(closed_end), FollowEnd::kClosed);
  auto reading_end = Spawn(asio::make_strand(io_), reading->Next());
  auto waiting_end = Spawn(asio::make_strand(io_), waiting->Next());
  while (feed_->stats().replays_waiting == 0) std::this_thread::yield();
  feed_->Stop();
  EXPECT_EQ(EndOf(reading_end), FollowEnd::kStopping);
  EXPECT_EQ(EndOf(waiting_end), FollowEnd::kStopping);
}

TEST_F(FeedTest, ClosingEndsWhoWaits) {
  Open();
  const auto follower = Follow({.project = "p"});
  const auto strand = asio::make_strand(io_);
  auto ended = Spawn(strand, follower->Next());
  asio::post(strand, [&] { follower->Close(); });
  EXPECT_EQ(WhyEnded(ended.get().error()), FollowEnd::kClosed);
}

TEST_F(FeedTest, CancellingTheCoroutineEndsItsWait) {
  Open();
  const auto follower = Follow({.project = "p"});
  const auto strand = asio::make_strand(io_);
  asio::cancellation_signal cancel;
  using Frames = Result<std::vector<Frame>>;
  auto told = std::make_shared<std::promise<Frames>>();
  asio::co_spawn(strand, Tell(follower->Next(), told),
                 asio::bind_cancellation_slot(cancel.slot(), asio::detached));
  asio::post(strand, [&] { cancel.emit(asio::cancellation_type::terminal); });
  EXPECT_EQ(WhyEnded(told->get_future().get().error()), FollowEnd::kClosed);
}

TEST_F(FeedTest, WhoLeavesIsForgotten) {
  Open();
  auto follower = Follow({.project = "p"});
  EXPECT_EQ(feed_->stats().followers, 1U);
  follower.reset();
  EXPECT_EQ(feed_->stats().followers, 0U);
}

TEST_F(FeedTest, ACursorWhoseEventsArePrunedIsRefusedAtTheExactBoundary) {
  Open();
  AppendMany(10, "p");
  ASSERT_TRUE(Write(PruneThrough(5)).ok());
  const auto refused = Run(feed_->Follow({.project = "p", .since = 4}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kGone);
  EXPECT_EQ(refused.error().slug(), "cursor_expired");
  EXPECT_EQ(refused.error().details().at(0).second, Error::Value(6));
  const auto page = Run(feed_->Page({.project = "p", .since = 4}));
  ASSERT_FALSE(page.ok());
  EXPECT_EQ(page.error().http_status(), 410);
  EXPECT_THAT(Take(*Follow({.project = "p", .since = 5}), 5), ElementsAre(6, 7, 8, 9, 10));
  EXPECT_THAT(Take(*Follow({.project = "p", .since = 0}), 5), ElementsAre(6, 7, 8, 9, 10));
}

TEST_F(FeedTest, AReplayOvertakenByPruningSaysSoInsteadOfSkipping) {
  Open();
  AppendMany(600, "p");
  const auto follower = Follow({.project = "p", .since = 0});
  ASSERT_EQ(Take(*follower, 1).size(), 256U);
  ASSERT_TRUE(Write(PruneThrough(400)).ok());
  const auto ended = Run(follower->Next());
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(WhyEnded(ended.error()), FollowEnd::kFailed);
  EXPECT_EQ(ended.error().code(), Errc::kGone);
}

TEST_F(FeedTest, ALiveOnlyEventReachesWhoFollowsNow) {
  Open();
  const auto follower = Follow({.project = "p"});
  feed_->PublishLive({.type = "reservation.conflict", .project = "p", .entity_id = "r"});
  EXPECT_THAT(*Run(follower->Next()).value().at(0), HasSubstr("reservation.conflict"));
}

TEST_F(FeedTest, PagesGoOnWhereTheLastOneEnded) {
  Open();
  for (const char* type : {"a", "b", "a", "b", "a"}) ASSERT_TRUE(Append("p", type).ok());
  ASSERT_TRUE(Append("q", "a").ok());
  const EventPage first = Run(feed_->Page({.project = "p", .limit = 2})).value();
  EXPECT_EQ(first.events.size(), 2U);
  EXPECT_EQ(first.cursor, 2);
  const EventPage filtered =
      Run(feed_->Page({.project = "p", .since = 2, .types = {"b", "c"}})).value();
  ASSERT_EQ(filtered.events.size(), 1U);
  EXPECT_EQ(filtered.events[0].cursor, 4);
  EXPECT_EQ(filtered.cursor, 6);  // the log ends here
  const EventPage last = Run(feed_->Page({.project = "p", .since = filtered.cursor})).value();
  EXPECT_TRUE(last.events.empty());
  EXPECT_EQ(last.cursor, 6);
  EXPECT_EQ(Run(feed_->Page({})).value().events.size(), 6U);
}

}  // namespace
}  // namespace interlock::service
