#include "json/parse.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "json/value.h"
#include "json/write.h"

namespace interlock::json {
namespace {

using std::string_literals::operator""s;

// The message of the refusal, or the accepted value behind "ok: ". Scan() must agree.
std::string Outcome(std::string_view text, const ParseOptions& options = {}) {
  const Result<Value> result = Parse(text, options);
  const auto scanned = Scan(text, options, [](std::string_view) -> Result<void> { return {}; });
  EXPECT_EQ(scanned.ok(), result.ok()) << text.substr(0, 100);
  if (!scanned.ok() && !result.ok()) {
    EXPECT_EQ(scanned.error().message(), result.error().message());
  }
  if (result.ok()) return "ok: " + Write(*result);
  EXPECT_EQ(result.error().code(), Errc::kBadJson);
  return result.error().message();
}

TEST(JsonParseTest, ReadsEveryKindOfValue) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"null", "null"},
      {" true ", "true"},
      {"false", "false"},
      {"0", "0"},
      {"-0", "0"},
      {"-0.0", "-0.0"},
      {"12", "12"},
      {"1.5", "1.5"},
      {"1.0", "1.0"},
      {"1e1", "10.0"},
      {"1E+2", "100.0"},
      {R"("")", R"("")"},
      {R"("a\"\\\/\b\f\n\r\tz")", R"("a\"\\/\u0008\u000c\n\r\tz")"},
      {R"("\u00e9\u20ac\ud83d\ude00")", "\"é€😀\""},
      {"[]", "[]"},
      {"{}", "{}"},
      {"[1,[2,[3]],{}]", "[1,[2,[3]],{}]"},
      {"\t{ \"b\" : 1 ,\r\n\"a\" : [ true , null ] } ", R"({"b":1,"a":[true,null]})"},
  };
  for (const auto& [text, written] : cases) {
    EXPECT_EQ(Outcome(text), "ok: " + std::string(written)) << text;
  }
}

