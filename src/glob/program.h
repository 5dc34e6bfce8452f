#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "glob/char_class.h"
#include "glob/pattern.h"

namespace interlock::glob {

// A set of characters as a Program names it.
struct CharSet {
  enum class Kind : std::uint8_t { kLiteral, kAny, kClass };

  Kind kind;
  std::uint32_t value = 0;  // kLiteral: the code point; kClass: an id of ProgramClasses
};

// The classes of a pattern and what its programs need besides: each class without the dot, and
// `?` without the dot. Those are made when first asked for.
class ProgramClasses {
 public:
  explicit ProgramClasses(std::span<const CharClass> classes)
      : classes_(classes), without_dot_(classes.size() + 1) {}

  const CharClass& Get(std::uint32_t id);
  bool Contains(const CharSet& set, char32_t code_point);
  // Nothing when the dot was all there was. REQUIRES: the set contains it.
  std::optional<CharSet> WithoutDot(const CharSet& set);

 private:
  const std::span<const CharClass> classes_;
  std::vector<std::optional<CharClass>> without_dot_;  // ids classes_.size() and up
};

// One brace-free pattern as a straight line of operations on a set of positions in other patterns
// (product.h runs it). It accepts paths only: no segment it reads is empty, "." or "..".
struct Op {
  enum class Kind : std::uint8_t {
    kStep,        // read one character of `set`
    kStar,        // read any characters but /
    kAnySegment,  // read one whole segment, whichever
    kSlash,       // read /
    kGlobstar,    // read any number of segments, each with the slash after it
    // kFork … kNext … kNext … kJoin: the alternatives between them all start from the positions at
    // kFork, and their results unite at kJoin.
    kFork,
    kNext,
    kJoin,
  };

  Kind kind;
  CharSet set = {CharSet::Kind::kAny};  // kStep only
};

std::vector<Op> Compile(const Expansion& expansion, ProgramClasses& classes);

}  // namespace interlock::glob
