#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/event.h"

// The log of everything that happened (table `events`). Cursors rise in the order of commit, since
// there is one writer; whoever reads in the order of cursors misses nothing.
namespace interlock::store {

// Adds one event in the transaction of the change it tells of, and returns its cursor, which rises
// from call to call. `event.cursor` is not looked at.
Result<domain::Cursor> AppendEvent(db::Transaction& tx, const domain::Event& event);

std::span<const db::NamedSql> EventStatements();

}  // namespace interlock::store
