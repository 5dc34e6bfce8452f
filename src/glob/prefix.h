#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "glob/pattern.h"

namespace interlock::glob {

// A key per pattern, such that the patterns which can overlap a given one are found by key alone,
// in an index, and only those are compared exactly (overlap.h).
//
// The key is the path that all matches are or lie below, as far as the text says so, with a slash
// after it: "src/" for `src` and for `src/*.go`, "" for `**/*.go`. It is cut to whole segments,
// kKeyDepthMax at most, so that the keys which are a directory above a given one are few and can be
// listed. A key that was cut elsewhere is found as well.
//
// Keys compare bytewise (SQLite's default, COLLATE "C" elsewhere). Storage keeps PrefixKey() beside
// the pattern and asks, with the fields of OverlapKeys():
//
//   prefix IN (…exact…) OR (prefix >= under.lo AND prefix < under.hi)
inline constexpr std::size_t kKeyDepthMax = 16;

std::string PrefixKey(const Pattern& pattern);

// Where the keys of all patterns lie that overlap a given one.
struct KeySet {
  struct Range {
    std::string lo;
    std::optional<std::string> hi;  // exclusive; nothing = no upper end
  };

  // The directories above the pattern's own key, "" first: at most kKeyDepthMax.
  std::vector<std::string> exact;
  // The key itself and everything under it.
  Range under;

  bool Contains(std::string_view key) const;
};

KeySet OverlapKeys(const Pattern& pattern);

}  // namespace interlock::glob
