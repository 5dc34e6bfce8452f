#pragma once

#include <cstddef>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "events/hub.h"

namespace interlock {
class Logger;
}
namespace interlock::db {
class Connection;
}

namespace interlock::service {

class Storage;

// Follows the end of the log and publishes to the hub what was committed: all of it, once, in the
// order of cursors. It knows nothing of who wrote what, so a write whose caller gave up, and one of
// unknown outcome that turns out to be there, are published like any other.
//
// Thread-safe. Invariants:
// (1) At most one pass is under way: read what comes after `published`, publish it, until nothing
//     is left. A notice during a pass causes another one after it, so nothing waits for the next
//     commit.
// (2) A read that fails is repeated later, by the clock; until then nothing is published. Nothing
//     is ever skipped while somebody listens.
// (3) While nobody listens only the newest cursor is read, and taken over only if nobody has joined
//     meanwhile. Where the writer lends its connection that is done at once, on its thread: no
//     reader is woken for a commit that nobody hears of.
class Tail {
 public:
  struct Options {
    std::size_t rows_max = 512;  // per read
    Duration read_budget = std::chrono::seconds(10);
    Duration retry_min = std::chrono::milliseconds(50);  // doubled with each failure in a row
    Duration retry_max = std::chrono::seconds(5);
  };

  // Storage, clock and log must outlive it, or rather the storage's last callback.
  Tail(Storage& storage, std::shared_ptr<events::Hub> hub, Clock& clock, Logger& log,
       Options options);
  Tail(Storage& storage, std::shared_ptr<events::Hub> hub, Clock& clock, Logger& log)
      : Tail(storage, std::move(hub), clock, log, Options{}) {}
  ~Tail();  // Stop()
  Tail(const Tail&) = delete;
  Tail& operator=(const Tail&) = delete;

  // Something may have been committed. Quick, and never throws: one small read on `own` at most.
  // `own`: the writer's connection, outside of a transaction, if it is the writer that tells; else
  // null.
  void Notify(db::Connection* own);

  // Publishes no more. Idempotent. What is being read is forgotten when it comes.
  void Stop();

 private:
  class Core;
  const std::shared_ptr<Core> core_;
};

}  // namespace interlock::service
