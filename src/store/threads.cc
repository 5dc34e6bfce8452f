#include "store/threads.h"

#include <limits>
#include <string_view>

#include "base/utf8.h"
#include "store/events.h"
#include "store/message_view.h"

namespace interlock::store {
namespace {

// thread_members_of_agent, as a; each of these by its primary key, as t, of which the newest are
// sorted out; then each last message by its row number. Asked for the other columns of a itself,
// the planner would rather walk over all threads of the project.
constexpr db::Sql kListThreads =
    "SELECT n.thread_id, n.last_cursor, n.message_count, m.sender, m.body, m.created_at "
    "FROM (SELECT t.thread_id, t.last_cursor, t.message_count "
    "FROM thread_members AS a CROSS JOIN thread_members AS t "
    "WHERE a.project = ?1 AND a.agent = ?2 AND t.project = a.project AND t.agent = a.agent "
    "AND t.thread_id = a.thread_id AND t.last_cursor < ?3 "
    "ORDER BY t.last_cursor DESC LIMIT ?4) AS n "
    "JOIN messages AS m ON m.cursor = n.last_cursor ORDER BY n.last_cursor DESC";

// As kListThreads, for the threads of an agent (?2) and of a bare name (?5), merged by thread.
constexpr db::Sql kListThreadsOfBoth =
    "SELECT n.thread_id, n.last_cursor, n.message_count, m.sender, m.body, m.created_at "
    "FROM (SELECT t.thread_id, max(t.last_cursor) AS last_cursor, "
    "sum(t.message_count) AS message_count "
    "FROM thread_members AS a CROSS JOIN thread_members AS t "
    "WHERE a.project = ?1 AND a.agent IN (?2, ?5) AND t.project = a.project "
    "AND t.agent = a.agent AND t.thread_id = a.thread_id "
    "GROUP BY t.thread_id HAVING max(t.last_cursor) < ?3 "
    "ORDER BY max(t.last_cursor) DESC LIMIT ?4) AS n "
    "JOIN messages AS m ON m.cursor = n.last_cursor ORDER BY n.last_cursor DESC";

// messages_of_thread, as a range in its order.
constexpr db::Sql kReadThread = "SELECT " IL_MESSAGE_COLUMNS
                                " FROM messages AS m "
                                "WHERE m.project = ?1 AND m.thread_id = ?2 AND m.cursor > ?3 "
                                "ORDER BY m.cursor LIMIT ?4";

constexpr db::NamedSql kStatements[] = {IL_SQL(kListThreads), IL_SQL(kListThreadsOfBoth),
                                        IL_SQL(kReadThread)};

std::string_view Beginning(std::string_view body) {
  if (body.size() <= kLastBodyBytesMax) return body;
  std::size_t end = 0;
  while (true) {
    const std::size_t next = end + FirstUtf8Unit(body.substr(end)).size;
    if (next > kLastBodyBytesMax) return body.substr(0, end);
    end = next;
  }
}

}  // namespace

Result<std::vector<domain::ThreadSummary>> ListThreads(db::Connection& connection,
                                                       const domain::ThreadsQuery& query) {
  IL_TRY_VOID(RefuseAhead(connection, query.before.value_or(0)));
  std::vector<domain::ThreadSummary> threads;
  const domain::Cursor before = query.before.value_or(std::numeric_limits<domain::Cursor>::max());
  const auto take = [&threads](const db::Row& row) {
    threads.push_back({.thread_id = row.String(0),
                       .last_cursor = row.Int(1),
                       .message_count = row.Int(2),
                       .last_from = row.String(3),
                       .last_body = std::string(Beginning(row.Text(4))),
                       .last_at = {row.Int(5)}});
  };
  if (query.or_name) {
    IL_TRY_VOID(connection.ForEach(kListThreadsOfBoth, take, query.project, query.agent, before,
                                   query.limit, *query.or_name));
  } else {
    IL_TRY_VOID(
        connection.ForEach(kListThreads, take, query.project, query.agent, before, query.limit));
  }
  return threads;
}

Result<void> ReadThread(db::Connection& connection, const domain::ThreadQuery& query,
                        domain::MessageSink& sink) {
  IL_TRY_VOID(RefuseAhead(connection, query.after));
  return ReadMessages(connection, sink, kReadThread, MessageViewFrom, query.project,
                      query.thread_id, query.after, query.limit);
}

std::span<const db::NamedSql> ThreadStatements() { return kStatements; }

}  // namespace interlock::store
