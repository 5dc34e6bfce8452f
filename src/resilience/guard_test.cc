#include "resilience/guard.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "testing/fake_clock.h"
#include "testing/scripted_operation.h"

namespace interlock::resilience {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = Breaker::State;

Error Busy() { return Error(Errc::kBusy, "database is locked"); }
Error Io() { return Error(Errc::kIo, "disk I/O error"); }

class GuardTest : public ::testing::Test {
 protected:
  Call Start() {
    result_.reset();
    return guard_.Run(storage_.Make(), [this](Result<void> result) {
      ASSERT_FALSE(result_.has_value()) << "done ran twice";
      result_ = std::move(result);
      state_when_told_ = breaker_.state();
    });
  }
  // One operation that is answered with `answer`, through all its waits.
  void Run(const Result<void>& answer) {
    storage_.script.assign(8, answer);
    Start();
    while (!result_) ASSERT_TRUE(clock_.AdvanceToNextTimer());
    storage_.script.clear();
  }
  void Trip() {
    for (int i = 0; i < 5; ++i) Run(Io());
    ASSERT_EQ(breaker_.state(), State::kOpen);
  }
  void TripAndWait() {
    Trip();
    clock_.Advance(seconds(30));
  }
  std::optional<Errc> Code() const {
    if (!result_ || result_->ok()) return std::nullopt;
    return result_->error().code();
  }

  testing::FakeClock clock_;
  testing::ScriptedOperation storage_;
  Breaker breaker_{clock_};
  Retry retry_{clock_, {}, [] { return 0.0; }};
  Guard guard_{breaker_, retry_};
  std::optional<Result<void>> result_;
  State state_when_told_ = State::kClosed;
};

TEST_F(GuardTest, PassesResultsThrough) {
  Run({});
  EXPECT_TRUE(result_->ok());
  Run(Error(Errc::kNotFound, "no such agent").WithDetail("agent", "a1"));
  EXPECT_EQ(Code(), Errc::kNotFound);
  EXPECT_EQ(result_->error().message(), "no such agent");
  EXPECT_EQ(result_->error().details().size(), 1u);
}

TEST_F(GuardTest, TripsAfterFiveFailuresAndRefusesTheSixthWithoutCalling) {
  for (int i = 0; i < 5; ++i) {
    Run(Io());
    EXPECT_EQ(Code(), Errc::kIo);
  }
  EXPECT_EQ(state_when_told_, State::kOpen);  // the breaker hears it before the caller
  EXPECT_EQ(storage_.tries(), 5);
  Start();
  EXPECT_EQ(Code(), Errc::kCircuitOpen);  // before Run() returned
  EXPECT_EQ(storage_.tries(), 5);
  EXPECT_EQ(clock_.timers_waiting(), 0u);
}

TEST_F(GuardTest, RetriesTwoLocksAndCountsOneSuccess) {
  for (int i = 0; i < 4; ++i) Run(Io());
  storage_.script = {Busy(), Busy(), Result<void>()};
  Start();
  while (!result_) ASSERT_TRUE(clock_.AdvanceToNextTimer());
  EXPECT_TRUE(result_->ok());
  EXPECT_EQ(storage_.tries(), 4 + 3);
  EXPECT_EQ(breaker_.status().failures, 0);
}

TEST_F(GuardTest, ARetriedOperationIsOneFailureHoweverOftenItWasTried) {
  Run(Busy());
  EXPECT_EQ(storage_.tries(), 8);
  EXPECT_EQ(breaker_.status().failures, 1);
  for (int i = 0; i < 4; ++i) Run(Busy());
  EXPECT_EQ(breaker_.state(), State::kOpen);
}

TEST_F(GuardTest, OnlyInfrastructureErrorsCount) {
  for (const ErrcInfo& info : AllErrcs()) {
    testing::FakeClock clock;
    Breaker breaker(clock);
    Retry retry(clock, {.retries_max = 0}, [] { return 0.0; });
    Guard guard(breaker, retry);
    for (int i = 0; i < 100; ++i) {
      testing::ScriptedOperation storage;
      storage.script = {Error(info.code, "x")};
      guard.Run(storage.Make(), [](const Result<void>&) {});
    }
    EXPECT_EQ(breaker.state() == State::kOpen, IsInfrastructure(info.code)) << info.slug;
  }
}

TEST_F(GuardTest, WhatACallerDidWrongCountsAsSuccess) {
  for (int i = 0; i < 4; ++i) Run(Io());
  Run(Error(Errc::kConflict, "held by another"));
  EXPECT_EQ(breaker_.status().failures, 0);
}

TEST_F(GuardTest, RefusedCancelledAndInternalOutcomesNeitherCountNorForgive) {
  for (int i = 0; i < 4; ++i) Run(Io());
  Run(Error(Errc::kUnavailable, "queue full"));
  Run(Error(Errc::kCancelled, "closing"));
  Run(Error(Errc::kInternal, "fn threw"));
  Start().Cancel();
  EXPECT_EQ(Code(), Errc::kCancelled);
  EXPECT_EQ(breaker_.status().failures, 4);
  EXPECT_EQ(breaker_.state(), State::kClosed);
}

TEST_F(GuardTest, AHundredCancelledWaitsDoNotTrip) {
  for (int i = 0; i < 100; ++i) {
    storage_.script = {Busy()};
    Start().Cancel();
    EXPECT_EQ(Code(), Errc::kCancelled);
  }
  EXPECT_EQ(breaker_.status().failures, 0);
}

TEST_F(GuardTest, RecoversThroughOneProbe) {
  TripAndWait();
  Start();
  EXPECT_EQ(breaker_.state(), State::kHalfOpen);
  {
    testing::ScriptedOperation other;
    std::optional<Result<void>> refused;
    guard_.Run(other.Make(), [&](Result<void> result) { refused = std::move(result); });
    ASSERT_TRUE(refused.has_value());
    EXPECT_EQ(refused->error().code(), Errc::kCircuitOpen);
    EXPECT_EQ(other.tries(), 0);
  }
  storage_.Report({});
  EXPECT_TRUE(result_->ok());
  EXPECT_EQ(state_when_told_, State::kClosed);
}

TEST_F(GuardTest, AProbeThatThrowsReopens) {
  TripAndWait();
  storage_.throws = true;
  Start();
  EXPECT_EQ(Code(), Errc::kInternal);
  EXPECT_EQ(breaker_.state(), State::kOpen);
}

TEST_F(GuardTest, AProbeWhoseFunctionThrewReopens) {
  TripAndWait();
  Run(Error(Errc::kInternal, "fn threw on the storage thread"));
  EXPECT_EQ(breaker_.state(), State::kOpen);
}

TEST_F(GuardTest, ACancelledProbeHandsItsTurnToTheNextCaller) {
  TripAndWait();
  Start().Cancel();
  EXPECT_EQ(breaker_.state(), State::kHalfOpen);
  Run({});
  EXPECT_TRUE(result_->ok());
  EXPECT_EQ(breaker_.state(), State::kClosed);
}

TEST_F(GuardTest, AProbeThatHangsAnswersItsCallerAndIsReplaced) {
  TripAndWait();
  testing::ScriptedOperation hung;
  std::optional<Result<void>> told;
  guard_.Run(hung.Make(), [&](Result<void> result) { told = std::move(result); });
  hung.RunIt();
  clock_.Advance(seconds(10));
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->error().code(), Errc::kOutcomeUnknown);
  EXPECT_EQ(breaker_.state(), State::kHalfOpen);  // storage itself has not answered yet
  Start();
  EXPECT_EQ(Code(), Errc::kCircuitOpen);
  clock_.Advance(seconds(20));
  Run({});
  EXPECT_TRUE(result_->ok());
  EXPECT_EQ(breaker_.state(), State::kClosed);
  hung.Report(Io());  // too late to matter
  EXPECT_EQ(breaker_.status().failures, 0);
}

