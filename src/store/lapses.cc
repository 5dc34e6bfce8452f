#include "store/lapses.h"

namespace interlock::store {
namespace {

// agents_living_anywhere.
constexpr db::Sql kSeenBetween =
    "SELECT id, name, project, last_seen FROM agents "
    "WHERE deregistered_at IS NULL AND last_seen > ?1 AND last_seen <= ?2 "
    "ORDER BY last_seen LIMIT ?3";

constexpr db::NamedSql kStatements[] = {IL_SQL(kSeenBetween)};

}  // namespace

Result<std::vector<SeenAgent>> AgentsSeenBetween(db::Connection& connection, Timestamp after,
                                                 Timestamp until, std::int64_t rows_max) {
  std::vector<SeenAgent> agents;
  IL_TRY_VOID(connection.ForEach(
      kSeenBetween,
      [&agents](const db::Row& row) {
        agents.push_back({.id = row.String(0),
                          .name = row.String(1),
                          .project = row.String(2),
                          .last_seen = {row.Int(3)}});
      },
      after.micros, until.micros, rows_max));
  return agents;
}

std::span<const db::NamedSql> LapseStatements() { return kStatements; }

}  // namespace interlock::store
