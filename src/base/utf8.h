#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace interlock {

// What stands at the start of a text: `size` bytes that are one character if `valid`, else the
// longest start of one that went wrong (at least 1 byte), which a repair replaces by one U+FFFD.
// Surrogates, overlong forms and code points above U+10FFFF are not UTF-8.
struct Utf8Unit {
  std::size_t size;
  bool valid;
  char32_t code_point;  // 0 if not valid
};

inline constexpr std::string_view kUtf8Replacement = "\xEF\xBF\xBD";  // U+FFFD

// REQUIRES: !text.empty()
Utf8Unit FirstUtf8Unit(std::string_view text);

bool IsUtf8(std::string_view text);

// REQUIRES: `code_point` is a Unicode scalar value.
void AppendUtf8(std::string& text, char32_t code_point);

}  // namespace interlock
