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

constexpr int kSwitches = testing::kSlowBuild ? 150 : 1000;
constexpr int kEventsPerWriter = testing::kSlowBuild ? 60 : 400;

using FeedRaceTest = FeedTest;

TEST_F(FeedRaceTest, PublishingDuringTheSwitchFromReplayToLiveLosesAndDoublesNothing) {
  durability_ = sqlite::Durability::kFast;
  Open();
  std::atomic<bool> done = false;
  std::vector<std::thread> writers;
  writers.reserve(2);
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([&] {
      while (!done) ASSERT_TRUE(Append("p").ok());
    });
  }
  Cursor since = 0;
  for (int i = 0; i < kSwitches; ++i) {
    const auto follower = Follow({.project = "p", .since = since});
    std::vector<Cursor> seen;
    // Past what was in the log when it joined, so that the switch lies inside.
    const Cursor joined = feed_->stats().published;
    while (seen.empty() || seen.back() <= joined) {
      const std::vector<Cursor> more = Take(*follower, 1);
      ASSERT_FALSE(more.empty());
      seen.insert(seen.end(), more.begin(), more.end());
    }
    for (std::size_t n = 0; n < seen.size(); ++n) {
      ASSERT_EQ(seen[n], since + static_cast<Cursor>(n) + 1) << "switch " << i;
    }
    since = seen.back() - i % 3;  // the next one begins a little before, at or within the edge
  }
  done = true;
  for (std::thread& writer : writers) writer.join();
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
    std::vector<Cursor> seen;
    while (seen.empty() || seen.back() < last) {
      const std::vector<Cursor> more = Take(*follower, 1);
      ASSERT_FALSE(more.empty());
      seen.insert(seen.end(), more.begin(), more.end());
    }
    std::vector<Cursor> log;
    const EventPage page = Run(feed_->Page({.project = "p"})).value();
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
