#include "sim/paths.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"
#include "testing/slow_glob.h"

namespace interlock::sim {
namespace {

constexpr std::array<std::string_view, 16> kPatterns = {
    "a/x",    "a/y",     "a/*",    "a/**", "b/x", "b/*.c", "b/**",  "**/x",
    "**/*.c", "{a,b}/x", "[ab]/y", "a/?",  "top", "*",     "b/x.c", "a/[!x]*"};

constexpr std::array<std::string_view, 8> kSegments = {"a",   "b",   "x",   "y",
                                                       "x.c", "y.c", "top", "yy"};

// Every path of one to three segments.
std::vector<std::string> MakePaths() {
  std::vector<std::string> paths;
  std::vector<std::string> longest = {""};
  for (int depth = 0; depth < 3; ++depth) {
    std::vector<std::string> longer;
    longer.reserve(longest.size() * kSegments.size());
    for (const std::string& path : longest) {
      for (const std::string_view segment : kSegments) {
        longer.push_back(path.empty() ? std::string(segment) : path + "/" + std::string(segment));
      }
    }
    paths.insert(paths.end(), longer.begin(), longer.end());
    longest = std::move(longer);
  }
  return paths;
}

}  // namespace

PathSpace::PathSpace() {
  const std::vector<std::string> paths = MakePaths();
  IL_CHECK(paths.size() <= kPathsMax);
  paths_of_.reserve(kPatterns.size());
  named_by_.reserve(kPatterns.size());
  for (const std::string_view pattern : kPatterns) {
    const auto slow = testing::SlowGlob::Parse(pattern);
    IL_CHECK(slow.has_value());
    Paths matched;
    Paths named;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      matched[i] = slow->Matches(paths[i]);
      named[i] = slow->Names(paths[i]);
    }
    paths_of_.push_back(matched);
    named_by_.push_back(named);
  }
}

const PathSpace& PathSpace::Get() {
  static const PathSpace space;
  return space;
}

std::span<const std::string_view> PathSpace::patterns() const { return kPatterns; }

std::size_t PathSpace::IndexOf(std::string_view pattern) const {
  const auto found = std::ranges::find(kPatterns, pattern);
  IL_CHECK(found != kPatterns.end());
  return static_cast<std::size_t>(found - kPatterns.begin());
}

}  // namespace interlock::sim
