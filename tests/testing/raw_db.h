#pragma once

#include <sqlite3.h>

#include <filesystem>
#include <string>

#include "base/check.h"

namespace interlock::testing {

// A connection as another program would make it: plain SQLite, which waits for locks for a while,
// and nothing else set. A file that it makes is in rollback mode. Mistakes fail a check.
class RawDb {
 public:
  explicit RawDb(const std::filesystem::path& path) {
    IL_CHECK(sqlite3_open(path.c_str(), &db_) == SQLITE_OK);
    sqlite3_busy_timeout(db_, kBusyTimeoutMs);
  }
  ~RawDb() { sqlite3_close(db_); }
  RawDb(const RawDb&) = delete;
  RawDb& operator=(const RawDb&) = delete;

  void Run(const std::string& script) const {
    const int code = sqlite3_exec(db_, script.c_str(), nullptr, nullptr, nullptr);
    IL_CHECK(code == SQLITE_OK, sqlite3_errmsg(db_));
  }
  // Leaves the log as after a kill of the process, instead of moving it into the file.
  void KeepLogOnClose() const {
    sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }

 private:
  static constexpr int kBusyTimeoutMs = 5000;
  sqlite3* db_ = nullptr;
};

}  // namespace interlock::testing
