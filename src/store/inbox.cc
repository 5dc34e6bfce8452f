#include "store/inbox.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "store/events.h"
#include "store/message_view.h"

namespace interlock::store {
namespace {

// inbox's primary key, as a range in its order; each message by its row number.
constexpr db::Sql kReadInbox = "SELECT " IL_MESSAGE_COLUMNS
                               ", i.kind, i.read_at "
                               "FROM inbox AS i JOIN messages AS m ON m.cursor = i.cursor "
                               "WHERE i.project = ?1 AND i.agent = ?2 AND i.cursor > ?3 "
                               "ORDER BY i.cursor LIMIT ?4";

// inbox_anywhere, as a range in its order.
constexpr db::Sql kReadInboxAnywhere = "SELECT " IL_MESSAGE_COLUMNS
                                       ", i.kind, i.read_at "
                                       "FROM inbox AS i JOIN messages AS m ON m.cursor = i.cursor "
                                       "WHERE i.agent = ?1 AND i.cursor > ?2 "
                                       "ORDER BY i.cursor LIMIT ?3";

// inbox's primary key.
constexpr db::Sql kCountAll = "SELECT COUNT(*) FROM inbox WHERE project = ?1 AND agent = ?2";

// inbox_unread.
constexpr db::Sql kCountUnread =
    "SELECT COUNT(*) FROM inbox WHERE project = ?1 AND agent = ?2 AND read_at IS NULL";

// inbox_unacked, in its order, as w. That index holds nothing else of the row, so the row is looked
// up once more, by primary key: asked for kind and read_at of w itself, the planner would rather
// walk over the whole inbox.
constexpr db::Sql kReadStaleAcks =
    "SELECT " IL_MESSAGE_COLUMNS
    ", i.kind, i.read_at "
    "FROM inbox AS w "
    "JOIN inbox AS i ON i.project = w.project AND i.agent = w.agent AND i.cursor = w.cursor "
    "JOIN messages AS m ON m.cursor = w.cursor "
    "WHERE w.project = ?1 AND w.agent = ?2 AND w.ack_required = 1 AND w.ack_at IS NULL "
    "AND m.created_at <= ?3 ORDER BY w.cursor LIMIT ?4";

constexpr db::NamedSql kStatements[] = {IL_SQL(kReadInbox), IL_SQL(kReadInboxAnywhere),
                                        IL_SQL(kCountAll), IL_SQL(kCountUnread),
                                        IL_SQL(kReadStaleAcks)};

// The message with what the inbox's own columns say of it.
domain::MessageView DeliveryFrom(const db::Row& row) {
  domain::MessageView view = MessageViewFrom(row);
  view.kind = AddressKindFrom(row.Text(kMessageColumns));
  if (const auto read_at = row.OptionalInt(kMessageColumns + 1)) view.read_at = {*read_at};
  return view;
}

// Hands a page on and keeps an eye on it.
class Watched : public domain::MessageSink {
 public:
  explicit Watched(domain::MessageSink& sink) : sink_(sink) {}

  void Restart() override {
    sink_.Restart();
    count_ = 0;
    full_ = false;
  }
  domain::Flow Add(const domain::MessageView& message) override {
    const domain::Flow flow = sink_.Add(message);
    full_ = flow == domain::Flow::kEnough;
    if (full_) return flow;
    ++count_;
    last_ = message.cursor;
    return flow;
  }

  std::int64_t count() const { return count_; }
  bool full() const { return full_; }
  domain::Cursor last() const { return last_; }  // REQUIRES: count() > 0

 private:
  domain::MessageSink& sink_;
  std::int64_t count_ = 0;
  domain::Cursor last_ = 0;
  bool full_ = false;
};

Result<std::int64_t> Count(db::Connection& connection, const db::Sql& sql, std::string_view project,
                           std::string_view agent) {
  IL_TRY(const auto count,
         connection.One(sql, [](const db::Row& row) { return row.Int(0); }, project, agent));
  IL_CHECK(count.has_value());
  return *count;
}

}  // namespace

Result<std::optional<domain::InboxEnd>> ReadInbox(db::Connection& connection,
                                                  const domain::InboxQuery& query,
                                                  domain::MessageSink& sink) {
  Watched page(sink);
  if (query.project) {
    IL_TRY_VOID(ReadMessages(connection, page, kReadInbox, DeliveryFrom, *query.project,
                             query.agent, query.after, query.limit));
  } else {
    IL_TRY_VOID(ReadMessages(connection, page, kReadInboxAnywhere, DeliveryFrom, query.agent,
                             query.after, query.limit));
  }
  if (page.count() == query.limit || page.full()) return std::optional<domain::InboxEnd>();
  IL_TRY(const domain::Cursor newest, NewestCursor(connection));
  const domain::Cursor last = page.count() > 0 ? page.last() : std::min(query.after, newest);
  return std::optional(domain::InboxEnd{.last = last, .seen = newest});
}

Result<domain::InboxCounts> CountInbox(db::Connection& connection, std::string_view project,
                                       std::string_view agent) {
  IL_TRY(const std::int64_t total, Count(connection, kCountAll, project, agent));
  IL_TRY(const std::int64_t unread, Count(connection, kCountUnread, project, agent));
  return domain::InboxCounts{.total = total, .unread = unread};
}

Result<void> ReadStaleAcks(db::Connection& connection, const domain::StaleAcksQuery& query,
                           domain::MessageSink& sink) {
  const Timestamp until =
      query.created_until.value_or(Timestamp{std::numeric_limits<std::int64_t>::max()});
  return ReadMessages(connection, sink, kReadStaleAcks, DeliveryFrom, query.project, query.agent,
                      until.micros, query.limit);
}

std::span<const db::NamedSql> InboxStatements() { return kStatements; }

}  // namespace interlock::store
