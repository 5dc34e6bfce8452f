#include "kernel/payload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace interlock::kernel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

std::string Outcome(std::string_view text) {
  const auto result = CheckPayload(text);
  return result.ok() ? "ok: " + std::string(*result) : result.error().message();
}

TEST(KeyTest, IsALetterThenWordsAndMoreBehindADot) {
  for (const std::string key :
       {"a", "dispatch", "a1_-", "a.b", "a.b:c", "a-b.1.2:x_y", "a..", "run.phase:plan", "stop"}) {
    EXPECT_TRUE(CheckKey(key).ok()) << key;
  }
  EXPECT_TRUE(CheckKey(std::string(200, 'k')).ok());
  for (const std::string key : {"", "A", "aB", "1a", "_a", "-a", ".a", "a b", "a/b", "a;b", "a:b",
                                "a.", "a.B", "a.b c", "a.\xC3\xA9", "é", "a\nb"}) {
    const auto result = CheckKey(key);
    ASSERT_FALSE(result.ok()) << key;
    EXPECT_EQ(result.error().exit_code(), 2);
  }
  EXPECT_THAT(CheckKey(std::string(201, 'k')).error().message(), HasSubstr("201 characters"));
}

TEST(PayloadTest, AnyJsonIsKeptAsItIsButForTheWhiteSpaceAroundIt) {
  EXPECT_EQ(Outcome(" \n{\"b\" : 1, \"a\":[ ]}\r\n\t"), "ok: {\"b\" : 1, \"a\":[ ]}");
  EXPECT_EQ(Outcome("null\n"), "ok: null");
  EXPECT_EQ(Outcome("\"x\""), "ok: \"x\"");
  EXPECT_EQ(Outcome("-1.50e1"), "ok: -1.50e1");
  EXPECT_EQ(Outcome("{\"k\":1,\"k\":2}"), "ok: {\"k\":1,\"k\":2}");
}

TEST(PayloadTest, WhatIsNoJsonIsRefusedWithItsPlace) {
  EXPECT_THAT(Outcome(""), HasSubstr("empty"));
  EXPECT_THAT(Outcome(" \n"), HasSubstr("empty"));
  EXPECT_THAT(Outcome("{\"a\":}"), HasSubstr("line 1, column 6: unexpected character '}'"));
  EXPECT_THAT(Outcome("{} {}"), HasSubstr("unexpected text after the JSON value"));
  EXPECT_THAT(Outcome("{'a':1}"), HasSubstr("line 1, column 2"));
  EXPECT_THAT(Outcome("\"\xFF\""), HasSubstr("column 2"));
  for (const std::string_view text : {"", "{", "nul"}) {
    EXPECT_EQ(CheckPayload(text).error().exit_code(), 2);
  }
}

struct LimitCase {
  std::string what;
  std::string fits;
  std::string exceeds;
  std::string message;
};

std::string Nested(int depth, const std::string& open, const std::string& close) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += "1";
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

std::string ArrayOf(int count, const std::string& element) {
  std::string text = "[" + element;
  for (int i = 1; i < count; ++i) text += "," + element;
  return text + "]";
}

std::string Quoted(std::size_t length) { return "\"" + std::string(length, 'x') + "\""; }

// A list of strings that is `size` bytes long.
std::string OfSize(std::size_t size) {
  std::string text = "[";
  while (size - text.size() > 70'000) text += Quoted(60'000) + ",";
  const std::size_t rest = size - text.size() - 1;
  return text + Quoted(rest - 2) + "]";
}

TEST(PayloadTest, EachLimitIsHeldExactly) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  constexpr std::size_t k100KiB = std::size_t{100} << 10;
  const std::vector<LimitCase> cases = {
      {"bytes", OfSize(kMiB), OfSize(kMiB + 1), "at most 1048576"},
      {"arrays in each other", Nested(20, "[", "]"), Nested(21, "[", "]"), "deeper than 20"},
      {"objects in each other", Nested(20, "{\"a\":", "}"), Nested(21, "{\"a\":", "}"),
       "deeper than 20"},
      {"string", Quoted(k100KiB), Quoted(k100KiB + 1), "string longer than 102400"},
      {"key", "{" + Quoted(1000) + ":1}", "{" + Quoted(1001) + ":1}", "key longer than 1000"},
      {"numbers in an array", ArrayOf(10'000, "1"), ArrayOf(10'001, "1"), "more than 10000"},
      {"objects in an array", ArrayOf(10'000, "{}"), ArrayOf(10'001, "{}"), "more than 10000"},
      {"arrays in an array", ArrayOf(10'000, "[]"), ArrayOf(10'001, "[]"), "more than 10000"},
  };
  for (const LimitCase& c : cases) {
    SCOPED_TRACE(c.what);
    EXPECT_EQ(Outcome(c.fits).substr(0, 4), "ok: ");
    EXPECT_THAT(Outcome(c.exceeds), HasSubstr(c.message));
    EXPECT_EQ(CheckPayload(c.exceeds).error().exit_code(), 2);
  }
  EXPECT_EQ(OfSize(kMiB).size(), kMiB);
  EXPECT_EQ(Outcome(OfSize(kMiB) + " \n").substr(0, 4), "ok: ") << "white space does not count";
}

