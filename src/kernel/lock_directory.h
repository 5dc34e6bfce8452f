#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/id.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "kernel/lock_base.h"
#include "kernel/lock_owner.h"

namespace interlock::kernel {

// State of the process that holds a lock.
enum class HolderStatus : std::uint8_t {
  kAlive,    // a process of this machine that runs, or may run
  kDead,     // a process of this machine that has ended
  kRemote,   // a process of another machine; its state is unknown
  kUnknown,  // owner.json is missing or invalid
};

// A lock that is held.
struct HeldLock {
  std::string name;
  std::string scope;
  HolderStatus holder = HolderStatus::kUnknown;
  std::optional<LockOwner> owner = {};  // nullopt exactly if the holder is unknown
  std::int64_t since = 0;               // Unix seconds: `created`, or the directory's mtime
};

// Time, randomness and the identity of this process. Must outlive its users.
struct LockContext {
  Clock& clock;
  RandomSource& random;
  HostProcess self;
};

// The directory <base>/<name>, open. It contains the locks of one name; each is a directory <scope>
// with an owner.json in it.
//
// Invariants, for any number of processes, each of which may be killed at any point:
// (1) A lock is created atomically: its directory is created under a temporary name, gets its
//     owner.json, and is then renamed without replacing anything. No process sees it without owner.
// (2) A lock is removed atomically: its directory is renamed away and then deleted.
// (3) A process that removes a lock holds the guard, an flock on this directory that ends with the
//     process, and checks the lock again under it. So only one process removes a lock, and none
//     removes a lock that was acquired again in the meantime.
//
// Scripts acquire a lock with mkdir of its directory, which (1) never replaces, and then write
// owner.json. Temporary names begin with "..", which no scope does, so they are never locks.
//
// For one thread at a time; any number of objects may represent the same directory.
class LockDirectory {
 public:
  // Errors are those of kernel/lock_base.h.
  static Result<LockDirectory> Open(const LockContext& context, const UniqueFd& base,
                                    std::string name, IfMissing if_none);

  int fd() const { return fd_.get(); }

  enum class ClaimResult : std::uint8_t {
    kYes,
    kTaken,
    kLost,  // this directory itself was removed: open it again
  };
  // Tries to acquire the lock for `owner`. Does not wait.
  Result<ClaimResult> Claim(const std::string& scope, const std::string& owner);

  // Returns nullopt if the lock is free.
  Result<std::optional<HeldLock>> Find(const std::string& scope) const;

  enum class RemoveResult : std::uint8_t {
    kYes,
    kNo,               // the lock is free, or `unwanted` returned false
    kHasForeignFiles,  // the lock contains files of another program, so it was not removed
  };
  // Removes the lock if it exists and `unwanted` returns true under the guard. kBusy: another
  // process held the guard until the timeout.
  Result<RemoveResult> RemoveIf(const std::string& scope, Duration timeout,
                                const std::function<bool(const HeldLock&)>& unwanted);

  // Returns every entry with a valid scope name, sorted. An entry need not be a lock.
  Result<std::vector<std::string>> Scopes() const;

  // Deletes temporary directories of that age, which killed processes left behind.
  void DeleteLeftovers(Duration older_than);

 private:
  LockDirectory(const LockContext& context, UniqueFd fd, std::string name)
      : context_(&context), fd_(std::move(fd)), name_(std::move(name)) {}

  std::string PrivateName(std::string_view kind) const;
  std::string NewOwnerText(const std::string& owner) const;
  HolderStatus StatusOf(const LockOwner& owner) const;
  // Returns nullopt if the lock was acquired, else the errno of the failed call.
  std::optional<int> CreateAndRename(const std::string& made, const std::string& scope,
                                     const std::string& owner_text) const;
  // False if the directory contains anything but owner files; it must not be deleted then.
  bool HasOnlyOwnerFiles(const std::string& entry) const;
  void Delete(const std::string& entry) const;

  const LockContext* context_;
  UniqueFd fd_;
  std::string name_;
};

// Returns the distance between the two times. A time in the future means that the clock was set
// back; it says as much about the age as a time in the past.
Duration AgeAt(Timestamp now, std::int64_t since);

// Returns the names in a directory, sorted, without "." and "..".
Result<std::vector<std::string>> EntriesOf(int directory);

}  // namespace interlock::kernel
