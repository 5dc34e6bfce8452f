#pragma once

#include <filesystem>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "kernel/database.h"

// Going back to a backup that a migration left beside the database. For a process that has it open
// nowhere else, and one thread.
namespace interlock::kernel {

struct Rollback {
  std::filesystem::path backup;  // what is put back
  int version;                   // its schema version
  std::optional<int> replaced;   // the version of what is there now; nothing when it cannot be read
};

// The newest backup of a version older than the file's; of any version when the file is missing or
// cannot be read. kNotFound when there is none. Changes nothing.
Result<Rollback> PlanRollback(const Database::Options& options, Clock& clock);

// The same for a certain backup.
Result<Rollback> PlanRollbackTo(const Database::Options& options,
                                const std::filesystem::path& backup, Clock& clock);

// Puts the backup's content into the database, in one transaction: who has it open sees the old
// content or the new. What was there is kept first, and returned: as a backup, or, when it could
// not be read, as the file itself under another name. REQUIRES: nobody writes meanwhile, or what
// they write after that copy is lost.
Result<std::filesystem::path> RollBack(const Database::Options& options, const Rollback& plan,
                                       Clock& clock);

}  // namespace interlock::kernel
