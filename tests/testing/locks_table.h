#pragma once

#include "db/migrate.h"

namespace interlock::testing {

// A database of `ic`: the table into which reservations are mirrored, with a column that newer
// files have, and one more of its tables.
inline constexpr char kLocksTable[] =
    "CREATE TABLE coordination_locks ("
    "id TEXT PRIMARY KEY, "
    "type TEXT NOT NULL CHECK (type IN ('file_reservation', 'named_lock', 'write_set')), "
    "owner TEXT NOT NULL, scope TEXT NOT NULL, pattern TEXT NOT NULL, "
    "exclusive INTEGER NOT NULL DEFAULT 1, reason TEXT, ttl_seconds INTEGER, "
    "created_at INTEGER NOT NULL, expires_at INTEGER, released_at INTEGER, "
    "dispatch_id TEXT, run_id TEXT, fence INTEGER);"
    "CREATE INDEX coordination_locks_active ON coordination_locks (scope, type) "
    "WHERE released_at IS NULL;"
    "CREATE TABLE state (key TEXT, scope_id TEXT, payload TEXT, PRIMARY KEY (key, scope_id));";

inline constexpr db::MigrationStep kLocksSteps[] = {{1, kLocksTable}};

}  // namespace interlock::testing
