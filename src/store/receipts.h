#pragma once

#include <span>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/mailbox.h"

namespace interlock::store {

// Writes down that a recipient has read or acknowledged a message. The first time stays; only that
// one appends an event, of the type message.read or message.ack with the message as its entity. The
// event names the recipient unless it is a bcc one, which nobody but itself and the sender may
// know.
Result<domain::ReceiptOutcome> RecordReceipt(db::Transaction& tx, const domain::Receipt& receipt);

std::span<const db::NamedSql> ReceiptStatements();

}  // namespace interlock::store
