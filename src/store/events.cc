#include "store/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "store/message_row.h"

namespace interlock::store {
namespace {

// The table's end.
constexpr db::Sql kAppend =
    "INSERT INTO events (type, project, entity_id, agent, created_at, data) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

// events' primary key, from either end.
constexpr db::Sql kNewest =
    "SELECT cursor FROM events WHERE cursor > 0 ORDER BY cursor DESC LIMIT 1";
constexpr db::Sql kOldest = "SELECT cursor FROM events WHERE cursor > 0 ORDER BY cursor LIMIT 1";

// What EventFrom() reads.
#define IL_EVENT_COLUMNS "e.cursor, e.type, e.project, e.entity_id, e.agent, e.created_at, e.data"

// events' primary key.
constexpr db::Sql kReadAll = "SELECT " IL_EVENT_COLUMNS
                             ", NULL FROM events AS e "
                             "WHERE e.cursor > ?1 AND e.cursor <= ?2 ORDER BY e.cursor LIMIT ?3";

// events_of_project.
constexpr db::Sql kReadOfProject =
    "SELECT " IL_EVENT_COLUMNS
    ", NULL FROM events AS e "
    "WHERE e.project = ?1 AND e.cursor > ?2 AND e.cursor <= ?3 ORDER BY e.cursor LIMIT ?4";

// events_of_project; inbox's primary key.
constexpr db::Sql kReadOfAgent =
    "SELECT " IL_EVENT_COLUMNS
    ", (SELECT 1 FROM inbox AS i WHERE i.project = e.project AND i.agent IN (?5, ?6) "
    "AND i.cursor = e.cursor) FROM events AS e "
    "WHERE e.project = ?1 AND e.cursor > ?2 AND e.cursor <= ?3 ORDER BY e.cursor LIMIT ?4";

// events' primary key; messages' primary key.
constexpr db::Sql kReadDelivered = "SELECT " IL_EVENT_COLUMNS
                                   ", m.recipients FROM events AS e "
                                   "LEFT JOIN messages AS m ON m.cursor = e.cursor "
                                   "WHERE e.cursor > ?1 ORDER BY e.cursor LIMIT ?2";

// events' primary key.
constexpr db::Sql kReadDates =
    "SELECT cursor, created_at FROM events WHERE cursor > ?1 AND cursor <= ?2 "
    "ORDER BY cursor LIMIT ?3";
constexpr db::Sql kRemoveThrough = "DELETE FROM events WHERE cursor <= ?1";

// meta's primary key.
constexpr db::Sql kGetPruned = "SELECT value FROM meta WHERE key = ?1";
constexpr db::Sql kSetPruned =
    "INSERT INTO meta (key, value) VALUES (?1, ?2) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value";

constexpr db::NamedSql kStatements[] = {
    IL_SQL(kAppend),        IL_SQL(kNewest),      IL_SQL(kOldest),        IL_SQL(kReadAll),
    IL_SQL(kReadOfProject), IL_SQL(kReadOfAgent), IL_SQL(kReadDelivered), IL_SQL(kReadDates),
    IL_SQL(kRemoveThrough), IL_SQL(kGetPruned),   IL_SQL(kSetPruned)};

// Part of the file's format: the last cursor that was removed, decimal. None = nothing was.
constexpr std::string_view kPrunedThrough = "events_pruned_through";

constexpr int kExtraColumn = 7;  // after IL_EVENT_COLUMNS

// Rows per statement where a filter may leave most of them out.
constexpr std::size_t kFilteredRows = 500;

// When ReadDelivered() has read so much data it leaves the rest for the next call.
constexpr std::size_t kDeliveredBytes = std::size_t{4} * 1024 * 1024;

domain::Event EventFrom(const db::Row& row) {
  return {.cursor = row.Int(0),
          .type = row.String(1),
          .project = row.String(2),
          .entity_id = row.String(3),
          .agent = row.OptionalString(4),
          .created_at = {row.Int(5)},
          .data = row.String(6)};
}

std::int64_t Rows(std::size_t rows) { return static_cast<std::int64_t>(rows); }

Result<std::optional<domain::Cursor>> First(db::Connection& connection, const db::Sql& sql) {
  return connection.One(sql, [](const db::Row& row) { return row.Int(0); });
}

// Collects the rows that a query wants, and knows when to stop.
class Collector {
 public:
  explicit Collector(const EventQuery& query) : query_(query), chunk_{.reached = query.after} {}

