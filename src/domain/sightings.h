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

  // The newer of `stored` and what is remembered. `project` is the one that the agent is registered
  // in: a request with the key of another project does not speak for the agent.
  virtual Timestamp Newest(std::string_view /*agent_id*/, std::string_view /*project*/,
                           Timestamp stored) const {
    return stored;
  }

  // The agents of which anything is remembered, each once, registered or not.
  virtual std::vector<std::string> Remembered() const { return {}; }
};
inline const Sightings kNoSightings;

}  // namespace interlock::domain
