#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "glob/char_class.h"
#include "glob/token.h"

namespace interlock::glob {

// What a caller may send; beyond it the pattern is refused before anything large is allocated.
inline constexpr std::size_t kPatternBytesMax = 4096;
inline constexpr std::size_t kExpansionsMax = 64;
inline constexpr std::size_t kExpandedBytesMax = 8192;
inline constexpr std::size_t kWildcardsMax = 32;  // * ? ** […], in each expansion

// True when `text` names a path: valid UTF-8 without NUL, relative, `/`-separated, without empty,
// "." or ".." segments.
bool IsPath(std::string_view text);

// Whether `path` is `directory` or lies below it. REQUIRES: both are paths.
inline bool IsAtOrBelow(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

// A set of paths, written as a glob.
//
//   *  ?        any run of characters, any one character; never `/`
//   **          as a whole segment: zero or more segments; at the end of a pattern one or more;
//               inside a segment the same as `*`
//   [a-z] [^a] [!a]   one character of the class, or not of it; never `/`
//   {a,b}       either branch; branches may nest and may hold `/` and wildcards. Braces with a
//               single branch are plain characters
//   \x          x itself, for x of [ ] { } , ( ) | and, at the beginning of a segment, * ?; in a
//               class for x of \ * ? [ ] { } , ( ) | ^ ! -
//   a/          the same as `a/**`
//   a           without any wildcard: the path and everything below it, since a path is never
//               a file and a directory at once; a branch without any covers what is below it,
//               too
//
// Forms that only other tools have are refused, never taken for plain characters: other escapes,
// a brace without a partner, `{1..3}`, `[[:alpha:]]`, `@(a|b)`, `C:/x`, `~/x`, `$HOME/x`, `!x` and
// blanks around the text; foreign.h lists them all.
//
// Escapes and classes are read first, so a brace or comma in them is a plain character. Braces are
// expanded next, as text: `{a,b}/` is `a/` and `b/`, and `*{*,x}` is `**` and `*x`. Each expansion
// is then normalised (`./`, `//`, `/./` and a final `/.` go) and must stand as a pattern by itself.
// Matching is by code point and case-sensitive; names that begin with a dot are not special.
//
// An immutable value; any thread may use it.
class Pattern {
 public:
  // kInvalidPattern, kAbsolutePattern or kPatternTooComplex; the message says what is wrong and
  // where, the detail "offset" (from 0, in bytes) points at it.
  static Result<Pattern> Parse(std::string_view text);

  // Takes a text that was accepted once, perhaps by a version for which the foreign forms that
  // Parse() refuses were plain characters: here they still are.
  static Result<Pattern> ParseHeld(std::string_view text);

  // `path` as it stands and everything below it, for names such as `app/[id]/page.tsx`. It is
  // normalised, too, but a trailing `/` is refused: no path ends in one.
  static Result<Pattern> Literal(std::string_view path);

  // False for what is not a path. Takes at most |path| · |expanded pattern| steps.
  bool Matches(std::string_view path) const;

  // Whether some path below `path` matches; as many steps. REQUIRES: IsPath(path)
  bool MatchesBelow(std::string_view path) const;

  // As it was given.
  const std::string& text() const { return text_; }

  // Patterns with equal canonical texts match the same paths; spelling, order of branches and
  // needless escapes make no difference. Not bounded by kPatternBytesMax; otherwise a text for
  // ParseHeld().
  const std::string& canonical() const { return canonical_; }

  // The path that, with everything below it, is all that matches; null when the pattern is no path.
  const std::string* literal_path() const {
    return expansions_.size() == 1 && expansions_[0].is_literal ? &expansions_[0].literal_prefix
                                                                : nullptr;
  }

  // The expansions that can match a path at all, each once; `[.]` alone has none.
  std::span<const Expansion> expansions() const { return expansions_; }
  std::span<const CharClass> classes() const { return classes_; }
  std::size_t token_count() const { return token_count_; }  // of all expansions together

  // The work of parsing it, in the steps of a Budget, beyond that of an ordinary pattern. It is the
  // same whenever it is parsed, so that a pattern that is kept parsed costs no less.
  std::int64_t parse_steps() const { return parse_steps_; }

 private:
  Pattern() = default;

  std::string text_;
  std::string canonical_;
  std::vector<Expansion> expansions_;
  std::vector<CharClass> classes_;
  std::size_t token_count_ = 0;
  std::int64_t parse_steps_ = 0;

  friend class PatternBuilder;
};

}  // namespace interlock::glob
