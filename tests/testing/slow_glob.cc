#include "testing/slow_glob.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <utility>

namespace interlock::testing {
namespace {

constexpr std::size_t kBad = std::u32string::npos;

std::optional<std::u32string> Decode(std::string_view text) {
  std::u32string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) -> unsigned {
      return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
    };
    const unsigned lead = byte(i);
    const std::size_t more = lead < 0x80 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    if ((lead >= 0x80 && lead < 0xC0) || lead >= 0xF8) return std::nullopt;
    char32_t c = more == 0 ? lead : lead & (0x3FU >> more);
    for (std::size_t k = 1; k <= more; ++k) {
      if ((byte(i + k) >> 6U) != 2) return std::nullopt;
      c = c * 64 + (byte(i + k) & 63U);
    }
    const bool overlong =
        (more == 1 && c < 0x80) || (more == 2 && c < 0x800) || (more == 3 && c < 0x10000);
    if (overlong || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000) || c == 0) return std::nullopt;
    out.push_back(c);
    i += more + 1;
  }
  return out;
}

// True for a character that a backslash may stand before.
bool MayEscape(char32_t c, std::u32string_view more) {
  return std::u32string_view(U"*?[]{},()|").contains(c) || more.contains(c);
}

struct Class {
  bool negated = false;
  std::vector<std::pair<char32_t, char32_t>> ranges;
  std::size_t end = kBad;  // after the closing bracket

  bool Has(char32_t c) const {
    const bool in = std::any_of(ranges.begin(), ranges.end(),
                                [c](const auto& r) { return r.first <= c && c <= r.second; });
    return c != U'/' && in != negated;
  }
  bool HasNone() const {
    for (char32_t c = 1; c <= 0x10FFFF; ++c) {
      if (Has(c) && (c < 0xD800 || c > 0xDFFF)) return false;
    }
    return true;
  }
};

// The class whose bracket stands at `at`; end is kBad when it is malformed.
Class ReadClass(const std::u32string& text, std::size_t at) {
  Class result;
  std::size_t i = at + 1;
  if (i < text.size() && (text[i] == U'!' || text[i] == U'^')) {
    result.negated = true;
    ++i;
  }
  std::u32string plain;                    // the members so far, an escaped one as U+FFFF
  const auto member = [&]() -> char32_t {  // 0 = malformed
    const bool escaped = i < text.size() && text[i] == U'\\';
    if (escaped) ++i;
    if (i >= text.size() || text[i] == U'/') return 0;
    if (escaped && !MayEscape(text[i], U"\\^!-")) return 0;
    plain.push_back(escaped ? U'\uFFFF' : text[i]);
    return text[i++];
  };
  while (i < text.size() && (text[i] != U']' || result.ranges.empty())) {
    const char32_t lo = member();
    if (lo == 0) return result;
    char32_t hi = lo;
    if (i + 1 < text.size() && text[i] == U'-' && text[i + 1] != U']') {
      plain.push_back(text[i++]);
      hi = member();
      if (hi == 0) return result;
    }
    if (hi < lo) return result;
    result.ranges.emplace_back(lo, hi);
  }
  for (const char32_t c : {U':', U'.', U'='}) {  // [[:alpha:]], [[.a.]], [[=a=]]
    const std::size_t open = plain.find(std::u32string{U'[', c});
    if (open != kBad && plain.size() > open + 3 && plain.back() == c) return result;
  }
  if (i < text.size() && !result.HasNone()) result.end = i + 1;
  return result;
}

// Where the element at `at` ends: an escape, a class, or one character.
std::size_t ElementEnd(const std::u32string& text, std::size_t at) {
  if (text[at] == U'[') return ReadClass(text, at).end;
  if (text[at] != U'\\') return at + 1;
  return at + 1 < text.size() && MayEscape(text[at + 1], U"") ? at + 2 : kBad;
}

