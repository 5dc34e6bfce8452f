#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/event.h"
#include "domain/mailbox.h"
#include "domain/message.h"
#include "domain/resolution.h"

// Writing mail: the tables `messages`, `inbox` and `thread_members`, which change together and in
// no other place. A message stands in all of them, and in the log, under one cursor.
namespace interlock::store {

// A message with the texts of its rows. It is made before the write, since one thread writes for
// everybody.
struct Outgoing {
  domain::Message message;        // its addresses are those it reaches; its cursor is not looked at
  domain::Event event;            // message.created: no body, no address
  domain::Resolution resolution;  // kept with it
  std::string recipients;         // the column of that name
};

// REQUIRES: message.addresses holds each address once.
Outgoing MakeOutgoing(domain::Message message, domain::Resolution resolution = {});
void SetResolution(Outgoing& outgoing, domain::Resolution resolution);
// The same message, which does not reach `denied`, but whom it was meant for is kept.
// REQUIRES: `received` and `denied` together are the addresses of `all`.
Outgoing WithDenied(const Outgoing& all, domain::Addresses received, domain::Addresses denied);

// Appends the event, keeps the message, puts it into the inbox of every address, and counts it once
// for each agent that takes part in its thread. Returns the cursor.
// REQUIRES: the project has no message of that id, and somebody receives it.
Result<domain::Cursor> InsertMessage(db::Transaction& tx, const Outgoing& outgoing,
                                     domain::DeliveryListener& listener);

// A message as it was sent, and what became of it.
struct SentMessage {
  domain::Message message;  // its addresses are those it was meant for
  domain::Addresses received;
  domain::Addresses denied;
  domain::Resolution resolution = {};

  bool operator==(const SentMessage&) const = default;
};
Result<std::optional<SentMessage>> FindSentMessage(db::Connection& connection,
                                                   std::string_view project, std::string_view id);

std::span<const db::NamedSql> MessageStatements();

}  // namespace interlock::store
