#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

// Waiting for a change of the database without asking it again and again.
namespace interlock::kernel {

// Tells that some process has written to a database, without reading it: it watches the file and
// its log through inotify. Where that sees nothing (a network file system, no watch to be had) the
// waits simply run out, so each has a bound.
//
// One thread.
class Watch {
 public:
  // What is written from now on is seen. `database` is the path of the file.
  explicit Watch(const std::filesystem::path& database);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  enum class Seen : std::uint8_t {
    kNothing,  // the time has passed
    kOther,    // something happened that need not concern the database
    kWrite,    // or the file was replaced or removed, since the last call
  };

  // Waits until something was written, at most `limit`.
  Seen Wait(Duration limit);

 private:
  bool TakeEvents();

  const std::string file_;  // names in the directory
  const std::string log_;
  int fd_ = -1;  // -1: nothing can be seen
};

// How long to wait for a write before looking at a database all the same. A commit is written to
// the log, then synced, and only then shown to others, of which nothing tells: so after a write the
// looks come after 1, 2, 4, … ms, and at last every second.
class LookPlan {
 public:
  static constexpr Duration kSoonest = std::chrono::milliseconds(1);
  static constexpr Duration kLatest = std::chrono::seconds(1);

  Duration next() const { return next_; }
  void After(Watch::Seen seen) {
    if (seen == Watch::Seen::kWrite) next_ = kSoonest;
    if (seen == Watch::Seen::kNothing) next_ = std::min(next_ * 2, kLatest);
  }

 private:
  Duration next_ = kSoonest;  // something may be on its way already
};

// Calls `look` at once and then whenever the database may have changed, until it says true; false
// when `limit` has passed. REQUIRES: no transaction is open while it waits.
Result<bool> LookUntil(const std::filesystem::path& database, Clock& clock, Duration limit,
                       const std::function<Result<bool>()>& look);

}  // namespace interlock::kernel
