#include "kernel/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <limits>

#include "base/unique_fd.h"

namespace interlock::kernel {
namespace {

// The index of the start time, counted from the state, which is field 3 in proc(5).
constexpr int kStartField = 22 - 3;

bool IsPid(std::int64_t pid) { return pid > 0 && pid <= std::numeric_limits<pid_t>::max(); }

std::optional<ProcessStat> ReadProcessStat(std::int64_t pid) {
  const UniqueFd file(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return std::nullopt;
  std::array<char, 2048> text;  // enough: about 300 bytes and a name of up to 64
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size <= 0) return std::nullopt;
  return ParseProcessStat({text.data(), static_cast<std::size_t>(size)});
}

bool HasEnded(const ProcessStat& stat) { return stat.state == 'Z' || stat.state == 'X'; }

}  // namespace

std::optional<ProcessStat> ParseProcessStat(std::string_view text) {
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(name_end + 2);
  if (rest.empty()) return std::nullopt;
  ProcessStat stat{.state = rest.front()};
  for (int field = 0; field < kStartField; ++field) {
    const std::size_t blank = rest.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(blank + 1);
  }
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), stat.start);
  if (error != std::errc() || (end != rest.data() + rest.size() && *end != ' ')) {
    return std::nullopt;
  }
  return stat;
}

std::optional<std::int64_t> ProcessStart(std::int64_t pid) {
  if (!IsPid(pid)) return std::nullopt;
  const std::optional<ProcessStat> stat = ReadProcessStat(pid);
  if (!stat || HasEnded(*stat)) return std::nullopt;
  return stat->start;
}

bool IsAlive(std::int64_t pid, std::optional<std::int64_t> start) {
  if (!IsPid(pid)) return false;
  // kill() is needed because /proc may hide processes of other users.
  if (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return false;
  const std::optional<ProcessStat> stat = ReadProcessStat(pid);
  if (!stat) return true;
  return !HasEnded(*stat) && (!start || *start == stat->start);
}

}  // namespace interlock::kernel
