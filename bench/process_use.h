#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <ctime>
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

// Processor time of a process so far, all its threads.
inline double CpuSeconds(pid_t pid) {
  clockid_t clock{};
  timespec now{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &now) != 0) return 0;
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Lets this process have as many connections as the system allows.
inline void RaiseFileLimit() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace interlock::bench
