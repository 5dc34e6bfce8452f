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

// Locks as directories, for scripts that must exclude each other when there is no database or a
// broken one. A lock is held as long as there is a directory <base>/<name>/<scope>, and
// owner.json in it says by whom. kernel/lock_directory.h says how it comes and goes.
namespace interlock::kernel {

struct LockName {
  std::string name;
  std::string scope;
};

enum class Released : std::uint8_t { kYes, kNotHeld, kNotOwner };

// All locks of one base. No error of any of these is an expected outcome; kInvalidArgument is for
// names that are empty, "." or "..", or hold '/', '\', "..", control characters or bytes that are
// not UTF-8.
//
// For one thread at a time; any number of objects may use one base.
class FileLocks {
 public:
  struct Options {
    std::string base = std::string(kLockBaseDefault);
    LockWatch::By wait_by = LockWatch::By::kEvents;
  };

  // No lock is taken from a dead holder earlier than this after it was made.
  static constexpr Duration kGrace = std::chrono::seconds(5);

  // `self` is this process. Clock and randomness must outlive it.
  FileLocks(Clock& clock, RandomSource& random, LockHolder self, Options options)
      : world_{.clock = clock, .random = random, .self = std::move(self)},
        options_(std::move(options)) {}

  // Nothing when it is ours now; who holds it when it was not to be had in time. It is tried at
  // least once. A lock is taken over only from a process of this machine that has ended, and not
  // before kGrace; one whose holder is unknown is left to Clean().
  // `owner` empty: "<pid>:<host>" of this process.
  Result<std::optional<HeldLock>> Acquire(const LockName& lock, std::string_view owner,
                                          Duration timeout);

  // Only what was acquired in the name of `owner` (empty: as above).
  Result<Released> Release(const LockName& lock, std::string_view owner);

  // All that are at least that old, in the order of their names. None when there is no base.
  Result<std::vector<HeldLock>> List(Duration older_than = Duration(0));

  // Removes those of List() whose holder has ended or is unknown, and says how many. Clears away
  // what killed processes left half done, too.
  Result<std::size_t> Clean(Duration older_than);

 private:
  Result<LockDirectory> Open(const std::string& name) const;  // kNotFound: there is none
  Result<LockDirectory> Make(const std::string& name) const;  // opens it too if it is there
  // Calls `fn` with each lock directory and the scopes in it, one after the other.
  Result<void> ForEach(
      const std::function<void(LockDirectory&, const std::vector<std::string>&)>& fn) const;
  std::string OwnerName(std::string_view owner) const;
  bool IsOlder(const HeldLock& held, Duration age) const;
  bool IsAbandoned(const HeldLock& held) const;
  Duration UntilWorthALook(const HeldLock& held) const;

  const LockWorld world_;
  const Options options_;
};

}  // namespace interlock::kernel
