#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace interlock::domain {

// When agents were last seen, beyond what is stored. Whoever decides by `last_seen` uses the newer
// of both times. This one remembers nothing.
//
// Thread-safe.
class Sightings {
 public:
  virtual ~Sightings() = default;

  // The newer of `stored` and what is remembered.
  virtual Timestamp Newest(std::string_view /*agent_id*/, Timestamp stored) const { return stored; }

  // The agents of which anything is remembered, each once.
  virtual std::vector<std::string> Remembered() const { return {}; }
};
inline const Sightings kNoSightings;

}  // namespace interlock::domain
