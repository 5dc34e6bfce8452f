#pragma once

#include <chrono>
#include <memory>

#include "base/clock.h"

namespace interlock::service {

class Storage;

// Stores the signs of life that Storage::signs() remembers, so that a restart forgets at most the
// last `interval`. All agents share a write, which joins the commit of other writes that wait; with
// nothing to store, nothing is written. Signs that could not be stored stay in memory, where they
// count, and are tried again.
//
// Thread-safe. Driven by the clock; no thread of its own.
class SignWriter {
 public:
  // From the end of one round to the next: an agent's row is written at most so often.
  static constexpr Duration kInterval = std::chrono::seconds(15);

  // Both must outlive it.
  SignWriter(Storage& storage, Clock& clock, Duration interval = kInterval);
  ~SignWriter();  // Stop()
  SignWriter(const SignWriter&) = delete;
  SignWriter& operator=(const SignWriter&) = delete;

  // REQUIRES: called at most once.
  void Start();

  // Waits for the round under way, and hands what is left to the storage, which has written it when
  // the database is closed. Idempotent, also before Start(). REQUIRES: before Storage::Stop(), and
  // not on a thread of storage or clock.
  void Stop();

 private:
  class Core;
  const std::shared_ptr<Core> core_;
};

}  // namespace interlock::service