// {1..3}, {a..e}, {0..9..3}: the brace at `at` opens one.
bool IsSequence(const std::u32string& text, std::size_t at) {
  const std::size_t close = text.find(U'}', at);
  if (close == kBad) return false;
  const std::u32string inside = text.substr(at + 1, close - at - 1);
  std::vector<std::u32string> ends(1);
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside.substr(i, 2) == U"..") {
      ends.emplace_back();
      ++i;
    } else {
      ends.back().push_back(inside[i]);
    }
  }
  const auto is_end = [](const std::u32string& end) {
    const auto in = [](char32_t c, char32_t lo, char32_t hi) { return lo <= c && c <= hi; };
    if (end.size() == 1 && (in(end[0], U'a', U'z') || in(end[0], U'A', U'Z'))) return true;
    const std::u32string digits = end.starts_with(U'-') ? end.substr(1) : end;
    return !digits.empty() &&
           std::ranges::all_of(digits, [&](char32_t c) { return in(c, U'0', U'9'); });
  };
  return (ends.size() == 2 || ends.size() == 3) && std::ranges::all_of(ends, is_end);
}

// ?(a), @(a|b) and their like, anywhere in a text without alternations.
bool HasExtglob(const std::u32string& text) {
  for (std::size_t i = 0; i < text.size(); i = ElementEnd(text, i)) {
    const bool sign = std::u32string_view(U"?*+@!").contains(text[i]);
    if (!sign || i + 1 == text.size() || text[i + 1] != U'(') continue;
    int depth = 0;
    for (std::size_t k = i + 1; k < text.size(); k = ElementEnd(text, k)) {
      if (text[k] == U'(') ++depth;
      if (text[k] == U')' && --depth == 0) return true;
    }
  }
  return false;
}

// The braces that open at `at`: its branches' borders, from `{` to `}`. Empty when it is literal.
std::vector<std::size_t> Group(const std::u32string& text, std::size_t at) {
  std::vector<std::size_t> borders;
  int depth = 0;
  for (std::size_t i = at; i < text.size(); i = ElementEnd(text, i)) {
    if (text[i] == U'{') ++depth;
    if (text[i] == U'}') --depth;
    if (depth == 0 || (depth == 1 && (text[i] == U',' || i == at))) borders.push_back(i);
    if (depth == 0) return borders.size() > 2 ? borders : std::vector<std::size_t>();
  }
  return {};
}

bool IsBlank(char32_t c) { return std::u32string_view(U" \t\n\v\f\r").contains(c); }

// `{a`, `a}`, and `{a, b}`, where a blank stands beside a border of a branch.
bool HasBadBraces(const std::u32string& text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); i = ElementEnd(text, i)) {
    if (text[i] == U'{') ++depth;
    if (text[i] == U'}' && --depth < 0) return true;
  }
  if (depth != 0) return true;
  for (std::size_t i = 0; i < text.size(); i = ElementEnd(text, i)) {
    const std::vector<std::size_t> borders =
        text[i] == U'{' ? Group(text, i) : std::vector<std::size_t>();
    for (std::size_t b = 1; b < borders.size(); ++b) {
      if (IsBlank(text[borders[b - 1] + 1]) || IsBlank(text[borders[b] - 1])) return true;
    }
  }
  return false;
}

// src\*.cc, in a text without alternations.
bool HasWindowsSeparator(const std::u32string& text) {
  for (std::size_t i = 0; i < text.size(); i = ElementEnd(text, i)) {
    const bool escape = text[i] == U'\\' && (text[i + 1] == U'*' || text[i + 1] == U'?');
    if (escape && i > 0 && text[i - 1] != U'/') return true;
  }
  return false;
}

bool IsAsciiLetter(char32_t c) { return (U'a' <= c && c <= U'z') || (U'A' <= c && c <= U'Z'); }

