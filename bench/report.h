#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace interlock::bench {

// One line of `./dev bench`: a figure, the limit measured in the same run, and what they give.
// Machines are noisy, so only the ratio is ever compared between runs.
struct Line {
  std::string_view name;   // "group commit, 64 writers"
  double figure;           // what we measured
  std::string_view unit;   // "writes/s", "us", "MiB"
  std::string_view limit;  // what it is held against: "one commit per write"
  double limit_figure;     // the same unit; 0 = no limit was measured
};

// Prints the line as one JSON object on stdout; `./dev bench` makes the table.
// REQUIRES: the texts hold no quote or backslash.
inline void Report(const Line& line) {
  std::printf(
      "{\"name\":\"%.*s\",\"figure\":%.6g,\"unit\":\"%.*s\",\"limit\":\"%.*s\","
      "\"limit_figure\":%.6g,\"ratio\":%.4g}\n",
      static_cast<int>(line.name.size()), line.name.data(), line.figure,
      static_cast<int>(line.unit.size()), line.unit.data(), static_cast<int>(line.limit.size()),
      line.limit.data(), line.limit_figure,
      line.limit_figure != 0 ? line.figure / line.limit_figure : 0.0);
  std::fflush(stdout);
}

// Of several turns that each measured a figure and its limit side by side: the one whose ratio is
// in the middle. What a machine has to give changes within seconds, so only these two compare.
// REQUIRES: as many figures as limits, one at least.
inline std::size_t MiddleTurn(std::span<const double> figures, std::span<const double> limits) {
  std::vector<std::pair<double, std::size_t>> by_ratio;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    by_ratio.emplace_back(figures[i] / limits[i], i);
  }
  std::ranges::sort(by_ratio);
  return by_ratio[by_ratio.size() / 2].second;
}

// Reports the middle turn, and beside it the fastest turn of each side: what else runs on a machine
// makes turns slower, so these two are near to what it gives when it is left alone, though they did
// not stand side by side. REQUIRES: as MiddleTurn(); all are rates.
inline void ReportTurns(std::string_view name, std::span<const double> figures,
                        std::string_view unit, std::string_view limit,
                        std::span<const double> limits) {
  const std::size_t middle = MiddleTurn(figures, limits);
  Report({name, figures[middle], unit, limit, limits[middle]});
  const std::string fastest = std::string(name) + ", fastest turn of each";
  Report({fastest, std::ranges::max(figures), unit, limit, std::ranges::max(limits)});
}

}  // namespace interlock::bench
