#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "glob/pattern.h"

namespace interlock::glob {

// Random patterns for tests, over a small alphabet so that many pairs overlap: literals, wildcards,
// classes, escapes, braces, dots, double stars, characters beyond ASCII.
class RandomPatterns {
 public:
  explicit RandomPatterns(std::mt19937_64& rng) : rng_(rng) {}

  Pattern Next() {
    while (true) {
      auto pattern = Pattern::Parse(Text(0));
      if (pattern.ok()) return std::move(pattern).value();
    }
  }

 private:
  std::size_t Below(std::size_t bound) { return rng_() % bound; }

  std::string Text(int depth) {
    std::string text;
    const std::size_t segments = 1 + Below(depth == 0 ? 4 : 2);
    for (std::size_t i = 0; i < segments; ++i) {
      if (i > 0) text += "/";
      text += Below(6) == 0 ? "**" : Segment(depth);
    }
    if (depth == 0 && Below(16) == 0) text += "/";
    return text;
  }

  std::string Segment(int depth) {
    static const std::vector<std::string> kPieces = {
        "a",    "b",     "c",    ".",     "é",   "a",   "b",     "*",  "*",  "?",  "[ab]",
        "[^a]", "[!b.]", "[.c]", "[à-ü]", "\\*", "\\(", "[b-z]", "ab", "..", "**", "[*]",
        "{b}",  ",",     "(",    ")",     "\\{", " ",   "~",     "$a", "!"};
    std::string text;
    const std::size_t pieces = 1 + Below(4);
    for (std::size_t i = 0; i < pieces; ++i) {
      if (depth < 2 && Below(12) == 0) {
        text += Braces(depth);
      } else {
        text += kPieces[Below(kPieces.size())];
      }
    }
    return text;
  }

  std::string Braces(int depth) {
    std::string text = "{";
    const std::size_t branches = 2 + Below(2);
    for (std::size_t i = 0; i < branches; ++i) {
      if (i > 0) text += ",";
      if (Below(8) != 0) text += Text(depth + 1);
    }
    return text + "}";
  }

  std::mt19937_64& rng_;
};

}  // namespace interlock::glob
