#include "service/replay_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "testing/fake_clock.h"
#include "testing/fake_database.h"
#include "testing/random.h"
#include "testing/seeded_random.h"

namespace interlock::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ReplayQueueTest : public ::testing::Test {
 public:
  ~ReplayQueueTest() override {
    queue_.Stop();
    storage_.Stop();
    EXPECT_TRUE(database_.Close().ok());
  }

 protected:
  ReplayQueueTest() { database_.Hold(); }

  // What it was told will stand in told_, under the number.
  ReplayQueue::Call Submit(int number) {
    return queue_.Submit([](db::Connection&) { return Result<void>(); },
                         [this, number](const Result<void>& result) {
                           told_.push_back(std::to_string(number) + " " +
                                           std::string(result.ok() ? "ok" : result.error().slug()));
                         });
  }
  std::vector<std::string> Told() { return std::exchange(told_, {}); }

  testing::FakeClock clock_;
  testing::FakeDatabase database_;
  Storage storage_{database_, clock_};
  ReplayQueue queue_{storage_, 2};
  std::vector<std::string> told_;
};

TEST_F(ReplayQueueTest, AFewAreWithTheStorageAndTheOthersFollowInTheOrderOfArrival) {
  for (int i = 1; i <= 5; ++i) Submit(i);
  EXPECT_EQ(database_.held(), 2U);
  EXPECT_EQ(queue_.stats().waiting, 3U);
  database_.Answer({});
  EXPECT_THAT(Told(), ElementsAre("1 ok", "2 ok"));
  EXPECT_EQ(database_.held(), 2U);
  database_.Answer({});
  EXPECT_EQ(database_.held(), 1U);
  database_.Answer({});
  EXPECT_THAT(Told(), ElementsAre("3 ok", "4 ok", "5 ok"));
  EXPECT_EQ(queue_.stats().running, 0U);
  Submit(6);
  EXPECT_EQ(database_.held(), 1U) << "what was empty begins anew";
}

TEST_F(ReplayQueueTest, OneThatGoesAwayWhileItWaitsLeavesTheQueue) {
  Submit(1);
  Submit(2);
  ReplayQueue::Call third = Submit(3);
  Submit(4);
  third.Cancel();
  third.Cancel();
  EXPECT_THAT(Told(), ElementsAre("3 cancelled"));
  EXPECT_EQ(queue_.stats().waiting, 1U);
  database_.Answer({});
  EXPECT_EQ(database_.held(), 1U);
  database_.Answer({});
  EXPECT_THAT(Told(), ElementsAre("1 ok", "2 ok", "4 ok"));
}

TEST_F(ReplayQueueTest, OneThatGoesAwayBeforeItsReadHasBegunMakesRoomAtOnce) {
  ReplayQueue::Call first = Submit(1);
  Submit(2);
  Submit(3);
  first.Cancel();
  EXPECT_THAT(Told(), ElementsAre("1 cancelled"));
  EXPECT_EQ(database_.held(), 2U);
  EXPECT_EQ(queue_.stats().waiting, 0U);
}

TEST_F(ReplayQueueTest, OneThatGoesAwayWhileItRunsIsToldAtOnceAndKeepsItsPlaceUntilTheAnswer) {
  ReplayQueue::Call first = Submit(1);
  Submit(2);
  Submit(3);
  database_.StartHeld();
  first.Cancel();
  EXPECT_THAT(Told(), ElementsAre("1 cancelled"));
  EXPECT_EQ(queue_.stats().running, 2U);
  EXPECT_EQ(queue_.stats().waiting, 1U);
  database_.Answer({});
  database_.Answer({});
  EXPECT_THAT(Told(), ElementsAre("2 ok", "3 ok")) << "the answer to the first is nobody's";
}

TEST_F(ReplayQueueTest, StoppingTellsAllAndRefusesNewOnes) {
  for (int i = 1; i <= 4; ++i) Submit(i);
  database_.StartHeld();
  queue_.Stop();
  queue_.Stop();
  EXPECT_THAT(Told(),
              ElementsAre("1 unavailable", "2 unavailable", "3 unavailable", "4 unavailable"));
  Submit(5);
  EXPECT_THAT(Told(), ElementsAre("5 unavailable"));
  database_.Answer({});
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_EQ(queue_.stats().running, 0U);
}

