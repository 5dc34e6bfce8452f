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
                               ", i.kind, i.read_at, i.agent "
                               "FROM inbox AS i JOIN messages AS m ON m.cursor = i.cursor "
                               "WHERE i.project = ?1 AND i.agent = ?2 AND i.cursor > ?3 "
                               "ORDER BY i.cursor LIMIT ?4";

// inbox's primary key in the agent's home (mailboxes_at_home), and inbox_abroad's: two ranges,
// which are merged in their order.
constexpr db::Sql kNextAnywhere =
    "SELECT cursor, project, agent FROM inbox WHERE project = "
    "(SELECT project FROM mailboxes WHERE agent = ?1 AND home = 1) AND agent = ?1 AND cursor > ?2 "
    "UNION ALL SELECT cursor, project, agent FROM inbox_abroad WHERE agent = ?1 AND cursor > ?2 "
    "ORDER BY cursor LIMIT ?3";

// Mail under a bare name, without what stands in the agent's own inbox as well. ?1 = the agent,
// ?2 = after, ?4 and ?5 = project and name.
#define IL_UNDER_NAME                                                                            \
  "b.cursor, b.project, b.agent FROM inbox AS b "                                                \
  "WHERE b.project = ?4 AND b.agent = ?5 AND b.cursor > ?2 AND NOT EXISTS (SELECT 1 FROM inbox " \
  "AS o WHERE o.project = ?4 AND o.agent = ?1 AND o.cursor = b.cursor) "

// As kNextAnywhere, and one more range of inbox's primary key.
constexpr db::Sql kNextAnywhereOrUnderName =
    "SELECT cursor, project, agent FROM inbox WHERE project = "
    "(SELECT project FROM mailboxes WHERE agent = ?1 AND home = 1) AND agent = ?1 AND cursor > ?2 "
    "UNION ALL SELECT cursor, project, agent FROM inbox_abroad WHERE agent = ?1 AND cursor > ?2 "
    "UNION ALL SELECT " IL_UNDER_NAME "ORDER BY cursor LIMIT ?3";

// Two ranges of inbox's primary key, which are merged in their order.
constexpr db::Sql kNextOrUnderName =
    "SELECT cursor, project, agent FROM inbox WHERE project = ?4 AND agent = ?1 AND cursor > ?2 "
    "UNION ALL SELECT " IL_UNDER_NAME "ORDER BY cursor LIMIT ?3";
#undef IL_UNDER_NAME

// mailboxes' primary key.
constexpr db::Sql kHasMail = "SELECT 1 FROM mailboxes WHERE project = ?1 AND agent = ?2";

// inbox_unacked, in its order, as w. That index holds nothing else of the row, so the row is looked
// up once more, by primary key: asked for kind and read_at of w itself, the planner would rather
// walk over the whole inbox.
constexpr db::Sql kReadStaleAcks =
    "SELECT " IL_MESSAGE_COLUMNS
    ", i.kind, i.read_at, i.agent "
    "FROM inbox AS w "
    "JOIN inbox AS i ON i.project = w.project AND i.agent = w.agent AND i.cursor = w.cursor "
    "JOIN messages AS m ON m.cursor = w.cursor "
    "WHERE w.project = ?1 AND w.agent = ?2 AND w.ack_required = 1 AND w.ack_at IS NULL "
    "AND m.created_at <= ?3 ORDER BY w.cursor LIMIT ?4";

// Two ranges of inbox_unacked, merged in their order; messages by their row number. ?2 = the agent,
// ?5 = the bare name.
constexpr db::Sql kNextStaleAcks =
    "SELECT w.cursor, w.agent FROM inbox AS w JOIN messages AS m ON m.cursor = w.cursor "
    "WHERE w.project = ?1 AND w.agent = ?2 AND w.ack_required = 1 AND w.ack_at IS NULL "
    "AND m.created_at <= ?3 "
    "UNION ALL SELECT b.cursor, b.agent FROM inbox AS b JOIN messages AS m ON m.cursor = b.cursor "
    "WHERE b.project = ?1 AND b.agent = ?5 AND b.ack_required = 1 AND b.ack_at IS NULL "
    "AND m.created_at <= ?3 AND NOT EXISTS (SELECT 1 FROM inbox AS o "
    "WHERE o.project = ?1 AND o.agent = ?2 AND o.cursor = b.cursor) "
    "ORDER BY 1 LIMIT ?4";

constexpr db::NamedSql kStatements[] = {
    IL_SQL(kReadInbox),       IL_SQL(kNextAnywhere), IL_SQL(kNextAnywhereOrUnderName),
    IL_SQL(kNextOrUnderName), IL_SQL(kHasMail),      IL_SQL(kReadStaleAcks),
    IL_SQL(kNextStaleAcks)};

