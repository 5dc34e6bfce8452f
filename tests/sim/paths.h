#pragma once

#include <bitset>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace interlock::sim {

// The few patterns that simulated agents reserve, and which of a few paths each of them matches, by
// the slow matcher of tests/testing/slow_glob.h. The paths are chosen so that two patterns have one
// of them in common if and only if they overlap at all; promises_test.cc holds that against glob/.
class PathSpace {
 public:
  static constexpr std::size_t kPathsMax = 640;
  using Paths = std::bitset<kPathsMax>;

  // The only one there is: it is a constant.
  static const PathSpace& Get();

  std::span<const std::string_view> patterns() const;
  // REQUIRES: one of patterns().
  std::size_t IndexOf(std::string_view pattern) const;
  const Paths& PathsOf(std::size_t pattern) const { return paths_of_.at(pattern); }
  // The same without what is only below a path that has no wildcards.
  const Paths& NamedBy(std::size_t pattern) const { return named_by_.at(pattern); }
  bool Overlap(std::size_t a, std::size_t b) const { return (PathsOf(a) & PathsOf(b)).any(); }

 private:
  PathSpace();
  std::vector<Paths> paths_of_;  // by pattern
  std::vector<Paths> named_by_;
};

}  // namespace interlock::sim
