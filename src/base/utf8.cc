#include "base/utf8.h"

#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace interlock {
namespace {

// A lead byte decides how many bytes follow and what the first of them may be (Unicode 15, table
// 3-7); the others lie in 80..BF.
struct Lead {
  std::size_t follow;
  std::uint8_t low;
  std::uint8_t high;
};

Lead Classify(std::uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};  // below: overlong
  if (byte == 0xED) return {2, 0x80, 0x9F};  // above: surrogates
  if (byte >= 0xE1 && byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};  // below: overlong
  if (byte >= 0xF1 && byte <= 0xF3) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};  // above: beyond U+10FFFF
  return {0, 0, 0};
}

}  // namespace

Utf8Unit FirstUtf8Unit(std::string_view text) {
  IL_CHECK(!text.empty());
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  if (at(0) < 0x80) return {1, true, at(0)};
  const Lead lead = Classify(at(0));
  if (lead.follow == 0) return {1, false, 0};
  char32_t code_point = at(0) & (0x3FU >> lead.follow);
  for (std::size_t i = 1; i <= lead.follow; ++i) {
    if (i == text.size()) return {i, false, 0};
    const std::uint8_t low = i == 1 ? lead.low : 0x80;
    const std::uint8_t high = i == 1 ? lead.high : 0xBF;
    if (at(i) < low || at(i) > high) return {i, false, 0};
    code_point = (code_point << 6U) | (at(i) & 0x3FU);
  }
  return {lead.follow + 1, true, code_point};
}

// Most text is ASCII and nothing else, so it is looked at eight bytes at a time.
bool IsUtf8(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  while (!text.empty()) {
    std::uint64_t word = 0;
    if (text.size() >= sizeof(word)) {
      std::memcpy(&word, text.data(), sizeof(word));
      if ((word & kHighBits) == 0) {
        text.remove_prefix(sizeof(word));
        continue;
      }
    }
    const Utf8Unit unit = FirstUtf8Unit(text);
    if (!unit.valid) return false;
    text.remove_prefix(unit.size);
  }
  return true;
}

void AppendUtf8(std::string& text, char32_t code_point) {
  const auto put = [&text](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0U | (code_point >> 6U));
    put(0x80U | (code_point & 0x3FU));
  } else if (code_point < 0x10000) {
    put(0xE0U | (code_point >> 12U));
    put(0x80U | ((code_point >> 6U) & 0x3FU));
    put(0x80U | (code_point & 0x3FU));
  } else {
    put(0xF0U | (code_point >> 18U));
    put(0x80U | ((code_point >> 12U) & 0x3FU));
    put(0x80U | ((code_point >> 6U) & 0x3FU));
    put(0x80U | (code_point & 0x3FU));
  }
}

}  // namespace interlock
