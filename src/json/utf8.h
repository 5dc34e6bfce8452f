#pragma once

#include <cstddef>
#include <string_view>

namespace interlock::json {

// What stands at the start of a text: `size` bytes that are one character if `valid`, else the
// longest start of one that went wrong (at least 1), which a repair replaces by one U+FFFD.
struct Utf8Unit {
  std::size_t size;
  bool valid;
};

// REQUIRES: !text.empty()
Utf8Unit FirstUtf8Unit(std::string_view text);

// Surrogates, overlong forms and code points above U+10FFFF are not UTF-8.
bool IsUtf8(std::string_view text);

}  // namespace interlock::json
