#include "db/sqlite/fault_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "db/sqlite/fault_disk_state.h"
#include "db/sqlite/library.h"

namespace interlock::sqlite {
namespace {

// What SQLite allocates per open file. Nothing here has a constructor: SQLite hands over raw
// memory.
struct Slot {
  sqlite3_file base;  // first: SQLite sees only this
  FaultDisk* disk;
  FaultDisk::File* file;  // owned; deleted by xClose
};

Slot& SlotOf(sqlite3_file* file) { return *reinterpret_cast<Slot*>(file); }
FaultDisk& DiskOf(sqlite3_vfs* vfs) { return static_cast<FaultVfs*>(vfs->pAppData)->disk(); }
sqlite3_vfs* SystemVfs() { return sqlite3_vfs_find(nullptr); }

template <typename Byte, typename Data>
std::span<Byte> Bytes(Data* data, int size) {
  return {static_cast<Byte*>(data), static_cast<std::size_t>(size)};
}

int Close(sqlite3_file* file) {
  Slot& slot = SlotOf(file);
  slot.disk->Close(*slot.file);
  const std::unique_ptr<FaultDisk::File> dies(std::exchange(slot.file, nullptr));
  return SQLITE_OK;
}

int Read(sqlite3_file* file, void* into, int size, sqlite3_int64 offset) {
  return SlotOf(file).disk->Read(*SlotOf(file).file, Bytes<std::byte>(into, size), offset);
}

int Write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  return SlotOf(file).disk->Write(*SlotOf(file).file, Bytes<const std::byte>(data, size), offset);
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  return SlotOf(file).disk->Truncate(*SlotOf(file).file, size);
}

int Sync(sqlite3_file* file, int /*flags*/) { return SlotOf(file).disk->Sync(*SlotOf(file).file); }

int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  *size = SlotOf(file).disk->Size(*SlotOf(file).file);
  if (*size >= 0) return SQLITE_OK;
  *size = 0;
  return SQLITE_IOERR_FSTAT;
}

int Lock(sqlite3_file* file, int level) {
  return SlotOf(file).disk->Lock(*SlotOf(file).file, level);
}

int Unlock(sqlite3_file* file, int level) {
  return SlotOf(file).disk->Unlock(*SlotOf(file).file, level);
}

int CheckReservedLock(sqlite3_file* file, int* reserved) {
  *reserved = SlotOf(file).disk->IsReserved(*SlotOf(file).file) ? 1 : 0;
  return SQLITE_OK;
}

int FileControl(sqlite3_file* /*file*/, int /*op*/, void* /*argument*/) { return SQLITE_NOTFOUND; }

// Both as SQLite's unix VFS, so that the pager does the same work on either.
int SectorSize(sqlite3_file* /*file*/) { return 4096; }
int DeviceCharacteristics(sqlite3_file* /*file*/) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

int ShmMap(sqlite3_file* file, int index, int size, int extend, void volatile** memory) {
  const FaultDisk::Region region = SlotOf(file).disk->ShmMap(
      *SlotOf(file).file, static_cast<std::size_t>(index), static_cast<std::size_t>(size),
      extend != 0 ? FaultDisk::Extend::kYes : FaultDisk::Extend::kNo);
  *memory = region.memory;
  return region.code;
}

int ShmLock(sqlite3_file* file, int first, int count, int flags) {
  return SlotOf(file).disk->ShmLock(*SlotOf(file).file, first, count, flags);
}

void ShmBarrier(sqlite3_file* file) { SlotOf(file).disk->ShmBarrier(); }

int ShmUnmap(sqlite3_file* file, int /*delete_it*/) {
  SlotOf(file).disk->ShmUnmap(*SlotOf(file).file);
  return SQLITE_OK;
}

