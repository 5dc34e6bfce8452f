#include "table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <string>

#include "base/utf8.h"
#include "json/parse.h"
#include "json/value.h"
#include "json/write.h"
#include "testing/seeded_random.h"

namespace interlock::app {
namespace {

using Fit = Table::Fit;

TEST(PrintableTest, NothingThatATerminalObeysIsLeft) {
  EXPECT_EQ(Printable("plain text, ünï, 漢字"), "plain text, ünï, 漢字");
  EXPECT_EQ(Printable("a\nb\tc\rd"), "a b c d");
  EXPECT_EQ(Printable("\x1b[31mred\x07"), "�[31mred�");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "31m"),
            "�31m")
      << "the one-character form of the same";
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a�b");
  EXPECT_EQ(Printable("a\u202Eb\u200Bc\u2028d\u2066e"), "a�b�c�d�e");
  EXPECT_EQ(Printable("\xff\xc3"), "��");
}

TEST(PrintableTest, JsonKeepsItsMeaningWithoutWhatATerminalObeys) {
  const std::string text = "a\x7F\u009B\u202E\u200B\u2028\U000E0041 \"ünï 漢字\" \x1b\\";
  const std::string json = json::Write(json::Object{{text, text}});
  const std::string shown = PrintableJson(json);
  EXPECT_EQ(Printable(shown), shown) << "nothing is left to replace";
  EXPECT_THAT(shown, ::testing::HasSubstr(R"(a\u007f\u009b\u202e\u200b\u2028\udb40\udc41 \"ünï)"));
  EXPECT_EQ(json::Write(json::Parse(shown).value()), json);
}

TEST(PrintableTest, OfAnyBytesWhatComesOutIsOneLineOfUtf8WithoutControls) {
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < 2000; ++i) {
    std::string bytes;
    for (std::size_t n = random() % 20; n > 0; --n) bytes += static_cast<char>(random());
    const std::string text = Printable(bytes);
    ASSERT_TRUE(IsUtf8(text));
    for (const char c : text) ASSERT_FALSE((c >= 0 && c < 0x20) || c == 0x7F);
    ASSERT_EQ(text.find("\xC2\x9B"), std::string::npos);
  }
}

TEST(WidthTest, CountsColumnsNotBytes) {
  EXPECT_EQ(WidthOf("abc"), 3U);
  EXPECT_EQ(WidthOf("ünï"), 3U);
  EXPECT_EQ(WidthOf("e\u0301"), 1U);
  EXPECT_EQ(WidthOf("漢字"), 4U);
  EXPECT_EQ(WidthOf("🦊"), 2U);
}

TEST(TableTest, ColumnsLineUp) {
  Table table({{"AGENT"}, {"N"}, {"REASON", Fit::kWrap}});
  table.Add({"ann", "1", "short"});
  table.Add({"漢字漢字", "22", ""});
  EXPECT_EQ(table.Text(80),
            "AGENT     N   REASON\n"
            "ann       1   short\n"
            "漢字漢字  22\n");
}

TEST(TableTest, TheLastColumnWrapsAtSpacesAndInsideLongWords) {
  Table table({{"A"}, {"REASON", Fit::kWrap}});
  table.Add({"x", "one two three four five six seven"});
  table.Add({"y", "abcdefghijklmnopqrstuvwxyz"});
  EXPECT_EQ(table.Text(20),
            "A  REASON\n"
            "x  one two three\n"
            "   four five six\n"
            "   seven\n"
            "y  abcdefghijklmnopq\n"
            "   rstuvwxyz\n");
}

TEST(TableTest, WhatMayBeCutIsCutTheWidestFirst) {
  Table table({{"NAME", Fit::kCut}, {"PATTERN", Fit::kCut}, {"ID"}});
  table.Add({"a rather long name", "src/a/very/long/pattern/**", "0123456789"});
  EXPECT_EQ(table.Text(40),
            "NAME           PATTERN        ID\n"
            "a rather lon…  src/a/very/l…  0123456789\n");
}

TEST(TableTest, NoLineIsWiderThanTheTerminalWhateverIsInIt) {
  std::mt19937_64 random(testing::TestSeed());
  const std::string parts[] = {"a",       "word ", "漢", "e\u0301",
                               "\x1b[2J", "\n",    "🦊", "long-long-long"};
  const auto any = [&] {
    std::string text;
    for (std::size_t n = random() % 12; n > 0; --n) text += parts[random() % std::size(parts)];
    return text;
  };
  for (int i = 0; i < 300; ++i) {
    Table table({{"A", Fit::kCut}, {"B"}, {"C", Fit::kCut}, {"D", Fit::kWrap}});
    for (int row = 0; row < 4; ++row) table.Add({any(), "fixed", any(), any()});
    std::istringstream lines(table.Text(60));
    std::string line;
    while (std::getline(lines, line)) ASSERT_LE(WidthOf(line), 60U) << line;
  }
}

}  // namespace
}  // namespace interlock::app