TEST_F(ReplayQueueTest, AStorageThatRefusesAllTellsAllHoweverMany) {
  constexpr int kMany = testing::kSlowBuild ? 4000 : 20'000;
  Submit(1);
  Submit(2);
  for (int i = 3; i <= kMany; ++i) Submit(i);
  storage_.Stop();
  database_.Answer(Error(Errc::kUnavailable, "closed"));
  EXPECT_EQ(Told().size(), static_cast<std::size_t>(kMany));
  EXPECT_EQ(queue_.stats().running, 0U);
}

// A database with threads: each read is answered on one of them, and counted while it runs.
class ThreadedReads final : public db::Database {
 public:
  explicit ThreadedReads(int threads) {
    threads_.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
  }
  int running_max() const { return running_max_; }

  Result<Ticket> Read(ReadFn /*fn*/, Done done) override {
    const MutexLock lock(mutex_);
    queue_.push_back(std::move(done));
    changed_.NotifyAll();
    return Ticket{0};
  }
  Result<Ticket> Write(WriteFn /*fn*/, Done /*done*/) override {
    return Error(Errc::kInternal, "only reads");
  }
  bool Cancel(Ticket /*ticket*/) override { return false; }
  Result<void> Close() override {
    {
      const MutexLock lock(mutex_);
      closed_ = true;
      changed_.NotifyAll();
    }
    for (std::thread& thread : threads_) thread.join();
    return {};
  }

 private:
  void Run() {
    while (true) {
      Done done;
      {
        const MutexLock lock(mutex_);
        while (queue_.empty() && !closed_) changed_.Wait(mutex_);
        if (queue_.empty()) return;
        done = std::move(queue_.front());
        queue_.pop_front();
        running_max_ = std::max(running_max_.load(), ++running_);
      }
      std::this_thread::yield();
      {
        const MutexLock lock(mutex_);
        --running_;
      }
      done({});
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::deque<Done> queue_ IL_GUARDED_BY(mutex_);
  int running_ IL_GUARDED_BY(mutex_) = 0;
  bool closed_ IL_GUARDED_BY(mutex_) = false;
  std::atomic<int> running_max_{0};
  std::vector<std::thread> threads_;
};

TEST(ReplayQueueRaceTest, EachIsToldOnceWhateverIsCancelledMeanwhile) {
  constexpr int kAskers = 4;
  constexpr int kEach = testing::kSlowBuild ? 300 : 1500;
  testing::FakeClock clock;
  ThreadedReads database(4);
  Storage storage(database, clock);
  std::vector<std::atomic<int>> told(std::size_t{kAskers} * kEach);
  {
    ReplayQueue queue(storage, 2);
    std::vector<std::thread> askers;
    askers.reserve(kAskers);
    for (int a = 0; a < kAskers; ++a) {
      askers.emplace_back([&, a] {
        std::mt19937_64 random(testing::TestSeed() + static_cast<unsigned>(a));
        std::vector<ReplayQueue::Call> calls;
        calls.reserve(kEach);
        for (int i = 0; i < kEach; ++i) {
          std::atomic<int>& mine =
              told[static_cast<std::size_t>(a) * kEach + static_cast<std::size_t>(i)];
          calls.push_back(queue.Submit([](db::Connection&) { return Result<void>(); },
                                       [&mine](const Result<void>&) { ++mine; }));
          if (testing::Below(random, 3) == 0) calls[testing::Below(random, calls.size())].Cancel();
        }
      });
    }
    for (std::thread& asker : askers) asker.join();
    while (queue.stats().running + queue.stats().waiting > 0) std::this_thread::yield();
  }
  storage.Stop();
  ASSERT_TRUE(database.Close().ok());
  for (std::size_t i = 0; i < told.size(); ++i) ASSERT_EQ(told[i], 1) << i;
  EXPECT_LE(database.running_max(), 2);
}

}  // namespace
}  // namespace interlock::service
