#pragma once

#include "base/result.h"
#include "db/database.h"

namespace interlock::db {

// Read and Write for code that may block: start-up, tools, tests. Never on a storage thread or an
// io thread, nor on a database that is stepped by hand: nobody would be left to do the work.
Result<void> ReadAndWait(Database& database, Database::ReadFn fn);
Result<void> WriteAndWait(Database& database, Database::WriteFn fn);

}  // namespace interlock::db
