#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

// Who holds a lock, as owner.json says it. Scripts read and write these files too, so the text is
// an interface:
//
//   {"pid":4711,"host":"build7","owner":"4711:build7","created":1767323045,"start":88211}
//
// `start` may be absent. A host that is empty names no other machine, so it is this one. Pure
// functions.
namespace interlock::kernel {

struct LockOwner {
  std::int64_t pid = 0;
  std::string host = {};
  std::string owner = {};                  // what must be said again to release the lock
  std::int64_t created = 0;                // Unix seconds
  std::optional<std::int64_t> start = {};  // of the process, see kernel/process.h

  bool operator==(const LockOwner&) const = default;
};

std::string LockOwnerText(const LockOwner& owner);

// kCorrupt: not such a text.
Result<LockOwner> ParseLockOwner(std::string_view text);

// The process and machine that an owner's name stands for: "4711:build7" names both, "4711" one of
// this machine. Any other name ("alice", "agent:blue") stands for `self`.
struct LockHolder {
  std::int64_t pid = 0;
  std::string host = {};
};
LockHolder HolderOf(std::string_view owner, const LockHolder& self);

// Up to the first dot: one machine is "build7" to one script and "build7.example.org" to another.
bool IsSameHost(std::string_view a, std::string_view b);

}  // namespace interlock::kernel
