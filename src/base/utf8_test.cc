#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace interlock {
namespace {

std::string Encode(char32_t c) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | c >> 6), byte(0x80 | (c & 0x3F))};
  if (c < 0x10000) {
    return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 0x3F)), byte(0x80 | (c & 0x3F))};
  }
  return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 0x3F)), byte(0x80 | (c >> 6 & 0x3F)),
          byte(0x80 | (c & 0x3F))};
}

TEST(Utf8Test, EveryCodePointButTheSurrogatesIsOneCharacter) {
  for (char32_t c = 0; c < 0x110100; ++c) {
    const std::string text = Encode(c);
    const bool legal = c < 0x110000 && (c < 0xD800 || c > 0xDFFF);
    const Utf8Unit unit = FirstUtf8Unit(text + "x");
    ASSERT_EQ(unit.valid, legal) << static_cast<unsigned>(c);
    ASSERT_EQ(IsUtf8(text), legal) << static_cast<unsigned>(c);
    if (!legal) continue;
    ASSERT_EQ(unit.code_point, c);
    ASSERT_EQ(unit.size, text.size());
    std::string appended = "x";
    AppendUtf8(appended, c);
    ASSERT_EQ(appended, "x" + text);
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      const Utf8Unit start = FirstUtf8Unit(std::string_view(text).substr(0, cut));
      ASSERT_FALSE(start.valid) << static_cast<unsigned>(c);
      ASSERT_EQ(start.size, cut) << static_cast<unsigned>(c);
    }
  }
}

TEST(Utf8Test, OverlongFormsAndStrayBytesAreNotUtf8) {
  for (const std::string_view text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF", "\xF5\x80\x80\x80", "\xF8\x88\x80\x80\x80", "\xFE", "\xFF"}) {
    EXPECT_FALSE(IsUtf8(text)) << testing::PrintToString(text);
    EXPECT_EQ(FirstUtf8Unit(text).size, 1u) << testing::PrintToString(text);
  }
  EXPECT_EQ(FirstUtf8Unit("\xE2\x82x").size, 2u);
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8(kUtf8Replacement));
}

TEST(Utf8Test, WhatIsNotAsciiIsSeenWhereverItStands) {
  for (std::size_t size = 0; size <= 25; ++size) {
    EXPECT_TRUE(IsUtf8(std::string(size, 'x'))) << size;
    for (std::size_t at = 0; at <= size; ++at) {
      const std::string before(at, 'x');
      const std::string after(size - at, 'x');
      EXPECT_TRUE(IsUtf8(before + Encode(0xE9) + after)) << size << " " << at;
      EXPECT_TRUE(IsUtf8(before + Encode(0x1F512) + after)) << size << " " << at;
      EXPECT_FALSE(IsUtf8(before + "\x80" + after)) << size << " " << at;
      EXPECT_FALSE(IsUtf8(before + "\xC3" + after)) << size << " " << at;
    }
  }
}

}  // namespace
}  // namespace interlock
