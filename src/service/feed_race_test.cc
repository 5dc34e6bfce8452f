// The feed under fire: readers that switch from replay to live, leave and resume while writers run,
// and disks that leave the outcome of a commit open. Every one must see exactly the log.

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "db/sqlite/fault_vfs.h"
#include "service/feed.h"
#include "service/feed_fixture.h"
#include "testing/random.h"
#include "testing/seeded_random.h"

namespace interlock::service {
namespace {

namespace asio = boost::asio;
using domain::Cursor;

constexpr int kSwitches = testing::kSlowBuild ? 100 : 1000;
constexpr int kEventsPerWriter = testing::kSlowBuild ? 60 : 400;

using FeedRaceTest = FeedTest;

struct Joined {
  std::unique_ptr<Follower> follower;
  Cursor published = 0;  // right after it had joined
};
asio::awaitable<Joined> JoinNow(Feed& feed, Cursor since) {
  FollowRequest request{.project = "p", .since = since};
  auto follower = co_await feed.Follow(std::move(request));
  co_return Joined{.follower = std::move(follower).value(), .published = feed.stats().published};
}

Result<void> AppendBatch(db::Transaction& tx, Cursor count) {
  for (Cursor n = 0; n < count; ++n) {
    IL_TRY_VOID(store::AppendEvent(tx, {.type = "t", .project = "p", .entity_id = "e"}));
  }
  return {};
}

// Each time a commit of many events is on its way to being published while somebody joins, after a
// wait of up to the time that publishing takes, so that the switch falls before, into and after it.
TEST_F(FeedRaceTest, PublishingDuringTheSwitchFromReplayToLiveLosesAndDoublesNothing) {
  constexpr Cursor kBatch = 250;
  durability_ = sqlite::Durability::kFast;
  Open();
  const auto listener = Follow({.project = "p"});  // so that events are published, not skipped
  std::mt19937_64 random(testing::TestSeed());
  int inside = 0;  // switches that fell into the publication
  Duration wait_max{0};
  for (Cursor i = 0; i < kSwitches; ++i) {
    const Cursor first = i * (kBatch + 1) + 1;
    const Cursor last = first + kBatch - 1;
    const Duration begun = clock_.Monotonic();
    storage_->Write([](db::Transaction& tx) { return AppendBatch(tx, kBatch); },
                    [](const Result<void>& result) { EXPECT_TRUE(result.ok()); });
    const bool measure = i % 10 == 0;  // joins late, and tells the others how late that is
    const Duration wait = wait_max * static_cast<int>(testing::Below(random, 100)) / 100;
    while (feed_->stats().published < last && (measure || clock_.Monotonic() < begun + wait)) {
    }
    if (measure) wait_max = clock_.Monotonic() - begun;
    const Cursor since = first - 1 - (i == 0 ? 0 : i % 3);
    const Joined joined = Run(JoinNow(*feed_, since));
    if (joined.published >= first && joined.published < last) ++inside;
    const Cursor end = Append("p").value();  // what was lost before it will never come
    ASSERT_EQ(end, last + 1);
    const std::vector<Cursor> seen = TakeThrough(*joined.follower, end);
    ASSERT_EQ(static_cast<Cursor>(seen.size()), end - since) << "switch " << i;
    for (std::size_t n = 0; n < seen.size(); ++n) {
      ASSERT_EQ(seen[n], since + static_cast<Cursor>(n) + 1) << "switch " << i;
    }
    TakeThrough(*listener, end);
  }
  RecordProperty("inside", inside);
  EXPECT_GT(inside, 0) << "no switch fell into a publication";
}

// Follows `project` from the beginning, leaving and resuming at random, until it has seen `count`.
asio::awaitable<std::vector<Cursor>> FollowRandomly(Feed& feed, std::string project,
                                                    std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Cursor> seen;
  while (seen.size() < count) {
    FollowRequest request{.project = project, .since = seen.empty() ? 0 : seen.back()};
    auto follower = co_await feed.Follow(std::move(request));
    if (!follower.ok()) co_return seen;
    const std::size_t takes = 1 + testing::Below(random, 4);
    for (std::size_t i = 0; i < takes && seen.size() < count; ++i) {
      auto frames = co_await (*follower)->Next();
      if (!frames.ok()) break;  // lagged: resume
      for (const Frame& frame : *frames) {
        Cursor cursor = 0;
        std::from_chars(frame->data() + 10, frame->data() + frame->size(), cursor);
        seen.push_back(cursor);
      }
    }
  }
  co_return seen;
}

TEST_F(FeedRaceTest, ConsumersThatLeaveAndResumeAtRandomSeeExactlyTheLog) {
  constexpr int kWriters = 4;
  constexpr int kConsumers = 16;
  durability_ = sqlite::Durability::kFast;
  Open({.outbox_events_max = 8});
  const std::vector<std::string> projects = {"p", ""};
  constexpr std::size_t kEach = std::size_t{kWriters} * kEventsPerWriter / 2;
  std::vector<std::future<std::vector<Cursor>>> consumers;
  consumers.reserve(kConsumers);
  for (int c = 0; c < kConsumers; ++c) {
    const std::string& project = projects[static_cast<std::size_t>(c) % 2];
    consumers.push_back(Spawn(
        asio::make_strand(io_),
        FollowRandomly(*feed_, project, kEach, testing::TestSeed() + static_cast<unsigned>(c))));
  }
  std::vector<std::thread> writers;
  writers.reserve(kWriters);
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      const std::string& project = projects[static_cast<std::size_t>(w) % 2];
      for (int i = 0; i < kEventsPerWriter; ++i) ASSERT_TRUE(Append(project).ok());
    });
  }
  for (std::thread& writer : writers) writer.join();
  std::map<std::string, std::vector<Cursor>> log;
  for (const std::string& project : projects) {
    Cursor since = 0;
    while (log[project].size() < kEach) {
      const EventPage page =
          Run(feed_->Page({.project = project, .since = since, .limit = 1000})).value();
      for (const domain::Event& event : page.events) log[project].push_back(event.cursor);
      since = page.cursor;
    }
  }
  for (int c = 0; c < kConsumers; ++c) {
    EXPECT_EQ(consumers[static_cast<std::size_t>(c)].get(),
              log[projects[static_cast<std::size_t>(c) % 2]])
        << "consumer " << c << ", IL_SEED=" << testing::TestSeed();
  }
}

