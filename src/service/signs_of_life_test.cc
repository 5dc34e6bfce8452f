#include "service/signs_of_life.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "testing/fake_clock.h"
#include "testing/on_threads.h"

namespace interlock::service {
namespace {

using std::chrono::seconds;
using testing::FakeClock;

class SignsOfLifeTest : public ::testing::Test {
 protected:
  // Stores everything that is due; the ids of the agents.
  std::vector<std::string> Save() {
    const auto due = signs_.TakeUnsaved();
    signs_.MarkSaved(due);
    std::vector<std::string> agents;
    for (const SignsOfLife::Sign& sign : due) agents.push_back(sign.agent);
    return agents;
  }
  Timestamp Newest(std::string_view agent) { return signs_.Newest(agent, kStored); }

  static constexpr Timestamp kStored = {1000};
  FakeClock clock_;
  SignsOfLife signs_{clock_};
};

TEST_F(SignsOfLifeTest, UnknownAgentHasItsStoredTime) {
  EXPECT_EQ(Newest("a"), kStored);
  EXPECT_TRUE(signs_.Remembered().empty());
}

TEST_F(SignsOfLifeTest, TheNewerTimeCounts) {
  signs_.Seen("a");
  EXPECT_EQ(Newest("a"), clock_.Now());
  EXPECT_EQ(signs_.Newest("a", clock_.Now() + seconds(1)), clock_.Now() + seconds(1));
  EXPECT_EQ(Newest("b"), kStored);
}

TEST_F(SignsOfLifeTest, RememberedTimeDoesNotGoBackWithTheClock) {
  signs_.Seen("a");
  const Timestamp first = clock_.Now();
  clock_.JumpWallClock(seconds(-60));
  signs_.Seen("a");
  EXPECT_EQ(Newest("a"), first);
}

TEST_F(SignsOfLifeTest, SignIsDueOnceAndForgottenOneSaveLater) {
  signs_.Seen("a");
  const Timestamp seen = clock_.Now();
  EXPECT_EQ(Save(), std::vector<std::string>{"a"});
  EXPECT_EQ(Newest("a"), seen);  // for reads that do not see the commit
  EXPECT_TRUE(Save().empty());
  EXPECT_EQ(Newest("a"), kStored);
}

TEST_F(SignsOfLifeTest, SignThatCouldNotBeSavedIsDueAgain) {
  signs_.Seen("a");
  ASSERT_EQ(signs_.TakeUnsaved().size(), 1U);
  const auto again = signs_.TakeUnsaved();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].agent, "a");
  EXPECT_EQ(again[0].at, clock_.Now());
}

TEST_F(SignsOfLifeTest, SignDuringASaveIsDueInTheNext) {
  signs_.Seen("a");
  const auto due = signs_.TakeUnsaved();
  clock_.Advance(seconds(1));
  signs_.Seen("a");
  signs_.MarkSaved(due);
  EXPECT_EQ(Newest("a"), clock_.Now());
  EXPECT_EQ(Save(), std::vector<std::string>{"a"});
}

TEST_F(SignsOfLifeTest, OpenStreamIsASignAtEveryMoment) {
  SignsOfLife::Stream stream = signs_.Open("a");
  clock_.Advance(seconds(1000));
  EXPECT_EQ(Newest("a"), clock_.Now());
  stream = {};
  const Timestamp closed = clock_.Now();
  clock_.Advance(seconds(10));
  EXPECT_EQ(Newest("a"), closed);
  EXPECT_EQ(Save(), std::vector<std::string>{"a"});
  EXPECT_TRUE(Save().empty());
  EXPECT_EQ(Newest("a"), kStored);
}

TEST_F(SignsOfLifeTest, StreamsOfOneAgentAreCounted) {
  SignsOfLife::Stream one = signs_.Open("a");
  const SignsOfLife::Stream two = signs_.Open("a");
  one = {};
  clock_.Advance(seconds(100));
  EXPECT_EQ(Newest("a"), clock_.Now());
}

TEST_F(SignsOfLifeTest, IdleStreamIsDueEveryMinuteAtMostEveryFifteenSeconds) {
  const SignsOfLife::Stream stream = signs_.Open("a");
  int saves = 0;
  for (int s = 0; s < 600; s += 15) {
    saves += static_cast<int>(Save().size());
    clock_.Advance(seconds(15));
  }
  EXPECT_GE(saves, 10);
  EXPECT_LE(saves, 14);
}

TEST_F(SignsOfLifeTest, FullMemoryKeepsWhatItHasAndTakesOthersAfterASave) {
  SignsOfLife signs(clock_, 2);
  signs.Seen("a");
  signs.Seen("b");
  signs.Seen("c");
  EXPECT_EQ(signs.Remembered(), (std::vector<std::string>{"a", "b"}));
  const SignsOfLife::Stream stream = signs.Open("d");
  EXPECT_EQ(signs.Newest("d", kStored), clock_.Now());
  signs.MarkSaved(signs.TakeUnsaved());
  signs.MarkSaved(signs.TakeUnsaved());
  signs.Seen("c");
  EXPECT_EQ(signs.Remembered(), (std::vector<std::string>{"c", "d"}));
}

TEST_F(SignsOfLifeTest, ManyThreadsLoseNoSign) {
  const Timestamp began = clock_.Now();
  testing::OnThreads(8, [&](int thread) {
    for (int i = 0; i < 200; ++i) {
      const std::string agent = "agent" + std::to_string(i % 20);
      if (thread == 0) {
        signs_.MarkSaved(signs_.TakeUnsaved());
      } else if (thread == 1) {
        signs_.Newest(agent, kStored);
        signs_.Remembered();
      } else if (thread == 2) {
        const SignsOfLife::Stream stream = signs_.Open(agent);
      } else {
        signs_.Seen(agent);
      }
    }
  });
  clock_.Advance(seconds(1));
  signs_.Seen("agent0");
  EXPECT_GT(Newest("agent0"), began);
}

}  // namespace
}  // namespace interlock::service
