#pragma once

#include <span>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"

namespace interlock::store {

// Does the database answer? Looks one key of `meta` up, which takes a snapshot and walks from the
// first page of the file to the table. Whether there is such a key does not matter.
//
// A connection rereads a page only after another one has changed the file, so what it shows is:
// - a file that was cut short: at once;
// - a file that was overwritten: at once on a connection that has not pinged yet, on the others
//   after the next commit.
// A file that was moved away, removed or replaced is found before any read begins (see
// db/sqlite/read_pool.h).
Result<void> Ping(db::Connection& connection);

std::span<const db::NamedSql> PingStatements();

}  // namespace interlock::store
