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

// Reservations as rows of `coordination_locks`, the table in which `ic` keeps its own. Its columns
// that we know: id, type, owner, scope, pattern, exclusive, reason, ttl_seconds, created_at,
// expires_at, released_at. Others stay NULL, or what their default is: `fence` above all, since
// the numbers of `ic` and ours have nothing to do with each other.
namespace interlock::intercore {

// One row; times in whole seconds since 1970.
struct Lock {
  std::string id;
  std::string owner;    // the agent's id
  std::string scope;    // ScopeOf() the project
  std::string pattern;  // a glob, also when the reservation is of a literal path
  bool exclusive = false;
  std::optional<std::string> reason = {};
  std::int64_t ttl_seconds = 0;  // of the whole lease, rounded up
  std::int64_t created_at = 0;
  std::int64_t expires_at = 0;  // rounded up: it must not look free while it is held
  std::optional<std::int64_t> released_at = {};

  bool operator==(const Lock&) const = default;
};

// An absolute path without what is needless in it ("/a//b/" is "/a/b"); any other text as it is.
std::string ScopeOf(std::string_view project);

Lock LockOf(const domain::Reservation& reservation);

// The row becomes as given, whatever it was; one that is not there is made. A row of another type
// that has its id stays as it is. Doing it again changes nothing.
//
// Gives how many rows the table refused (a constraint that we do not know of). The others are
// written all the same: one bad row must not keep all others from being seen.
Result<std::size_t> WriteLocks(db::Transaction& tx, std::span<const Lock> locks);

// The row of one of our reservations. kForeignSchema: the file has no such table.
Result<std::optional<Lock>> FindLock(db::Connection& connection, std::string_view id);

std::span<const db::NamedSql> Statements();

}  // namespace interlock::intercore
