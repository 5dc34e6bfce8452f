#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "domain/event.h"
#include "domain/reservation.h"

namespace interlock {
class Logger;
}

namespace interlock::service {

class Storage;

// Clears away, now and then and a little at a time: reservations that ran out and whose owner has
// not been heard of, and what is old: events, mail that everybody is done with, and reservations
// that were released. It looks for it with small reads and removes it with small writes among those
// of the requests, so that none of them waits long. A sweep that finds nothing writes nothing and
// reads a bounded number of rows; where it stopped looking the next one goes on. What fails is
// logged and tried again with the next sweep.
//
// The chores stand in one table in sweeper.cc; what the server is to clear away besides is one more
// row there.
//
// Thread-safe. Driven by the clock; no thread of its own.
class Sweeper {
 public:
  struct Expired {
    std::vector<domain::Reservation> reservations;
    std::map<std::string, std::string> names = {};  // of their agents, by id; of the registered
  };
  struct Options {
    Duration interval = std::chrono::seconds(60);  // from the end of a sweep to the next
    std::chrono::days retain{30};                  // 0 = for ever
    std::size_t rows_max = 500;                    // per step
    // How long after its last sign of life an agent's reservations are left alone, run out or not.
    Duration heartbeat_grace = std::chrono::minutes(5);
    // Hears of reservations that ran out and are cleared away, each with its event in the log.
    std::function<void(const Expired&)> on_expired = {};
  };

  // The first sweep leaves alone what ran out more recently than this: while the server was down
  // nobody could renew.
  static constexpr Duration kStartSlack = std::chrono::minutes(5);

  // Storage, clock and log must outlive it. `published` says up to where events have been handed
  // out; later ones are never removed, however old the clock makes them look. Thread-safe.
  Sweeper(Storage& storage, Clock& clock, Logger& log, std::function<domain::Cursor()> published,
          Options options);
  ~Sweeper();  // Stop()
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  // The first sweep begins at once, on the clock's thread. REQUIRES: called at most once.
  void Start();

  // Ends the sweep under way after its step, for which it waits; none begins any more. Idempotent,
  // also before Start(). REQUIRES: before Storage::Stop(), and not on a thread of storage or clock.
  void Stop();

  struct Stats {
    std::uint64_t sweeps = 0;    // that came to their end
    std::uint64_t failures = 0;  // of steps
    std::uint64_t removed = 0;   // things, whatever they were
  };
  Stats stats() const;

 private:
  class Core;
  const std::shared_ptr<Core> core_;
};

}  // namespace interlock::service
