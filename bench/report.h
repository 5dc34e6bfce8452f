#pragma once

#include <cstdio>
#include <string_view>

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

}  // namespace interlock::bench
