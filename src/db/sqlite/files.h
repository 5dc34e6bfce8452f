#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/result.h"

namespace interlock::sqlite {

// What must be true of a database's place on disk before SQLite may open it.

enum class IfMissing : std::uint8_t { kFail, kCreate };

// Returns the path to hand to SQLite, without a symlink in it, so that SQLITE_OPEN_NOFOLLOW can
// guard the time between this check and the open. Symlinks above the parent directory (a linked
// /tmp or /home) are the administrator's and are resolved; the file and its parent directory must
// not be one. The file must be a regular file.
//
// kCreate makes what is missing, whatever the umask: directories 0700, an empty file 0600 (SQLite
// gives -wal and -shm the mode of the database). Existing modes stay as they are.
Result<std::filesystem::path> SafePath(const std::filesystem::path& path, IfMissing if_missing);

// The same of the directory only: it is made when missing, and the path returned whether or not
// there is a file. For what lies beside a database and comes before it, such as a lock.
Result<std::filesystem::path> SafePlace(const std::filesystem::path& path, IfMissing if_missing);

// Makes an empty file of mode 0600 without opening it: closing a descriptor of a database would
// drop the locks that another connection of this process holds on it. kAlreadyExists when there is
// something of that name.
Result<void> CreatePrivateFile(const std::filesystem::path& path);

// Which file it is, whatever its name.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t number = 0;

  bool operator==(const FileId&) const = default;
};

// The file of this name; nothing when there is none.
std::optional<FileId> FileAt(const std::filesystem::path& path);

}  // namespace interlock::sqlite
