#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace interlock::domain {

// When agents were last seen, beyond what is stored. Whoever decides by `last_seen` uses the newer
// of both times.
//
// Thread-safe.
class Sightings {
 public:
  virtual ~Sightings() = default;

  // The newer of `stored` and what is remembered. `project` is the one that the agent is registered
  // in: a request with the key of another project does not speak for the agent.
  virtual Timestamp Newest(std::string_view agent_id, std::string_view project,
                           Timestamp stored) const = 0;

  // The agents of which anything is remembered, each once, registered or not.
  virtual std::vector<std::string> Remembered() const = 0;
};

}  // namespace interlock::domain