TEST(JsonParseTest, RefusalsNameLineColumnAndReason) {
  const std::vector<std::pair<std::string, std::string_view>> cases = {
      {"", "line 1, column 1: no JSON value"},
      {" \n\t ", "line 2, column 3: no JSON value"},
      {"x", "line 1, column 1: unexpected character 'x'"},
      {"'a'", "line 1, column 1: unexpected character \"'\""},
      {"[1,]", "line 1, column 4: unexpected character ']'"},
      {"[1 2]", "line 1, column 4: unexpected character '2'"},
      {"{\"a\":1,}", "line 1, column 8: unexpected character '}'"},
      {"{\"a\" 1}", "line 1, column 6: unexpected character '1'"},
      {"{a:1}", "line 1, column 2: unexpected character 'a'"},
      {"{\n  \"a\": 1,\n  \"b\": x\n}", "line 3, column 8: unexpected character 'x'"},
      {"[\"é€😀\", x]", "line 1, column 9: unexpected character 'x'"},
      {"[", "line 1, column 2: unexpected end of text"},
      {"{\"a\":\n", "line 2, column 1: unexpected end of text"},
      {"\"abc", "line 1, column 5: unexpected end of text"},
      {"tru", "line 1, column 4: unexpected end of text"},
      {"01", "line 1, column 2: unexpected text after the JSON value"},
      {"+1", "line 1, column 1: unexpected character '+'"},
      {".5", "line 1, column 1: unexpected character '.'"},
      {"NaN", "line 1, column 1: unexpected character 'N'"},
      {"// c\n1", "line 1, column 1: unexpected character '/'"},
      {"1 2", "line 1, column 3: unexpected text after the JSON value"},
      {"{} {}", "line 1, column 4: unexpected text after the JSON value"},
      {"\xEF\xBB\xBF{}", "line 1, column 1: byte order mark, which JSON does not have"},
      {"[\"a\nb\"]", "line 1, column 4: unexpected control character 0x0A"},
      {"[\"a\0b\"]"s, "line 1, column 4: unexpected control character 0x00"},
      {"[1,\0]"s, "line 1, column 4: unexpected control character 0x00"},
      {"[1e999]", "line 1, column 7: number is too large"},
      {"[-1e999]", "line 1, column 8: number is too large"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(Outcome(text), message) << text;
}

TEST(JsonParseTest, TheErrorCarriesThePositionAsNumbersToo) {
  const Result<Value> result = Parse("{\n\"a\":?}");
  ASSERT_FALSE(result.ok());
  const auto& details = result.error().details();
  ASSERT_EQ(details.size(), 2u);
  EXPECT_EQ(details[0].first, "line");
  EXPECT_EQ(std::get<std::int64_t>(details[0].second), 2);
  EXPECT_EQ(details[1].first, "column");
  EXPECT_EQ(std::get<std::int64_t>(details[1].second), 5);
}

TEST(JsonParseTest, LoneSurrogatesAreRefused) {
  for (const std::string_view text :
       {R"("\ud800")", R"("\udc00")", R"("\ud800x")", R"("\ud800\n")", R"("\ud800A")",
        R"("\ud800\ud800")", R"("\udfff\ud800")", R"(["ok","\ude00"])", R"({"\ud800":1})"}) {
    EXPECT_NE(Outcome(text).find("lone surrogate"), std::string::npos) << text << Outcome(text);
  }
  EXPECT_EQ(Outcome("\"\\\\ud800\x01\""), "line 1, column 9: unexpected control character 0x01")
      << "an escaped backslash and letters are no surrogate";
  EXPECT_NE(Outcome(R"("\u12g4")").find("four hexadecimal digits"), std::string::npos);
}

TEST(JsonParseTest, InvalidUtf8IsRefusedInStringsAndKeysAndOutside) {
  const std::vector<std::string> broken = {
      "\x80",              // a continuation byte alone
      "\xBF",              //
      "\xC3",              // a lead byte alone
      "\xC0\xAF",          // overlong '/'
      "\xC1\xBF",          //
      "\xE0\x80\xAF",      // overlong
      "\xED\xA0\x80",      // U+D800 as bytes
      "\xED\xBF\xBF",      // U+DFFF as bytes
      "\xF0\x80\x80\xAF",  // overlong
      "\xF4\x90\x80\x80",  // beyond U+10FFFF
      "\xF5\x80\x80\x80",  //
      "\xFE",              //
      "\xFF",              //
      "\xE2\x82",          // cut short
      "\xF0\x9F\x98",      // cut short
  };
  for (const std::string& bytes : broken) {
    EXPECT_FALSE(Parse("\"" + bytes + "\"").ok()) << testing::PrintToString(bytes);
    EXPECT_FALSE(Parse("\"long enough for the fast path" + bytes + " and more of it\"").ok());
    EXPECT_FALSE(Parse("{\"" + bytes + "\":1}").ok()) << testing::PrintToString(bytes);
    EXPECT_FALSE(Parse("[" + bytes + "]").ok()) << testing::PrintToString(bytes);
  }
  EXPECT_EQ(Outcome("[\"ab\xFF\"]"), "line 1, column 5: unexpected byte 0xFF");
}

TEST(JsonParseTest, AnEscapedNulIsKeptAndWrittenEscaped) {
  const Result<Value> result = Parse(R"("a\u0000b")");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(View(result->get_string()), "a\0b"s);
  EXPECT_EQ(Write(*result), R"("a\u0000b")");
}

TEST(JsonParseTest, TheLastOfDuplicateKeysWins) {
  EXPECT_EQ(Outcome(R"({"a":1,"b":2,"a":3})"), R"(ok: {"a":3,"b":2})");
  EXPECT_EQ(Outcome(R"({"a":[1],"\u0061":{"x":1}})"), R"(ok: {"a":{"x":1}})");
  // Large objects use a hash table, small ones do not.
  std::string text = "{";
  for (int i = 0; i < 200; ++i)
    text += "\"k" + std::to_string(i % 50) + "\":" + std::to_string(i) + ",";
  text += "\"last\":0}";
  const Result<Value> result = Parse(text);
  ASSERT_TRUE(result.ok());
  const Object& object = result->get_object();
  ASSERT_EQ(object.size(), 51u);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(object.at("k" + std::to_string(i)).get_int64(), 150 + i);
  }
}

TEST(JsonParseTest, IntegersKeepEveryDigitUpTo64Bits) {
  EXPECT_EQ(Parse("9223372036854775807")->get_int64(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(Parse("-9223372036854775808")->get_int64(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(Parse("9223372036854775808")->get_uint64(), std::uint64_t{1} << 63);
  EXPECT_EQ(Parse("18446744073709551615")->get_uint64(), std::numeric_limits<std::uint64_t>::max());
}

TEST(JsonParseTest, BiggerIntegersAreDoublesOrRefusedAsAsked) {
  for (const std::string_view text :
       {"18446744073709551616", "-9223372036854775809", "123456789012345678901234567890"}) {
    const Result<Value> result = Parse(text);
    ASSERT_TRUE(result.ok()) << text;
    EXPECT_TRUE(result->is_double()) << text;
    const ParseOptions refuse = {.big_integers = BigIntegers::kRefuse};
    EXPECT_NE(Outcome(text, refuse).find("integer does not fit 64 bits"), std::string::npos);
  }
  EXPECT_EQ(Outcome("[1e30,1.5,7]", {.big_integers = BigIntegers::kRefuse}), "ok: [1e+30,1.5,7]");
}

TEST(JsonParseTest, DoublesAreTheNearestOnes) {
  // Boost.JSON 1.81 alone is off by one in the last place on the first of these.
  for (const double number :
       {5.708990770823839524e+45, 0.1, 1.0 / 3, 2.2250738585072014e-308, 5e-324,
        1.7976931348623157e308, 123456789.123456789, 9007199254740993.0}) {
    std::string text;
    AppendDouble(text, number);
    EXPECT_EQ(Parse(text)->get_double(), number) << text;
    EXPECT_EQ(Parse("-" + text)->get_double(), -number) << text;
  }
  EXPECT_EQ(Parse("1e-999")->get_double(), 0.0);
  EXPECT_TRUE(std::signbit(Parse("-1e-999")->get_double()));
}

TEST(JsonParseTest, BytesAfterTheFirstValueAreRefusedOrIgnoredAsAsked) {
  for (const std::string_view rest : {"}", "x", " garbage", "\xFF", "\n{\"a\":2}", ","}) {
    for (const std::string_view value :
         {"{\"a\":1}", "[1]", "\"s\"", "12", "1.5", "true", "null"}) {
      const std::string text = std::string(value) + std::string(rest);
      EXPECT_EQ(Outcome(text, {.trailing = Trailing::kIgnore}), "ok: " + std::string(value))
          << text;
      EXPECT_FALSE(Parse(text, {.trailing = Trailing::kRefuse}).ok()) << text;
    }
  }
  EXPECT_EQ(Outcome("", {.trailing = Trailing::kIgnore}), "line 1, column 1: no JSON value");
  EXPECT_FALSE(Parse("[1", {.trailing = Trailing::kIgnore}).ok());
}

struct LimitCase {
  std::string_view what;
  ParseOptions options;
  std::string fits;
  std::string exceeds;
  std::string_view message;
};

TEST(JsonParseTest, EachLimitHoldsExactlyWhereItIsSet) {
  const std::vector<LimitCase> cases = {
      {"bytes",
       {.limits = {.bytes_max = 5}},
       "[1,2]",
       "[1,23]",
       "line 1, column 6: text longer than 5 bytes"},
      {"depth",
       {.limits = {.depth_max = 2}},
       "[{}]",
       "[{\"a\":[]}]",
       "line 1, column 7: nested deeper than 2 levels"},
      {"no depth",
       {.limits = {.depth_max = 0}},
       "1",
       "[]",
       "line 1, column 1: nested deeper than 0 levels"},
      {"string",
       {.limits = {.string_bytes_max = 3}},
       "\"abc\"",
       "\"abcd\"",
       "string longer than 3 bytes"},
      {"escaped string",
       {.limits = {.string_bytes_max = 3}},
       R"("\u20ac")",
       R"("\u20ac\n")",
       "string longer than 3 bytes"},
      {"key",
       {.limits = {.key_bytes_max = 2}},
       R"({"ab":"abc"})",
       R"({"abc":1})",
       "key longer than 2 bytes"},
      {"escaped key",
       {.limits = {.key_bytes_max = 2}},
       R"({"\u00e9":1})",
       R"({"\u00e9x":1})",
       "key longer than 2 bytes"},
      {"elements",
       {.limits = {.elements_max = 2}},
       "[[1,2],[3,4]]",
       "[1,2,3]",
       "line 1, column 7: more than 2 elements in an array"},
      {"nested elements",
       {.limits = {.elements_max = 2}},
       "[{},{}]",
       "[[],{},[]]",
       "more than 2 elements in an array"},
      {"members",
       {.limits = {.members_max = 2}},
       R"({"a":{"b":1,"c":2},"d":[1,2,3]})",
       R"({"a":1,"b":2,"c":3})",
       "more than 2 members in an object"},
      {"duplicate members",
       {.limits = {.members_max = 2}},
       R"({"a":1,"a":2})",
       R"({"a":1,"a":2,"a":3})",
       "more than 2 members in an object"},
  };
  for (const LimitCase& c : cases) {
    SCOPED_TRACE(c.what);
    EXPECT_TRUE(Parse(c.fits, c.options).ok()) << Outcome(c.fits, c.options);
    EXPECT_NE(Outcome(c.exceeds, c.options).find(c.message), std::string::npos)
        << Outcome(c.exceeds, c.options);
    EXPECT_TRUE(Parse(c.exceeds).ok()) << "the default is wider";
  }
}

TEST(JsonParseTest, HostileNestingIsRefusedWithoutDeepRecursion) {
  const std::string open(1'000'000, '[');
  EXPECT_EQ(Outcome(open), "line 1, column 65: nested deeper than 64 levels");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_NE(Outcome(objects).find("nested deeper than 64 levels"), std::string::npos);
  // The deepest that may be asked for is parsed, written and destroyed on an ordinary stack.
  const std::string deep = std::string(1024, '[') + std::string(1024, ']');
  EXPECT_EQ(Outcome(deep, {.limits = {.depth_max = 1024}}), "ok: " + deep);
}

TEST(JsonParseDeathTest, ADepthTheStackMayNotBearIsOurBug) {
  EXPECT_DEATH((void)Parse("1", {.limits = {.depth_max = 1025}}), "check failed");
}

TEST(JsonScanTest, HearsEveryStringThatIsAValueUnescaped) {
  const std::string long_one(10'000, 'x');
  std::vector<std::string> heard;
  const auto result = Scan(R"({"key":"a","key":["b\u0041\n",{"k":""}],"n":1,"z":")" + long_one +
                               R"(\t","\u0041":"last"})",
                           {}, [&](std::string_view text) -> Result<void> {
                             heard.emplace_back(text);
                             return {};
                           });
  ASSERT_TRUE(result.ok()) << result.error();
  EXPECT_EQ(heard, (std::vector<std::string>{"a", "bA\n", "", long_one + "\t", "last"}));
}

TEST(JsonScanTest, AnErrorFromTheCallerEndsItAndIsTheResult) {
  int heard = 0;
  const auto result = Scan(R"(["a","b","c)", {}, [&](std::string_view text) -> Result<void> {
    ++heard;
    if (text == "b") return Error(Errc::kForbidden, "no b");
    return {};
  });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Errc::kForbidden);
  EXPECT_EQ(result.error().message(), "no b");
  EXPECT_EQ(heard, 2);
}

}  // namespace
}  // namespace interlock::json
