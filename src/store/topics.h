#pragma once

#include <span>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/mailbox.h"

namespace interlock::store {

// A page of what was sent under a topic of a project, by rising cursor, whoever received it;
// nothing for a topic that nobody used, the empty one included. kConflict as RefuseAhead() of
// store/events.h says. Costs what the page costs.
Result<void> ReadTopic(db::Connection& connection, const domain::TopicQuery& query,
                       domain::MessageSink& sink);

std::span<const db::NamedSql> TopicStatements();

}  // namespace interlock::store
