#pragma once

namespace interlock::sqlite {

// The name of a VFS like LocalVfs() that writes a log in few large pieces. SQLite writes each page
// of a commit with two calls, some two hundred for a batch of ours; here what it appends to the log
// is gathered in memory and written at once when SQLite syncs the log, reads from it or asks for
// its size, or when there is much of it. What fails then fails the sync, and so the COMMIT.
//
// REQUIRES: synchronous=FULL. Then every commit syncs the log before the others are shown its
// pages, so nobody ever looks for a page that is still in memory.
//
// Registered at the first call. Thread-safe; each file belongs to its connection.
const char* GatheringVfs();

}  // namespace interlock::sqlite
