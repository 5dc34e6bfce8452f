// File locks and shared memory of a FaultDisk, as SQLite's unix VFS gives them within one process.

#include <sqlite3.h>

#include <algorithm>

#include "base/check.h"
#include "db/sqlite/fault_disk.h"
#include "db/sqlite/fault_disk_state.h"

namespace interlock::sqlite {

int FaultDisk::Lock(File& file, int level) {
  MutexLock lock(mutex_);
  if (Dead(file)) return SQLITE_IOERR_LOCK;
  if (file.lock_level >= level) return SQLITE_OK;
  if (const Verdict verdict = Judge(DiskOp::kLock); verdict.fails) return verdict.code;
  Node& node = *file.node;
  const auto other = [&file](const File* holder) { return holder != nullptr && holder != &file; };
  if (level == SQLITE_LOCK_SHARED) {
    if (other(node.pending) || other(node.exclusive)) return SQLITE_BUSY;
    ++node.shared;
    file.lock_level = level;
    return SQLITE_OK;
  }
  IL_CHECK(file.lock_level >= SQLITE_LOCK_SHARED, "SQLite takes SHARED first");
  if (other(node.reserved) || other(node.pending)) return SQLITE_BUSY;
  if (level == SQLITE_LOCK_RESERVED) {
    node.reserved = &file;
    file.lock_level = level;
    return SQLITE_OK;
  }
  IL_CHECK(level == SQLITE_LOCK_EXCLUSIVE, "SQLite never asks for PENDING");
  node.pending = &file;  // from here on nobody else gets SHARED
  if (file.lock_level < SQLITE_LOCK_PENDING) file.lock_level = SQLITE_LOCK_PENDING;
  if (node.shared > 1) return SQLITE_BUSY;
  node.exclusive = &file;
  file.lock_level = level;
  return SQLITE_OK;
}

int FaultDisk::Unlock(File& file, int level) {
  MutexLock lock(mutex_);
  if (Dead(file)) return SQLITE_IOERR_UNLOCK;
  if (file.lock_level <= level) return SQLITE_OK;
  Node& node = *file.node;
  for (const File** holder : {&node.reserved, &node.pending, &node.exclusive}) {
    if (*holder == &file) *holder = nullptr;
  }
  if (level == SQLITE_LOCK_NONE) --node.shared;
  file.lock_level = level;
  return SQLITE_OK;
}

bool FaultDisk::IsReserved(File& file) {
  MutexLock lock(mutex_);
  const Node& node = *file.node;
  return node.reserved != nullptr || node.pending != nullptr || node.exclusive != nullptr;
}

FaultDisk::Region FaultDisk::ShmMap(File& file, std::size_t index, std::size_t size,
                                    Extend extend) {
  MutexLock lock(mutex_);
  if (Dead(file)) return {nullptr, SQLITE_IOERR_SHMMAP};
  if (const Verdict verdict = Judge(DiskOp::kShmMap); verdict.fails) {
    return {nullptr, verdict.code};
  }
  if (!file.shm) {
    if (!file.node->shm) file.node->shm = std::make_shared<Shm>();
    file.shm = file.node->shm;
    ++file.shm->users;
  }
  auto& regions = file.shm->regions;
  while (regions.size() <= index) {
    if (extend == Extend::kNo) return {nullptr, SQLITE_OK};
    if (space_ && *space_ < static_cast<std::int64_t>(size)) {
      ++fired_;
      return {nullptr, SQLITE_IOERR_SHMSIZE};
    }
    if (space_) *space_ -= static_cast<std::int64_t>(size);
    regions.push_back(std::make_unique<std::uint64_t[]>(size / sizeof(std::uint64_t)));
  }
  return {regions[index].get(), SQLITE_OK};
}

int FaultDisk::ShmLock(File& file, int first, int count, int flags) {
  MutexLock lock(mutex_);
  if (Dead(file)) return SQLITE_IOERR_SHMLOCK;
  IL_CHECK(file.shm != nullptr, "SQLite maps before it locks");
  IL_CHECK(first >= 0 && count >= 1 && first + count <= Shm::kSlots);
  const unsigned mask = ((1U << count) - 1U) << first;
  const std::span slots =
      std::span(file.shm->slots)
          .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  if ((flags & SQLITE_SHM_UNLOCK) != 0) {
    for (Shm::Slot& slot : slots) {
      if (slot.exclusive == &file) slot.exclusive = nullptr;
    }
    if ((file.shm_shared & mask) != 0) --slots.front().shared;
    file.shm_shared &= ~mask;
    file.shm_exclusive &= ~mask;
    return SQLITE_OK;
  }
  if (const Verdict verdict = Judge(DiskOp::kShmLock); verdict.fails) return verdict.code;
  if ((flags & SQLITE_SHM_SHARED) != 0) {
    IL_CHECK(count == 1);
    if ((file.shm_shared & mask) != 0) return SQLITE_OK;
    if (slots.front().exclusive != nullptr) return SQLITE_BUSY;
    ++slots.front().shared;
    file.shm_shared |= mask;
    return SQLITE_OK;
  }
  const bool taken = std::ranges::any_of(slots, [&file](const Shm::Slot& slot) {
    return slot.shared > 0 || (slot.exclusive != nullptr && slot.exclusive != &file);
  });
  if (taken) return SQLITE_BUSY;
  for (Shm::Slot& slot : slots) slot.exclusive = &file;
  file.shm_exclusive |= mask;
  return SQLITE_OK;
}

// As SQLite's own: taking a mutex is a full barrier, and TSan understands it.
void FaultDisk::ShmBarrier() { MutexLock lock(mutex_); }

void FaultDisk::ShmUnmap(File& file) {
  MutexLock lock(mutex_);
  if (!Dead(file)) ReleaseShm(file);
}

// The last user takes the memory along: the next one finds zeros, as after the unix VFS's
// truncation by the first opener.
void FaultDisk::ReleaseShm(File& file) {
  if (!file.shm) return;
  for (std::size_t i = 0; i < file.shm->slots.size(); ++i) {
    Shm::Slot& slot = file.shm->slots[i];
    if ((file.shm_shared & (1U << i)) != 0) --slot.shared;
    if (slot.exclusive == &file) slot.exclusive = nullptr;
  }
  file.shm_shared = 0;
  file.shm_exclusive = 0;
  if (--file.shm->users == 0) file.node->shm.reset();
  file.shm.reset();
}

}  // namespace interlock::sqlite
