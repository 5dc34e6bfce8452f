#pragma once

#include <span>

#include "db/migrate.h"
#include "db/sql.h"

namespace interlock::kernel {

// The program that `ic` replaces. Its files have schema versions 1 to 39 and no application id; the
// table `state` identifies them. Lifting such a file adds the missing columns and removes nothing.
// The callbacks run in the thread of the migration.
db::Predecessor OlderProgram();

std::span<const db::NamedSql> LiftStatements();

}  // namespace interlock::kernel
