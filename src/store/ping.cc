#include "store/ping.h"

#include <utility>

namespace interlock::store {
namespace {

// Frees the cached pages. No table.
constexpr db::Sql kForgetPages = "PRAGMA shrink_memory";

// meta's primary key.
constexpr db::Sql kPing = "SELECT value FROM meta WHERE key = 'log_id'";

constexpr db::NamedSql kStatements[] = {IL_SQL(kForgetPages), IL_SQL(kPing)};

}  // namespace

Result<std::string> Ping(db::Connection& connection) {
  IL_TRY_VOID(connection.Run(kForgetPages));
  auto log_id = connection.One(kPing, [](const db::Row& row) { return row.String(0); });
  if (log_id.ok()) return std::move(*log_id).value_or("");
  if (log_id.error().code() != Errc::kInternal) return std::move(log_id).error();
  // The statement is right, so the table is gone.
  return Error(Errc::kCorrupt, "the database has lost its tables: " + log_id.error().message());
}

std::span<const db::NamedSql> PingStatements() { return kStatements; }

}  // namespace interlock::store