// C:, ~, ~me, $NAME, ${…}, $(…) as the first name of a path, and a leading `!`; in a text without
// alternations.
bool LeadsElsewhere(std::u32string text) {
  if (text.starts_with(U'!')) return true;
  if (text.starts_with(U'/')) return false;
  while (text.starts_with(U"./") || text.starts_with(U'/')) text.erase(0, 1);
  const std::u32string name = text.substr(0, text.find(U'/'));
  if (name.size() == 2 && IsAsciiLetter(name[0]) && name[1] == U':') return true;
  const auto only = [&](std::u32string_view more) {
    return std::ranges::all_of(name.substr(1), [&](char32_t c) {
      return IsAsciiLetter(c) || (U'0' <= c && c <= U'9') || more.contains(c);
    });
  };
  if (name.starts_with(U'~')) return only(U"_-");
  if (name.find_first_of(U"*?[\\") != kBad) return false;
  if (name.starts_with(U"${")) return name.ends_with(U'}');
  if (name.starts_with(U"$(")) return name.ends_with(U')');
  if (!name.starts_with(U'$') || name.size() == 1) return false;
  return (IsAsciiLetter(name[1]) || name[1] == U'_') && only(U"_");
}

// What a segment without wildcards says; nothing when it has one.
std::optional<std::u32string> PlainText(const std::u32string& segment) {
  std::u32string plain;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    if (segment[i] == U'*' || segment[i] == U'?' || segment[i] == U'[') return std::nullopt;
    if (segment[i] == U'\\') ++i;
    plain.push_back(segment[i]);
  }
  return plain;
}

std::size_t Wildcards(const std::u32string& segment) {
  std::size_t count = 0;
  char32_t before = 0;
  for (std::size_t i = 0; i < segment.size(); i = ElementEnd(segment, i)) {
    if (segment[i] == U'?' || segment[i] == U'[') ++count;
    if (segment[i] == U'*' && before != U'*') ++count;
    before = segment[i];
  }
  return count;
}

bool SegmentMatches(const std::u32string& pattern, const std::u32string& text) {
  std::vector<bool> at(text.size() + 1, false);
  at[0] = true;
  for (std::size_t i = 0; i < pattern.size(); i = ElementEnd(pattern, i)) {
    std::vector<bool> next(text.size() + 1, false);
    for (std::size_t p = 0; p <= text.size(); ++p) {
      if (!at[p]) continue;
      if (pattern[i] == U'*') {
        for (std::size_t q = p; q <= text.size(); ++q) next[q] = true;
        break;
      }
      if (p == text.size()) continue;
      const char32_t c = text[p];
      if (pattern[i] == U'[' ? ReadClass(pattern, i).Has(c)
                             : pattern[i] == U'?' || c == pattern[pattern[i] == U'\\' ? i + 1 : i])
        next[p + 1] = true;
    }
    at = next;
  }
  return at[text.size()];
}

// One character of each sort that the segments tell apart: the ends of classes, plain characters,
// their neighbours, and one that nobody names.
std::set<char32_t> Sorts(const std::u32string& a, const std::u32string& b) {
  std::set<char32_t> sorts = {U'\U000EFFF0'};
  const auto add = [&](char32_t c) {
    for (const auto near : {char32_t(c - 1), c, char32_t(c + 1)}) {
      const bool scalar = near != 0 && near <= 0x10FFFF && (near < 0xD800 || near > 0xDFFF);
      if (scalar && near != U'/') sorts.insert(near);
    }
  };
  for (const std::u32string* segment : {&a, &b}) {
    for (std::size_t i = 0; i < segment->size(); i = ElementEnd(*segment, i)) {
      if ((*segment)[i] == U'[') {
        for (const auto& [lo, hi] : ReadClass(*segment, i).ranges) {
          add(lo);
          add(hi);
        }
      } else {
        add((*segment)[(*segment)[i] == U'\\' ? i + 1 : i]);
      }
    }
  }
  // Around what cannot stand in a path, as a range may end there.
  sorts.insert({U'.', U'0', U'\uD7FF', U'\uE000'});
  return sorts;
}

