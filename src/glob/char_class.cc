#include "glob/char_class.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"

namespace interlock::glob {
namespace {

using Range = CharClass::Range;

// What a path can hold: no NUL, no '/', no surrogate.
constexpr std::array<Range, 3> kUniverse = {Range{1, U'/' - 1}, Range{U'/' + 1, 0xD7FF},
                                            Range{0xE000, 0x10FFFF}};

// Both sorted and disjoint.
template <typename A, typename B>
std::vector<Range> Intersect(const A& a, const B& b) {
  std::vector<Range> both;
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() && y != b.end()) {
    const char32_t lo = std::max(x->lo, y->lo);
    const char32_t hi = std::min(x->hi, y->hi);
    if (lo <= hi) both.push_back({lo, hi});
    if (x->hi < y->hi) {
      ++x;
    } else {
      ++y;
    }
  }
  return both;
}

void AppendMember(std::string& text, char32_t code_point) {
  constexpr std::u32string_view kSpecial = U"\\]^-![{},";
  if (kSpecial.find(code_point) != std::u32string_view::npos) text.push_back('\\');
  AppendUtf8(text, code_point);
}

}  // namespace

CharClass CharClass::Of(std::vector<Range> members) {
  std::ranges::sort(members, {}, &Range::lo);
  std::vector<Range> merged;
  for (const Range& range : members) {
    IL_CHECK(range.lo <= range.hi);
    if (!merged.empty() && range.lo <= merged.back().hi + 1) {
      merged.back().hi = std::max(merged.back().hi, range.hi);
    } else {
      merged.push_back(range);
    }
  }
  return CharClass(Intersect(merged, kUniverse));
}

const CharClass& CharClass::Any() {
  static const CharClass kAny(std::vector<Range>(kUniverse.begin(), kUniverse.end()));
  return kAny;
}

CharClass CharClass::Complement() const {
  std::vector<Range> gaps;
  char32_t next = 1;
  for (const Range& range : ranges_) {
    if (next < range.lo) gaps.push_back({next, range.lo - 1});
    next = range.hi + 1;
  }
  if (next <= 0x10FFFF) gaps.push_back({next, 0x10FFFF});
  return CharClass(Intersect(gaps, kUniverse));
}

CharClass CharClass::Without(char32_t code_point) const {
  return CharClass(Intersect(ranges_, Of({{code_point, code_point}}).Complement().ranges_));
}

bool CharClass::Contains(char32_t code_point) const {
  const auto after = std::ranges::upper_bound(ranges_, code_point, {}, &Range::lo);
  return after != ranges_.begin() && code_point <= std::prev(after)->hi;
}

bool CharClass::Intersects(const CharClass& other) const {
  auto x = ranges_.begin();
  auto y = other.ranges_.begin();
  while (x != ranges_.end() && y != other.ranges_.end()) {
    if (x->hi < y->lo) {
      ++x;
    } else if (y->hi < x->lo) {
      ++y;
    } else {
      return true;
    }
  }
  return false;
}

char32_t CharClass::PickCommon(const CharClass& other) const {
  if (Contains(U'a') && other.Contains(U'a')) return U'a';
  const std::vector<Range> both = Intersect(ranges_, other.ranges_);
  IL_CHECK(!both.empty());
  for (const Range& nice : {Range{U'a', U'z'}, Range{U'A', U'Z'}, Range{U'0', U'9'},
                            Range{U'!', U'~'}, Range{0xA1, 0x10FFFF}}) {
    for (const auto& [lo, hi] : both) {
      if (std::max(lo, nice.lo) <= std::min(hi, nice.hi)) return std::max(lo, nice.lo);
    }
  }
  return both.front().lo;
}

std::string CharClass::ToString() const {
  IL_CHECK(!empty());
  // A set that reaches the end of Unicode was written as what it leaves out.
  const bool negated = ranges_.back().hi == 0x10FFFF && ranges_ != Any().ranges_;
  const CharClass shown = negated ? Complement() : *this;
  std::string text = negated ? "[^" : "[";
  for (const auto& [lo, hi] : shown.ranges_) {
    AppendMember(text, lo);
    if (hi > lo + 1) text.push_back('-');
    if (hi > lo) AppendMember(text, hi);
  }
  text.push_back(']');
  return text;
}

}  // namespace interlock::glob
