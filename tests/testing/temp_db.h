#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "db/sqlite/connection.h"

namespace interlock::testing {

// A new empty directory, removed with everything in it at the end. It lies under $TMPDIR or /tmp,
// and its path holds no symlink. Its files are kept in IL_RECORD_DIR/written, if that is set.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A directory with the place for one SQLite database in it. Opening creates the file.
class TempDb {
 public:
  std::filesystem::path path() const { return directory_.path() / "test.db"; }
  const std::filesystem::path& directory() const { return directory_.path(); }

  sqlite::OpenOptions options(sqlite::Access access = sqlite::Access::kReadWriteOrCreate) const;
  // Fails a check when it cannot.
  std::unique_ptr<sqlite::Connection> Open(
      sqlite::Access access = sqlite::Access::kReadWriteOrCreate) const;
  // Opens, runs a schema, closes.
  void Make(std::string_view script) const;

 private:
  TempDir directory_;
};

}  // namespace interlock::testing
