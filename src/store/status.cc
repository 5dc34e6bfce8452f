#include "store/status.h"

#include <algorithm>
#include <limits>

#include "store/agents.h"

namespace interlock::store {
namespace {

// agents_living, agents_living_anywhere.
constexpr db::Sql kAgentsOfProject =
    "SELECT COUNT(*) FROM agents WHERE deregistered_at IS NULL AND project = ?1 AND last_seen > ?2";
constexpr db::Sql kAgentsAnywhere =
    "SELECT COUNT(*) FROM agents WHERE deregistered_at IS NULL AND last_seen > ?1";

// reservations_by_prefix, which has all that is asked for; reservations_expiring.
constexpr db::Sql kActiveOfProjectCount =
    "SELECT COUNT(*) FROM reservations WHERE released_at IS NULL AND project = ?1 "
    "AND expires_at > ?2";
constexpr db::Sql kActiveAnywhereCount =
    "SELECT COUNT(*) FROM reservations WHERE released_at IS NULL AND expires_at > ?1";

// mailboxes' primary key.
constexpr db::Sql kUnreadOfProject = "SELECT SUM(unread) FROM mailboxes WHERE project = ?1";
constexpr db::Sql kUnreadAnywhere = "SELECT SUM(unread) FROM mailboxes WHERE project >= ''";

constexpr db::NamedSql kStatements[] = {
    IL_SQL(kAgentsOfProject),     IL_SQL(kAgentsAnywhere),  IL_SQL(kActiveOfProjectCount),
    IL_SQL(kActiveAnywhereCount), IL_SQL(kUnreadOfProject), IL_SQL(kUnreadAnywhere),
};

constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::min();

template <typename... Args>
Result<std::int64_t> Count(db::Connection& connection, const db::Sql& sql, const Args&... args) {
  IL_TRY(const auto count,
         connection.One(sql, [](const db::Row& row) { return row.Int(0); }, args...));
  return count.value_or(0);
}

Result<StatusCounts> CountAnywhere(db::Connection& connection, Timestamp now,
                                   Timestamp seen_after) {
  StatusCounts counts;
  IL_TRY(counts.agents_alive, Count(connection, kAgentsAnywhere, seen_after.micros));
  IL_TRY(counts.agents_registered, Count(connection, kAgentsAnywhere, kEver));
  IL_TRY(counts.reservations_active, Count(connection, kActiveAnywhereCount, now.micros));
  IL_TRY(counts.mail_unread, Count(connection, kUnreadAnywhere));
  return counts;
}

Result<StatusCounts> CountProject(db::Connection& connection, std::string_view project,
                                  Timestamp now, Timestamp seen_after) {
  StatusCounts counts;
  IL_TRY(counts.agents_alive, Count(connection, kAgentsOfProject, project, seen_after.micros));
  IL_TRY(counts.agents_registered, Count(connection, kAgentsOfProject, project, kEver));
  IL_TRY(counts.reservations_active, Count(connection, kActiveOfProjectCount, project, now.micros));
  IL_TRY(counts.mail_unread, Count(connection, kUnreadOfProject, project));
  return counts;
}

}  // namespace

Result<StatusCounts> CountStatus(db::Connection& connection,
                                 std::optional<std::string_view> project, Timestamp now,
                                 Timestamp seen_after, const domain::Sightings& sightings) {
  IL_TRY(StatusCounts counts, project ? CountProject(connection, *project, now, seen_after)
                                      : CountAnywhere(connection, now, seen_after));
  IL_TRY(const auto fresh, FindFreshAgents(connection, project, sightings));
  counts.agents_alive += std::ranges::count_if(fresh, [seen_after](const FreshAgent& one) {
    return one.stored <= seen_after && one.seen > seen_after;
  });
  return counts;
}

std::span<const db::NamedSql> StatusStatements() { return kStatements; }

}  // namespace interlock::store
