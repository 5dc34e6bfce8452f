#pragma once

#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/event.h"

// Old mail that everybody is done with is forgotten, a few rows at a time:
//
//   domain::Cursor at = 0;
//   do {
//     at = (write PruneMessages(tx, older_than, at, 500)).continue_after;
//   } while (at != 0);
namespace interlock::store {

struct PrunedMessages {
  std::int64_t removed = 0;
  domain::Cursor continue_after = 0;  // where the next batch begins; 0 = this pass is over
};

// One batch of a pass: looks at the messages after `after` and removes those that were sent before
// `older_than` and that every recipient has read and, where it was asked for, acknowledged. Their
// inbox rows go with them; a member of their thread counts one less, its last message becomes the
// newest that is left to it, and it leaves the thread with the last one.
//
// A batch touches about `rows_max` rows, a message's recipients included, but at least one message.
// A pass ends with the table, or with a batch that saw nothing but younger messages: cursors follow
// the clock, unless it was set back. No event tells of it.
// REQUIRES: rows_max > 0.
Result<PrunedMessages> PruneMessages(db::Transaction& tx, Timestamp older_than,
                                     domain::Cursor after, std::int64_t rows_max);

std::span<const db::NamedSql> MessageRetentionStatements();

}  // namespace interlock::store