constexpr sqlite3_io_methods kFileMethods = {
    .iVersion = 2,  // with shared memory, without memory-mapped reads
    .xClose = Close,
    .xRead = Read,
    .xWrite = Write,
    .xTruncate = Truncate,
    .xSync = Sync,
    .xFileSize = FileSize,
    .xLock = Lock,
    .xUnlock = Unlock,
    .xCheckReservedLock = CheckReservedLock,
    .xFileControl = FileControl,
    .xSectorSize = SectorSize,
    .xDeviceCharacteristics = DeviceCharacteristics,
    .xShmMap = ShmMap,
    .xShmLock = ShmLock,
    .xShmBarrier = ShmBarrier,
    .xShmUnmap = ShmUnmap,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  Slot& slot = SlotOf(file);
  slot.base.pMethods = nullptr;  // SQLite then calls no xClose
  FaultDisk& disk = DiskOf(vfs);
  constexpr int kLogs = SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL;
  const bool made_by_hand = (flags & SQLITE_OPEN_MAIN_DB) != 0 && std::filesystem::exists(name);
  const FaultDisk::OpenMode mode = {
      .writable = (flags & SQLITE_OPEN_READWRITE) != 0,
      .create = (flags & SQLITE_OPEN_CREATE) != 0 || made_by_hand,
      .exclusive = (flags & SQLITE_OPEN_EXCLUSIVE) != 0,
      .delete_on_close = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0,
      .syncs_directory = (flags & kLogs) != 0,
  };
  FaultDisk::Opened opened = disk.Open(name == nullptr ? "" : name, mode);
  if (opened.code != SQLITE_OK) return opened.code;
  slot.disk = &disk;
  slot.file = opened.file.release();
  slot.base.pMethods = &kFileMethods;
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs* vfs, const char* name, int sync_directory) {
  using Sync = FaultDisk::SyncDirectory;
  return DiskOf(vfs).Delete(name, sync_directory != 0 ? Sync::kYes : Sync::kNo);
}

int Access(sqlite3_vfs* vfs, const char* name, int /*flags*/, int* result) {
  *result = DiskOf(vfs).Exists(name) ? 1 : 0;
  return SQLITE_OK;
}

int FullPathname(sqlite3_vfs* /*vfs*/, const char* name, int size, char* into) {
  const std::string full = std::filesystem::absolute(name).lexically_normal().string();
  if (full.size() + 1 > static_cast<std::size_t>(size)) return SQLITE_CANTOPEN;
  std::memcpy(into, full.c_str(), full.size() + 1);
  return SQLITE_OK;
}

int Randomness(sqlite3_vfs* /*vfs*/, int size, char* into) {
  return SystemVfs()->xRandomness(SystemVfs(), size, into);
}

int Sleep(sqlite3_vfs* /*vfs*/, int micros) { return SystemVfs()->xSleep(SystemVfs(), micros); }

int CurrentTime(sqlite3_vfs* /*vfs*/, double* days) {
  return SystemVfs()->xCurrentTime(SystemVfs(), days);
}

int CurrentTimeInt64(sqlite3_vfs* /*vfs*/, sqlite3_int64* millis) {
  return SystemVfs()->xCurrentTimeInt64(SystemVfs(), millis);
}

int GetLastError(sqlite3_vfs* /*vfs*/, int /*size*/, char* /*into*/) { return 0; }

}  // namespace

struct FaultVfs::Registration {
  std::string name;
  sqlite3_vfs vfs;
};

FaultVfs::FaultVfs(std::uint64_t seed)
    : disk_(seed), registration_(std::make_unique<Registration>()) {
  SetUpLibrary();
  static std::atomic<int> last_number = 0;  // names are the process's, so their counter is too
  registration_->name = "interlock-fault-" + std::to_string(++last_number);
  sqlite3_vfs& vfs = registration_->vfs;
  vfs = {};
  vfs.iVersion = 2;
  vfs.szOsFile = sizeof(Slot);
  vfs.mxPathname = 1024;
  vfs.zName = registration_->name.c_str();
  vfs.pAppData = this;
  vfs.xOpen = Open;
  vfs.xDelete = Delete;
  vfs.xAccess = Access;
  vfs.xFullPathname = FullPathname;
  vfs.xRandomness = Randomness;
  vfs.xSleep = Sleep;
  vfs.xCurrentTime = CurrentTime;
  vfs.xGetLastError = GetLastError;
  vfs.xCurrentTimeInt64 = CurrentTimeInt64;
  IL_CHECK(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
}

FaultVfs::~FaultVfs() { IL_CHECK(sqlite3_vfs_unregister(&registration_->vfs) == SQLITE_OK); }

const std::string& FaultVfs::name() const { return registration_->name; }

}  // namespace interlock::sqlite
