#include "resilience/retry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "testing/fake_clock.h"
#include "testing/scripted_operation.h"
#include "testing/seeded_random.h"

namespace interlock::resilience {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Error Busy() { return Error(Errc::kBusy, "database is locked"); }
Error Io() { return Error(Errc::kIo, "disk I/O error"); }

class RetryTest : public ::testing::Test {
 protected:
  Call Run(Effect effect = Effect::kChanges, Duration budget = seconds(10)) {
    return retry_.Run(
        storage_.Make(effect, budget),
        [this](Result<void> result) {
          ASSERT_FALSE(result_.has_value()) << "done ran twice";
          order_ += 'd';
          result_ = std::move(result);
        },
        [this](const Result<void>& last) {
          ASSERT_FALSE(settled_.has_value()) << "settled ran twice";
          order_ += 's';
          settled_ = last;
        });
  }
  bool Over() const { return result_.has_value(); }
  bool Ok() const { return result_ && result_->ok(); }
  // What `done` and `settled` heard; nothing when they heard success or have not run.
  std::optional<Errc> Code() const { return CodeOf(result_); }
  std::optional<Errc> SettledCode() const { return CodeOf(settled_); }
  static std::optional<Errc> CodeOf(const std::optional<Result<void>>& result) {
    if (!result || result->ok()) return std::nullopt;
    return result->error().code();
  }
  // Runs all waits, and returns how long each was.
  std::vector<Duration> RunWaits() {
    std::vector<Duration> waits;
    while (!Over()) {
      waits.push_back(clock_.NextTimerIn());
      if (!clock_.AdvanceToNextTimer()) break;
    }
    return waits;
  }

  testing::FakeClock clock_;
  testing::ScriptedOperation storage_;
  double random_ = 0;
  Retry retry_{clock_, {}, [this] { return random_; }};
  std::optional<Result<void>> result_;
  std::optional<Result<void>> settled_;
  std::string order_;  // s(ettled), d(one)
};

TEST_F(RetryTest, SuccessAtOnceIsOneCall) {
  storage_.script = {Result<void>()};
  Run();
  EXPECT_TRUE(Ok());
  EXPECT_EQ(storage_.tries(), 1);
  EXPECT_EQ(order_, "sd");
  EXPECT_TRUE(settled_->ok());
  EXPECT_EQ(clock_.timers_waiting(), 0u);
}

TEST_F(RetryTest, ThreeLocksThenSuccessAreFourCalls) {
  storage_.script = {Busy(), Busy(), Busy(), Result<void>()};
  Run();
  EXPECT_FALSE(Over());
  EXPECT_EQ(RunWaits(),
            (std::vector<Duration>{milliseconds(50), milliseconds(100), milliseconds(200)}));
  EXPECT_TRUE(Ok());
  EXPECT_EQ(storage_.tries(), 4);
  EXPECT_TRUE(settled_->ok());
  EXPECT_EQ(clock_.timers_waiting(), 0u);
}

TEST_F(RetryTest, AnyOtherErrorIsOneCall) {
  for (const ErrcInfo& info : AllErrcs()) {
    if (info.code == Errc::kBusy) continue;
    testing::ScriptedOperation storage;
    storage.script = {Error(info.code, "as it is")};
    std::optional<Result<void>> result;
    retry_.Run(storage.Make(), [&](Result<void> r) { result = std::move(r); });
    ASSERT_TRUE(result.has_value()) << info.slug;
    EXPECT_EQ(result->error().code(), info.code);
    EXPECT_EQ(result->error().message(), "as it is");
    EXPECT_EQ(storage.tries(), 1) << info.slug;
  }
  EXPECT_EQ(clock_.timers_waiting(), 0u);
}

TEST_F(RetryTest, AlwaysLockedIsEightCallsAndTheLastError) {
  for (int i = 1; i <= 8; ++i) {
    storage_.script.push_back(Error(Errc::kBusy, "locked, try " + std::to_string(i)));
  }
  storage_.script.push_back(Result<void>());  // never reached
  Run();
  const std::vector<Duration> expected = {milliseconds(50),  milliseconds(100), milliseconds(200),
                                          milliseconds(400), milliseconds(800), milliseconds(1600),
                                          milliseconds(3200)};
  EXPECT_EQ(RunWaits(), expected);
  EXPECT_EQ(storage_.tries(), 8);
  EXPECT_EQ(Code(), Errc::kBusy);
  EXPECT_EQ(result_->error().message(), "locked, try 8");
  EXPECT_EQ(SettledCode(), Errc::kBusy);
  EXPECT_EQ(clock_.timers_waiting(), 0u);
}

TEST_F(RetryTest, ABusyTryThatIsFollowedByAnErrorEndsWithIt) {
  storage_.script = {Busy(), Io(), Result<void>()};
  Run();
  RunWaits();
  EXPECT_EQ(Code(), Errc::kIo);
  EXPECT_EQ(storage_.tries(), 2);
}

TEST_F(RetryTest, JitterLengthensEachWaitByUpToAQuarterAndNeverShortensIt) {
  const Retry::Options options;
  std::mt19937_64 generator(testing::TestSeed());
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int n = 1; n <= 7; ++n) {
    const Duration d = milliseconds(50) * (1 << (n - 1));
    EXPECT_EQ(Retry::Delay(options, n, 0), d);
    EXPECT_EQ(Retry::Delay(options, n, 0.5), d + d / 8);
    Duration longest{0};
    for (int i = 0; i < 1000; ++i) {
      const Duration delay = Retry::Delay(options, n, uniform(generator));
      ASSERT_GE(delay, d);
      ASSERT_LE(delay, d * 5 / 4);
      longest = std::max(longest, delay);
    }
    EXPECT_GT(longest, d * 6 / 5);  // the whole range is used
  }
}