// The message with what the inbox's own columns say of it.
domain::MessageView DeliveryFrom(const db::Row& row) {
  domain::MessageView view = MessageViewFrom(row);
  view.kind = AddressKindFrom(row.Text(kMessageColumns));
  if (const auto read_at = row.OptionalInt(kMessageColumns + 1)) view.read_at = {*read_at};
  view.recipient = row.Text(kMessageColumns + 2);
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

// Some messages that follow each other in an agent's mail and are all in one inbox.
struct Run {
  std::string project;
  std::string agent;
  domain::Cursor first = 0;
  domain::Cursor last = 0;
  std::int64_t length = 0;
};

// The message follows those of the last run, or begins another one.
void AddToRuns(std::vector<Run>& runs, domain::Cursor cursor, std::string_view project,
               std::string_view agent) {
  if (runs.empty() || runs.back().project != project || runs.back().agent != agent) {
    runs.push_back({.project = std::string(project), .agent = std::string(agent), .first = cursor});
  }
  runs.back().last = cursor;
  ++runs.back().length;
}

Result<bool> HasMail(db::Connection& connection, const domain::BareName& name) {
  IL_TRY(const auto has,
         connection.One(kHasMail, [](const db::Row&) { return true; }, name.project, name.name));
  return has.has_value();
}

// The name whose mail is to be read as well, if it has any.
Result<std::optional<domain::BareName>> NameToRead(db::Connection& connection,
                                                   const std::optional<std::string>& project,
                                                   const std::optional<domain::BareName>& also) {
  using Name = std::optional<domain::BareName>;
  if (!also || (project && *project != also->project)) return Name();
  IL_TRY(const bool has, HasMail(connection, *also));
  return has ? also : Name();
}

// The next `limit` messages of the agent, under its name too, or in all projects.
Result<std::vector<Run>> NextRuns(db::Connection& connection, const domain::InboxQuery& query,
                                  const std::optional<domain::BareName>& name) {
  std::vector<Run> runs;
  const auto take = [&runs](const db::Row& row) {
    AddToRuns(runs, row.Int(0), row.Text(1), row.Text(2));
  };
  if (!name) {
    IL_TRY_VOID(connection.ForEach(kNextAnywhere, take, query.agent, query.after, query.limit));
  } else {
    const db::Sql& next = query.project ? kNextOrUnderName : kNextAnywhereOrUnderName;
    IL_TRY_VOID(connection.ForEach(next, take, query.agent, query.after, query.limit, name->project,
                                   name->name));
  }
  return runs;
}

Result<void> ReadRuns(db::Connection& connection, const std::vector<Run>& runs,
                      domain::MessageSink& page) {
  bool full = false;
  for (const Run& run : runs) {
    const auto take = [&](const db::Row& row) -> Result<void> {
      if (row.Int(0) > run.last) return {};  // a row whose message is gone made the run too long
      full = page.Add(DeliveryFrom(row)) == domain::Flow::kEnough;
      if (!full) return {};
      return Error(Errc::kCancelled, "the page is full");  // ends the statement
    };
    auto read =
        connection.ForEach(kReadInbox, take, run.project, run.agent, run.first - 1, run.length);
    if (full) return {};
    if (!read.ok()) return std::move(read).error();
  }
  return {};
}

}  // namespace

Result<std::optional<domain::InboxEnd>> ReadInbox(db::Connection& connection,
                                                  const domain::InboxQuery& query,
                                                  domain::MessageSink& sink) {
  Watched page(sink);
  IL_TRY(const auto name, NameToRead(connection, query.project, query.also));
  if (query.project && !name) {
    IL_TRY_VOID(ReadMessages(connection, page, kReadInbox, DeliveryFrom, *query.project,
                             query.agent, query.after, query.limit));
  } else {
    page.Restart();
    IL_TRY(const std::vector<Run> runs, NextRuns(connection, query, name));
    IL_TRY_VOID(ReadRuns(connection, runs, page));
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
  IL_TRY(const auto name, NameToRead(connection, query.project, query.also));
  if (name) {
    sink.Restart();
    std::vector<Run> runs;  // of one message each: others stand between them
    const auto take = [&](const db::Row& row) {
      runs.push_back({query.project, row.String(1), row.Int(0), row.Int(0), 1});
    };
    IL_TRY_VOID(connection.ForEach(kNextStaleAcks, take, query.project, query.agent, until.micros,
                                   query.limit, name->name));
    return ReadRuns(connection, runs, sink);
  }
  return ReadMessages(connection, sink, kReadStaleAcks, DeliveryFrom, query.project, query.agent,
                      until.micros, query.limit);
}

std::span<const db::NamedSql> InboxStatements() { return kStatements; }

}  // namespace interlock::store
