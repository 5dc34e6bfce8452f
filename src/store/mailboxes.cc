#include "store/mailboxes.h"

#include <cstdint>

namespace interlock::store {
namespace {

// mailboxes' primary key.
constexpr db::Sql kOneMore =
    "UPDATE mailboxes SET total = total + 1, unread = unread + 1 WHERE project = ?1 AND agent = ?2";
constexpr db::Sql kRead =
    "UPDATE mailboxes SET unread = unread - 1 WHERE project = ?1 AND agent = ?2";
constexpr db::Sql kOneLess =
    "UPDATE mailboxes SET total = total - 1 WHERE project = ?1 AND agent = ?2";
constexpr db::Sql kForgetEmpty =
    "DELETE FROM mailboxes WHERE project = ?1 AND agent = ?2 AND total = 0";
constexpr db::Sql kCounts = "SELECT total, unread FROM mailboxes WHERE project = ?1 AND agent = ?2";

// mailboxes_at_home. An agent without one is at home in the project.
constexpr db::Sql kFirst =
    "INSERT INTO mailboxes (project, agent, total, unread, home) VALUES (?1, ?2, 1, 1, "
    "NOT EXISTS (SELECT 1 FROM mailboxes WHERE agent = ?2 AND home = 1))";

// mailboxes' primary key.
constexpr db::Sql kAddAbroad =
    "INSERT INTO inbox_abroad (agent, cursor, project) SELECT agent, ?3, project FROM mailboxes "
    "WHERE project = ?1 AND agent = ?2 AND home = 0";

// inbox_abroad's primary key.
constexpr db::Sql kRemoveAbroad = "DELETE FROM inbox_abroad WHERE agent = ?1 AND cursor = ?2";

// Two lookups in inbox's primary key for each message under the name ?3.
constexpr db::Sql kCountInBoth =
    "SELECT count(*), count(*) - count(b.read_at) FROM inbox AS b "
    "WHERE b.project = ?1 AND b.agent = ?3 AND EXISTS (SELECT 1 FROM inbox AS o "
    "WHERE o.project = ?1 AND o.agent = ?2 AND o.cursor = b.cursor)";

constexpr db::NamedSql kStatements[] = {
    IL_SQL(kOneMore),     IL_SQL(kRead),         IL_SQL(kOneLess),
    IL_SQL(kForgetEmpty), IL_SQL(kCounts),       IL_SQL(kFirst),
    IL_SQL(kAddAbroad),   IL_SQL(kRemoveAbroad), IL_SQL(kCountInBoth)};

}  // namespace

Result<void> CountDelivered(db::Transaction& tx, std::string_view project, std::string_view agent,
                            domain::Cursor cursor) {
  IL_TRY(const std::int64_t known, tx->Run(kOneMore, project, agent));
  if (known == 0) IL_TRY_VOID(tx->Run(kFirst, project, agent));
  IL_TRY_VOID(tx->Run(kAddAbroad, project, agent, cursor));
  return {};
}

Result<void> CountRead(db::Transaction& tx, std::string_view project, std::string_view agent) {
  IL_TRY_VOID(tx->Run(kRead, project, agent));
  return {};
}

Result<void> CountRemoved(db::Transaction& tx, std::string_view project, std::string_view agent,
                          domain::Cursor cursor) {
  IL_TRY_VOID(tx->Run(kRemoveAbroad, agent, cursor));
  IL_TRY_VOID(tx->Run(kOneLess, project, agent));
  IL_TRY_VOID(tx->Run(kForgetEmpty, project, agent));
  return {};
}

Result<domain::InboxCounts> CountInbox(db::Connection& connection, std::string_view project,
                                       std::string_view agent, std::string_view bare_name) {
  using domain::InboxCounts;
  const auto counts = [](const db::Row& row) {
    return InboxCounts{.total = row.Int(0), .unread = row.Int(1)};
  };
  IL_TRY(const auto found, connection.One(kCounts, counts, project, agent));
  const InboxCounts own = found.value_or(InboxCounts{});
  if (bare_name.empty()) return own;
  IL_TRY(const auto named, connection.One(kCounts, counts, project, bare_name));
  if (!named) return own;
  InboxCounts both;
  if (own.total > 0) {
    IL_TRY(const auto twice, connection.One(kCountInBoth, counts, project, agent, bare_name));
    both = twice.value_or(InboxCounts{});
  }
  return InboxCounts{.total = own.total + named->total - both.total,
                     .unread = own.unread + named->unread - both.unread};
}

std::span<const db::NamedSql> MailboxStatements() { return kStatements; }

}  // namespace interlock::store
