#pragma once

#include <optional>
#include <span>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/mailbox.h"

// What came to an agent (table `inbox`): one row per message and recipient, however addressed.
namespace interlock::store {

// A page of an agent's mail, by rising cursor. Costs what the page costs, however much mail there
// is before and behind it, and in how many projects. Returns where the inbox ends, if the page
// reaches that. kConflict as RefuseAhead() of store/events.h says.
// REQUIRES: the connection reads one snapshot throughout.
Result<std::optional<domain::InboxEnd>> ReadInbox(db::Connection& connection,
                                                  const domain::InboxQuery& query,
                                                  domain::MessageSink& sink);

// Messages that ask for an acknowledgement which the agent has not given, oldest first. Costs a
// walk over those alone.
Result<void> ReadStaleAcks(db::Connection& connection, const domain::StaleAcksQuery& query,
                           domain::MessageSink& sink);

std::span<const db::NamedSql> InboxStatements();

}  // namespace interlock::store
