#include "resilience/breaker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "testing/fake_clock.h"

namespace interlock::resilience {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using State = Breaker::State;

class BreakerTest : public ::testing::Test {
 protected:
  Breaker::Permit Enter() {
    auto permit = breaker_.Enter();
    EXPECT_TRUE(permit.ok());
    return std::move(permit).value();
  }
  void Succeed() { Enter().Succeed(); }
  void Fail() { Enter().Fail(); }
  void Trip() {
    for (int i = 0; i < 5; ++i) Fail();
    ASSERT_EQ(breaker_.state(), State::kOpen);
  }
  bool Refused() { return !breaker_.Enter().ok(); }
  std::int64_t RetryAfter() {
    auto permit = breaker_.Enter();
    EXPECT_FALSE(permit.ok());
    EXPECT_EQ(permit.error().details().at(0).first, "retry_after");
    return std::get<std::int64_t>(permit.error().details().at(0).second);
  }

  testing::FakeClock clock_;
  Breaker breaker_{clock_};
};

TEST_F(BreakerTest, StartsClosed) {
  EXPECT_EQ(breaker_.state(), State::kClosed);
  const Breaker::Status status = breaker_.status();
  EXPECT_EQ(status.failures, 0);
  EXPECT_EQ(status.times_opened, 0u);
  EXPECT_EQ(status.last_change, clock_.Now());
  EXPECT_TRUE(breaker_.Enter().ok());
}

TEST_F(BreakerTest, StatesAreNamedAsHealthSaysThem) {
  EXPECT_EQ(ToString(State::kClosed), "closed");
  EXPECT_EQ(ToString(State::kOpen), "open");
  EXPECT_EQ(ToString(State::kHalfOpen), "half_open");
}

TEST_F(BreakerTest, OpensAtTheFifthFailureInARow) {
  for (int i = 1; i <= 4; ++i) {
    Fail();
    EXPECT_EQ(breaker_.state(), State::kClosed);
    EXPECT_EQ(breaker_.status().failures, i);
  }
  clock_.Advance(seconds(7));
  Fail();
  EXPECT_EQ(breaker_.state(), State::kOpen);
  EXPECT_EQ(breaker_.status().times_opened, 1u);
  EXPECT_EQ(breaker_.status().last_change, clock_.Now());
}

TEST_F(BreakerTest, AfterABriefFailureTheProbeComesSooner) {
  for (int i = 0; i < 4; ++i) Fail();
  Enter().FailBriefly();  // the last one decides
  EXPECT_EQ(RetryAfter(), 2);
  clock_.Advance(milliseconds(1999));
  EXPECT_TRUE(Refused());
  clock_.Advance(milliseconds(1));
  Enter().FailBriefly();  // the probe
  EXPECT_EQ(breaker_.state(), State::kOpen);
  EXPECT_EQ(RetryAfter(), 2);
  clock_.Advance(seconds(2));
  Fail();
  EXPECT_EQ(RetryAfter(), 30) << "of another cause";
  clock_.Advance(seconds(30));
  Succeed();
  EXPECT_EQ(breaker_.state(), State::kClosed);
}

TEST_F(BreakerTest, ProbeThatHangsAfterABriefFailureIsReplacedAfterTheResetTimeout) {
  for (int i = 0; i < 5; ++i) Enter().FailBriefly();
  clock_.Advance(seconds(2));
  Breaker::Permit hanging = Enter();
  clock_.Advance(seconds(29));
  EXPECT_TRUE(Refused());
  clock_.Advance(seconds(1));
  Succeed();
  EXPECT_EQ(breaker_.state(), State::kClosed);
  std::move(hanging).Fail();
  EXPECT_EQ(breaker_.state(), State::kClosed);
}

TEST_F(BreakerTest, ASuccessBetweenFailuresStartsTheCountAnew) {
  for (int i = 0; i < 3; ++i) Fail();
  Succeed();
  for (int i = 0; i < 3; ++i) Fail();
  EXPECT_EQ(breaker_.state(), State::kClosed);
  EXPECT_EQ(breaker_.status().failures, 3);
}

TEST_F(BreakerTest, WithdrawnAndAbandonedCallsNeitherCountNorForgive) {
  for (int i = 0; i < 4; ++i) Fail();
  Enter().Withdraw();
  {
    const Breaker::Permit dropped = Enter();
  }
  EXPECT_EQ(breaker_.state(), State::kClosed);
  EXPECT_EQ(breaker_.status().failures, 4);
  Fail();
  EXPECT_EQ(breaker_.state(), State::kOpen);
}

TEST_F(BreakerTest, WhileOpenRefusesAndSaysWhenToComeBack) {
  Trip();
  const auto refused = breaker_.Enter();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kCircuitOpen);
  EXPECT_EQ(refused.error().slug(), "circuit_open");
  EXPECT_EQ(refused.error().http_status(), 503);
  EXPECT_NE(refused.error().message().find("repeat the request in 30 s"), std::string::npos);
  EXPECT_EQ(RetryAfter(), 30);
  clock_.Advance(microseconds(1));
  EXPECT_EQ(RetryAfter(), 30);  // rounded up: coming back earlier would be in vain
  clock_.Advance(seconds(29));
  EXPECT_EQ(RetryAfter(), 1);
  clock_.Advance(microseconds(999'998));
  EXPECT_EQ(RetryAfter(), 1);
  EXPECT_EQ(breaker_.state(), State::kOpen);
}

TEST_F(BreakerTest, AfterTheResetTimeoutExactlyOneProbePasses) {
  Trip();
  clock_.Advance(seconds(30) - microseconds(1));
  EXPECT_TRUE(Refused());
  clock_.Advance(microseconds(1));
  Breaker::Permit probe = Enter();
  EXPECT_EQ(breaker_.state(), State::kHalfOpen);
  EXPECT_TRUE(Refused());
  EXPECT_EQ(RetryAfter(), 1);
  std::move(probe).Succeed();
  EXPECT_EQ(breaker_.state(), State::kClosed);
  EXPECT_EQ(breaker_.status().failures, 0);
}

TEST_F(BreakerTest, AFailedProbeReopensForAFullResetTimeout) {
  Trip();
  clock_.Advance(seconds(30));
  Breaker::Permit probe = Enter();
  clock_.Advance(seconds(3));
  std::move(probe).Fail();
  EXPECT_EQ(breaker_.state(), State::kOpen);
  EXPECT_EQ(breaker_.status().times_opened, 2u);
  clock_.Advance(seconds(29));
  EXPECT_TRUE(Refused());
  clock_.Advance(seconds(1));
  Succeed();
  EXPECT_EQ(breaker_.state(), State::kClosed);
}

TEST_F(BreakerTest, OnceClosedAgainItTakesFiveFailuresAgain) {
  Trip();
  clock_.Advance(seconds(30));
  Succeed();
  for (int i = 0; i < 4; ++i) Fail();
  EXPECT_EQ(breaker_.state(), State::kClosed);
  Fail();
  EXPECT_EQ(breaker_.state(), State::kOpen);
}

TEST_F(BreakerTest, AProbeThatThrowsReopens) {
  Trip();
  clock_.Advance(seconds(30));
  try {
    const Breaker::Permit probe = Enter();
    throw std::runtime_error("storage code threw");
  } catch (const std::runtime_error&) {
    EXPECT_EQ(breaker_.state(), State::kOpen);
  }
  EXPECT_TRUE(Refused());
  clock_.Advance(seconds(30));
  Succeed();
  EXPECT_EQ(breaker_.state(), State::kClosed);
}

TEST_F(BreakerTest, AProbeThatNeverReturnsIsReplacedAndItsLateResultIgnored) {
  Trip();
  clock_.Advance(seconds(30));
  Breaker::Permit lost = Enter();
  clock_.Advance(seconds(30) - microseconds(1));
  EXPECT_TRUE(Refused());
  clock_.Advance(microseconds(1));
  Breaker::Permit second = Enter();
  EXPECT_TRUE(Refused());  // again one at a time
  EXPECT_EQ(breaker_.state(), State::kHalfOpen);
  std::move(lost).Fail();
  EXPECT_EQ(breaker_.state(), State::kHalfOpen);
  EXPECT_TRUE(Refused());
  std::move(second).Succeed();
  EXPECT_EQ(breaker_.state(), State::kClosed);
}

TEST_F(BreakerTest, ALateSuccessOfAReplacedProbeDoesNotClose) {
  Trip();
  clock_.Advance(seconds(30));
  Breaker::Permit lost = Enter();
  clock_.Advance(seconds(30));
  Breaker::Permit second = Enter();
  std::move(lost).Succeed();
  EXPECT_EQ(breaker_.state(), State::kHalfOpen);
  std::move(second).Fail();
  EXPECT_EQ(breaker_.state(), State::kOpen);
}

TEST_F(BreakerTest, AWithdrawnProbeLetsTheNextCallerProbeAtOnce) {
  Trip();
  clock_.Advance(seconds(30));
  Enter().Withdraw();
  EXPECT_EQ(breaker_.state(), State::kHalfOpen);
  EXPECT_EQ(breaker_.status().times_opened, 1u);
  Breaker::Permit probe = Enter();
  EXPECT_TRUE(Refused());
  std::move(probe).Succeed();
  EXPECT_EQ(breaker_.state(), State::kClosed);
}

TEST_F(BreakerTest, LateResultsOfCallsFromBeforeItOpenedChangeNothing) {
  Breaker::Permit slow_success = Enter();
  Breaker::Permit slow_failure = Enter();
  Breaker::Permit slower_failure = Enter();
  Trip();
  clock_.Advance(seconds(20));
  std::move(slow_success).Succeed();
  EXPECT_EQ(breaker_.state(), State::kOpen);
  std::move(slow_failure).Fail();
  clock_.Advance(seconds(10));  // the late failure has not moved the time of the probe
  Breaker::Permit probe = Enter();
  std::move(slower_failure).Fail();
  EXPECT_EQ(breaker_.state(), State::kHalfOpen);
  std::move(probe).Succeed();
  EXPECT_EQ(breaker_.state(), State::kClosed);
  EXPECT_EQ(breaker_.status().times_opened, 1u);
}

TEST_F(BreakerTest, LateFailuresFromBeforeItOpenedDoNotCountOnceItIsClosedAgain) {
  std::vector<Breaker::Permit> slow;
  slow.reserve(5);
  for (int i = 0; i < 5; ++i) slow.push_back(Enter());
  Trip();
  clock_.Advance(seconds(30));
  Succeed();
  for (Breaker::Permit& permit : slow) std::move(permit).Fail();
  EXPECT_EQ(breaker_.state(), State::kClosed);
  EXPECT_EQ(breaker_.status().failures, 0);
}

TEST_F(BreakerTest, AWallClockThatJumpsNeitherEndsNorProlongsTheWait) {
  Trip();
  clock_.JumpWallClock(hours(24));
  EXPECT_TRUE(Refused());
  clock_.JumpWallClock(hours(-48));
  clock_.Advance(seconds(30));
  EXPECT_TRUE(breaker_.Enter().ok());
}

TEST_F(BreakerTest, AMovedPermitReportsOnce) {
  for (int i = 0; i < 3; ++i) Fail();
  {
    Breaker::Permit first = Enter();
    Breaker::Permit second = std::move(first);
    std::move(second).Fail();
  }
  EXPECT_EQ(breaker_.status().failures, 4);
}

TEST_F(BreakerTest, ReportingTwiceIsOurBug) {
  EXPECT_DEATH(
      {
        Breaker::Permit permit = Enter();
        std::move(permit).Succeed();
        std::move(permit).Fail();  // NOLINT(bugprone-use-after-move)
      },
      "a permit reports once");
}

TEST(BreakerObserverTest, HearsEachChangeUnlocked) {
  testing::FakeClock clock;
  std::vector<std::string> heard;
  Breaker* self = nullptr;
  Breaker breaker(clock, {.threshold = 1, .reset_timeout = milliseconds(10)},
                  [&](State from, State to) {
                    EXPECT_EQ(self->state(), to);  // would hang if the lock were held
                    heard.push_back(std::string(ToString(from)) + ">" + std::string(ToString(to)));
                  });
  self = &breaker;
  breaker.Enter().value().Succeed();
  breaker.Enter().value().Fail();
  clock.Advance(milliseconds(10));
  std::optional<Breaker::Permit> lost = breaker.Enter().value();
  clock.Advance(milliseconds(10));
  breaker.Enter().value().Fail();  // a second probe: no change of state when it begins
  lost.reset();
  clock.Advance(milliseconds(10));
  breaker.Enter().value().Succeed();
  EXPECT_EQ(heard, (std::vector<std::string>{"closed>open", "open>half_open", "half_open>open",
                                             "open>half_open", "half_open>closed"}));
  EXPECT_EQ(breaker.status().times_opened, 2u);
}

// All start together; each call reports in one of the four ways, while time moves. Whatever the
// interleaving, the changes it announces fit together and it can be brought back.
TEST(BreakerThreadsTest, AHundredThreadsKeepItConsistent) {
  constexpr int kThreads = 100;
  constexpr int kCalls = 200;
  testing::FakeClock clock;
  std::atomic<int> to_half_open = 0;
  std::atomic<int> left_half_open = 0;
  std::atomic<int> opened = 0;
  Breaker breaker(clock, {.threshold = 5, .reset_timeout = milliseconds(1)},
                  [&](State from, State to) {
                    if (to == State::kHalfOpen) ++to_half_open;
                    if (from == State::kHalfOpen) ++left_half_open;
                    if (to == State::kOpen) ++opened;
                  });
  std::atomic<int> passed = 0;
  std::atomic<int> refused = 0;
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      for (int i = 0; i < kCalls; ++i) {
        auto permit = breaker.Enter();
        if (!permit.ok()) {
          ++refused;
          clock.Advance(microseconds(50));
          continue;
        }
        ++passed;
        switch ((t + i) % 8) {
          case 0:
            std::move(*permit).Succeed();
            break;
          case 1:
            std::move(*permit).Withdraw();
            break;
          case 2:
            break;  // abandoned
          default:
            std::move(*permit).Fail();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(passed + refused, kThreads * kCalls);
  EXPECT_GT(passed, 0);
  const Breaker::Status status = breaker.status();
  EXPECT_EQ(status.times_opened, static_cast<std::uint64_t>(opened));
  EXPECT_EQ(to_half_open - left_half_open, status.state == State::kHalfOpen ? 1 : 0);

  clock.Advance(milliseconds(1));  // and it can still be brought back
  breaker.Enter().value().Succeed();
  EXPECT_EQ(breaker.state(), State::kClosed);
}

// It never closes again, so that every permit after the first failure is a probe's.
TEST(BreakerThreadsTest, AtMostOneProbeIsAdmittedPerResetTimeout) {
  constexpr int kThreads = 20;
  constexpr int kCalls = 500;
  constexpr auto kReset = milliseconds(1);
  testing::FakeClock clock;
  Breaker breaker(clock, {.threshold = 1, .reset_timeout = kReset});
  breaker.Enter().value().Fail();
  const Duration start = clock.Monotonic();
  std::atomic<int> probes = 0;
  std::barrier together(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<Breaker::Permit> lost;  // never reported while it matters
      together.arrive_and_wait();
      for (int i = 0; i < kCalls; ++i) {
        if (auto permit = breaker.Enter(); permit.ok()) {
          ++probes;
          if ((t + i) % 2 == 0) {
            std::move(*permit).Fail();
          } else {
            lost.push_back(std::move(*permit));
          }
        }
        if (t == 0) clock.Advance(microseconds(100));
      }
      together.arrive_and_wait();  // only now are the lost ones given up
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(probes, 0);
  EXPECT_LE(probes, (clock.Monotonic() - start) / kReset);
}

TEST(BreakerThreadsTest, OfAHundredThreadsOneIsTheProbe) {
  constexpr int kThreads = 100;
  testing::FakeClock clock;
  Breaker breaker(clock, {.threshold = 1, .reset_timeout = seconds(30)});
  breaker.Enter().value().Fail();
  clock.Advance(seconds(30));
  std::atomic<int> passed = 0;
  std::barrier start(kThreads);
  std::barrier all_asked(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      auto permit = breaker.Enter();
      if (permit.ok()) ++passed;
      all_asked.arrive_and_wait();
      if (permit.ok()) std::move(*permit).Succeed();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(passed, 1);
  EXPECT_EQ(breaker.state(), State::kClosed);
}

}  // namespace
}  // namespace interlock::resilience
