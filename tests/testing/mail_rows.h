#pragma once

#include "base/result.h"
#include "db/connection.h"
#include "domain/message.h"

namespace interlock::testing {

// Puts a message with its event, its inbox rows and its thread members into the tables, as a send
// does, and returns its cursor. For tests and measurements of reading, which need mail without the
// rules of sending.
Result<domain::Cursor> InsertMessage(db::Transaction& tx, const domain::Message& message);

}  // namespace interlock::testing
