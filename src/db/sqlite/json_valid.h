#pragma once

struct sqlite3;

namespace interlock::sqlite {

// Lets the definitions in a file call json_valid(), although its schema is not trusted.
//
// SQLite refuses what a file's own definitions call unless the function is marked as innocuous.
// Releases like 3.40 do not mark their JSON functions, though they are (3.46 does), so they read no
// file with a CHECK (json_valid(…)), which files of the older `ic` have. This defines the function
// again, with the mark; the answer is that of SQLite's own one. The result is SQLite's code.
int AllowJsonValid(sqlite3* db);

}  // namespace interlock::sqlite
