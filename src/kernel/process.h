#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// Processes of this machine, so named that another one which got the same number later is not
// mistaken for them. Stateless, so safe from any thread.
namespace interlock::kernel {

// What /proc/<pid>/stat says of a process.
struct ProcessStat {
  char state = 0;          // 'R', 'S', …; 'Z' and 'X' have ended
  std::int64_t start = 0;  // ticks from the start of the machine to the start of the process
};

// Nothing when the text is not of that form. The program's name in it may hold anything, brackets
// and blanks included.
std::optional<ProcessStat> ParseProcessStat(std::string_view text);

// Nothing when the process is gone, has ended, or may not be looked at.
std::optional<std::int64_t> ProcessStart(std::int64_t pid);

// False only when it is certain: there is no such process, it has ended and merely waits for its
// parent (a zombie), or the one of that number started at another time. A process of another user
// is alive.
bool IsAlive(std::int64_t pid, std::optional<std::int64_t> start);

}  // namespace interlock::kernel
