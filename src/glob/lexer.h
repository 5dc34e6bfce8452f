#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "glob/char_class.h"

namespace interlock::glob {

// A piece of a pattern's text. Escapes and classes are whole lexemes, so what follows (braces,
// segments) never looks inside them.
struct Lexeme {
  enum class Kind : std::uint8_t { kLiteral, kAny, kClass, kStar, kSlash, kOpen, kComma, kClose };

  Kind kind;
  std::uint32_t value;   // kLiteral: the code point; kClass: index into `classes`
  std::uint32_t offset;  // where it stands in the text, in bytes
  std::uint32_t size;    // of its text, in bytes
};

struct Lexed {
  std::vector<Lexeme> lexemes;
  std::vector<CharClass> classes;  // each once
};

// kInvalidPattern that says `what`, and where.
Error InvalidPattern(std::string_view what, std::size_t offset);

// Refuses what no text of ours may be: empty, too long, with a NUL, not UTF-8.
Result<void> CheckText(std::string_view text);

// REQUIRES: CheckText(text)
Result<Lexed> Lex(std::string_view text);

// Every character as a kLiteral or kSlash. REQUIRES: CheckText(text)
Lexed LexLiterally(std::string_view text);

}  // namespace interlock::glob