TEST_F(RetryTest, EachWaitDrawsItsOwnRandomNumber) {
  storage_.script = {Busy(), Busy(), Result<void>()};
  random_ = 0.4;
  Run();
  EXPECT_EQ(clock_.NextTimerIn(), milliseconds(55));
  random_ = 0.8;
  clock_.AdvanceToNextTimer();
  EXPECT_EQ(clock_.NextTimerIn(), milliseconds(120));
  clock_.AdvanceToNextTimer();
  EXPECT_TRUE(Ok());
}

TEST(SystemRandomTest, StaysInRangeOnEveryThread) {
  const Retry::Random random = SystemRandom();
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&random] {
      double low = 1;
      double high = 0;
      for (int i = 0; i < 1000; ++i) {
        const double x = random();
        low = std::min(low, x);
        high = std::max(high, x);
      }
      EXPECT_GE(low, 0);
      EXPECT_LT(low, 0.1);
      EXPECT_GT(high, 0.9);
      EXPECT_LT(high, 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(RetryTest, NoTryIsOutBetweenTries) {
  Run();
  storage_.RunIt();
  storage_.Report(Busy());
  EXPECT_FALSE(storage_.try_is_out());
  clock_.Advance(milliseconds(49));
  EXPECT_EQ(storage_.tries(), 1);
  clock_.Advance(milliseconds(1));
  EXPECT_TRUE(storage_.try_is_out());
  EXPECT_EQ(storage_.tries(), 2);
  storage_.Report({});
  EXPECT_TRUE(Ok());
}

TEST_F(RetryTest, ARefusedFirstTryIsToldBeforeRunReturns) {
  storage_.refusal = Error(Errc::kUnavailable, "the queue is full");
  Run();
  EXPECT_EQ(Code(), Errc::kUnavailable);
  EXPECT_EQ(SettledCode(), Errc::kUnavailable);
  EXPECT_EQ(order_, "sd");
  EXPECT_EQ(clock_.timers_waiting(), 0u);
}

TEST_F(RetryTest, ARefusedLaterTryIsTold) {
  storage_.script = {Busy()};
  Run();
  storage_.refusal = Error(Errc::kUnavailable, "closing");
  clock_.AdvanceToNextTimer();
  EXPECT_EQ(Code(), Errc::kUnavailable);
  EXPECT_EQ(clock_.timers_waiting(), 0u);
}

TEST_F(RetryTest, ABusyRefusalIsNotRepeated) {
  // `begin` refusing means that no try was made; only tries find a database locked.
  storage_.refusal = Busy();
  Run();
  EXPECT_EQ(Code(), Errc::kBusy);
  EXPECT_EQ(storage_.tries(), 1);
}

TEST_F(RetryTest, ATryThatThrowsWhenBegunIsOurBugAndSettlesNothing) {
  storage_.throws = true;
  Run();
  EXPECT_EQ(Code(), Errc::kInternal);
  EXPECT_NE(result_->error().message().find("begin threw"), std::string::npos);
  EXPECT_EQ(order_, "d");
  EXPECT_EQ(clock_.timers_waiting(), 0u);
}

TEST_F(RetryTest, ALaterTryThatThrowsDoesNotEscapeToTheClock) {
  storage_.script = {Busy()};
  Run();
  storage_.throws = true;
  clock_.AdvanceToNextTimer();
  EXPECT_EQ(Code(), Errc::kInternal);
  EXPECT_EQ(order_, "d");
}

// Cancellation.

TEST_F(RetryTest, CancellingBetweenTriesEndsTheWaitAtOnce) {
  storage_.script = {Busy(), Result<void>()};
  Call call = Run();
  EXPECT_FALSE(Over());
  call.Cancel();
  EXPECT_EQ(Code(), Errc::kCancelled);
  EXPECT_EQ(SettledCode(), Errc::kCancelled);
  EXPECT_EQ(clock_.timers_waiting(), 0u);
  clock_.Advance(seconds(60));
  EXPECT_EQ(storage_.tries(), 1);
  call.Cancel();  // nothing happens
}

TEST_F(RetryTest, CancellingAQueuedTryTakesItBack) {
  Call call = Run();
  call.Cancel();
  EXPECT_FALSE(storage_.try_is_out());
  EXPECT_EQ(Code(), Errc::kCancelled);
  EXPECT_EQ(clock_.timers_waiting(), 0u);
}

TEST_F(RetryTest, CancellingARunningTryLeavesTheLastWordToIt) {
  Call call = Run();
  storage_.RunIt();
  call.Cancel();
  EXPECT_FALSE(Over());
  storage_.Report({});
  EXPECT_TRUE(Ok());  // it was committed: anything else would be a lie
  EXPECT_TRUE(settled_->ok());
}

TEST_F(RetryTest, ARunningTryThatWasCancelledAndFindsALockIsNotRepeated) {
  Call call = Run();
  storage_.RunIt();
  call.Cancel();
  storage_.Report(Busy());
  EXPECT_EQ(Code(), Errc::kCancelled);
  EXPECT_EQ(SettledCode(), Errc::kCancelled);
  EXPECT_EQ(storage_.tries(), 1);
  EXPECT_EQ(clock_.timers_waiting(), 0u);
}

TEST_F(RetryTest, ARunningTryThatWasCancelledIsStillBoundedInTime) {
  Call call = Run();
  storage_.RunIt();
  call.Cancel();
  clock_.Advance(seconds(10));
  EXPECT_EQ(Code(), Errc::kOutcomeUnknown);
}

TEST_F(RetryTest, CancellingWhatIsOverDoesNothing) {
  storage_.script = {Result<void>()};
  Call call = Run();
  Call copy = call;
  call.Cancel();
  copy.Cancel();
  Call().Cancel();
  EXPECT_TRUE(Ok());
}

TEST_F(RetryTest, AReportThatComesWhileItIsBeingCancelledWins) {
  Call call = Run();
  storage_.on_cancel = [this] { storage_.Report({}); };
  call.Cancel();
  EXPECT_TRUE(Ok());
}

// The budget.

TEST_F(RetryTest, TheBudgetTakesAQueuedTryBack) {
  Run();
  clock_.Advance(seconds(10) - Duration(1));
  EXPECT_FALSE(Over());
  clock_.Advance(Duration(1));
  EXPECT_FALSE(storage_.try_is_out());
  EXPECT_EQ(Code(), Errc::kStorageTimeout);
  EXPECT_NE(result_->error().message().find("within 10 s"), std::string::npos);
  EXPECT_EQ(SettledCode(), Errc::kCancelled);  // storage never saw it
  EXPECT_EQ(clock_.timers_waiting(), 0u);
}

TEST_F(RetryTest, TheBudgetEndsAWaitBetweenTriesAndSettlesAsBusy) {
  Run(Effect::kChanges, milliseconds(120));
  storage_.Report(Busy());
  clock_.Advance(milliseconds(50));
  storage_.Report(Busy());
  clock_.Advance(milliseconds(70));
  EXPECT_EQ(Code(), Errc::kStorageTimeout);
  EXPECT_NE(result_->error().message().find("database is locked"), std::string::npos);
  EXPECT_EQ(SettledCode(), Errc::kBusy);
  EXPECT_EQ(storage_.tries(), 2);
  EXPECT_EQ(clock_.timers_waiting(), 0u);
}

TEST_F(RetryTest, TheBudgetCountsQueueTimeAndAllTriesTogether) {
  Run();
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(seconds(3));
    storage_.RunIt();
    storage_.Report(Busy());
    clock_.AdvanceToNextTimer();  // 50, 100, 200 ms
  }
  EXPECT_TRUE(storage_.try_is_out());
  EXPECT_FALSE(Over());
  clock_.Advance(milliseconds(650));  // 9 s + 350 ms + 650 ms
  EXPECT_EQ(Code(), Errc::kStorageTimeout);
}

TEST_F(RetryTest, AReadThatIsRunningWhenTheBudgetIsUsedUpIsToldTimeout) {
  Run(Effect::kNone);
  storage_.RunIt();
  clock_.Advance(seconds(10));
  EXPECT_EQ(Code(), Errc::kStorageTimeout);
  EXPECT_EQ(order_, "d");
  storage_.Report({});
  EXPECT_EQ(order_, "ds");
  EXPECT_TRUE(settled_->ok());
}

TEST_F(RetryTest, AWriteThatIsRunningWhenTheBudgetIsUsedUpIsToldThatItsOutcomeIsUnknown) {
  Run();
  storage_.RunIt();
  clock_.Advance(seconds(10));
  EXPECT_EQ(Code(), Errc::kOutcomeUnknown);
  EXPECT_NE(result_->error().message().find("may or may not"), std::string::npos);
  EXPECT_EQ(order_, "d");
  EXPECT_EQ(clock_.timers_waiting(), 0u);
  storage_.Report(Io());
  EXPECT_EQ(order_, "ds");
  EXPECT_EQ(SettledCode(), Errc::kIo);
}

TEST_F(RetryTest, ALateBusyAfterTheBudgetIsNotRepeated) {
  Run();
  storage_.RunIt();
  clock_.Advance(seconds(10));
  storage_.Report(Busy());
  EXPECT_EQ(SettledCode(), Errc::kBusy);
  EXPECT_EQ(clock_.timers_waiting(), 0u);
  EXPECT_EQ(storage_.tries(), 1);
}

TEST_F(RetryTest, AReportThatComesWhileTheBudgetRunsOutWins) {
  Run();
  storage_.on_cancel = [this] { storage_.Report({}); };
  clock_.Advance(seconds(10));
  EXPECT_TRUE(Ok());
  EXPECT_EQ(order_, "sd");
}

TEST_F(RetryTest, ABudgetUsedUpWhileATryBeginsTakesItBack) {
  storage_.on_begin = [this] { clock_.Advance(seconds(10)); };
  Run();
  EXPECT_EQ(Code(), Errc::kStorageTimeout);
  EXPECT_FALSE(storage_.try_is_out());
}

TEST_F(RetryTest, ALostTryStillAnswersAndDestroysSettledUnrun) {
  auto alive = std::make_shared<int>();
  retry_.Run(
      storage_.Make(), [this](Result<void> result) { result_ = std::move(result); },
      [alive](const Result<void>&) { FAIL() << "nothing was settled"; });
  storage_.RunIt();
  clock_.Advance(seconds(10));
  EXPECT_EQ(Code(), Errc::kOutcomeUnknown);
  EXPECT_EQ(alive.use_count(), 2);
  storage_.Lose();
  EXPECT_EQ(alive.use_count(), 1);
}

// Exceptions of what it is given.

// A clock that has no room for a timer once `schedules_left` is used up.
class FullClock final : public Clock {
 public:
  Timestamp Now() override { return clock.Now(); }
  Duration Monotonic() override { return clock.Monotonic(); }
  TimerId Schedule(Duration delay, std::function<void()> fn) override {
    if (schedules_left-- == 0) throw std::runtime_error("no room for a timer");
    return clock.Schedule(delay, std::move(fn));
  }
  bool Cancel(TimerId id) override { return clock.Cancel(id); }

  testing::FakeClock clock;
  int schedules_left = 0;
};

TEST(RetryThrowTest, AClockThatThrowsIsToldAsInternalAtWhateverTimer) {
  for (int left = 0; left < 3; ++left) {  // the budget's, and those of two waits
    FullClock clock;
    clock.schedules_left = left;
    Retry retry(clock, {}, [] { return 0.0; });
    testing::ScriptedOperation storage;
    storage.script = {Busy(), Busy(), Result<void>()};
    std::vector<Result<void>> told;
    const auto alive = std::make_shared<int>();
    retry.Run(
        storage.Make(), [&](Result<void> result) { told.push_back(std::move(result)); },
        [alive](const Result<void>&) { FAIL() << "nothing was settled"; });
    while (clock.clock.AdvanceToNextTimer()) {
    }
    ASSERT_EQ(told.size(), 1u) << left;
    EXPECT_EQ(told[0].error().code(), Errc::kInternal);
    EXPECT_NE(told[0].error().message().find("no room for a timer"), std::string::npos);
    EXPECT_EQ(storage.tries(), left);
    EXPECT_EQ(alive.use_count(), 1);
    retry.Stop();  // finds nobody waiting
    EXPECT_EQ(told.size(), 1u);
  }
}

TEST(RetryThrowTest, RandomNumbersThatThrowAreToldAsInternal) {
  testing::FakeClock clock;
  Retry retry(clock, {}, []() -> double { throw 7; });
  testing::ScriptedOperation storage;
  std::vector<Result<void>> told;
  retry.Run(storage.Make(), [&](Result<void> result) { told.push_back(std::move(result)); });
  storage.RunIt();
  storage.Report(Busy());  // on a storage thread, where an exception would end the program
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].error().code(), Errc::kInternal);
  EXPECT_EQ(clock.timers_waiting(), 0u);
  retry.Stop();
  EXPECT_EQ(told.size(), 1u);
}

