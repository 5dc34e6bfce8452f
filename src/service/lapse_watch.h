#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "store/lapses.h"

namespace interlock::service {

class Storage;

// Reports agents that have shown no sign of life for longer than the grace, each once, until they
// show one again. Agents that had lapsed before Start() are not reported.
//
// Thread-safe. Driven by the clock; a look is one small read, and a failed look is repeated at the
// next turn.
class LapseWatch {
 public:
  struct Options {
    Duration grace = std::chrono::minutes(5);
    Duration interval = std::chrono::seconds(60);  // from the end of a look to the next
    std::int64_t agents_max = 500;                 // in one look; the others are for the next
    std::function<void(const store::SeenAgent&)> on_lapsed = {};
  };

  // Both must outlive it.
  LapseWatch(Storage& storage, Clock& clock, Options options);
  ~LapseWatch();  // Stop()
  LapseWatch(const LapseWatch&) = delete;
  LapseWatch& operator=(const LapseWatch&) = delete;

  // REQUIRES: called at most once.
  void Start();

  // Waits for a look under way; none begins any more. Idempotent. REQUIRES: before Storage::Stop(),
  // and not on a thread of storage or clock.
  void Stop();

 private:
  class Core;
  const std::shared_ptr<Core> core_;
};

}  // namespace interlock::service
