#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/sqlite/fault_disk.h"

namespace interlock::sqlite {

// The inside of FaultDisk, shared by its three .cc files; all of it is guarded by the disk's mutex.

// One unsynced change of a file: bytes within one sector, or a new size.
struct FaultDisk::Change {
  enum class Kind : std::uint8_t { kBytes, kSize };
  Kind kind;
  std::int64_t offset;  // of the bytes; or the new size
  std::vector<std::byte> bytes;
  bool forgotten = false;  // by a failed sync: later syncs pass it over
};

// The log's shared index: memory of the machine, gone with the power.
struct FaultDisk::Shm {
  struct Slot {
    int shared = 0;
    const File* exclusive = nullptr;
  };
  static constexpr int kSlots = 8;  // SQLITE_SHM_NLOCK

  std::vector<std::unique_ptr<std::uint64_t[]>> regions;  // never move: SQLite keeps pointers
  std::array<Slot, kSlots> slots;
  int users = 0;
};

struct FaultDisk::Node {
  std::vector<std::byte> bytes;   // what programs see
  std::vector<std::byte> synced;  // what a power cut leaves, before `changes`
  std::vector<Change> changes;    // unsynced, oldest first
  int shared = 0;                 // holders of at least a SHARED lock
  const File* reserved = nullptr;
  const File* pending = nullptr;
  const File* exclusive = nullptr;
  std::shared_ptr<Shm> shm;
};

struct FaultDisk::DirectoryChange {
  std::string name;
  std::shared_ptr<Node> node;  // none = deleted
};

class FaultDisk::File {
 public:
  std::string name;  // empty = temporary
  OpenMode mode;
  std::shared_ptr<Node> node;
  std::int64_t epoch = 0;
  bool directory_unsynced = false;
  int lock_level = 0;
  std::shared_ptr<Shm> shm;
  unsigned shm_shared = 0;  // bit per slot held
  unsigned shm_exclusive = 0;
};

}  // namespace interlock::sqlite
