#include "store/ping.h"

namespace interlock::store {
namespace {

// meta's primary key.
constexpr db::Sql kPing = "SELECT 1 FROM meta WHERE key = 'instance_id'";

constexpr db::NamedSql kStatements[] = {IL_SQL(kPing)};

}  // namespace

Result<void> Ping(db::Connection& connection) {
  IL_TRY_VOID(connection.Run(kPing));
  return {};
}

std::span<const db::NamedSql> PingStatements() { return kStatements; }

}  // namespace interlock::store
