#pragma once

#include <filesystem>

#include "base/clock.h"
#include "base/result.h"

namespace interlock::sqlite {

// Whether a database's log (-wal) was damaged from outside. SQLite does not tell: it takes a log
// that it cannot read, or the end of one, for what a crash left behind, and goes on without the
// commits in it. kCorrupt, with a detail "do", when
// (1) the log begins with something that is no header of a log, or
// (2) the index beside it (-shm) says that more has been committed to this log than it holds, or
//     something else where the last commit ends. A commit reaches the log before the index, and
//     what leaves the log leaves the index first; so no crash of a process looks like that. After
//     a power cut the index may be of any age: one from before the machine started is not believed.
// Damage in the middle, of which neither tells, is found by SQLite's own sums, and cut off there.
//
// `now` is the time of day. Costs a few system calls, nothing that grows with the log.
// REQUIRES: this process has no connection to the database, as its locks would be lost.
Result<void> CheckLog(const std::filesystem::path& database, Timestamp now);

}  // namespace interlock::sqlite
