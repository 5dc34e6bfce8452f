#pragma once

namespace interlock::sqlite {

// The name of the VFS that connections use when none is named: SQLite's own, but for one thing.
// With the first sync of a log SQLite also syncs its directory, in case the log was new; a process
// of `ic` writes once, so each of its writes would pay for two syncs. Here a log that already holds
// something is opened as one that is not new: whoever wrote into it first has synced the directory,
// before the first write was acknowledged. (Between those two syncs a kill leaves that to the file
// system: ext4, xfs and btrfs make a file's name durable with the file itself.)
//
// Registered at the first call. Thread-safe.
const char* LocalVfs();

}  // namespace interlock::sqlite
