#pragma once

#include <sqlite3.h>

namespace interlock::sqlite {

// Sets up the SQLite library of this process at the first call, which must come before SQLite is
// used at all; whoever names a VFS or opens a file calls it first. False: it came too late, and
// SQLite is as it always is, which only costs time. Thread-safe.
//
// - SQLite does not count the memory it uses: that takes one lock for all connections at every
//   allocation, and nobody asks for it.
// - Its page cache is the one of PageCache() below.
bool SetUpLibrary();

// SQLite's own page cache, but for one number. When a tree of pages is balanced, SQLite exchanges
// pages by way of a number that no page ever has, that of the pending byte, far behind the end of
// most files. Its cache then takes that for the highest number it holds, and the next COMMIT looks
// through the whole cache for pages behind the end of the file: the largest single cost of the
// writer, who balances in nearly every batch. Here such a page is kept under 0, which no page has
// either. Each cache belongs to one connection, and is used by one thread at a time as that is.
// REQUIRES: SetUpLibrary() was in time.
const sqlite3_pcache_methods2& PageCache();

}  // namespace interlock::sqlite
