#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time_text.h"
#include "testing/seeded_random.h"

// The durations of base/time_text.h.
namespace interlock {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kDay = 86'400 * kSecond;

TEST(DurationTextTest, ReadsNumbersWithUnits) {
  const std::vector<std::pair<std::string_view, std::int64_t>> cases = {
      {"0", 0},
      {"+0", 0},
      {"-0", 0},
      {"0s", 0},
      {"0h0m0s", 0},
      {"1us", 1},
      {"1\u00B5s", 1},
      {"1\u03BCs", 1},
      {"1000ns", 1},
      {"1999ns", 1},
      {"999ns1ns", 1},
      {"250ms", 250'000},
      {"1s", kSecond},
      {"1.5s", 1'500'000},
      {".5s", 500'000},
      {"1.s", kSecond},
      {"0.000001s", 1},
      {"1.0000019s", 1'000'001},
      {"1m", 60 * kSecond},
      {"1m1ms", 60 * kSecond + 1'000},
      {"1h30m", 5'400 * kSecond},
      {"30m1h", 5'400 * kSecond},
      {"1.5h", 5'400 * kSecond},
      {"7d", 7 * kDay},
      {"0.5d", kDay / 2},
      {"+3s", 3 * kSecond},
      {"-3s", -3 * kSecond},
      {"-1h30m", -5'400 * kSecond},
      {"-1.9999999s", -1'999'999},
      {"1d2h3m4s5ms6us", kDay + 7'384 * kSecond + 5'006},
      {"9223372036854775807us", std::numeric_limits<std::int64_t>::max()},
      {"-9223372036854775808us", std::numeric_limits<std::int64_t>::min()},
      {"9223372036854775807999ns", std::numeric_limits<std::int64_t>::max()},
      {"106751991d", 106'751'991 * kDay},
      {"0.333333333333333333333333333333d", 28'799'999'999},
  };
  for (const auto& [text, micros] : cases) {
    const Result<Duration> duration = ParseDuration(text);
    ASSERT_TRUE(duration.ok()) << duration.error();
    EXPECT_EQ(duration->count(), micros) << text;
  }
}

TEST(DurationTextTest, RefusalsSayWhatIsWrongAndGiveAnExample) {
  const std::vector<std::pair<std::string, std::string_view>> cases = {
      {"", "it is empty"},
      {"-", "it is empty"},
      {"30", "a unit is missing"},
      {"1h30", "a unit is missing"},
      {"1.5.5s", "a unit is missing"},
      {"00", "a unit is missing"},
      {"s", "a number is missing"},
      {".s", "a number is missing"},
      {"abc", "a number is missing"},
      {"--1s", "a number is missing"},
      {"1h-30m", "a number is missing"},
      {" 1s", "a number is missing"},
      {"1s ", "a number is missing"},
      {"1w", "a unit is not one of ns, us, ms, s, m, h, d"},
      {"1 s", "a unit is not one of ns, us, ms, s, m, h, d"},
      {"1S", "a unit is not one of ns, us, ms, s, m, h, d"},
      {"1e3s", "a unit is not one of ns, us, ms, s, m, h, d"},
      {"1y", "a unit is not one of ns, us, ms, s, m, h, d"},
      {"1,5s", "a unit is not one of ns, us, ms, s, m, h, d"},
      {"1ns", "it is shorter than 1us"},
      {"-999ns", "it is shorter than 1us"},
      {"0.0000001s", "it is shorter than 1us"},
      {"0.000000000000001d", "it is shorter than 1us"},
      {"0.0000000000000000000000000000000000001d", "it is shorter than 1us"},
      {"9223372036854775808us", "it is too long"},
      {"-9223372036854775809us", "it is too long"},
      {"9223372036854775807us1us", "it is too long"},
      {"106751992d", "it is too long"},
      {"99999999999999999999999999999999999999999999d", "it is too long"},
      {"9223372036854775807d9223372036854775807d", "it is too long"},
      {std::string(100'000, '9') + "s", "it is too long"},
  };
  for (const auto& [text, wrong] : cases) {
    const Result<Duration> duration = ParseDuration(text);
    ASSERT_FALSE(duration.ok()) << text.substr(0, 50);
    EXPECT_EQ(duration.error().code(), Errc::kInvalidArgument);
    EXPECT_NE(duration.error().message().find(wrong), std::string::npos) << duration.error();
    EXPECT_NE(duration.error().message().find("write it like 1h30m, 250ms or 7d"),
              std::string::npos);
    EXPECT_LT(duration.error().message().size(), 200u);
  }
  EXPECT_EQ(ParseDuration("30").error().message(),
            "\"30\" is not a duration: a unit is missing; write it like 1h30m, 250ms or 7d");
}

TEST(DurationTextTest, FormatsWithTheLargestUnits) {
  const std::vector<std::pair<std::int64_t, std::string_view>> cases = {
      {0, "0s"},
      {1, "1us"},
      {999, "999us"},
      {1'000, "1ms"},
      {1'500, "1.5ms"},
      {1'001, "1.001ms"},
      {250'000, "250ms"},
      {999'999, "999.999ms"},
      {kSecond, "1s"},
      {1'500'000, "1.5s"},
      {1'000'001, "1.000001s"},
      {30 * kSecond, "30s"},
      {60 * kSecond, "1m"},
      {90 * kSecond, "1m30s"},
      {5'400 * kSecond, "1h30m"},
      {3'600 * kSecond + 1, "1h0.000001s"},
      {7 * kDay, "7d"},
      {std::int64_t{26} * 3'600 * kSecond, "1d2h"},
      {kDay + 1'500'000, "1d1.5s"},
      {-250'000, "-250ms"},
      {-5'400 * kSecond, "-1h30m"},
      {std::numeric_limits<std::int64_t>::max(), "106751991d4h54.775807s"},
      {std::numeric_limits<std::int64_t>::min(), "-106751991d4h54.775808s"},
  };
  for (const auto& [micros, text] : cases) {
    EXPECT_EQ(FormatDuration(Duration(micros)), text);
    EXPECT_EQ(ParseDuration(text)->count(), micros) << text;
  }
}

TEST(DurationTextTest, WhatWasFormattedComesBack) {
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < 50'000; ++i) {
    // Of every size: a plain 64-bit number would nearly always have days.
    const auto micros = static_cast<std::int64_t>(random()) >> random() % 64;
    const std::string text = FormatDuration(Duration(micros));
    const Result<Duration> back = ParseDuration(text);
    ASSERT_TRUE(back.ok()) << back.error();
    ASSERT_EQ(back->count(), micros) << text;
  }
}

}  // namespace
}  // namespace interlock
