#include "cli/nearest.h"

#include <fmt/format.h>

#include <cstddef>

#include "base/edit_distance.h"

namespace interlock::cli {

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
