#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace interlock::bench {

// What a process of this machine has in memory; 0 when it is gone.
inline double ResidentMiB(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

}  // namespace interlock::bench
