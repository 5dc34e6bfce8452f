#include "http/query.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace interlock::http {
namespace {

TEST(QueryTest, NamesAndValuesAreDecodedInTheOrderSent) {
  const std::vector<std::pair<std::string, std::string>> want = {
      {"project", "a b c+"}, {"project", "second"}, {"flag", ""}, {"café", "€"}, {"", "x"},
      {"e", "=1=2"}};
  EXPECT_EQ(*ParseQuery("project=a%20b+c%2B&project=second&flag&caf%C3%A9=%E2%82%AC&&=x&e==1=2&&"),
            want);
  EXPECT_TRUE(ParseQuery("")->empty());
}

TEST(QueryTest, WhatCannotBeDecodedIsRefusedWithTheNameOfTheParameter) {
  for (const char* query : {"a=1&agent=%", "agent=%4", "agent=%zz", "agent=a%00b", "agent=%FF",
                            "agent=%C0%AF", "agent=%ED%A0%80"}) {
    const auto parsed = ParseQuery(query);
    ASSERT_FALSE(parsed.ok()) << query;
    EXPECT_EQ(parsed.error().code(), Errc::kInvalidArgument) << query;
    EXPECT_NE(parsed.error().message().find("The query parameter agent "), std::string::npos)
        << parsed.error();
  }
  // A name that is broken itself is shown as it came, but never long and never raw.
  const auto parsed = ParseQuery("%zz\x01\xFF" + std::string(1000, 'n') + "=1");
  ASSERT_FALSE(parsed.ok());
  EXPECT_LT(parsed.error().message().size(), 300U);
  EXPECT_NE(parsed.error().message().find("%zz??nnn"), std::string::npos) << parsed.error();
}

TEST(QueryTest, NumbersAreDecimalDigitsThatFit) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::pair<std::string, std::int64_t> kNumbers[] = {
      {"0", 0}, {"7", 7}, {"007", 7}, {"9223372036854775807", kMax}};
  for (const auto& [text, number] : kNumbers) EXPECT_EQ(ParseDecimal(text), number) << text;
  for (const char* text : {"-0", "-7", "+7", "-", "7x", "0x7", "7.0", "1e3", "nan", "1 2", "",
                           "9223372036854775808", "99999999999999999999"}) {
    EXPECT_EQ(ParseDecimal(text), std::nullopt) << text;
  }
}

TEST(QueryTest, BooleansAreTrueFalseOneOrZero) {
  for (const char* text : {"true", "1"}) EXPECT_EQ(ParseBoolean(text), true) << text;
  for (const char* text : {"false", "0"}) EXPECT_EQ(ParseBoolean(text), false) << text;
  for (const char* text : {"", " true", "True", "yes", "10", "-1", "truefalse"}) {
    EXPECT_EQ(ParseBoolean(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace interlock::http
