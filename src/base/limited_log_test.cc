#include "base/limited_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "testing/captured_log.h"
#include "testing/fake_clock.h"

namespace interlock {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class LimitedLogTest : public ::testing::Test {
 protected:
  std::size_t Lines(const std::string& part) {
    const std::string text = sink_.text();
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++count;
    }
    return count;
  }

  testing::FakeClock clock_;
  testing::CapturedLog sink_;
  Logger logger_{clock_, sink_};
};

TEST_F(LimitedLogTest, AFewLinesAreWrittenAsTheyAre) {
  LimitedLog log(logger_, clock_);
  log.Info("agent registered", {{"agent", "a1"}, {"name", "two\nlines\x1b[2J"}});
  EXPECT_THAT(sink_.text(),
              HasSubstr(" INFO agent registered agent=a1 name=\"two\\nlines\\u001b[2J\"\n"));
  clock_.Advance(seconds(60));
  EXPECT_EQ(Lines("not shown"), 0U);
}

TEST_F(LimitedLogTest, MoreLinesOfAKindAreCountedAndOtherKindsAreNotHidden) {
  LimitedLog log(logger_, clock_, {.lines_max = 3, .window = seconds(10)});
  for (int i = 0; i < 10; ++i) log.Info("granted", {{"i", i}});
  log.Info("refused", {});
  EXPECT_EQ(Lines("INFO granted"), 3U);
  EXPECT_EQ(Lines("INFO refused"), 1U);
  EXPECT_EQ(Lines("not shown"), 0U);
  clock_.Advance(seconds(10));
  EXPECT_THAT(sink_.text(),
              HasSubstr("INFO more lines of this kind are not shown kind=granted count=7\n"));
  EXPECT_EQ(Lines("not shown"), 1U);
  for (int i = 0; i < 4; ++i) log.Info("granted", {});
  EXPECT_EQ(Lines("INFO granted"), 6U) << "each window has its own lines";
}

TEST_F(LimitedLogTest, CountsAreWrittenAtTheEnd) {
  {
    LimitedLog log(logger_, clock_, {.lines_max = 1});
    log.Info("granted", {});
    log.Info("granted", {});
  }
  EXPECT_EQ(Lines("not shown kind=granted count=1"), 1U);
  clock_.Advance(seconds(60));
  EXPECT_EQ(Lines("not shown"), 1U) << "the timer finds nothing";
}

TEST_F(LimitedLogTest, AHigherLevelSilencesIt) {
  Logger quiet(clock_, sink_, {.level_min = LogLevel::kWarn});
  LimitedLog log(quiet, clock_, {.lines_max = 1});
  for (int i = 0; i < 5; ++i) log.Info("granted", {});
  clock_.Advance(seconds(60));
  EXPECT_EQ(sink_.text(), "");
}

TEST_F(LimitedLogTest, ErrorsAreLimitedAndCountedAtTheirOwnLevel) {
  Logger quiet(clock_, sink_, {.level_min = LogLevel::kError});
  LimitedLog log(quiet, clock_, {.lines_max = 2, .window = seconds(10)});
  for (int i = 0; i < 5; ++i) log.Error("a handler failed", {{"what", "no file"}});
  EXPECT_EQ(Lines("ERROR a handler failed what=\"no file\""), 2U);
  clock_.Advance(seconds(10));
  EXPECT_EQ(Lines("ERROR more lines of this kind are not shown kind=\"a handler failed\" count=3"),
            1U);
}

TEST_F(LimitedLogTest, ThreadsTogetherKeepTheLimit) {
  LimitedLog log(logger_, clock_, {.lines_max = 5});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&log] {
      for (int i = 0; i < 100; ++i) log.Info("granted", {});
    });
  }
  for (std::thread& thread : threads) thread.join();
  clock_.Advance(seconds(10));
  EXPECT_EQ(Lines("INFO granted"), 5U);
  EXPECT_THAT(sink_.text(), HasSubstr("count=395"));
}

}  // namespace
}  // namespace interlock