// A sync that fails leaves the outcome of a commit open; whatever the log says then is published.
class FeedFaultTest : public FeedTest, public ::testing::WithParamInterface<sqlite::Effect> {};

TEST_P(FeedFaultTest, AfterAnUnknownOutcomeExactlyTheLogIsPublished) {
  int unknown = 0;
  for (int nth = 1; nth <= 6; ++nth) {
    sqlite::FaultVfs vfs(testing::TestSeed());
    Open({}, vfs.name());
    const auto follower = Follow({.project = "p", .since = 0});
    vfs.disk().Inject({.op = nth % 2 == 0 ? sqlite::DiskOp::kSync : sqlite::DiskOp::kWrite,
                       .nth = nth,
                       .effect = GetParam()});
    for (int i = 0; i < 8; ++i) {
      const auto appended = Append("p");
      if (!appended.ok() && appended.error().code() == Errc::kOutcomeUnknown) ++unknown;
    }
    EXPECT_GT(vfs.disk().fired(), 0);
    const Cursor last = Append("p").value();
    const std::vector<Cursor> seen = TakeThrough(*follower, last);
    std::vector<Cursor> log;
    const EventPage page = Run(feed_->Page({.project = "p"})).value();
    log.reserve(page.events.size());
    for (const domain::Event& event : page.events) log.push_back(event.cursor);
    EXPECT_EQ(seen, log) << "fault " << nth;
    Reset();
  }
  EXPECT_GT(unknown, 0);
}

INSTANTIATE_TEST_SUITE_P(Effects, FeedFaultTest,
                         ::testing::Values(sqlite::Effect::kNothing, sqlite::Effect::kPart,
                                           sqlite::Effect::kWhole));

}  // namespace
}  // namespace interlock::service