  void Add(const db::Row& row) {
    ++rows_;
    if (full_) return;
    chunk_.reached = row.Int(0);
    if (!Wanted(row)) return;
    const domain::Event& event = chunk_.events.emplace_back(EventFrom(row));
    bytes_ += event.data.size() + event.entity_id.size() + event.project.size();
    full_ = chunk_.events.size() >= query_.events_max || bytes_ >= query_.bytes_max;
  }

  // Nothing else is to be looked at.
  bool full() const { return full_ || rows_ >= query_.rows_max; }
  bool stopped() const { return full_; }
  std::size_t rows() const { return rows_; }
  std::size_t NextRows() const {
    const bool filtered = query_.wants != nullptr || query_.recipient.has_value();
    const std::size_t left = query_.events_max - chunk_.events.size();
    return std::min(query_.rows_max - rows_, filtered ? kFilteredRows : left);
  }
  domain::Cursor reached() const { return chunk_.reached; }
  EventChunk Take() && { return std::move(chunk_); }

 private:
  bool Wanted(const db::Row& row) const {
    if (query_.wants && !query_.wants(row.Text(1))) return false;
    return !query_.recipient || row.Text(1) != domain::event_type::kMessageCreated ||
           !row.IsNull(kExtraColumn);
  }

  const EventQuery& query_;
  EventChunk chunk_;
  std::size_t rows_ = 0;
  std::size_t bytes_ = 0;
  bool full_ = false;
};

Result<void> ReadRows(db::Connection& connection, const EventQuery& query, Collector& into,
                      std::size_t rows) {
  const auto add = [&into](const db::Row& row) { into.Add(row); };
  const std::int64_t limit = Rows(rows);
  const domain::Cursor after = into.reached();
  if (query.recipient) {
    IL_TRY_VOID(connection.ForEach(kReadOfAgent, add, query.project, after, query.through, limit,
                                   query.recipient, query.or_recipient));
  } else if (query.project) {
    IL_TRY_VOID(
        connection.ForEach(kReadOfProject, add, query.project, after, query.through, limit));
  } else {
    IL_TRY_VOID(connection.ForEach(kReadAll, add, after, query.through, limit));
  }
  return {};
}

}  // namespace

Result<domain::Cursor> AppendEvent(db::Transaction& tx, const domain::Event& event) {
  IL_TRY_VOID(tx.LockProject(event.project));
  std::optional<std::string_view> data;
  if (!event.data.empty()) data = event.data;
  IL_TRY_VOID(tx->Run(kAppend, event.type, event.project, event.entity_id, event.agent,
                      event.created_at.micros, data));
  return tx->last_inserted();
}

Result<domain::Cursor> NewestCursor(db::Connection& connection) {
  IL_TRY(const std::optional<domain::Cursor> newest, First(connection, kNewest));
  if (newest) return *newest;
  return PrunedThrough(connection);
}

Result<void> RefuseExpired(db::Connection& connection, domain::Cursor cursor) {
  if (cursor <= 0) return {};
  IL_TRY(const domain::Cursor pruned, PrunedThrough(connection));
  if (cursor >= pruned) return {};
  IL_TRY(const std::optional<domain::Cursor> oldest, First(connection, kOldest));
  return Error(Errc::kGone,
               fmt::format("Events after cursor {} are no longer kept. Read the state anew and "
                           "follow from since_cursor=0, the oldest event kept.",
                           cursor))
      .WithSlug("cursor_expired")
      .WithDetail("oldest_cursor", oldest.value_or(pruned + 1));
}

Error CursorAhead(domain::Cursor cursor, domain::Cursor newest) {
  return Error(Errc::kConflict,
               fmt::format("The cursor {} is beyond the end of the log, which is {}: the database "
                           "is another one, or was restored. Read the state anew and go on from "
                           "cursor {}.",
                           cursor, newest, newest))
      .WithSlug("cursor_ahead")
      .WithDetail("newest", newest);
}

Result<void> RefuseAhead(db::Connection& connection, domain::Cursor cursor) {
  if (cursor <= 0) return {};
  IL_TRY(const domain::Cursor newest, NewestCursor(connection));
  if (cursor > newest) return CursorAhead(cursor, newest);
  return {};
}

Result<EventChunk> ReadEvents(db::Connection& connection, const EventQuery& query) {
  IL_CHECK(query.events_max > 0 && query.rows_max > 0);
  IL_CHECK(!query.recipient || query.project);
  IL_TRY_VOID(RefuseExpired(connection, query.after));
  Collector collector(query);
  bool ended = false;
  while (!collector.full() && !ended) {
    const std::size_t before = collector.rows();
    const std::size_t rows = collector.NextRows();
    IL_TRY_VOID(ReadRows(connection, query, collector, rows));
    ended = collector.rows() - before < rows;
  }
  const bool stopped = collector.stopped();
  EventChunk chunk = std::move(collector).Take();
  if (ended && !stopped) {
    IL_TRY(const domain::Cursor newest, NewestCursor(connection));
    if (query.after > newest) return CursorAhead(query.after, newest);
    chunk.reached = std::max(chunk.reached, std::min(newest, query.through));
    chunk.ended = true;
  }
  return chunk;
}

Result<DeliveredChunk> ReadDelivered(db::Connection& connection, domain::Cursor after,
                                     std::size_t rows_max) {
  DeliveredChunk chunk;
  std::size_t rows = 0;
  std::size_t bytes = 0;
  const auto add = [&](const db::Row& row) {
    ++rows;
    if (bytes >= kDeliveredBytes) return;
    DeliveredEvent& delivered = chunk.events.emplace_back(DeliveredEvent{.event = EventFrom(row)});
    bytes += delivered.event.data.size();
    if (row.IsNull(kExtraColumn)) return;
    Result<Recipients> recipients = ReadRecipients(row.Text(kExtraColumn));
    if (!recipients.ok()) return;
    domain::Addresses& received = recipients->received;
    delivered.recipients = std::move(received.to);
    std::ranges::move(received.cc, std::back_inserter(delivered.recipients));
    std::ranges::move(received.bcc, std::back_inserter(delivered.recipients));
  };
  IL_TRY_VOID(connection.ForEach(kReadDelivered, add, after, Rows(rows_max)));
  chunk.ended = rows < rows_max && rows == chunk.events.size();
  return chunk;
}

Result<OldEvents> FindOldEvents(db::Connection& connection, const OldEventsQuery& query) {
  OldEvents old{.reached = query.after};
  std::size_t rows = 0;
  const auto add = [&](const db::Row& row) {
    ++rows;
    const Timestamp created_at{row.Int(1)};
    old.ended = old.ended || (created_at >= query.older_than && created_at <= query.now);
    if (old.ended) return;
    old.reached = row.Int(0);
    if (created_at < query.older_than) {
      old.through = old.reached;
    } else {
      old.reached_until = std::min(old.reached_until, created_at);
    }
  };
  IL_TRY_VOID(
      connection.ForEach(kReadDates, add, query.after, query.through, Rows(query.rows_max)));
  old.ended = old.ended || rows < query.rows_max;
  return old;
}

Result<std::int64_t> PruneEvents(db::Transaction& tx, domain::Cursor through,
                                 std::size_t rows_max) {
  std::optional<domain::Cursor> last;
  IL_TRY_VOID(tx->ForEach(
      kReadDates, [&last](const db::Row& row) { last = row.Int(0); }, domain::Cursor{0}, through,
      Rows(rows_max)));
  if (!last) return std::int64_t{0};
  const std::string pruned = std::to_string(*last);
  IL_TRY_VOID(tx->Run(kSetPruned, kPrunedThrough, pruned));
  return tx->Run(kRemoveThrough, *last);
}

Result<domain::Cursor> PrunedThrough(db::Connection& connection) {
  IL_TRY(
      const auto text,
      connection.One(kGetPruned, [](const db::Row& row) { return row.String(0); }, kPrunedThrough));
  if (!text) return domain::Cursor{0};
  domain::Cursor cursor = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, cursor);
  if (error == std::errc() && stop == end) return cursor;
  return Error(Errc::kCorrupt, fmt::format("meta.{} is '{}', not a cursor: put back a backup",
                                           kPrunedThrough, *text));
}

std::span<const db::NamedSql> EventStatements() { return kStatements; }

}  // namespace interlock::store
