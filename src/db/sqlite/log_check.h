#pragma once

#include <filesystem>

#include "base/clock.h"
#include "base/result.h"

namespace interlock::sqlite {

// Whether a database's log (-wal) was damaged from outside. SQLite does not tell: it takes a log
// that it cannot read, or the end of one, for what a crash left behind, and goes on without the
// commits in it. kCorrupt, with a detail "do", when
// (1) the log begins with something that is no header of a log, or
// (2) the index beside it (-shm) says that more has been committed to this log than it holds whole,
//     by the sums that each part carries. A commit reaches the log before the index, and what
//     leaves the log leaves the index first; so no crash of a process looks like that. After a
//     power cut the index may be of any age: one from before the machine started is not believed.
// (3) there is no index to ask, and behind the first part that is not whole two commits or more end
//     that belong to this log, the later upon the earlier. A crash leaves one at most, as each is
//     synced before the next begins. Several crashes may leave several, one behind the other, when
//     a process dies before the index tells of its commit and the next one writes over it; but
//     these know nothing of each other, and their sums do not go on from one to the next.
//
// `now` is the time of day. Reads the log once, as SQLite does after it.
// REQUIRES: this process has no connection to the database, as its locks would be lost.
Result<void> CheckLog(const std::filesystem::path& database, Timestamp now);

}  // namespace interlock::sqlite
