#include "json/write.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "json/parse.h"
#include "json/value.h"

namespace interlock::json {
namespace {

TEST(JsonWriteTest, CompactKeepsTheOrderOfTheMembers) {
  Object object;
  object["zebra"] = 1;
  object["apple"] = Array{1, "two", nullptr, Object{}};
  object["mango"] = Object{{"y", true}, {"x", 1.5}};
  EXPECT_EQ(Write(object), R"({"zebra":1,"apple":[1,"two",null,{}],"mango":{"y":true,"x":1.5}})");
}

TEST(JsonWriteTest, SortedOrderIsTheSameForEqualValuesAtEveryLevel) {
  const WriteOptions sorted = {.key_order = KeyOrder::kSorted};
  const Value a = *Parse(R"({"b":{"d":1,"c":2},"a":[{"f":1,"e":2}]})");
  const Value b = *Parse(R"({"a":[{"e":2,"f":1}],"b":{"c":2,"d":1}})");
  EXPECT_EQ(Write(a, sorted), R"({"a":[{"e":2,"f":1}],"b":{"c":2,"d":1}})");
  EXPECT_EQ(Write(a, sorted), Write(b, sorted));
  EXPECT_NE(Write(a), Write(b));
}

TEST(JsonWriteTest, PrettyIndentsByTwoSpaces) {
  const Value value = *Parse(R"({"a":[1,{"b":[]}],"c":{},"d":null})");
  EXPECT_EQ(Write(value, {.layout = Layout::kPretty}),
            "{\n"
            "  \"a\": [\n"
            "    1,\n"
            "    {\n"
            "      \"b\": []\n"
            "    }\n"
            "  ],\n"
            "  \"c\": {},\n"
            "  \"d\": null\n"
            "}");
  EXPECT_EQ(Write(*Parse("7"), {.layout = Layout::kPretty}), "7");
}

TEST(JsonWriteTest, DoublesReadBackAsDoublesAndNonNumbersAreNull) {
  const std::vector<std::pair<double, std::string_view>> cases = {
      {1.0, "1.0"},        {-0.0, "-0.0"},
      {0.1, "0.1"},        {1e22, "1e+22"},
      {1.5e-9, "1.5e-09"}, {100000.0, "100000.0"},
      {5e-324, "5e-324"},  {1.7976931348623157e308, "1.7976931348623157e+308"},
  };
  for (const auto& [number, text] : cases) {
    EXPECT_EQ(Write(Value(number)), text);
    const Value back = *Parse(text);
    ASSERT_TRUE(back.is_double()) << text;
    EXPECT_EQ(back.get_double(), number);
    EXPECT_EQ(std::signbit(back.get_double()), std::signbit(number));
  }
  EXPECT_EQ(Write(Value(std::nan(""))), "null");
  EXPECT_EQ(Write(Value(std::numeric_limits<double>::infinity())), "null");
  EXPECT_EQ(Write(Value(std::numeric_limits<std::uint64_t>::max())), "18446744073709551615");
  EXPECT_EQ(Write(Value(std::numeric_limits<std::int64_t>::min())), "-9223372036854775808");
}

TEST(JsonWriteTest, EveryAsciiCharacterComesBack) {
  for (int c = 0; c < 128; ++c) {
    const std::string text = "a" + std::string(1, static_cast<char>(c)) + "b";
    const std::string written = Write(Value(text));
    EXPECT_EQ(View(Parse(written)->get_string()), text) << c;
    for (const char out : written) EXPECT_GE(static_cast<unsigned char>(out), 0x20) << c;
  }
  EXPECT_EQ(Write(Value("\x7F/<>&")), "\"\x7F/<>&\"");
}

// Text is looked at in blocks: a special character is found wherever it stands in one, and whatever
// stands beside it.
TEST(JsonWriteTest, EveryCharacterIsEscapedAtEveryPlace) {
  for (int code = 0; code < 0x80; ++code) {
    const auto c = static_cast<char>(code);
    std::string alone;
    AppendQuoted(alone, std::string(1, c));
    const std::string escaped = alone.substr(1, alone.size() - 2);
    EXPECT_EQ(escaped.size() == 1, code >= 0x20 && c != '"' && c != '\\') << code;
    for (std::size_t place = 0; place < 20; ++place) {
      for (const char beside : {'a', ' ', '\x7f', '!', '#', '[', ']'}) {
        std::string text(20, beside);
        text[place] = c;
        std::string out;
        AppendQuoted(out, text);
        const std::string rest(19, beside);
        EXPECT_EQ(out, '"' + rest.substr(0, place) + escaped + rest.substr(place) + '"') << code;
      }
    }
  }
}

TEST(JsonWriteTest, BrokenUtf8IsRepairedOneMarkPerBrokenSequence) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a\xFF"
       "b",
       "a\uFFFDb"},
      {"\xC0\xAF", "\uFFFD\uFFFD"},
      {"\xE2\x82", "\uFFFD"},
      {"\xE2\x82x", "\uFFFDx"},
      {"\xF0\x9F\x98", "\uFFFD"},
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\x80\xC3\xA9", "\uFFFD\u00E9"},
      {"é€😀", "é€😀"},
  };
  for (const auto& [in, out] : cases) {
    EXPECT_EQ(Write(Value(in)), "\"" + out + "\"") << testing::PrintToString(in);
    Object object;
    object[in] = 1;
    EXPECT_EQ(Write(object), "{\"" + out + "\":1}");
  }
}

void ExpectAgreement(const std::string& text) {
  std::string written;
  AppendQuoted(written, text);
  ASSERT_TRUE(IsUtf8(written));
  const bool kept = written.find("\uFFFD") == std::string::npos || text == "\uFFFD";
  ASSERT_EQ(kept, IsUtf8(text)) << testing::PrintToString(text);
  const bool raw = std::ranges::none_of(
      text, [](char c) { return c == '"' || c == '\\' || (c >= 0 && c < 0x20); });
  if (!raw) return;
  ASSERT_EQ(Parse('"' + text + '"').ok(), kept) << testing::PrintToString(text);
}

// All strings of two bytes; and behind each critical start of a longer sequence, all bytes followed
// by each byte at which the rules change.
TEST(JsonWriteTest, WriterAndParserAgreeOnWhatUtf8Is) {
  for (int pair = 0; pair < 65'536; ++pair) {
    ExpectAgreement({static_cast<char>(pair >> 8), static_cast<char>(pair & 0xFF)});
  }
  for (const std::string lead : {"\xE0", "\xE2", "\xED", "\xF0\x9F", "\xF4\x8F", "\xF4"}) {
    for (int byte = 0; byte < 256; ++byte) {
      for (const char last : {'a', '\x7F', '\x80', '\x8F', '\x90', '\x9F', '\xA0', '\xBF', '\xC0',
                              '\xC2', '\xE0', '\xF5', '\xFF'}) {
        ExpectAgreement(lead + static_cast<char>(byte) + last);
      }
    }
  }
}

}  // namespace
}  // namespace interlock::json
