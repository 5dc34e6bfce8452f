#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

// The owner of a lock, as stored in owner.json. Scripts read and write these files too, so the
// format is an interface:
//
//   {"pid":4711,"host":"build7","owner":"4711:build7","created":1767323045,"start":88211}
//
// `start` may be absent. An empty host means this machine. Pure functions.
namespace interlock::kernel {

struct LockOwner {
  std::int64_t pid = 0;
  std::string host = {};
  std::string owner = {};                  // must be given again to release the lock
  std::int64_t created = 0;                // Unix seconds
  std::optional<std::int64_t> start = {};  // start time of the process, see kernel/process.h

  bool operator==(const LockOwner&) const = default;
};

std::string LockOwnerText(const LockOwner& owner);

// kCorrupt: the text does not have this format.
Result<LockOwner> ParseLockOwner(std::string_view text);

// The process that an owner name stands for. "4711:build7" names process and host, "4711" a process
// of this machine. Any other name ("alice", "agent:blue") stands for `self`.
struct HostProcess {
  std::int64_t pid = 0;
  std::string host = {};
};
HostProcess ProcessOfOwner(std::string_view owner, const HostProcess& self);

// Compares up to the first dot: scripts may use either "build7" or "build7.example.org".
bool IsSameHost(std::string_view a, std::string_view b);

}  // namespace interlock::kernel
