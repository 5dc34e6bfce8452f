#pragma once

#include <cstdlib>
#include <string>
#include <vector>

namespace interlock::testing {

// How often a test that kills processes does so: as `./dev test crash --cycles=N` says.
inline int CyclesOr(int otherwise) {
  const char* const text = std::getenv("IL_CYCLES");
  return text != nullptr ? std::atoi(text) : otherwise;
}

// What was wrong after one of them.
inline std::string Lines(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return all;
}

}  // namespace interlock::testing
