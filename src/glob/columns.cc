#include "glob/columns.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"

namespace interlock::glob {
namespace {

using Indexed = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

constexpr auto kKey = &Indexed::value_type::first;

bool IsDots(std::u32string_view word) { return word == U"." || word == U".."; }

}  // namespace

Columns::Columns(const Pattern& pattern, std::span<const Expansion> expansions)
    : pattern_(pattern) {
  std::size_t tokens = 0;
  for (const Expansion& expansion : expansions) tokens += expansion.tokens.size() + 2;
  columns_.reserve(tokens);
  literals_.reserve(tokens);
  for (const Expansion& expansion : expansions) Add(expansion);
  words_ = columns_.size() / 64 + 1;
  rows_.reserve((kFixedRows + 16) * words_);  // a typical pattern meets some letters
  rows_.resize(kFixedRows * words_);
  MakeRows();
  MarkBoundaries();
  std::ranges::sort(literals_);
  std::ranges::sort(classes_);
}

void Columns::Add(const Expansion& expansion) {
  using Kind = Column::Kind;
  bool star = false;
  const auto push = [&](Kind kind, std::uint32_t value = 0) {
    if (kind == Kind::kLiteral) literals_.emplace_back(value, columns_.size());
    if (kind == Kind::kClass) classes_.emplace_back(value, columns_.size());
    columns_.push_back({kind, star, value});
    star = false;
  };
  for (const Token& token : expansion.tokens) {
    switch (token.kind) {
      case Token::Kind::kStar:
        star = true;
        break;
      case Token::Kind::kGlobstar:
        push(Kind::kEntry);
        push(Kind::kDeep);
        break;
      case Token::Kind::kSlash:
        push(Kind::kSlash);
        break;
      case Token::Kind::kAny:
        push(Kind::kAny);
        break;
      case Token::Kind::kLiteral:
        push(Kind::kLiteral, token.value);
        break;
      case Token::Kind::kClass:
        push(Kind::kClass, token.value);
        break;
    }
  }
  if (expansion.is_literal) {
    push(Kind::kTail);
    push(Kind::kBelow);
  } else {
    push(Kind::kEnd);
  }
}

void Columns::MakeRows() {
  using Kind = Column::Kind;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const auto& [kind, after_star, value] = columns_[i];
    if (after_star || kind == Kind::kDeep || kind == Kind::kBelow) Set(kLoops, i);
    switch (kind) {
      case Kind::kAny:
        Set(kAny, i);
        [[fallthrough]];
      case Kind::kLiteral:
      case Kind::kClass:
        Set(kCharacters, i);
        break;
      case Kind::kSlash:
        Set(kSlashes, i);
        break;
      case Kind::kDeep:
        Set(kSlashes, i);
        Set(kDeep, i);
        break;
      case Kind::kEntry:
        Set(kEntries, i);
        has_entries_ = true;
        break;
      case Kind::kTail:
        Set(kSlashes, i);
        Set(kEnds, i);
        break;
      case Kind::kBelow:
        Set(kDeep, i);
        Set(kEnds, i);
        break;
      case Kind::kEnd:
        Set(kEnds, i);
        break;
    }
  }
}

void Columns::MarkBoundaries() {
  using Kind = Column::Kind;
  std::size_t last = 0;
  Kind before = Kind::kEnd;  // as if another expansion came first
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Kind kind = columns_[i].kind;
    const bool first = IsLast(before);
    if (first) {
      last = i;
      Set(kStart, i);
      if (kind == Kind::kEntry) {
        Set(kStart, i + 1);
        Set(kStart, i + 2);
      }
    }
    if (first || before == Kind::kSlash || before == Kind::kDeep || kind == Kind::kEntry ||
        kind == Kind::kDeep || kind == Kind::kBelow) {
      // What lies between two boundaries of one expansion is inner.
      for (; last < i; ++last) Set(kInner, last);
      Set(kBoundaries, i);
    }
    before = kind;
  }
}

std::int64_t Columns::MaskCost(const CharSet& set, ProgramClasses& classes) const {
  std::size_t cost = 2 * words_ + 8;
  if (set.kind == CharSet::Kind::kClass) {
    const std::size_t ranges = classes.Get(set.value).ranges().size();
    cost += literals_.size() + ranges * 4;
    for (const auto& [id, column] : classes_) {
      cost += 2 + ranges + pattern_.classes()[id].ranges().size();
    }
  } else {
    cost += classes_.size() * 8;
  }
  return static_cast<std::int64_t>(cost);
}

