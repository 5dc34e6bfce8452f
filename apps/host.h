#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "api/metrics.h"
#include "base/limits.h"
#include "base/result.h"
#include "http/socket.h"

namespace interlock::app {

// What the server asks of the machine.

// Lifts the soft limit of open files to the hard one and returns it: each connection is a file, and
// the usual 1024 are gone before our own limits are reached.
std::uint64_t RaiseOpenFileLimit();

// The limits with as many connections as `files_max` open files allow, refusals and everything else
// that is open counted in: one more would find no descriptor and wait without an answer. At least
// one of each.
Limits FitToOpenFiles(Limits limits, std::uint64_t files_max);

// Refuses (kUnavailable) to start with so few open files that the server could not serve anybody.
// `files_open`: those that are open already.
Result<void> RefuseTooFewFiles(std::uint64_t files_max, std::uint64_t files_open, int io_threads);

// What this process uses, as the kernel's own files in /proc tell: no disk is touched. Nothing
// where they cannot be read, for want of a file descriptor say.
api::ServerNumbers::Process ReadProcessUse();

// Refuses (kCantOpen) a place on a network file system, whose locks and shared memory SQLite cannot
// rely on. `path` need not exist: its nearest existing ancestor is looked at.
Result<void> RefuseNetworkFileSystem(const std::filesystem::path& path);

// "nfs", "cifs", …; "" for a local file system. `magic` is statfs's f_type.
std::string NetworkFileSystemName(std::int64_t magic);

// Whether its mode lets other users read or write the file.
bool OthersMayUse(const std::filesystem::path& file);

// Whether other users may put another file in its place: they may write in its directory, whose
// sticky bit is not set.
bool OthersMayReplace(const std::filesystem::path& file);

// One server per database: two would each believe to be the only writer, and publish events that
// the other's clients never hear. The kernel frees the lock when the process ends, however it ends;
// the file "<database>.lock" stays and names the last holder.
class DatabaseLock {
 public:
  // Creates the last directory of the path when it is missing, and refuses a symlinked one, as
  // db/sqlite/files.h does for the database itself. More missing directories: kCantOpen. Held by
  // another process: kUnavailable with its name and pid.
  static Result<DatabaseLock> Acquire(const std::filesystem::path& database);

 private:
  explicit DatabaseLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace interlock::app
