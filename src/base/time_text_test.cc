#include "base/time_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "testing/seeded_random.h"

namespace interlock {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

TEST(Rfc3339Test, FormatsInUtcWithTheFractionTrimmed) {
  const std::vector<std::pair<std::int64_t, std::string_view>> cases = {
      {0, "1970-01-01T00:00:00Z"},
      {1, "1970-01-01T00:00:00.000001Z"},
      {-1, "1969-12-31T23:59:59.999999Z"},
      {500'000, "1970-01-01T00:00:00.5Z"},
      {120'000, "1970-01-01T00:00:00.12Z"},
      {1'767'323'045 * kSecond, "2026-01-02T03:04:05Z"},
      {1'767'323'045 * kSecond + 123'450, "2026-01-02T03:04:05.12345Z"},
      {951'782'400 * kSecond, "2000-02-29T00:00:00Z"},
      {-62'167'219'200 * kSecond, "0000-01-01T00:00:00Z"},
      {253'402'300'799 * kSecond + 999'999, "9999-12-31T23:59:59.999999Z"},
  };
  for (const auto& [micros, text] : cases) {
    EXPECT_EQ(FormatRfc3339({micros}), text);
    EXPECT_EQ(ParseRfc3339(text)->micros, micros) << text;
  }
}

TEST(Rfc3339Test, OtherFractionsRoundDownOrPad) {
  EXPECT_EQ(FormatRfc3339({1'999'999}, Fraction::kNone), "1970-01-01T00:00:01Z");
  EXPECT_EQ(FormatRfc3339({-1}, Fraction::kNone), "1969-12-31T23:59:59Z");
  EXPECT_EQ(FormatRfc3339({500'000}, Fraction::kMicros), "1970-01-01T00:00:00.500000Z");
  EXPECT_EQ(FormatRfc3339({0}, Fraction::kMicros), "1970-01-01T00:00:00.000000Z");
}

TEST(Rfc3339Test, TimesTheFormatCannotSayAreClamped) {
  EXPECT_EQ(FormatRfc3339({std::numeric_limits<std::int64_t>::max()}),
            "9999-12-31T23:59:59.999999Z");
  EXPECT_EQ(FormatRfc3339({std::numeric_limits<std::int64_t>::min()}), "0000-01-01T00:00:00Z");
}

TEST(Rfc3339Test, ReadsOffsetsFractionsAndLeapYears) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05Z"},
      {"2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05Z"},
      {"2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"},
      {"2026-01-02T03:04:05-07:30", "2026-01-02T10:34:05Z"},
      {"2026-01-01T00:00:00+23:59", "2025-12-31T00:01:00Z"},
      {"2026-01-02t03:04:05z", "2026-01-02T03:04:05Z"},
      {"2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.1Z"},
      {"2026-01-02T03:04:05.000001Z", "2026-01-02T03:04:05.000001Z"},
      {"2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.123456Z"},
      {"2026-01-02T03:04:05.000000999Z", "2026-01-02T03:04:05Z"},
      {"1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z"},
      {"2024-02-29T12:00:00Z", "2024-02-29T12:00:00Z"},
      {"2000-02-29T12:00:00Z", "2000-02-29T12:00:00Z"},
      {"0000-02-29T00:00:00Z", "0000-02-29T00:00:00Z"},
  };
  for (const auto& [text, utc] : cases) {
    const Result<Timestamp> time = ParseRfc3339(text);
    ASSERT_TRUE(time.ok()) << time.error();
    EXPECT_EQ(FormatRfc3339(*time), utc) << text;
  }
}

TEST(Rfc3339Test, RefusalsSayWhatIsWrong) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"", "the year must have 4 digits"},
      {"now", "the year must have 4 digits"},
      {"26-01-02T03:04:05Z", "the year must have 4 digits"},
      {"+2026-01-02T03:04:05Z", "the year must have 4 digits"},
      {"2026/01/02T03:04:05Z", "expected '-' after the year"},
      {"2026-1-02T03:04:05Z", "the month must have 2 digits"},
      {"2026-13-02T03:04:05Z", "month 13 is not between 1 and 12"},
      {"2026-00-02T03:04:05Z", "month 0 is not between 1 and 12"},
      {"2026-01-00T03:04:05Z", "day 0 is not between 1 and 31"},
      {"2026-01-32T03:04:05Z", "day 32 is not between 1 and 31"},
      {"2026-04-31T03:04:05Z", "2026-04 has no day 31"},
      {"2026-02-29T03:04:05Z", "2026-02 has no day 29"},
      {"1900-02-29T03:04:05Z", "1900-02 has no day 29"},
      {"2100-02-29T03:04:05Z", "2100-02 has no day 29"},
      {"2026-01-02", "expected 'T' after the day"},
      {"2026-01-02 03:04:05Z", "expected 'T' after the day"},
      {"2026-01-02T24:00:00Z", "hour 24 is not between 0 and 23"},
      {"2026-01-02T03:60:05Z", "minute 60 is not between 0 and 59"},
      {"2026-01-02T03:04:60Z", "second 60 is not between 0 and 59"},
      {"2026-01-02T03:04Z", "expected ':' after the minute"},
      {"2026-01-02T03:04:05", "expected Z or an offset such as +02:00 after the seconds"},
      {"2026-01-02T03:04:05 Z", "expected Z or an offset such as +02:00 after the seconds"},
      {"2026-01-02T03:04:05.Z", "expected digits after the decimal point"},
      {"2026-01-02T03:04:05,5Z", "expected Z or an offset such as +02:00 after the seconds"},
      {"2026-01-02T03:04:05.1234567890Z", "the fraction has more than 9 digits"},
      {"2026-01-02T03:04:05+24:00", "offset's hour 24 is not between 0 and 23"},
      {"2026-01-02T03:04:05+02:60", "offset's minute 60 is not between 0 and 59"},
      {"2026-01-02T03:04:05+0200", "expected ':' after the offset's hour"},
      {"2026-01-02T03:04:05+02", "expected ':' after the offset's hour"},
      {"2026-01-02T03:04:05Zx", "there is text after it"},
      {"2026-01-02T03:04:05Z\n", "there is text after it"},
      {"0000-01-01T00:00:00+00:01", "in UTC it is not in the years 0000 to 9999"},
      {"9999-12-31T23:59:59-00:01", "in UTC it is not in the years 0000 to 9999"},
  };
  for (const auto& [text, wrong] : cases) {
    const Result<Timestamp> time = ParseRfc3339(text);
    ASSERT_FALSE(time.ok()) << text;
    EXPECT_EQ(time.error().code(), Errc::kInvalidArgument);
    EXPECT_NE(time.error().message().find(wrong), std::string::npos) << time.error();
    EXPECT_NE(time.error().message().find("write it like 2026-01-02T15:04:05Z"), std::string::npos);
  }
  EXPECT_EQ(ParseRfc3339("tomorrow").error().message(),
            "\"tomorrow\" is not a time: the year must have 4 digits; write it like "
            "2026-01-02T15:04:05Z");
  EXPECT_EQ(ParseRfc3339("\x1B[2J").error().message().find('\x1B'), std::string::npos);
}

TEST(Rfc3339Test, EveryDayOfTwoCenturiesAndRandomTimesComeBack) {
  for (std::int64_t day = std::int64_t{-71} * 366; day < std::int64_t{131} * 366; ++day) {
    const Timestamp time{day * 86'400 * kSecond + day % 1'000};
    ASSERT_EQ(*ParseRfc3339(FormatRfc3339(time)), time);
    const Timestamp whole{day * 86'400 * kSecond};
    ASSERT_EQ(*ParseRfc1123(FormatRfc1123(whole)), whole);
  }
  std::mt19937_64 random(testing::TestSeed());
  std::uniform_int_distribution<std::int64_t> any(-62'167'219'200 * kSecond,
                                                  253'402'300'799 * kSecond);
  for (int i = 0; i < 20'000; ++i) {
    const Timestamp time{any(random)};
    ASSERT_EQ(*ParseRfc3339(FormatRfc3339(time)), time);
    ASSERT_EQ(*ParseRfc3339(FormatRfc3339(time, Fraction::kMicros)), time);
  }
}

TEST(Rfc1123Test, FormatsAndReadsTheFormOfHttp) {
  const std::vector<std::pair<std::int64_t, std::string_view>> cases = {
      {784'111'777, "Sun, 06 Nov 1994 08:49:37 GMT"},
      {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
      {-1, "Wed, 31 Dec 1969 23:59:59 GMT"},
      {1'767'323'045, "Fri, 02 Jan 2026 03:04:05 GMT"},
      {1'709'164'800, "Thu, 29 Feb 2024 00:00:00 GMT"},
  };
  for (const auto& [seconds, text] : cases) {
    EXPECT_EQ(FormatRfc1123({seconds * kSecond}), text);
    EXPECT_EQ(FormatRfc1123({seconds * kSecond + 999'999}), text);
    EXPECT_EQ(ParseRfc1123(text)->micros, seconds * kSecond) << text;
  }
}

TEST(Rfc1123Test, RefusalsSayWhatIsWrong) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"", "expected a weekday such as Mon"},
      {"06 Nov 1994 08:49:37 GMT", "expected a weekday such as Mon"},
      {"sun, 06 Nov 1994 08:49:37 GMT", "expected a weekday such as Mon"},
      {"Sun 06 Nov 1994 08:49:37 GMT", "expected ', ' after the weekday"},
      {"Sun, 6 Nov 1994 08:49:37 GMT", "the day must have 2 digits"},
      {"Sun, 06 Nob 1994 08:49:37 GMT", "expected a month such as Feb"},
      {"Sun, 06-Nov-94 08:49:37 GMT", "expected ' ' after the day"},
      {"Sun, 31 Feb 1994 08:49:37 GMT", "1994-02 has no day 31"},
      {"Sun, 06 Nov 1994 08:49:60 GMT", "second 60 is not between 0 and 59"},
      {"Sun, 06 Nov 1994 08:49:37 UTC", "expected ' GMT' after the seconds"},
      {"Sun, 06 Nov 1994 08:49:37 +0000", "expected ' GMT' after the seconds"},
      {"Sun, 06 Nov 1994 08:49:37 GMT ", "there is text after it"},
      {"Mon, 06 Nov 1994 08:49:37 GMT", "that day is a Sun"},
  };
  for (const auto& [text, wrong] : cases) {
    const Result<Timestamp> time = ParseRfc1123(text);
    ASSERT_FALSE(time.ok()) << text;
    EXPECT_NE(time.error().message().find(wrong), std::string::npos) << time.error();
  }
}

}  // namespace
}  // namespace interlock
