#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"
#include "domain/message.h"

namespace interlock::testing {

// Puts a message with its event, its inbox rows and its thread members into the tables, as a send
// does, and returns its cursor. For tests and measurements of reading, which need mail without the
// rules of sending.
Result<domain::Cursor> InsertMessage(db::Transaction& tx, const domain::Message& message);

// The message with what the test left out: id "m" and the number, from s, to a, made now.
domain::Message Filled(domain::Message message, int number, Timestamp now);

}  // namespace interlock::testing
