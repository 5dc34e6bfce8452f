#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace interlock::kernel {

// Waits until a lock may have become free: its directory left its place, or its holder ended. It
// may return earlier, so the caller looks again each time.
//
// For one thread. What happens after it was made is not missed: make it, look, then wait.
class LockWatch {
 public:
  enum class By : std::uint8_t {
    kEvents,   // of the file system; where it has none to give, as below
    kBackOff,  // look again after 1, 2, 4, … 50 ms
  };

  // Watches for `scope` leaving `directory`. The clock must outlive it.
  LockWatch(Clock& clock, int directory, std::string scope, By by);

  // At most `limit`. `pid`: the holder on this machine, when it is alive.
  void Wait(Duration limit, std::optional<std::int64_t> pid);

 private:
  // True when one of the events that came says that the scope, or the directory, is gone.
  bool TakeEvents() const;

  Clock& clock_;
  const std::string scope_;
  UniqueFd inotify_;  // none: back off
  Duration pause_ = {};
};

}  // namespace interlock::kernel
