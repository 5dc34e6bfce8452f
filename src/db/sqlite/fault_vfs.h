#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "db/sqlite/fault_disk.h"

namespace interlock::sqlite {

// Makes a FaultDisk usable by SQLite: registers a VFS under a name of its own, to be given as
// OpenOptions::vfs. For tests only. Time, sleeping and randomness (the log's salts) are the
// machine's: they change no call, so a seed still replays. A database file that a program made on
// the machine's own file system, to choose its mode, counts as there and empty.
//
// Thread-safe, and any number may exist at once. REQUIRES: connections are closed before it dies.
class FaultVfs {
 public:
  explicit FaultVfs(std::uint64_t seed = 1);
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  const std::string& name() const;
  FaultDisk& disk() { return disk_; }

 private:
  struct Registration;

  FaultDisk disk_;
  std::unique_ptr<Registration> registration_;
};

}  // namespace interlock::sqlite
