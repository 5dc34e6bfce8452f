#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/event.h"

// Old mail that everybody is done with is forgotten, a few rows at a time: found by reads, which
// hold up nobody, and removed by a write only when there is something to remove.
//
//   DoneMessages done = (read FindDoneMessages(connection, {.older_than = …, .after = at}));
//   if (!done.cursors.empty()) (write PruneMessages(tx, done.cursors));
//   at = done.ended ? 0 : done.reached;
namespace interlock::store {

struct DoneMessagesQuery {
  Timestamp now = {};
  Timestamp older_than = {};  // only those sent before it
  domain::Cursor after = 0;   // looks at those after it
  std::int64_t rows_max = 500;
};

struct DoneMessages {
  std::vector<domain::Cursor> cursors = {};
  domain::Cursor reached = 0;  // where to look on
  bool ended = false;          // there is nothing more to look at
};

// Finds messages that every recipient has read and, where it was asked for, acknowledged. Only
// those whose event is removed already (PrunedThrough() of events.h): while the event is there, who
// replays the log must find the message's recipients. A date after `now` says nothing, as there.
//
// Looks at about `rows_max` rows, a message's recipients included, but at least at one message.
// REQUIRES: rows_max > 0.
Result<DoneMessages> FindDoneMessages(db::Connection& connection, const DoneMessagesQuery& query);

// Removes these messages, and returns how many; one that is gone, or not done, is left out. Their
// inbox rows and pokes go with them; a member of their thread counts one less, its last message
// becomes the newest that is left to it, and it leaves the thread with the last one. No event tells
// of it.
Result<std::int64_t> PruneMessages(db::Transaction& tx, std::span<const domain::Cursor> cursors);

std::span<const db::NamedSql> MessageRetentionStatements();

}  // namespace interlock::store
