#pragma once

#include <string>
#include <vector>

namespace interlock::glob {

// A set of characters that one position of a path can hold: never `/`, never NUL, only Unicode
// scalar values. An immutable value; ranges are sorted, disjoint and never adjacent, so equal sets
// compare equal.
class CharClass {
 public:
  struct Range {
    char32_t lo;
    char32_t hi;  // inclusive
    bool operator==(const Range&) const = default;
  };

  // The set of all of `members`, in any order, less what no path can hold.
  static CharClass Of(std::vector<Range> members);
  // Everything a path can hold: `?`.
  static const CharClass& Any();

  CharClass Complement() const;
  CharClass Without(char32_t code_point) const;

  bool empty() const { return ranges_.empty(); }
  bool Contains(char32_t code_point) const;
  bool Intersects(const CharClass& other) const;
  // A member of both, one that reads well if there is one.
  // REQUIRES: Intersects(other)
  char32_t PickCommon(const CharClass& other) const;

  const std::vector<Range>& ranges() const { return ranges_; }
  // As a pattern writes it, in one fixed form: "[0-9a-f]", "[^a]". REQUIRES: !empty()
  std::string ToString() const;

  bool operator==(const CharClass&) const = default;

 private:
  explicit CharClass(std::vector<Range> ranges) : ranges_(std::move(ranges)) {}

  std::vector<Range> ranges_;
};

}  // namespace interlock::glob
