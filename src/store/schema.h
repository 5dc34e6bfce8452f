#pragma once

#include <span>

#include "db/migrate.h"
#include "db/sql.h"

namespace interlock::store {

// The server's tables, as the numbered steps in schema/*.sql; db::Migrator brings a file to them.
db::Schema ServerSchema();

// Every statement that this folder can run, for the query-plan test.
std::span<const db::NamedSql> Statements();

}  // namespace interlock::store
