#include "cli/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace interlock::cli {
namespace {

// How many letters must change, or change places with their neighbour, to make `a` out of `b`.
// Names are short, so it is cheap.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);  // two rows up
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t k = 0; k <= b.size(); ++k) row[k] = k;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t k = 1; k <= b.size(); ++k) {
      const std::size_t changed = above[k - 1] + (a[i - 1] == b[k - 1] ? 0 : 1);
      row[k] = std::min({above[k] + 1, row[k - 1] + 1, changed});
      const bool swapped = i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1];
      if (swapped) row[k] = std::min(row[k], before[k - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view Nearest(std::string_view word, std::span<const std::string_view> names) {
  constexpr std::size_t kTypos = 2;
  constexpr std::size_t kWordMax = 64;
  std::string_view nearest;
  std::size_t best = kTypos + 1;
  if (word.size() > kWordMax) return {};
  for (const std::string_view name : names) {
    const std::size_t distance = EditDistance(word, name);
    if (distance >= best || distance >= name.size()) continue;
    best = distance;
    nearest = name;
  }
  return nearest;
}

std::string DidYouMean(std::string_view word, std::span<const std::string_view> names,
                       std::string_view prefix) {
  const std::string_view nearest = Nearest(word, names);
  if (nearest.empty()) return {};
  return fmt::format("did you mean '{}{}'?", prefix, nearest);
}

}  // namespace interlock::cli
