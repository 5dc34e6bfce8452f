#pragma once

#include <span>

#include "db/migrate.h"
#include "db/sql.h"

namespace interlock::kernel {

// The tables of `ic`, created by the numbered steps in schema/*.sql. Versions begin at 100, so that
// the older program, whose versions end at 39, rejects our files instead of damaging them. Constant
// data, so safe from any thread.
db::Schema KernelSchema();

// All SQL statements of this folder, for the query-plan test.
std::span<const db::NamedSql> Statements();

}  // namespace interlock::kernel
