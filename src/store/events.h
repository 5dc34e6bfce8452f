#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/event.h"

// The log of everything that happened (table `events`). Cursors rise in the order of commit, since
// there is one writer; whoever reads in the order of cursors misses nothing. Only a prefix is ever
// removed, and how far it reached is kept beside it, so that a reader whose place was removed is
// told so instead of missing something.
namespace interlock::store {

// Adds one event in the transaction of the change it tells of, and returns its cursor, which rises
// from call to call. `event.cursor` is not looked at.
Result<domain::Cursor> AppendEvent(db::Transaction& tx, const domain::Event& event);

// The last cursor that was given, whether its event is still kept or not; 0 = none yet.
Result<domain::Cursor> NewestCursor(db::Connection& connection);

// kGone, slug cursor_expired, with the detail oldest_cursor, when events after `cursor` have been
// removed. Never for 0, which means from the oldest one kept.
Result<void> RefuseExpired(db::Connection& connection, domain::Cursor cursor);

// The refusal of a cursor beyond `newest`, the end of the log: the cursor is from another database,
// or from before this one was restored. kConflict, slug kCursorAheadSlug, with the detail newest.
inline constexpr std::string_view kCursorAheadSlug = "cursor_ahead";
Error CursorAhead(domain::Cursor cursor, domain::Cursor newest);

// Refuses such a cursor. Never 0, nor one whose events are removed.
Result<void> RefuseAhead(db::Connection& connection, domain::Cursor cursor);

// Which events, and how much work to do for them.
struct EventQuery {
  std::optional<std::string> project = {};  // nothing = of every project
  domain::Cursor after = 0;
  domain::Cursor through = std::numeric_limits<domain::Cursor>::max();
  // Given: of message.created only those that this agent received. REQUIRES: a project.
  std::optional<std::string> recipient = {};
  std::optional<std::string> or_recipient = {};                // those under this name, too
  std::function<bool(std::string_view type)> wants = nullptr;  // null = every type
  std::size_t events_max = 100;
  std::size_t rows_max = 10'000;  // looked at, wanted or not
  // Of the events' texts; the one that reaches it is the last.
  std::size_t bytes_max = std::size_t{1024} * 1024;
};

struct EventChunk {
  std::vector<domain::Event> events = {};
  // All up to here has been looked at. When nothing is left: the end of the range, or of the log.
  domain::Cursor reached = 0;
  bool ended = false;  // nothing is left of the range
};

// The events after `after`, in the order of cursors. kGone as RefuseExpired() says, kConflict as
// RefuseAhead() does.
Result<EventChunk> ReadEvents(db::Connection& connection, const EventQuery& query);

// An event with the agents who received the message that it tells of, if it is message.created.
struct DeliveredEvent {
  domain::Event event;
  std::vector<std::string> recipients = {};
};

struct DeliveredChunk {
  std::vector<DeliveredEvent> events = {};
  bool ended = false;  // nothing is left
};

// The next events of every project, at most `rows_max`, fewer when their texts are long. A message
// whose recipients cannot be read has none: one bad row must not stop the log.
Result<DeliveredChunk> ReadDelivered(db::Connection& connection, domain::Cursor after,
                                     std::size_t rows_max);

// ---- Retention. The log is removed from its beginning, in the order of cursors, and up to the
// first event that is young enough. Dates decide, not cursors; but a date after `now` was given by
// a clock that has been set back since, and says nothing: such an event is as old as the next one
// with a date that can be. So a row of them, however long, holds nothing up: it goes as soon as
// what was written right after the clock was put right is old enough, with all before it.

struct OldEventsQuery {
  Timestamp now = {};
  Timestamp older_than = {};   // those made before it may go
  domain::Cursor after = 0;    // looks at those after it
  domain::Cursor through = 0;  // and at none after this one
  std::size_t rows_max = 500;  // looked at
};

struct OldEvents {
  // All events up to here may go, those before the query's `after` too; nothing = none was found.
  std::optional<domain::Cursor> through = {};
  // Where to look on: what lies before is old, or has a date that says nothing. It may be kept
  // until the first of these dates comes, `reached_until`; then they say something.
  domain::Cursor reached = 0;
  Timestamp reached_until = {std::numeric_limits<std::int64_t>::max()};
  bool ended = false;  // what comes next is too young, or there is nothing more
};

// Looks for events that may be removed. Changes nothing.
Result<OldEvents> FindOldEvents(db::Connection& connection, const OldEventsQuery& query);

// Removes the oldest events, none after `through` and at most `rows_max`, and returns how many.
Result<std::int64_t> PruneEvents(db::Transaction& tx, domain::Cursor through, std::size_t rows_max);

// The last cursor that was removed; 0 = nothing was.
Result<domain::Cursor> PrunedThrough(db::Connection& connection);

std::span<const db::NamedSql> EventStatements();

}  // namespace interlock::store
