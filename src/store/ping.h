#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"

namespace interlock::store {

// Does the database answer? Returns the log id (store/meta.h), "" if there is none. It is read from
// the disk, not from the connection's cache, so the ping finds
// - a file that was cut short, or overwritten with bytes that are no database: an error;
// - a file that was overwritten with another database: another log id.
// It cannot find a backup of the same database, nor a change to pages that the -wal file holds too:
// SQLite reads those from there. A file that was moved away, removed or replaced is found before
// any read begins (see db/sqlite/read_pool.h). REQUIRES: a snapshot is open.
Result<std::string> Ping(db::Connection& connection);

std::span<const db::NamedSql> PingStatements();

}  // namespace interlock::store
