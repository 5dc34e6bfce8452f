#include "store/inbox.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

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

// inbox's primary key in the agent's home (mailboxes_at_home), and inbox_abroad's: two ranges,
// which are merged in their order.
constexpr db::Sql kNextAnywhere =
    "SELECT cursor, project FROM inbox WHERE project = "
    "(SELECT project FROM mailboxes WHERE agent = ?1 AND home = 1) AND agent = ?1 AND cursor > ?2 "
    "UNION ALL SELECT cursor, project FROM inbox_abroad WHERE agent = ?1 AND cursor > ?2 "
    "ORDER BY cursor LIMIT ?3";

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

constexpr db::NamedSql kStatements[] = {IL_SQL(kReadInbox), IL_SQL(kNextAnywhere),
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

// Some messages that follow each other in an agent's mail and are all of one project.
struct Run {
  std::string project;
  domain::Cursor first = 0;
  domain::Cursor last = 0;
  std::int64_t length = 0;
};

// The next `limit` messages of the agent in all projects.
Result<std::vector<Run>> NextAnywhere(db::Connection& connection, const domain::InboxQuery& query) {
  std::vector<Run> runs;
  const auto take = [&runs](const db::Row& row) {
    if (runs.empty() || runs.back().project != row.Text(1)) {
      runs.push_back({.project = row.String(1), .first = row.Int(0)});
    }
    runs.back().last = row.Int(0);
    ++runs.back().length;
  };
  IL_TRY_VOID(connection.ForEach(kNextAnywhere, take, query.agent, query.after, query.limit));
  return runs;
}

Result<void> ReadAnywhere(db::Connection& connection, const domain::InboxQuery& query,
                          Watched& page) {
  page.Restart();
  IL_TRY(const std::vector<Run> runs, NextAnywhere(connection, query));
  for (const Run& run : runs) {
    const auto take = [&page, &run](const db::Row& row) -> Result<void> {
      if (row.Int(0) > run.last) return {};  // a row whose message is gone made the run too long
      if (page.Add(DeliveryFrom(row)) == domain::Flow::kGoOn) return {};
      return Error(Errc::kCancelled, "the page is full");  // ends the statement
    };
    auto read =
        connection.ForEach(kReadInbox, take, run.project, query.agent, run.first - 1, run.length);
    if (page.full()) return {};
    if (!read.ok()) return std::move(read).error();
  }
  return {};
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
    IL_TRY_VOID(ReadAnywhere(connection, query, page));
  }
  if (page.count() == query.limit || page.full()) return std::optional<domain::InboxEnd>();
  IL_TRY(const domain::Cursor newest, NewestCursor(connection));
  // A cursor with a message after it cannot be ahead.
  if (page.count() == 0 && query.after > newest) return CursorAhead(query.after, newest);
  const domain::Cursor last = page.count() > 0 ? page.last() : query.after;
  return std::optional(domain::InboxEnd{.last = last, .seen = newest});
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
