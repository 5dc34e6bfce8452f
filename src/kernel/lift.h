#pragma once

#include <span>

#include "db/migrate.h"
#include "db/sql.h"

namespace interlock::kernel {

// The program that `ic` replaces: its files have versions 1 to 39 and no mark. They are known by
// their table `state`; what their tables lack is added column by column, and nothing is removed.
// Its functions run in the thread of the migration.
db::Predecessor OlderProgram();

std::span<const db::NamedSql> LiftStatements();

}  // namespace interlock::kernel