void Columns::MakeMask(const CharSet& set, ProgramClasses& classes, std::size_t row) {
  std::copy_n(rows_.begin() + static_cast<std::ptrdiff_t>(kAny * words_), words_,
              rows_.begin() + static_cast<std::ptrdiff_t>(row * words_));
  const bool literal = set.kind == CharSet::Kind::kLiteral;
  const auto set_all = [this, row](const auto& range) {
    for (const auto& [key, column] : range) Set(row, column);
  };
  if (literal) {
    set_all(std::ranges::equal_range(literals_, set.value, {}, kKey));
  } else {
    for (const auto& [lo, hi] : classes.Get(set.value).ranges()) {
      set_all(std::ranges::subrange(std::ranges::lower_bound(literals_, lo, {}, kKey),
                                    std::ranges::upper_bound(literals_, hi, {}, kKey)));
    }
  }
  for (auto group = classes_.begin(); group != classes_.end();) {
    const auto end = std::find_if(group, classes_.end(),
                                  [&](const auto& entry) { return entry.first != group->first; });
    const CharClass& own = pattern_.classes()[group->first];
    if (literal ? own.Contains(set.value) : own.Intersects(classes.Get(set.value))) {
      set_all(std::ranges::subrange(group, end));
    }
    group = end;
  }
}

Words Columns::Accepting(const CharSet& set, ProgramClasses& classes, Budget& budget) {
  if (set.kind == CharSet::Kind::kAny) return characters();
  const bool literal = set.kind == CharSet::Kind::kLiteral;
  const bool ascii = literal && set.value < ascii_masks_.size();
  const std::uint64_t key = (std::uint64_t{literal} << 32U) | set.value;
  std::uint32_t& row = ascii ? ascii_masks_[set.value] : masks_[key];
  if (row == 0) {
    if (!budget.Spend(MaskCost(set, classes))) return {};
    row = static_cast<std::uint32_t>(rows_.size() / words_);
    rows_.resize(rows_.size() + words_);
    MakeMask(set, classes, row);
  }
  return RowAt(row);
}

std::size_t Columns::ExpansionAt(std::size_t column) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(columns_ | std::views::take(column), IsLast, &Column::kind));
}

CharClass Columns::SetAt(std::size_t column) const {
  const Column& at = columns_[column];
  if (at.kind == Column::Kind::kClass) return pattern_.classes()[at.value];
  if (at.kind == Column::Kind::kLiteral) return CharClass::Of({{at.value, at.value}});
  IL_CHECK(at.kind == Column::Kind::kAny);
  return CharClass::Any();
}

char32_t Columns::Pick(std::size_t column, const CharSet& set, ProgramClasses& classes) const {
  const Column& at = columns_[column];
  if (at.kind == Column::Kind::kLiteral) return at.value;
  if (set.kind == CharSet::Kind::kLiteral) return set.value;
  const CharClass& other =
      set.kind == CharSet::Kind::kAny ? CharClass::Any() : classes.Get(set.value);
  if (at.kind == Column::Kind::kClass) return pattern_.classes()[at.value].PickCommon(other);
  IL_CHECK(at.kind == Column::Kind::kAny);
  return other.PickCommon(other);
}

std::size_t Columns::SegmentStart(std::size_t column) const {
  while (!Has(boundaries(), column)) --column;
  return column;
}

std::string Columns::AnySegment(std::size_t first, std::size_t last) const {
  std::u32string word;
  std::optional<std::size_t> star;  // where more could be read
  for (std::size_t column = first; column <= last; ++column) {
    if (columns_[column].after_star) star = column - first;
    if (column < last) word.push_back(SetAt(column).PickCommon(CharClass::Any()));
  }
  if (star && (word.empty() || IsDots(word))) word.insert(*star, 1, U'a');
  for (std::size_t i = 0; i < word.size() && IsDots(word); ++i) {
    const CharClass other = SetAt(first + i).Without(U'.');
    if (!other.empty()) word[i] = other.PickCommon(other);
  }
  std::string segment;
  for (const char32_t c : word) AppendUtf8(segment, c);
  IL_CHECK(!word.empty() && !IsDots(word));
  return segment;
}

}  // namespace interlock::glob
