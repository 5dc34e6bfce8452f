#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace interlock::glob {

// One element of a brace-free pattern.
struct Token {
  enum class Kind : std::uint8_t {
    kLiteral,   // value = the code point
    kAny,       // ?
    kClass,     // value = index into the pattern's classes
    kStar,      // *
    kSlash,     // between two segments
    kGlobstar,  // "**/": zero or more whole segments, each with the slash after it
  };

  Kind kind;
  std::uint32_t value = 0;

  auto operator<=>(const Token&) const = default;
};

// One of the brace-free patterns that a pattern stands for, normalised:
// (1) It has at least one segment, and no segment is empty, literally "." or literally "..".
// (2) kGlobstar stands only where a segment begins, and a segment follows it; two never meet. A
//     trailing "**", which needs at least one segment, is kGlobstar kStar.
// (3) No two kStar meet, "?" stands before "*", and a segment of "?*" is "*", which is the same.
// (4) Every segment matches at least one segment a path can have.
struct Expansion {
  std::vector<Token> tokens;
  // No wildcard: it matches the path `literal_prefix` and everything below it. The tokens are those
  // of the path alone.
  bool is_literal = true;
  // The bytes that every match begins and ends with.
  std::string literal_prefix;
  std::string literal_suffix;
};

}  // namespace interlock::glob
