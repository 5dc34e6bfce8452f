#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace interlock::glob {

// Texts of patterns that cost as much as a pattern can, for tests and measurements.

inline std::string Repeat(std::string_view piece, std::size_t times) {
  std::string text;
  text.reserve(piece.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

// 64 branches whose texts differ at the end only, `body` in each.
// REQUIRES: `ends` has 8 characters.
inline std::string Branches(std::string_view body, std::string_view ends) {
  std::string text = "{";
  for (std::size_t i = 0; i < 64; ++i) {
    if (i > 0) text += ",";
    text += body;
    text += ends[i / 8];
    text += ends[i % 8];
  }
  return text + "}";
}

}  // namespace interlock::glob
