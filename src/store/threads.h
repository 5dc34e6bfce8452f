#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/mailbox.h"

// Threads: which ones an agent takes part in (table `thread_members`), and what was said in one.
namespace interlock::store {

inline constexpr std::size_t kLastBodyBytesMax = 200;

// The threads of an agent, newest first. `last_body` is at most kLastBodyBytesMax bytes, cut
// between characters. kConflict as RefuseAhead() of store/events.h says. Costs a walk over all
// threads that the agent takes part in, a microsecond each: an order that every message would
// change is not kept.
Result<std::vector<domain::ThreadSummary>> ListThreads(db::Connection& connection,
                                                       const domain::ThreadsQuery& query);

// A page of a thread, by rising cursor; nothing when there is no such thread. kConflict as
// RefuseAhead() of store/events.h says. Costs what the page costs.
Result<void> ReadThread(db::Connection& connection, const domain::ThreadQuery& query,
                        domain::MessageSink& sink);

std::span<const db::NamedSql> ThreadStatements();

}  // namespace interlock::store
