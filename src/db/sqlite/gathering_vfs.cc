#include "db/sqlite/gathering_vfs.h"

#include <sqlite3.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <string>

#include "base/check.h"
#include "db/sqlite/library.h"

namespace interlock::sqlite {

// What SQLite knows of it comes first, so that its pointer is ours.
struct GatheringVfs::Registration {
  sqlite3_vfs vfs;
  sqlite3_vfs* base;
  std::string name;
};

namespace {

// SQLite's own files take at most 128 KiB at a time.
constexpr std::size_t kGatheredMax = std::size_t{96} * 1024;

// A log: what stands at `offset` of the file, once it is written. SQLite's own file follows it in
// memory, since SQLite gives room for both.
struct Log {
  sqlite3_file head;  // first: what SQLite knows of it
  std::string* gathered;
  sqlite3_int64 offset;
  sqlite3_int64 failed;  // the code of the first write that failed, or SQLITE_OK

  sqlite3_file* own() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};
static_assert(sizeof(Log) % alignof(std::max_align_t) == 0 || alignof(std::max_align_t) > 8);

Log& LogOf(sqlite3_file* file) { return *reinterpret_cast<Log*>(file); }

int Flush(Log& log) {
  if (log.failed == SQLITE_OK && !log.gathered->empty()) {
    log.failed = log.own()->pMethods->xWrite(log.own(), log.gathered->data(),
                                             static_cast<int>(log.gathered->size()), log.offset);
    log.gathered->clear();
  }
  return static_cast<int>(log.failed);
}

int Close(sqlite3_file* file) {
  Log& log = LogOf(file);
  delete log.gathered;  // of no commit: that would have been synced
  return log.own()->pMethods->xClose(log.own());
}

int Read(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
  Log& log = LogOf(file);
  if (const int code = Flush(log); code != SQLITE_OK) return code;
  return log.own()->pMethods->xRead(log.own(), to, size, offset);
}

int Write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
  Log& log = LogOf(file);
  if (log.failed != SQLITE_OK) return static_cast<int>(log.failed);
  const auto count = static_cast<sqlite3_int64>(log.gathered->size());
  const bool follows = offset == log.offset + count;
  if (!follows || log.gathered->size() + static_cast<std::size_t>(size) > kGatheredMax) {
    if (const int code = Flush(log); code != SQLITE_OK) return code;
  }
  if (log.gathered->empty()) log.offset = offset;
  try {
    log.gathered->append(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
  } catch (const std::bad_alloc&) {
    return SQLITE_IOERR_NOMEM;
  }
  return SQLITE_OK;
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  Log& log = LogOf(file);
  if (const int code = Flush(log); code != SQLITE_OK) return code;
  return log.own()->pMethods->xTruncate(log.own(), size);
}

int Sync(sqlite3_file* file, int flags) {
  Log& log = LogOf(file);
  if (const int code = Flush(log); code != SQLITE_OK) return code;
  return log.own()->pMethods->xSync(log.own(), flags);
}

int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  Log& log = LogOf(file);
  if (const int code = Flush(log); code != SQLITE_OK) return code;
  return log.own()->pMethods->xFileSize(log.own(), size);
}

int Lock(sqlite3_file* file, int level) {
  return LogOf(file).own()->pMethods->xLock(LogOf(file).own(), level);
}

int Unlock(sqlite3_file* file, int level) {
  return LogOf(file).own()->pMethods->xUnlock(LogOf(file).own(), level);
}

int CheckReservedLock(sqlite3_file* file, int* held) {
  return LogOf(file).own()->pMethods->xCheckReservedLock(LogOf(file).own(), held);
}

int FileControl(sqlite3_file* file, int what, void* argument) {
  return LogOf(file).own()->pMethods->xFileControl(LogOf(file).own(), what, argument);
}

int SectorSize(sqlite3_file* file) {
  return LogOf(file).own()->pMethods->xSectorSize(LogOf(file).own());
}

int DeviceCharacteristics(sqlite3_file* file) {
  return LogOf(file).own()->pMethods->xDeviceCharacteristics(LogOf(file).own());
}

// Version 1: a log is neither shared nor mapped.
constexpr sqlite3_io_methods kMethods = {.iVersion = 1,
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
                                         .xShmMap = nullptr,
                                         .xShmLock = nullptr,
                                         .xShmBarrier = nullptr,
                                         .xShmUnmap = nullptr,
                                         .xFetch = nullptr,
                                         .xUnfetch = nullptr};

int Open(sqlite3_vfs* base, sqlite3_filename name, sqlite3_file* file, int flags, int* out_flags) {
  if ((flags & SQLITE_OPEN_WAL) == 0) return base->xOpen(base, name, file, flags, out_flags);
  Log& log = LogOf(file);
  log.head.pMethods = nullptr;  // not open
  log.gathered = new (std::nothrow) std::string;
  if (log.gathered == nullptr) return SQLITE_NOMEM;
  log.offset = 0;
  log.failed = SQLITE_OK;
  const int code = base->xOpen(base, name, log.own(), flags, out_flags);
  if (code == SQLITE_OK) {
    log.head.pMethods = &kMethods;
    return code;
  }
  if (log.own()->pMethods != nullptr) log.own()->pMethods->xClose(log.own());
  delete log.gathered;
  return code;
}

}  // namespace

GatheringVfs::GatheringVfs(const std::string& base)
    : registration_(std::make_unique<Registration>()) {
  SetUpLibrary();
  static std::atomic<int> made = 0;
  Registration& own = *registration_;
  own.base = sqlite3_vfs_find(base.c_str());
  IL_CHECK(own.base != nullptr);
  own.name = base + "-gathering-" + std::to_string(++made);
  own.vfs = *own.base;
  own.vfs.zName = own.name.c_str();
  own.vfs.pNext = nullptr;
  own.vfs.szOsFile += static_cast<int>(sizeof(Log));
  own.vfs.xOpen = [](sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* file, int flags,
                     int* out_flags) {
    return Open(reinterpret_cast<Registration*>(vfs)->base, name, file, flags, out_flags);
  };
  IL_CHECK(sqlite3_vfs_register(&own.vfs, 0) == SQLITE_OK);
}

GatheringVfs::~GatheringVfs() { sqlite3_vfs_unregister(&registration_->vfs); }

const std::string& GatheringVfs::name() const { return registration_->name; }

}  // namespace interlock::sqlite
