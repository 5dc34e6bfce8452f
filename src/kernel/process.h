#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// Processes of this machine. A process is identified by pid and start time, so that a later process
// with the same pid is not mistaken for it. Stateless, so safe from any thread.
namespace interlock::kernel {

// The fields of /proc/<pid>/stat that are used here.
struct ProcessStat {
  char state = 0;          // 'R', 'S', …; 'Z' and 'X' mean that the process has ended
  std::int64_t start = 0;  // clock ticks between boot and the start of the process
};

// Returns nullopt if the text is malformed. The program name in it may contain any character,
// including brackets and spaces.
std::optional<ProcessStat> ParseProcessStat(std::string_view text);

// Returns nullopt if the process does not exist, has ended, or must not be inspected.
std::optional<std::int64_t> ProcessStart(std::int64_t pid);

// False only if the process is certainly dead: no process has this pid, it is a zombie, or the
// process with this pid started at another time. A process of another user is alive.
bool IsAlive(std::int64_t pid, std::optional<std::int64_t> start);

}  // namespace interlock::kernel
