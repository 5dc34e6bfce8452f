#include "glob/braces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "glob/pattern.h"

namespace interlock::glob {
namespace {

using Kind = Lexeme::Kind;

// Turns every brace and comma that is no alternation into a literal: unbalanced braces, pairs with
// one branch, commas outside of alternations. Afterwards kOpen, kComma and kClose are well nested.
void SettleBraces(std::vector<Lexeme>& lexemes) {
  struct Open {
    std::size_t at;
    std::vector<std::size_t> commas;
  };
  std::vector<Open> open;
  std::vector<bool> real(lexemes.size(), false);
  for (std::size_t i = 0; i < lexemes.size(); ++i) {
    if (lexemes[i].kind == Kind::kOpen) {
      open.push_back({i, {}});
    } else if (lexemes[i].kind == Kind::kComma && !open.empty()) {
      open.back().commas.push_back(i);
    } else if (lexemes[i].kind == Kind::kClose && !open.empty()) {
      if (!open.back().commas.empty()) {
        real[open.back().at] = true;
        real[i] = true;
        for (const std::size_t comma : open.back().commas) real[comma] = true;
      }
      open.pop_back();
    }
  }
  for (std::size_t i = 0; i < lexemes.size(); ++i) {
    const Kind kind = lexemes[i].kind;
    const bool brace = kind == Kind::kOpen || kind == Kind::kComma || kind == Kind::kClose;
    if (brace && !real[i]) lexemes[i].kind = Kind::kLiteral;
  }
}

// How many sequences there are, and how long they are together. Saturates far above the limits and
// far below overflow.
struct Measure {
  std::uint64_t count;
  std::uint64_t bytes;

  static constexpr std::uint64_t kCap = std::uint64_t{1} << 20U;

  Measure Then(const Measure& next) const {
    return {std::min(count * next.count, kCap),
            std::min(bytes * next.count + next.bytes * count, kCap)};
  }
  Measure Or(const Measure& other) const {
    return {std::min(count + other.count, kCap), std::min(bytes + other.bytes, kCap)};
  }
};

// REQUIRES: settled
Measure MeasureExpansions(const std::vector<Lexeme>& lexemes) {
  constexpr Measure kNone = {0, 0};
  constexpr Measure kEmpty = {1, 0};
  struct Level {
    Measure done;     // the branches before this one
    Measure current;  // the branch so far
  };
  std::vector<Level> levels = {{kNone, kEmpty}};
  for (const Lexeme& lexeme : lexemes) {
    if (lexeme.kind == Kind::kOpen) {
      levels.push_back({kNone, kEmpty});
    } else if (lexeme.kind == Kind::kComma) {
      levels.back() = {levels.back().done.Or(levels.back().current), kEmpty};
    } else if (lexeme.kind == Kind::kClose) {
      const Measure all = levels.back().done.Or(levels.back().current);
      levels.pop_back();
      levels.back().current = levels.back().current.Then(all);
    } else {
      levels.back().current = levels.back().current.Then({1, lexeme.size});
    }
  }
  IL_CHECK(levels.size() == 1);
  return levels.back().current;
}

using Sequences = std::vector<std::vector<Lexeme>>;

Sequences Product(const Sequences& left, const Sequences& right) {
  Sequences product;
  product.reserve(left.size() * right.size());
  for (const auto& first : left) {
    for (const auto& second : right) {
      product.push_back(first);
      product.back().insert(product.back().end(), second.begin(), second.end());
    }
  }
  return product;
}

// REQUIRES: settled and measured, so that everything here is small.
Sequences Expand(const std::vector<Lexeme>& lexemes) {
  struct Level {
    Sequences done;
    Sequences current;
  };
  const auto close_branch = [](Level& level) {
    std::ranges::move(level.current, std::back_inserter(level.done));
    level.current = {{}};
  };
  std::vector<Level> levels;
  levels.push_back({{}, {{}}});
  for (const Lexeme& lexeme : lexemes) {
    if (lexeme.kind == Kind::kOpen) {
      levels.push_back({{}, {{}}});
    } else if (lexeme.kind == Kind::kComma) {
      close_branch(levels.back());
    } else if (lexeme.kind == Kind::kClose) {
      close_branch(levels.back());
      const Sequences all = std::move(levels.back().done);
      levels.pop_back();
      levels.back().current = Product(levels.back().current, all);
    } else {
      for (auto& sequence : levels.back().current) sequence.push_back(lexeme);
    }
  }
  return std::move(levels.back().current);
}

}  // namespace

Result<std::vector<std::vector<Lexeme>>> ExpandBraces(std::vector<Lexeme> lexemes) {
  SettleBraces(lexemes);
  const Measure measure = MeasureExpansions(lexemes);
  if (measure.count > kExpansionsMax) {
    return Error(Errc::kPatternTooComplex,
                 fmt::format("the braces stand for more than {} patterns; send several patterns "
                             "instead, or use a wildcard",
                             kExpansionsMax));
  }
  if (measure.bytes > kExpandedBytesMax) {
    return Error(Errc::kPatternTooComplex,
                 fmt::format("with its braces expanded the pattern has {} bytes, at most {} are "
                             "allowed; send several patterns instead",
                             measure.bytes, kExpandedBytesMax));
  }
  return Expand(lexemes);
}

}  // namespace interlock::glob
