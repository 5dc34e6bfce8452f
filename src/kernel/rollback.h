#pragma once

#include <filesystem>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "kernel/database.h"

// Restores a backup that a migration left beside the database. The process must have no connection
// to the database. For one thread.
namespace interlock::kernel {

struct RestorePlan {
  std::filesystem::path backup;  // the file to restore
  int version;                   // its schema version
  std::optional<int> replaced;   // version of the current file; nullopt if it cannot be read
};

// Chooses the newest backup with an older version than the current file. If the current file is
// missing or unreadable, the version does not matter. kNotFound: no such backup. Changes nothing.
Result<RestorePlan> PlanRestore(const Database::Options& options, Clock& clock);

// Plans the restore of the given backup.
Result<RestorePlan> PlanRestoreFrom(const Database::Options& options,
                                    const std::filesystem::path& backup, Clock& clock);

// Copies the backup into the database in one transaction, so other processes see either the old or
// the new content. The old content is kept, and its path returned: as a backup, or, if the file
// cannot be read, as the renamed file. REQUIRES: no process writes in the meantime; such writes
// would be lost.
Result<std::filesystem::path> RestoreBackup(const Database::Options& options,
                                            const RestorePlan& plan, Clock& clock);

}  // namespace interlock::kernel
