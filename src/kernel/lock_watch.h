#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace interlock::kernel {

// Waits until a lock may be free: its directory was moved or removed, or its holder ended. It may
// return early, so the caller checks again after each wait.
//
// For one thread. It misses no change after its construction: construct, check the lock, then wait.
class LockWatch {
 public:
  enum class Method : std::uint8_t {
    kEvents,   // file system events; falls back to kBackOff if the file system has none
    kBackOff,  // return after 1, 2, 4, … 50 ms
  };

  // Watches for the removal of `scope` from `directory`. The clock must outlive this object.
  LockWatch(Clock& clock, int directory, std::string scope, Method method);

  // Waits at most `limit`. `pid`: the holder, if it is a live process of this machine.
  void Wait(Duration limit, std::optional<std::int64_t> pid);

 private:
  // Reads pending events. True if the scope, or the directory itself, is gone.
  bool TakeEvents() const;

  Clock& clock_;
  const std::string scope_;
  UniqueFd inotify_;  // invalid: use back-off
  Duration pause_ = {};
};

}  // namespace interlock::kernel
