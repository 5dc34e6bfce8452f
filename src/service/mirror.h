#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "db/foreign_file.h"
#include "domain/event.h"

namespace interlock {
class Logger;
}

namespace interlock::service {

class Storage;

// Keeps the file of `ic` told of reservations: whatever the event log says of one is written as a
// row of `coordination_locks` there (intercore/locks.h), so that hooks which only ask `ic` respect
// it. One way only: what others write there is not looked at, and is overwritten where it is ours.
//
// Thread-safe. It has a thread of its own, the only one that touches the foreign file, and nobody
// waits for it: requests do not notice whether that file is slow, locked, gone or damaged.
//
// Invariants:
// (1) Order: it goes through the log by cursor and writes each reservation as it is now, not as it
//     was then, so a row never goes back in time, however often a stretch of the log is repeated.
//     Writing is idempotent, therefore. That is why the place in the log need not be committed
//     together with the rows, for which the foreign schema has no room: it is kept in our own
//     database, saved now and then, and never ahead of what is durable there.
// (2) Nothing is skipped: after a failure it goes on from the same place. A file that does not have
//     the row that was written last is not the one we know (made anew, or put back from a backup);
//     then, and when the place is no longer in the log, it begins from the oldest event kept.
// (3) An outage is logged once at its beginning and once at its end.
class Mirror {
 public:
  struct Options {
    std::size_t rows_max = 512;                           // events per step
    Duration pace = std::chrono::milliseconds(20);        // from one pass to the next
    Duration recheck = std::chrono::seconds(10);          // is the file still there?
    Duration retry_min = std::chrono::milliseconds(100);  // doubled with each failure in a row
    Duration retry_max = std::chrono::seconds(10);
    domain::Cursor save_every = 1024;  // events until the place is saved
    int last_steps_max = 8;            // when it is stopped while it works
    Duration storage_budget = std::chrono::seconds(10);
  };

  // Storage, clock and log must outlive it.
  Mirror(Storage& storage, Clock& clock, Logger& log, std::unique_ptr<db::ForeignFile> file,
         Options options);
  Mirror(Storage& storage, Clock& clock, Logger& log, std::unique_ptr<db::ForeignFile> file)
      : Mirror(storage, clock, log, std::move(file), Options{}) {}
  ~Mirror();  // Stop()
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  // REQUIRES: called at most once.
  void Start();

  // Something may have been committed. Quick; never waits, never throws.
  void Notify();

  // Writes what is still to be written, if the file is there and it is not much, and saves its
  // place. Idempotent, also before Start(). REQUIRES: before Storage::Stop(), and not on a thread
  // of storage or clock.
  void Stop();

  struct Stats {
    domain::Cursor cursor = 0;   // all up to here is mirrored
    std::uint64_t written = 0;   // rows
    std::uint64_t refused = 0;   // rows, by the table's own rules
    std::uint64_t failures = 0;  // of steps
    std::uint64_t passes = 0;    // that came to the end of the log
    bool in_outage = false;
  };
  Stats stats() const;

 private:
  class Core;
  const std::shared_ptr<Core> core_;
};

}  // namespace interlock::service
