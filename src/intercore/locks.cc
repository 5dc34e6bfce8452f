#include "intercore/locks.h"

#include <fmt/format.h>

#include <filesystem>

#include "glob/pattern.h"

namespace interlock::intercore {
namespace {

constexpr std::int64_t kMicrosPerSecond = 1'000'000;

// The table's primary key.
constexpr db::Sql kWrite =
    "INSERT INTO coordination_locks (id, type, owner, scope, pattern, exclusive, reason, "
    "ttl_seconds, created_at, expires_at, released_at) "
    "VALUES (?1, 'file_reservation', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) "
    "ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, scope = excluded.scope, "
    "pattern = excluded.pattern, exclusive = excluded.exclusive, reason = excluded.reason, "
    "ttl_seconds = excluded.ttl_seconds, created_at = excluded.created_at, "
    "expires_at = excluded.expires_at, released_at = excluded.released_at "
    "WHERE coordination_locks.type = excluded.type";

// The table's primary key. The casts are needed because the column types belong to another program.
constexpr db::Sql kFind =
    "SELECT CAST(id AS TEXT), CAST(owner AS TEXT), CAST(scope AS TEXT), CAST(pattern AS TEXT), "
    "CAST(exclusive AS INTEGER), CAST(reason AS TEXT), CAST(ttl_seconds AS INTEGER), "
    "CAST(created_at AS INTEGER), CAST(expires_at AS INTEGER), CAST(released_at AS INTEGER) "
    "FROM coordination_locks WHERE id = ?1 AND type = 'file_reservation'";

constexpr db::NamedSql kStatements[] = {IL_SQL(kWrite), IL_SQL(kFind)};

// Round down and up, also for negative numbers.
std::int64_t FloorSeconds(std::int64_t micros) {
  const std::int64_t seconds = micros / kMicrosPerSecond;
  return micros % kMicrosPerSecond < 0 ? seconds - 1 : seconds;
}
std::int64_t CeilSeconds(std::int64_t micros) { return -FloorSeconds(-micros); }

std::string PatternOf(const domain::Reservation& reservation) {
  if (!reservation.literal) return reservation.pattern;
  const auto literal = glob::Pattern::Literal(reservation.pattern);
  return literal.ok() ? literal->canonical() : reservation.pattern;
}

Lock LockFrom(const db::Row& row) {
  return {.id = row.String(0),
          .owner = row.String(1),
          .scope = row.String(2),
          .pattern = row.String(3),
          .exclusive = row.Bool(4),
          .reason = row.OptionalString(5),
          .ttl_seconds = row.Int(6),
          .created_at = row.Int(7),
          .expires_at = row.Int(8),
          .released_at = row.OptionalInt(9)};
}

// True if the row itself cannot be stored; the file is fine.
bool IsRefusal(Errc code) { return code == Errc::kConstraint || code == Errc::kTooBig; }

}  // namespace

std::string ScopeOf(std::string_view project) {
  if (!project.starts_with('/')) return std::string(project);
  std::string path = std::filesystem::path(project).lexically_normal().string();
  while (path.starts_with("//")) path.erase(0, 1);
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

Lock LockOf(const domain::Reservation& reservation) {
  Lock lock{.id = reservation.id,
            .owner = reservation.agent,
            .scope = ScopeOf(reservation.project),
            .pattern = PatternOf(reservation),
            .exclusive = reservation.access == domain::Access::kExclusive,
            .ttl_seconds = CeilSeconds((reservation.expires_at - reservation.created_at).count()),
            .created_at = FloorSeconds(reservation.created_at.micros),
            .expires_at = CeilSeconds(reservation.expires_at.micros)};
  if (!reservation.reason.empty()) lock.reason = reservation.reason;
  if (reservation.released_at) lock.released_at = FloorSeconds(reservation.released_at->micros);
  return lock;
}

Result<std::size_t> WriteLocks(db::Transaction& tx, std::span<const Lock> locks) {
  std::size_t refused = 0;
  for (const Lock& lock : locks) {
    const auto written =
        tx->Run(kWrite, lock.id, lock.owner, lock.scope, lock.pattern, lock.exclusive, lock.reason,
                lock.ttl_seconds, lock.created_at, lock.expires_at, lock.released_at);
    if (written.ok()) continue;
    if (!IsRefusal(written.error().code())) return written.error();
    ++refused;
  }
  return refused;
}

Result<std::optional<Lock>> FindLock(db::Connection& connection, std::string_view id) {
  auto found = connection.One(kFind, LockFrom, id);
  // kInternal: SQLite cannot compile the statement, so the table or a column is missing.
  if (found.ok() || found.error().code() != Errc::kInternal) return found;
  return Error(Errc::kForeignSchema,
               fmt::format("the file has no table coordination_locks of ic ({}): run 'ic init' in "
                           "the directory of the file, or name another one with --intercore-db",
                           found.error().message()));
}

std::span<const db::NamedSql> Statements() { return kStatements; }

}  // namespace interlock::intercore
