#pragma once

#include <span>

#include "db/migrate.h"
#include "db/sql.h"

namespace interlock::kernel {

// The tables of `ic`, as the numbered steps in schema/*.sql. Versions begin at 100, so that the
// older program, which counts to 39, refuses our files instead of damaging them. Constant data, as
// the statements are: safe from any thread.
db::Schema KernelSchema();

// Every statement that this folder can run, for the query-plan test.
std::span<const db::NamedSql> Statements();

}  // namespace interlock::kernel