// Stopping.

TEST_F(RetryTest, StopEndsWaitsAndRefusesNewOperations) {
  storage_.script = {Busy()};
  Run();
  retry_.Stop();
  EXPECT_EQ(Code(), Errc::kUnavailable);
  EXPECT_EQ(SettledCode(), Errc::kUnavailable);
  EXPECT_EQ(clock_.timers_waiting(), 0u);

  result_.reset();
  settled_.reset();
  Run();
  EXPECT_EQ(Code(), Errc::kUnavailable);
  EXPECT_EQ(SettledCode(), Errc::kUnavailable);
  EXPECT_EQ(storage_.tries(), 1);
  retry_.Stop();  // again: nothing to do
}

TEST_F(RetryTest, AfterStopATryThatIsOutReportsButIsNotRepeated) {
  Run();
  retry_.Stop();
  EXPECT_FALSE(Over());
  clock_.Advance(seconds(60));
  EXPECT_FALSE(Over());  // closing the database brings the answer
  storage_.Report(Busy());
  EXPECT_EQ(Code(), Errc::kBusy);
  EXPECT_EQ(clock_.timers_waiting(), 0u);
}

TEST(RetryThreadsTest, StopWaitsForATryThatIsBeingBegun) {
  SystemClock clock;
  Retry retry(clock, {.retries_max = 7, .delay_base = milliseconds(1)}, [] { return 0.0; });
  std::promise<void> entered;
  std::promise<void> stop_returned;
  auto stopped = stop_returned.get_future();
  int tries = 0;
  Operation operation{.begin = [&](const auto& done) -> Result<Operation::Ticket> {
                        if (++tries == 2) {  // on the clock's thread
                          entered.set_value();
                          EXPECT_EQ(stopped.wait_for(milliseconds(20)),
                                    std::future_status::timeout);
                        }
                        done(Busy());
                        return Operation::Ticket{1};
                      },
                      .cancel = [](Operation::Ticket) { return false; }};
  std::promise<Result<void>> told;
  retry.Run(std::move(operation), [&](Result<void> result) { told.set_value(std::move(result)); });
  entered.get_future().wait();
  retry.Stop();
  stop_returned.set_value();
  EXPECT_EQ(told.get_future().get().error().code(), Errc::kBusy);
  EXPECT_EQ(tries, 2);
}

