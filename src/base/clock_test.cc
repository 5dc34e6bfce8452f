#include "base/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "testing/fake_clock.h"

namespace interlock {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// "abc" as timers append it, one of them cancelled; and how long the scheduling took. It is done on
// the timer thread, so that no timer runs before all of them wait.
std::pair<std::string, Duration> RunThreeTimers() {
  SystemClock clock;
  std::promise<std::string> ran;
  std::string order;
  Duration took{0};
  clock.Schedule(Duration::zero(), [&] {
    const Duration start = clock.Monotonic();
    clock.Schedule(milliseconds(20), [&] { ran.set_value(order + "c"); });
    clock.Schedule(milliseconds(10), [&] { order += "b"; });
    const Clock::TimerId dropped = clock.Schedule(milliseconds(5), [&] { order += "x"; });
    EXPECT_TRUE(clock.Cancel(dropped));
    EXPECT_FALSE(clock.Cancel(dropped));
    clock.Schedule(Duration::zero(), [&] { order += "a"; });
    took = clock.Monotonic() - start;
  });
  std::string result = ran.get_future().get();
  return {std::move(result), took};
}

TEST(SystemClockTest, TimersRunInDueOrderAndCancelledOnesNever) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto [order, took] = RunThreeTimers();
    if (took >= milliseconds(10)) continue;  // the machine stalled, so the due times are others
    EXPECT_EQ(order, "abc");
    return;
  }
  FAIL() << "scheduling four timers always took 10 ms and more";
}

TEST(SystemClockTest, DestructionForgetsTimersThatWait) {
  std::atomic<bool> ran = false;
  {
    SystemClock clock;
    clock.Schedule(hours(1), [&] { ran = true; });
  }
  EXPECT_FALSE(ran);
}

TEST(SystemClockTest, ATimerMayScheduleAndCancel) {
  SystemClock clock;
  std::promise<bool> done;
  const Clock::TimerId later = clock.Schedule(hours(1), [] {});
  clock.Schedule(Duration::zero(), [&] {
    clock.Schedule(Duration::zero(), [&] { done.set_value(clock.Cancel(later)); });
  });
  EXPECT_TRUE(done.get_future().get());
}

TEST(SystemClockTest, MonotonicTimeDoesNotGoBack) {
  SystemClock clock;
  Duration last = clock.Monotonic();
  for (int i = 0; i < 1000; ++i) {
    const Duration now = clock.Monotonic();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_GT(clock.Now().micros, 1'700'000'000'000'000);
}

TEST(FakeClockTest, AdvanceRunsDueTimersInOrderAtTheirTime) {
  testing::FakeClock clock;
  const Timestamp start = clock.Now();
  std::vector<std::pair<std::string, Timestamp>> ran;
  clock.Schedule(seconds(2), [&] { ran.emplace_back("two", clock.Now()); });
  clock.Schedule(seconds(1), [&] {
    ran.emplace_back("one", clock.Now());
    clock.Schedule(seconds(1), [&] { ran.emplace_back("nested", clock.Now()); });
  });
  clock.Schedule(seconds(4), [&] { ran.emplace_back("four", clock.Now()); });
  clock.Advance(seconds(3));
  ASSERT_EQ(ran.size(), 3u);
  EXPECT_EQ(ran[0], std::pair(std::string("one"), start + seconds(1)));
  EXPECT_EQ(ran[1], std::pair(std::string("two"), start + seconds(2)));
  EXPECT_EQ(ran[2], std::pair(std::string("nested"), start + seconds(2)));
  EXPECT_EQ(clock.Now(), start + seconds(3));
  EXPECT_EQ(clock.timers_waiting(), 1u);
}

TEST(FakeClockTest, AWallClockJumpMovesNoTimer) {
  testing::FakeClock clock;
  bool ran = false;
  clock.Schedule(seconds(10), [&] { ran = true; });
  clock.JumpWallClock(hours(-24));
  clock.JumpWallClock(hours(48));
  EXPECT_FALSE(ran);
  EXPECT_EQ(clock.NextTimerIn(), seconds(10));
  EXPECT_TRUE(clock.AdvanceToNextTimer());
  EXPECT_TRUE(ran);
  EXPECT_FALSE(clock.AdvanceToNextTimer());
}

}  // namespace
}  // namespace interlock