bool Takes(const std::u32string& pattern, std::size_t i, char32_t c) {
  if (pattern[i] == U'[') return ReadClass(pattern, i).Has(c);
  return pattern[i] == U'?' || pattern[i] == U'*' || c == pattern[pattern[i] == U'\\' ? i + 1 : i];
}

// Whether one name fits both: places in both patterns, and how much of ".." was read (3: it is
// another name).
bool NamesOverlap(const std::u32string& a, const std::u32string& b) {
  using Place = std::array<std::size_t, 3>;
  const std::set<char32_t> sorts = Sorts(a, b);
  std::set<Place> seen;
  std::vector<Place> open;
  const auto reach = [&](const Place& place) {
    if (seen.insert(place).second) open.push_back(place);
  };
  reach({0, 0, 0});
  while (!open.empty()) {
    const auto [i, j, dots] = open.back();
    open.pop_back();
    if (i == a.size() && j == b.size() && dots == 3) return true;
    if (i < a.size() && a[i] == U'*') reach({i + 1, j, dots});
    if (j < b.size() && b[j] == U'*') reach({i, j + 1, dots});
    if (i == a.size() || j == b.size()) continue;
    for (const char32_t c : sorts) {
      if (!Takes(a, i, c) || !Takes(b, j, c)) continue;
      reach({a[i] == U'*' ? i : ElementEnd(a, i), b[j] == U'*' ? j : ElementEnd(b, j),
             c == U'.' && dots < 2 ? dots + 1 : 3});
    }
  }
  return false;
}

