#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/reservation.h"

// Reservations as rows of `coordination_locks`, the table of `ic` for its own locks. The server
// knows these columns: id, type, owner, scope, pattern, exclusive, reason, ttl_seconds, created_at,
// expires_at, released_at. Other columns keep their default; `fence` stays NULL, because the fence
// numbers of `ic` and of the server are independent.
namespace interlock::intercore {

// One row. Times are Unix seconds.
struct Lock {
  std::string id;
  std::string owner;    // the agent's id
  std::string scope;    // ScopeOf(project)
  std::string pattern;  // a glob, even if the reservation is for a literal path
  bool exclusive = false;
  std::optional<std::string> reason = {};
  std::int64_t ttl_seconds = 0;  // length of the whole lease, rounded up
  std::int64_t created_at = 0;
  std::int64_t expires_at = 0;  // rounded up, so that a held lock never looks free
  std::optional<std::int64_t> released_at = {};

  bool operator==(const Lock&) const = default;
};

// Returns a normalised absolute path ("/a//b/" becomes "/a/b"), or any other text unchanged.
std::string ScopeOf(std::string_view project);

Lock LockOf(const domain::Reservation& reservation);

// Inserts or replaces each row. A row with the same id but another type stays unchanged.
// Idempotent.
//
// Returns the number of rows that the table rejected (an unknown constraint). The other rows are
// written anyway: one bad row must not hide the others.
Result<std::size_t> WriteLocks(db::Transaction& tx, std::span<const Lock> locks);

// Returns the row of a reservation. kForeignSchema: the file has no such table.
Result<std::optional<Lock>> FindLock(db::Connection& connection, std::string_view id);

std::span<const db::NamedSql> Statements();

}  // namespace interlock::intercore
