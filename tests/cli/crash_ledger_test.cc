#include "cli/crash_ledger.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace interlock::testing {
namespace {

Things State(const std::string& scope, std::int64_t version, const std::string& payload) {
  return {{"state " + scope, fmt::format("version={} payload={}", version, payload)}};
}

// How many lies there are when two sums were told, and then that of a third call was `heard`, and
// there is the sum `counted`.
std::size_t LiesAfterThird(Heard heard, std::int64_t counted) {
  Contest contest;
  contest.HearSum(Heard::kAnswer, "1\n");
  contest.HearSum(Heard::kAnswer, "2\n");
  contest.HearSum(heard, "3\n");
  return contest.Check(State("counted all", counted, std::to_string(counted))).size();
}

TEST(ContestTest, WhatWasCountedIsThereExactlyOnce) {
  EXPECT_EQ(LiesAfterThird(Heard::kAnswer, 3), 0U);
  EXPECT_GT(LiesAfterThird(Heard::kAnswer, 2), 0U) << "it is gone";
  EXPECT_GT(LiesAfterThird(Heard::kAnswer, 4), 0U) << "it is there twice";
  EXPECT_EQ(LiesAfterThird(Heard::kNothing, 2), 0U);
  EXPECT_EQ(LiesAfterThird(Heard::kNothing, 3), 0U);
  EXPECT_GT(LiesAfterThird(Heard::kNothing, 4), 0U) << "it is there twice";
  EXPECT_EQ(LiesAfterThird(Heard::kRefusal, 2), 0U);
  EXPECT_GT(LiesAfterThird(Heard::kRefusal, 3), 0U) << "it was refused";
}

constexpr char kFirstVersion[] = R"({"version":1})";

// A swap that was told version 1, another one that was killed, and the version that is there.
std::size_t LiesAfterKilledSwap(std::int64_t version) {
  Contest contest;
  contest.HearSwap(Heard::kAnswer, "a", {0, kFirstVersion, ""});
  contest.HearSwap(Heard::kNothing, "b", {});
  return contest.Check(State("swapped all", version, version == 1 ? "a" : "b")).size();
}

TEST(ContestTest, EachSwapIsThereAtMostOnce) {
  EXPECT_GT(LiesAfterKilledSwap(0), 0U);
  EXPECT_EQ(LiesAfterKilledSwap(1), 0U);
  EXPECT_EQ(LiesAfterKilledSwap(2), 0U);
  EXPECT_GT(LiesAfterKilledSwap(3), 0U) << "nobody wrote it";
}

TEST(ContestTest, WhatHadNotHappenedDoesNotHappenLater) {
  Contest contest;
  contest.HearSwap(Heard::kAnswer, "a", {0, kFirstVersion, ""});
  contest.HearSwap(Heard::kNothing, "b", {});
  EXPECT_EQ(contest.Check(State("swapped all", 1, "a")), std::vector<std::string>{});
  EXPECT_EQ(contest.Check(State("swapped all", 2, "b")).size(), 1U);
}

}  // namespace
}  // namespace interlock::testing
