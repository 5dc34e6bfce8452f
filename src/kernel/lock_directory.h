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

// What is known of who holds a lock.
enum class Holder : std::uint8_t {
  kHere,       // a process of this machine that runs, or may
  kGone,       // a process of this machine that has ended
  kElsewhere,  // on another machine, of whose processes we know nothing
  kUnknown,    // owner.json is missing or makes no sense
};

// A lock that is held.
struct HeldLock {
  std::string name;
  std::string scope;
  Holder holder = Holder::kUnknown;
  std::optional<LockOwner> owner = {};  // nothing exactly when the holder is unknown
  std::int64_t since = 0;               // Unix seconds: `created`, or the directory's own time
};

// Where the time, random names and the identity of this process come from. Must outlive its users.
struct LockWorld {
  Clock& clock;
  RandomSource& random;
  LockHolder self;
};

// <base>/<name>, open: the locks of one name, each a directory <scope> with owner.json in it.
//
// Invariants, with any number of processes, each of which may be killed at any point:
// (1) A lock of ours appears whole: its directory is made under another name, with owner.json
//     in it, and then renamed, never onto anything. It is never seen without an owner.
// (2) A lock disappears whole: its directory is renamed away, and deleted then.
// (3) Whoever removes a lock holds the guard, an flock of this directory that ends with its
//     process, and judges the lock under it. So one of many removes it, and none removes a lock
//     that was taken anew meanwhile.
//
// Scripts claim a lock by mkdir of its directory, which (1) respects, and write owner.json later.
// Names that we make begin with "..", which no scope does, and are nobody's locks.
//
// For one thread at a time; any number of objects may stand for one directory.
class LockDirectory {
 public:
  // Errors as those of kernel/lock_base.h.
  static Result<LockDirectory> Open(const LockWorld& world, const UniqueFd& base, std::string name,
                                    IfNoBase if_none);

  int fd() const { return fd_.get(); }

  enum class Claimed : std::uint8_t {
    kYes,
    kTaken,
    kLost,  // this directory itself was removed: open it again
  };
  // Takes the lock for `owner`.
  Result<Claimed> Claim(const std::string& scope, const std::string& owner);

  // Nothing when nobody holds it.
  Result<std::optional<HeldLock>> Look(const std::string& scope) const;

  enum class Removed : std::uint8_t {
    kYes,
    kNo,               // it is not there, or not unwanted
    kHasForeignFiles,  // which are not ours to remove, so it stays
  };
  // Removes the lock if it is there and `unwanted` says so under the guard. kBusy: another process
  // had the guard all the time.
  Result<Removed> RemoveIf(const std::string& scope, Duration timeout,
                           const std::function<bool(const HeldLock&)>& unwanted);

  // Everything that has a scope's name, in order; it need not be a lock.
  Result<std::vector<std::string>> Scopes() const;

  // Deletes what killed processes left half made or half deleted, if it is that old.
  void ClearRemains(Duration older_than);

 private:
  LockDirectory(const LockWorld& world, UniqueFd fd, std::string name)
      : world_(&world), fd_(std::move(fd)), name_(std::move(name)) {}

  std::string PrivateName(std::string_view kind) const;
  std::string NewOwnerText(const std::string& owner) const;
  Holder Judge(const LockOwner& owner) const;
  // Nothing when the lock is ours, or the errno of what failed.
  std::optional<int> MakeAndRename(const std::string& made, const std::string& scope,
                                   const std::string& owner_text) const;
  // False for a directory with anything in it that no lock has: it is not ours to remove.
  bool HoldsOnlyOurs(const std::string& entry) const;
  void Delete(const std::string& entry) const;

  const LockWorld* world_;
  UniqueFd fd_;
  std::string name_;
};

// How long ago that was. A time in the future says that the clock was set, and as much about the
// age as one in the past.
Duration AgeAt(Timestamp now, std::int64_t since);

// The names in a directory, in order, without "." and "..".
Result<std::vector<std::string>> EntriesOf(int directory);

}  // namespace interlock::kernel
