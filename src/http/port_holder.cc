#include "http/port_holder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

namespace interlock::http {
namespace {

// The inodes of the sockets that listen on `port`, from one of the kernel's tables. A row reads
// "sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode …".
std::vector<std::string> ListeningInodes(const char* table, std::uint16_t port) {
  constexpr std::string_view kListen = "0A";
  const std::string wanted = fmt::format(":{:04X}", port);
  std::vector<std::string> inodes;
  std::ifstream file(table);
  std::string row;
  std::getline(file, row);  // the headings
  while (std::getline(file, row)) {
    std::istringstream fields(row);
    std::array<std::string, 10> field;
    for (std::string& one : field) fields >> one;
    if (field[1].ends_with(wanted) && field[3] == kListen) inodes.push_back(field[9]);
  }
  return inodes;
}

bool HoldsSocket(const std::filesystem::path& process, const std::vector<std::string>& inodes) {
  std::error_code error;
  for (std::filesystem::directory_iterator fd(process / "fd", error), end; !error && fd != end;
       fd.increment(error)) {
    std::error_code unreadable;
    const std::string link = std::filesystem::read_symlink(fd->path(), unreadable).string();
    for (const std::string& inode : inodes) {
      if (link == fmt::format("socket:[{}]", inode)) return true;
    }
  }
  return false;
}

}  // namespace

std::string DescribeProcess(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  if (!std::getline(file, name) || name.empty()) return fmt::format("pid {}", pid);
  return fmt::format("{} (pid {})", name, pid);
}

std::string DescribePortHolder(std::uint16_t port) {
  std::vector<std::string> inodes = ListeningInodes("/proc/net/tcp", port);
  for (std::string& inode : ListeningInodes("/proc/net/tcp6", port)) {
    inodes.push_back(std::move(inode));
  }
  if (inodes.empty()) return "";
  std::error_code error;
  for (std::filesystem::directory_iterator process("/proc", error), end; !error && process != end;
       process.increment(error)) {
    const std::string name = process->path().filename().string();
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) continue;
    if (HoldsSocket(process->path(), inodes)) return DescribeProcess(pid);
  }
  return "";
}

}  // namespace interlock::http