TEST(PayloadTest, AnObjectMayHaveAsManyMembersAsItsTextHolds) {
  std::string text = "{\"m0\":0";
  for (int i = 1; i < 20'000; ++i) text += ",\"m" + std::to_string(i) + "\":0";
  EXPECT_EQ(Outcome(text + "}").substr(0, 4), "ok: ");
}

TEST(PayloadTest, SecretsAreFoundInEveryStringButNotInKeys) {
  const std::string secret = "sk-abcdefghij0123456789";
  for (const std::string& text :
       {"\"" + secret + "\"", "{\"a\":\"" + secret + "\"}", "[1,[\"x\",\"" + secret + "\"]]",
        "{\"a\":{\"b\":[{\"c\":\"" + secret + "\"}]}}",
        // Stored as it is, so what a later member of the same name hides is stored too.
        "{\"a\":\"" + secret + "\",\"a\":\"harmless\"}",
        std::string("\"sk\\u002dabcdefghij0123456789\"")}) {
    EXPECT_THAT(Outcome(text), HasSubstr("likely secret")) << text;
    EXPECT_EQ(CheckPayload(text).error().exit_code(), 2);
    EXPECT_EQ(Outcome(text).find(secret), std::string::npos) << "a message must not repeat it";
  }
  EXPECT_EQ(Outcome("{\"x\":1,\"" + secret + "\":1}").substr(0, 4), "ok: ");
  for (const std::string text :
       {R"({"api_key_name":"OPENAI_API_KEY"})", R"({"token_count":42})", R"({"short":"sk-ab"})",
        R"({"description":"Use sk command to skip"})"}) {
    EXPECT_EQ(Outcome(text), "ok: " + text);
  }
}

TEST(OneLineTest, DropsWhiteSpaceBetweenPartsAndNothingElse) {
  EXPECT_EQ(OneLine("{\n  \"a b\": [ 1.50,\t\"c \\\" d \\\\\" ],\r\n \"e\" : null }").value(),
            "{\"a b\":[1.50,\"c \\\" d \\\\\"],\"e\":null}");
  EXPECT_EQ(OneLine("12345678901234567890123").value(), "12345678901234567890123");
  const auto broken = OneLine("{\"a\":");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().exit_code(), 2);
}

TEST(IntegerTest, IsAWholeNumberOf64Bits) {
  EXPECT_EQ(IntegerIn("0"), 0);
  EXPECT_EQ(IntegerIn("-7"), -7);
  EXPECT_EQ(IntegerIn("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(IntegerIn("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  for (const std::string_view text : {"", "9223372036854775808", "1.0", "1e3", "\"1\"", "true",
                                      "null", "[1]", "1 ", " 1", "+1", "-"}) {
    EXPECT_EQ(IntegerIn(text), std::nullopt) << text;
  }
}

TEST(TtlTest, IsWholeSecondsRoundedDown) {
  EXPECT_EQ(TtlSeconds(seconds(1)).value(), 1);
  EXPECT_EQ(TtlSeconds(milliseconds(1500)).value(), 1);
  EXPECT_EQ(TtlSeconds(milliseconds(1999)).value(), 1);
  EXPECT_EQ(TtlSeconds(Duration::zero()).value(), std::nullopt);
  EXPECT_EQ(TtlSeconds(Duration::max()).value(), Duration::max().count() / 1'000'000);
  EXPECT_EQ(TtlSeconds(milliseconds(999)).error().exit_code(), 2);
  EXPECT_EQ(TtlSeconds(Duration(1)).error().exit_code(), 2);
  EXPECT_EQ(TtlSeconds(Duration(-1)).error().exit_code(), 3);
  EXPECT_EQ(TtlSeconds(Duration::min()).error().exit_code(), 3);
}

}  // namespace
}  // namespace interlock::kernel