std::vector<std::u32string> Split(const std::u32string& text) {
  std::vector<std::u32string> parts(1);
  for (const char32_t c : text) {
    if (c == U'/') {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  return parts;
}

}  // namespace

bool SlowGlob::ExpandFrom(const std::u32string& text, std::size_t from,
                          std::vector<std::u32string>& out) {
  for (std::size_t i = from; i < text.size(); i = ElementEnd(text, i)) {
    if (text[i] != U'{') continue;
    const std::vector<std::size_t> borders = Group(text, i);
    for (std::size_t b = 0; b + 1 < borders.size(); ++b) {
      std::u32string expanded = text.substr(0, i);
      expanded.append(text, borders[b] + 1, borders[b + 1] - borders[b] - 1);
      expanded.append(text, borders.back() + 1);
      if (!ExpandFrom(expanded, i, out)) return false;
    }
    if (!borders.empty()) return true;
  }
  out.push_back(text);
  return out.size() <= 64;
}

bool SlowGlob::Add(const std::u32string& expansion) {
  const Segments all = Split(expansion);
  if (all.size() > 1 && all.front().empty()) return false;
  Segments kept;
  std::size_t wildcards = 0;
  for (const std::u32string& segment : all) {
    const auto plain = PlainText(segment);
    if (plain == U".." || segment.empty() || plain == U".") {
      if (plain == U"..") return false;
      continue;
    }
    wildcards += Wildcards(segment);
    kept.push_back(segment);
  }
  if (kept.empty()) return false;
  if (all.back().empty()) {
    kept.emplace_back(U"**");
    ++wildcards;
  }
  expansions_.push_back(kept);
  if (std::ranges::all_of(kept,
                          [](const auto& segment) { return PlainText(segment).has_value(); })) {
    below_.push_back(kept);
    below_.back().emplace_back(U"**");
  }
  return wildcards <= 32;
}

std::optional<SlowGlob> SlowGlob::Parse(std::string_view text) {
  const auto decoded = Decode(text);
  if (!decoded || text.empty() || text.size() > 4096) return std::nullopt;
  if (IsBlank(decoded->front()) || IsBlank(decoded->back())) return std::nullopt;
  if (IsAsciiLetter(decoded->front()) && decoded->substr(1, 2) == U":\\") return std::nullopt;
  for (std::size_t i = 0; i < decoded->size();) {
    if ((*decoded)[i] == U'{' && IsSequence(*decoded, i)) return std::nullopt;
    i = ElementEnd(*decoded, i);
    if (i == kBad) return std::nullopt;
  }
  if (HasBadBraces(*decoded)) return std::nullopt;
  std::vector<std::u32string> expansions;
  if (!ExpandFrom(*decoded, 0, expansions)) return std::nullopt;
  std::size_t bytes = 0;
  SlowGlob glob;
  for (const std::u32string& expansion : expansions) {
    for (const char32_t c : expansion) bytes += c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (HasExtglob(expansion) || HasWindowsSeparator(expansion) || LeadsElsewhere(expansion)) {
      return std::nullopt;
    }
    if (!glob.Add(expansion)) return std::nullopt;
  }
  if (bytes > 8192) return std::nullopt;
  return glob;
}

bool SlowGlob::SegmentsOverlap(const Segments& a, const Segments& b) {
  using Place = std::pair<std::size_t, std::size_t>;
  std::set<Place> seen;
  std::vector<Place> open;
  const auto reach = [&](std::size_t i, std::size_t j) {
    if (seen.emplace(i, j).second) open.emplace_back(i, j);
  };
  // Where a pattern may be once it has read one more name.
  const auto after = [](const Segments& segments, std::size_t i) {
    std::vector<std::size_t> places;
    if (segments[i] == U"**") places.push_back(i);
    if (segments[i] != U"**" || i + 1 == segments.size()) places.push_back(i + 1);
    return places;
  };
  const auto may_be_none = [](const Segments& segments, std::size_t i) {
    return segments[i] == U"**" && i + 1 < segments.size();
  };
  reach(0, 0);
  while (!open.empty()) {
    const auto [i, j] = open.back();
    open.pop_back();
    if (i == a.size() && j == b.size()) return true;
    if (i < a.size() && may_be_none(a, i)) reach(i + 1, j);
    if (j < b.size() && may_be_none(b, j)) reach(i, j + 1);
    if (i == a.size() || j == b.size()) continue;
    if (!NamesOverlap(a[i], b[j])) continue;  // "**" as a name is "*", which takes any
    for (const std::size_t next_i : after(a, i)) {
      for (const std::size_t next_j : after(b, j)) reach(next_i, next_j);
    }
  }
  return false;
}

std::vector<SlowGlob::Segments> SlowGlob::All() const {
  std::vector<Segments> all = expansions_;
  all.insert(all.end(), below_.begin(), below_.end());
  return all;
}

bool SlowGlob::Overlaps(const SlowGlob& other) const {
  const std::vector<Segments> others = other.All();
  return std::ranges::any_of(All(), [&](const Segments& a) {
    return std::ranges::any_of(others, [&](const Segments& b) { return SegmentsOverlap(a, b); });
  });
}

bool SlowGlob::AnyMatches(const std::vector<Segments>& expansions, std::string_view path) {
  const auto decoded = Decode(path);
  if (!decoded) return false;
  const std::vector<std::u32string> parts = Split(*decoded);
  for (const std::u32string& part : parts) {
    if (part.empty() || part == U"." || part == U"..") return false;
  }
  return std::any_of(expansions.begin(), expansions.end(), [&](const Segments& segments) {
    std::vector<bool> at(parts.size() + 1, false);  // how many parts may be read
    at[0] = true;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      std::vector<bool> next(parts.size() + 1, false);
      for (std::size_t p = 0; p <= parts.size(); ++p) {
        if (!at[p]) continue;
        if (segments[s] == U"**") {
          const std::size_t least = s + 1 == segments.size() ? 1 : 0;
          for (std::size_t q = p + least; q <= parts.size(); ++q) next[q] = true;
          break;
        }
        if (p < parts.size() && SegmentMatches(segments[s], parts[p])) next[p + 1] = true;
      }
      at = next;
    }
    return static_cast<bool>(at[parts.size()]);
  });
}

}  // namespace interlock::testing
