#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

// Waits for changes of the database without polling it constantly.
namespace interlock::kernel {

// Reports that a process has written to a database, without reading the database: it watches the
// file and its log through inotify. Where inotify reports nothing (a network file system, no watch
// available), each wait ends at its time limit.
//
// For one thread.
class DatabaseWatch {
 public:
  // Watches from now on. `database` is the path of the file.
  explicit DatabaseWatch(const std::filesystem::path& database);
  ~DatabaseWatch();
  DatabaseWatch(const DatabaseWatch&) = delete;
  DatabaseWatch& operator=(const DatabaseWatch&) = delete;

  enum class WaitResult : std::uint8_t {
    kTimeout,  // the time limit was reached
    kOther,    // an event that need not concern the database
    kWrite,    // the file was written, replaced or removed since the last call
  };

  // Waits for an event, at most `limit`.
  WaitResult Wait(Duration limit);

 private:
  bool TakeEvents();

  const std::string file_;  // names inside the watched directory
  const std::string log_;
  int fd_ = -1;  // -1: no events available
};

// Computes the delay until the next look at a database. A commit is written to the log, then
// synced, and only then visible to other processes, without a further event. So after a write the
// looks follow after 1, 2, 4, … ms, and finally every second.
class PollBackoff {
 public:
  static constexpr Duration kSoonest = std::chrono::milliseconds(1);
  static constexpr Duration kLatest = std::chrono::seconds(1);

  Duration next() const { return next_; }
  void After(DatabaseWatch::WaitResult result) {
    if (result == DatabaseWatch::WaitResult::kWrite) next_ = kSoonest;
    if (result == DatabaseWatch::WaitResult::kTimeout) next_ = std::min(next_ * 2, kLatest);
  }

 private:
  Duration next_ = kSoonest;  // a commit may be in progress already
};

// Calls `look` at once, and again whenever the database may have changed, until it returns true.
// Returns false when `limit` has passed. REQUIRES: no transaction is open while this waits.
Result<bool> PollUntil(const std::filesystem::path& database, Clock& clock, Duration limit,
                       const std::function<Result<bool>()>& look);

}  // namespace interlock::kernel
