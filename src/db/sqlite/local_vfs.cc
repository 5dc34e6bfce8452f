#include "db/sqlite/local_vfs.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include "base/check.h"
#include "db/sqlite/library.h"

namespace interlock::sqlite {
namespace {

sqlite3_vfs* OwnVfs() { return sqlite3_vfs_find("unix"); }

int Open(sqlite3_vfs* /*vfs*/, sqlite3_filename name, sqlite3_file* file, int flags,
         int* out_flags) {
  sqlite3_vfs* const own = OwnVfs();
  struct stat found = {};
  const bool written = (flags & SQLITE_OPEN_WAL) != 0 && name != nullptr &&
                       ::stat(name, &found) == 0 && found.st_size > 0;
  if (written) {
    const int code = own->xOpen(own, name, file, flags & ~SQLITE_OPEN_CREATE, out_flags);
    if (code == SQLITE_OK) return code;  // else it is gone by now, or something that is told below
  }
  return own->xOpen(own, name, file, flags, out_flags);
}

}  // namespace

const char* LocalVfs() {
  static sqlite3_vfs* const kRegistered = [] {
    SetUpLibrary();
    IL_CHECK(sqlite3_initialize() == SQLITE_OK && OwnVfs() != nullptr);
    static sqlite3_vfs vfs = *OwnVfs();
    vfs.zName = "interlock";
    vfs.pNext = nullptr;
    vfs.xOpen = Open;
    IL_CHECK(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
    return &vfs;
  }();
  return kRegistered->zName;
}

}  // namespace interlock::sqlite
