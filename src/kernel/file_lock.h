#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/id.h"
#include "base/result.h"
#include "kernel/lock_base.h"
#include "kernel/lock_directory.h"
#include "kernel/lock_owner.h"
#include "kernel/lock_watch.h"

// Locks as directories, for scripts that need mutual exclusion without a database. A lock is held
// while the directory <base>/<name>/<scope> exists; the owner.json in it names the holder.
// kernel/lock_directory.h describes how a lock is created and removed.
namespace interlock::kernel {

struct LockName {
  std::string name;
  std::string scope;
};

enum class ReleaseResult : std::uint8_t { kYes, kNotHeld, kNotOwner };

// All locks under one base directory. Expected results (held, not held, not the owner) are return
// values, never errors. kInvalidArgument: a name or scope is empty, is "." or "..", or contains
// '/', '\', "..", a control character or invalid UTF-8.
//
// For one thread at a time; any number of objects may use the same base.
class FileLocks {
 public:
  struct Options {
    std::string base = std::string(kLockBaseDefault);
    LockWatch::Method wait_method = LockWatch::Method::kEvents;
  };

  // Minimum age of a lock before it is taken over from a dead holder.
  static constexpr Duration kGrace = std::chrono::seconds(5);

  // `self` identifies this process. `clock` and `random` must outlive this object.
  FileLocks(Clock& clock, RandomSource& random, HostProcess self, Options options)
      : context_{.clock = clock, .random = random, .self = std::move(self)},
        options_(std::move(options)) {}

  // Tries at least once, then waits up to `timeout`. Returns nullopt if the lock was acquired, else
  // the lock that blocks it. A lock is taken over only if its holder was a process of this machine
  // that has ended, and only after kGrace. A lock with an unknown holder is removed only by
  // Clean(). An empty `owner` means "<pid>:<host>" of this process.
  Result<std::optional<HeldLock>> Acquire(const LockName& lock, std::string_view owner,
                                          Duration timeout);

  // Releases the lock if `owner` acquired it. An empty `owner` has the same meaning as above.
  Result<ReleaseResult> Release(const LockName& lock, std::string_view owner);

  // Returns the locks that are at least that old, sorted by name. Empty if the base is missing.
  Result<std::vector<HeldLock>> List(Duration older_than = Duration(0));

  // Removes the locks of List() whose holder has ended or is unknown, and returns their number.
  // Also deletes the temporary directories that killed processes left behind.
  Result<std::size_t> Clean(Duration older_than);

 private:
  Result<LockDirectory> Open(const std::string& name) const;    // kNotFound if it does not exist
  Result<LockDirectory> Create(const std::string& name) const;  // opens an existing one
  // Calls `fn` for each lock directory with the scopes in it.
  Result<void> ForEach(
      const std::function<void(LockDirectory&, const std::vector<std::string>&)>& fn) const;
  std::string OwnerName(std::string_view owner) const;
  bool IsOlder(const HeldLock& held, Duration age) const;
  bool IsAbandoned(const HeldLock& held) const;
  Duration RecheckDelay(const HeldLock& held) const;

  const LockContext context_;
  const Options options_;
};

}  // namespace interlock::kernel
