#include "glob/overlap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "glob/columns.h"
#include "glob/product.h"
#include "glob/program.h"

namespace interlock::glob {
namespace {

using Witness = std::optional<std::string>;

// Up to here matching a path directly is cheaper than setting up rows.
constexpr std::size_t kDirectStepsMax = 1U << 16U;

// True when no path begins with what every match of `a` and every match of `b` begins with.
bool PrefixesDiffer(const Expansion& a, const Expansion& b) {
  const bool a_first = a.literal_prefix.size() <= b.literal_prefix.size();
  const Expansion& shorter = a_first ? a : b;
  const std::string_view text = shorter.literal_prefix;
  const std::string_view longer = (a_first ? b : a).literal_prefix;
  return shorter.is_literal ? !IsAtOrBelow(longer, text) : !longer.starts_with(text);
}

// True when no path ends with both.
bool SuffixesDiffer(std::string_view a, std::string_view b) {
  const std::size_t common = std::min(a.size(), b.size());
  return a.substr(a.size() - common) != b.substr(b.size() - common);
}

// What tells most patterns apart at once.
bool AllLiteralPartsDiffer(const Pattern& a, const Pattern& b) {
  return std::ranges::all_of(a.expansions(), [&b](const Expansion& x) {
    return std::ranges::all_of(b.expansions(), [&x](const Expansion& y) {
      return PrefixesDiffer(x, y) || SuffixesDiffer(x.literal_suffix, y.literal_suffix);
    });
  });
}

// What running `rows` over `columns` costs, about.
std::size_t Cost(const Pattern& rows, const Pattern& columns) {
  return rows.token_count() * (columns.token_count() / 64 + 1);
}

Result<Witness> AsWitness(Result<std::string> path) {
  IL_TRY(std::string found, std::move(path));
  return Witness(std::move(found));
}

Result<Witness> Compare(const Pattern& rows, const Pattern& all, Budget& budget) {
  if (!budget.Spend(static_cast<std::int64_t>(16 * (rows.token_count() + all.token_count())))) {
    return TooComplex();
  }
  Columns columns(all, all.expansions());
  ProgramClasses classes(rows.classes());
  for (const Expansion& expansion : rows.expansions()) {
    const std::vector<Op> program = Compile(expansion, classes);
    IL_TRY(const auto found, FindCommon(program, classes, columns, budget));
    if (!found) continue;
    if (all.expansions().size() == 1)
      return AsWitness(MakeWitness(program, classes, columns, budget));
    Columns one(all, all.expansions().subspan(*found, 1));
    return AsWitness(MakeWitness(program, classes, one, budget));
  }
  return Witness();
}

}  // namespace

Result<Witness> Overlap(const Pattern& a, const Pattern& b, Budget& budget) {
  const std::string* const path_a = a.literal_path();
  const std::string* const path_b = b.literal_path();
  if (path_a != nullptr && path_b != nullptr) {
    if (!budget.Spend(1)) return TooComplex();
    const std::string& deeper = path_a->size() < path_b->size() ? *path_b : *path_a;
    const std::string& other = path_a->size() < path_b->size() ? *path_a : *path_b;
    return IsAtOrBelow(deeper, other) ? Witness(deeper) : Witness();
  }
  if (!budget.Spend(static_cast<std::int64_t>(a.expansions().size() * b.expansions().size() / 4) +
                    1)) {
    return TooComplex();
  }
  if (AllLiteralPartsDiffer(a, b)) return Witness();
  const std::size_t steps = a.token_count() * b.token_count();
  const std::string* const path = path_a != nullptr ? path_a : path_b;
  if (path != nullptr && steps <= kDirectStepsMax) {
    // Most paths are told apart by their first characters.
    if (!budget.Spend(static_cast<std::int64_t>(steps / 16 + 1))) return TooComplex();
    const Pattern& other = path_a != nullptr ? b : a;
    if (other.Matches(*path)) return Witness(*path);
    if (!other.MatchesBelow(*path)) return Witness();
  }

  // The cheaper way round; of two equal ones always the same, whatever the order of arguments.
  const auto rank = [](const Pattern& rows, const Pattern& columns) {
    return std::tuple(Cost(rows, columns), std::string_view(rows.canonical()));
  };
  const bool a_first = rank(a, b) <= rank(b, a);
  IL_TRY(Witness witness, a_first ? Compare(a, b, budget) : Compare(b, a, budget));
  if (witness && steps <= kDirectStepsMax) IL_CHECK(a.Matches(*witness) && b.Matches(*witness));
  return witness;
}

Result<Witness> Overlap(const Pattern& a, const Pattern& b) {
  Budget budget;
  return Overlap(a, b, budget);
}

}  // namespace interlock::glob
