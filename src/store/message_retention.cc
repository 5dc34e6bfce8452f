#include "store/message_retention.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "store/events.h"
#include "store/mailboxes.h"
#include "store/message_row.h"

namespace interlock::store {
namespace {

// messages' row number.
constexpr db::Sql kNextMessage =
    "SELECT cursor, project, sender, thread_id, created_at, recipients "
    "FROM messages WHERE cursor > ?1 AND cursor <= ?2 ORDER BY cursor LIMIT 1";

// inbox's primary key.
constexpr db::Sql kFindOpen =
    "SELECT 1 FROM inbox WHERE project = ?1 AND agent = ?2 AND cursor = ?3 "
    "AND (read_at IS NULL OR (ack_required = 1 AND ack_at IS NULL))";

// inbox's primary key.
constexpr db::Sql kRemoveFromInbox =
    "DELETE FROM inbox WHERE project = ?1 AND agent = ?2 AND cursor = ?3";

// messages' row number.
constexpr db::Sql kRemoveMessage = "DELETE FROM messages WHERE cursor = ?1";

// pokes' primary key.
constexpr db::Sql kRemovePokes = "DELETE FROM pokes WHERE cursor = ?1";

// thread_members' primary key.
constexpr db::Sql kCountOneLess =
    "UPDATE thread_members SET message_count = message_count - 1 "
    "WHERE project = ?1 AND thread_id = ?2 AND agent = ?3 RETURNING message_count, last_cursor";

// messages_of_thread, as a range from its end; inbox's primary key.
constexpr db::Sql kFindNewest =
    "SELECT m.cursor FROM messages AS m "
    "WHERE m.project = ?1 AND m.thread_id = ?2 AND m.cursor < ?4 AND (m.sender = ?3 OR EXISTS "
    "(SELECT 1 FROM inbox AS i "
    "WHERE i.project = ?1 AND i.agent = ?3 AND i.cursor = m.cursor)) "
    "ORDER BY m.cursor DESC LIMIT 1";

// thread_members' primary key.
constexpr db::Sql kSetNewest =
    "UPDATE thread_members SET last_cursor = ?4 "
    "WHERE project = ?1 AND thread_id = ?2 AND agent = ?3";

// thread_members' primary key.
constexpr db::Sql kRemoveMember =
    "DELETE FROM thread_members WHERE project = ?1 AND thread_id = ?2 AND agent = ?3";

constexpr db::NamedSql kStatements[] = {
    IL_SQL(kNextMessage),   IL_SQL(kFindOpen),     IL_SQL(kRemoveFromInbox),
    IL_SQL(kRemoveMessage), IL_SQL(kCountOneLess), IL_SQL(kFindNewest),
    IL_SQL(kSetNewest),     IL_SQL(kRemoveMember), IL_SQL(kRemovePokes)};

struct Candidate {
  domain::Cursor cursor;
  std::string project;
  std::string sender;
  std::optional<std::string> thread_id;
  Timestamp created_at;
  std::string recipients;
};

// The first one after `after`, if it is not after `through`.
Result<std::optional<Candidate>> FindNext(db::Connection& connection, domain::Cursor after,
                                          domain::Cursor through) {
  return connection.One(
      kNextMessage,
      [](const db::Row& row) {
        return Candidate{.cursor = row.Int(0),
                         .project = row.String(1),
                         .sender = row.String(2),
                         .thread_id = row.OptionalString(3),
                         .created_at = {row.Int(4)},
                         .recipients = row.String(5)};
      },
      after, through);
}

Result<bool> IsDone(db::Connection& connection, const Candidate& message,
                    const std::vector<std::string>& recipients) {
  for (const std::string& agent : recipients) {
    IL_TRY(const auto open, connection.One(
                                kFindOpen, [](const db::Row& row) { return row.Int(0); },
                                message.project, agent, message.cursor));
    if (open) return false;
  }
  return true;
}

// REQUIRES: the message and its inbox rows are gone.
Result<void> LeaveThread(db::Transaction& tx, const Candidate& message, const std::string& agent) {
  const std::string& project = message.project;
  const std::string& thread = *message.thread_id;
  const auto pair = [](const db::Row& row) { return std::pair(row.Int(0), row.Int(1)); };
  IL_TRY(const auto member, tx->One(kCountOneLess, pair, project, thread, agent));
  if (!member) return {};
  const auto [count, last_cursor] = *member;
  if (count > 0 && last_cursor != message.cursor) return {};
  std::optional<domain::Cursor> newest;
  if (count > 0) {
    IL_TRY(newest, tx->One(
                       kFindNewest, [](const db::Row& row) { return row.Int(0); }, project, thread,
                       agent, message.cursor));
  }
  if (newest) {
    IL_TRY_VOID(tx->Run(kSetNewest, project, thread, agent, *newest));
  } else {
    IL_TRY_VOID(tx->Run(kRemoveMember, project, thread, agent));
  }
  return {};
}

Result<void> Remove(db::Transaction& tx, const Candidate& message,
                    const std::vector<std::string>& recipients) {
  for (const std::string& agent : recipients) {
    IL_TRY(const std::int64_t removed,
           tx->Run(kRemoveFromInbox, message.project, agent, message.cursor));
    if (removed > 0) IL_TRY_VOID(CountRemoved(tx, message.project, agent, message.cursor));
  }
  IL_TRY_VOID(tx->Run(kRemovePokes, message.cursor));
  IL_TRY_VOID(tx->Run(kRemoveMessage, message.cursor));
  if (!message.thread_id) return {};
  for (const std::string& agent : recipients) IL_TRY_VOID(LeaveThread(tx, message, agent));
  const bool counted = std::ranges::find(recipients, message.sender) != recipients.end();
  if (!counted) IL_TRY_VOID(LeaveThread(tx, message, message.sender));
  return {};
}

}  // namespace

Result<DoneMessages> FindDoneMessages(db::Connection& connection, const DoneMessagesQuery& query) {
  IL_CHECK(query.rows_max > 0);
  IL_TRY(const domain::Cursor through, PrunedThrough(connection));
  DoneMessages found{.reached = query.after};
  for (std::int64_t rows = 0; rows < query.rows_max; ++rows) {
    IL_TRY(const auto message, FindNext(connection, found.reached, through));
    if (!message) {
      found.ended = true;
      break;
    }
    found.reached = message->cursor;
    if (message->created_at >= query.older_than && message->created_at <= query.now) continue;
    const Result<Recipients> all = ReadRecipients(message->recipients);
    if (!all.ok()) continue;  // it is kept, and holds nothing up
    const std::vector<std::string> recipients = all->received.All();
    rows += static_cast<std::int64_t>(recipients.size());
    IL_TRY(const bool done, IsDone(connection, *message, recipients));
    if (done) found.cursors.push_back(message->cursor);
  }
  return found;
}

Result<std::int64_t> PruneMessages(db::Transaction& tx, std::span<const domain::Cursor> cursors) {
  std::int64_t removed = 0;
  for (const domain::Cursor cursor : cursors) {
    IL_TRY(const auto message, FindNext(tx.connection(), cursor - 1, cursor));
    if (!message) continue;
    IL_TRY(const Recipients all, ReadRecipients(message->recipients));
    const std::vector<std::string> recipients = all.received.All();
    IL_TRY(const bool done, IsDone(tx.connection(), *message, recipients));
    if (!done) continue;
    IL_TRY_VOID(Remove(tx, *message, recipients));
    ++removed;
  }
  return removed;
}

std::span<const db::NamedSql> MessageRetentionStatements() { return kStatements; }

}  // namespace interlock::store