TEST_F(GuardTest, AProbeThatOutlivesItsCallersPatienceStillCloses) {
  TripAndWait();
  Start();
  storage_.RunIt();
  clock_.Advance(seconds(10));
  EXPECT_EQ(Code(), Errc::kOutcomeUnknown);
  clock_.Advance(seconds(2));
  storage_.Report({});
  EXPECT_EQ(breaker_.state(), State::kClosed);
}

TEST_F(GuardTest, AProbeThatIsLostReopens) {
  TripAndWait();
  Start();
  storage_.RunIt();
  clock_.Advance(seconds(10));
  storage_.Lose();
  EXPECT_EQ(breaker_.state(), State::kOpen);
}

TEST_F(GuardTest, RunningOutOfTimeInAQueueIsNoFailureButStayingLockedIs) {
  for (int i = 0; i < 10; ++i) {
    Start();
    clock_.Advance(seconds(10));
    EXPECT_EQ(Code(), Errc::kStorageTimeout);
  }
  EXPECT_EQ(breaker_.status().failures, 0);
  for (int i = 0; i < 5; ++i) {
    Start();
    clock_.Advance(milliseconds(9990));  // a long queue leaves no time for the second try
    storage_.Report(Busy());
    clock_.Advance(milliseconds(10));
    EXPECT_EQ(Code(), Errc::kStorageTimeout);
  }
  EXPECT_EQ(breaker_.state(), State::kOpen);
}

TEST_F(GuardTest, LateResultsOfCallsFromBeforeItOpenedChangeNothing) {
  testing::ScriptedOperation slow;
  guard_.Run(slow.Make(), [](const Result<void>&) {});
  slow.RunIt();
  Trip();
  slow.Report({});
  EXPECT_EQ(breaker_.state(), State::kOpen);
}

}  // namespace
}  // namespace interlock::resilience