// Real threads and real time. A pool of storage threads reports late, busy or fine, callers cancel,
// budgets run out: whatever happens, each operation is told exactly once.
TEST(RetryThreadsTest, EveryOperationIsToldExactlyOnce) {
  constexpr int kCallers = 8;
  constexpr int kCalls = 200;
  constexpr int kOperations = kCallers * kCalls;
  SystemClock clock;
  Retry retry(clock, {.retries_max = 3, .delay_base = std::chrono::microseconds(200)},
              SystemRandom());
  std::vector<std::atomic<int>> told(kOperations);
  std::vector<std::atomic<int>> settled(kOperations);
  std::atomic<int> untold = kOperations;
  std::promise<void> all_told;

  // Storage: accepted tries are reported by a timer of a second clock, so on another thread.
  SystemClock storage;
  std::vector<std::thread> callers;
  callers.reserve(kCallers);
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&, c] {
      for (int i = 0; i < kCalls; ++i) {
        const int id = c * kCalls + i;
        auto tries = std::make_shared<std::atomic<int>>(0);
        Operation operation{.begin = [&storage, tries, id](auto done) -> Result<Operation::Ticket> {
                              const bool busy = id % 5 < 3 && ++*tries <= id % 5;
                              auto shared = std::make_shared<decltype(done)>(std::move(done));
                              return storage.Schedule(
                                  std::chrono::microseconds(id % 7 * 100), [shared, busy] {
                                    (*shared)(busy ? Result<void>(Busy()) : Result<void>());
                                  });
                            },
                            .cancel = [](Operation::Ticket) { return false; },
                            .budget = std::chrono::microseconds(id % 11 == 0 ? 300 : 10'000'000)};
        Call call = retry.Run(
            std::move(operation),
            [&, id](const Result<void>&) {
              ++told[id];
              if (--untold == 0) all_told.set_value();
            },
            [&, id](const Result<void>&) { ++settled[id]; });
        if (id % 3 == 0) call.Cancel();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  all_told.get_future().wait();
  retry.Stop();
  // The last tries of operations that ran out of time may still be out; let them report.
  const auto drained = std::make_shared<std::promise<void>>();
  storage.Schedule(milliseconds(50), [drained] { drained->set_value(); });
  drained->get_future().wait();
  for (int id = 0; id < kOperations; ++id) {
    ASSERT_EQ(told[id], 1) << id;
    ASSERT_EQ(settled[id], 1) << id;
  }
}

// Stop() in the middle of it all: nobody is left untold, and no timer enters `begin` afterwards.
TEST(RetryThreadsTest, StopRacesWithWaitsBudgetsAndCancels) {
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    SystemClock clock;
    std::atomic<int> told = 0;
    std::atomic<bool> stopped = false;
    std::atomic<int> begun_after_stop = 0;
    constexpr int kCalls = 20;
    {
      Retry retry(clock, {.retries_max = 7, .delay_base = std::chrono::microseconds(20)},
                  SystemRandom());
      std::vector<Call> calls;
      for (int i = 0; i < kCalls; ++i) {
        Operation operation{.begin = [&](const auto& done) -> Result<Operation::Ticket> {
                              if (stopped) ++begun_after_stop;
                              done(Busy());
                              return Operation::Ticket{1};
                            },
                            .cancel = [](Operation::Ticket) { return false; },
                            .budget = std::chrono::microseconds(100 + i * 10)};
        calls.push_back(retry.Run(std::move(operation), [&](const Result<void>&) { ++told; }));
      }
      std::thread canceller([&] {
        for (int i = 0; i < kCalls; i += 3) calls[i].Cancel();
      });
      retry.Stop();
      stopped = true;
      canceller.join();
    }
    ASSERT_EQ(told, kCalls);
    ASSERT_EQ(begun_after_stop, 0);
  }
}

}  // namespace
}  // namespace interlock::resilience
