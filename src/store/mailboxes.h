#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/event.h"
#include "domain/mailbox.h"

// How much is in each inbox (table `mailboxes`), and where else than in its first project an agent
// has mail (table `inbox_abroad`). Whoever changes rows of `inbox` says so here, in the same
// transaction, so that nobody ever has to count them.
namespace interlock::store {

// A message was put into the inbox, unread.
Result<void> CountDelivered(db::Transaction& tx, std::string_view project, std::string_view agent,
                            domain::Cursor cursor);
// One that was unread has been read.
Result<void> CountRead(db::Transaction& tx, std::string_view project, std::string_view agent);
// One that had been read was taken out. A mailbox without mail is no more.
Result<void> CountRemoved(db::Transaction& tx, std::string_view project, std::string_view agent,
                          domain::Cursor cursor);

// With `bare_name`, also what is in the inbox of that name; a message that is in both counts once,
// as it is in the agent's own. Costs a walk over the inbox of the name if both have mail.
Result<domain::InboxCounts> CountInbox(db::Connection& connection, std::string_view project,
                                       std::string_view agent, std::string_view bare_name = {});

std::span<const db::NamedSql> MailboxStatements();

}  // namespace interlock::store
