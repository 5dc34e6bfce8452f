#include "auth/rate_limit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "testing/fake_clock.h"
#include "testing/seeded_random.h"

namespace interlock::auth {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RateLimitTest, AllowsTheFirstHitsOfEachKeyAndSaysHowLongToWait) {
  testing::FakeClock clock;
  RateLimit limit(clock, {.hits_max = 10});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(limit.Hit("dev:amber"), std::nullopt) << i;
  EXPECT_EQ(limit.Hit("dev:amber"), seconds(60));
  EXPECT_EQ(limit.Hit("dev:grey"), std::nullopt) << "another key has its own window";
  clock.Advance(milliseconds(500));
  EXPECT_EQ(limit.Hit("dev:amber"), seconds(60)) << "rounded up";
  clock.Advance(milliseconds(58'500));
  EXPECT_EQ(limit.Hit("dev:amber"), seconds(1));
}

TEST(RateLimitTest, AWindowBeginsWithTheFirstHitAndEndsStrictlyAfterItsLength) {
  testing::FakeClock clock;
  RateLimit limit(clock, {.hits_max = 1});
  clock.Advance(seconds(59));  // not a grid of whole minutes
  EXPECT_EQ(limit.Hit("k"), std::nullopt);
  clock.Advance(seconds(60));
  EXPECT_EQ(limit.Hit("k"), seconds(1)) << "sixty seconds are still within";
  clock.Advance(microseconds(1));
  EXPECT_EQ(limit.Hit("k"), std::nullopt);
  EXPECT_EQ(limit.Hit("k"), seconds(60));
}

TEST(RateLimitTest, RefusedHitsNeitherMoveNorEmptyTheWindow) {
  testing::FakeClock clock;
  RateLimit limit(clock, {.hits_max = 2});
  EXPECT_EQ(limit.Hit("k"), std::nullopt);
  EXPECT_EQ(limit.Hit("k"), std::nullopt);
  for (int i = 0; i < 60; ++i) {
    clock.Advance(seconds(1));
    EXPECT_NE(limit.Hit("k"), std::nullopt) << i;
  }
  clock.Advance(microseconds(1));
  EXPECT_EQ(limit.Hit("k"), std::nullopt);
}

TEST(RateLimitTest, AWallClockThatJumpsChangesNothing) {
  testing::FakeClock clock;
  RateLimit limit(clock, {.hits_max = 1});
  EXPECT_EQ(limit.Hit("k"), std::nullopt);
  clock.JumpWallClock(std::chrono::hours(24));
  EXPECT_NE(limit.Hit("k"), std::nullopt);
  clock.JumpWallClock(-std::chrono::hours(48));
  EXPECT_NE(limit.Hit("k"), std::nullopt);
}

TEST(RateLimitTest, ALimitOfNothingRefusesEverything) {
  testing::FakeClock clock;
  RateLimit limit(clock, {.hits_max = 0});
  EXPECT_EQ(limit.Hit("k"), seconds(60));
}

TEST(RateLimitTest, WhenFullTheOldestWindowIsForgottenAndEndedOnesFirst) {
  testing::FakeClock clock;
  RateLimit limit(clock, {.hits_max = 1, .keys_max = 3});
  for (const char* key : {"a", "b", "c"}) {
    EXPECT_EQ(limit.Hit(key), std::nullopt);
    clock.Advance(seconds(1));
  }
  EXPECT_NE(limit.Hit("a"), std::nullopt) << "a hit does not make a window younger";
  EXPECT_EQ(limit.Hit("d"), std::nullopt);
  EXPECT_EQ(limit.size(), 3U);
  EXPECT_NE(limit.Hit("b"), std::nullopt);
  EXPECT_NE(limit.Hit("c"), std::nullopt);
  EXPECT_EQ(limit.Hit("a"), std::nullopt) << "forgotten, so it begins anew and b is forgotten";
  EXPECT_NE(limit.Hit("c"), std::nullopt);
  clock.Advance(seconds(61));
  EXPECT_EQ(limit.Hit("e"), std::nullopt);
  EXPECT_EQ(limit.size(), 1U) << "what has ended takes no room";
}

TEST(RateLimitTest, AgreesWithACountKeptByHand) {
  struct Count {
    Duration begin;
    int hits;
  };
  std::mt19937_64 random(testing::TestSeed());
  testing::FakeClock clock;
  RateLimit limit(clock, {.hits_max = 3});
  std::map<std::string, Count> model;
  for (int i = 0; i < 20'000; ++i) {
    clock.Advance(milliseconds(random() % 2000));
    const std::string key(1, static_cast<char>('a' + (random() % 20)));
    const Duration now = clock.Monotonic();
    auto [count, is_new] = model.try_emplace(key, Count{now, 0});
    if (now - count->second.begin > seconds(60)) count->second = {now, 0};
    const bool allowed = ++count->second.hits <= 3;
    ASSERT_EQ(!limit.Hit(key).has_value(), allowed) << "hit " << i << " of " << key;
    ASSERT_LE(limit.size(), 20U);
  }
}

TEST(RateLimitTest, ManyThreadsGetExactlyTheAllowedHits) {
  testing::FakeClock clock;
  RateLimit limit(clock, {.hits_max = 1000, .keys_max = 4});
  std::atomic<int> allowed = 0;
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        if (!limit.Hit("shared")) ++allowed;
        if (i % 50 == 0) limit.Hit("own" + std::to_string(t % 3));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allowed, 1000);
}

}  // namespace
}  // namespace interlock::auth
