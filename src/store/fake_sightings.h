#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "domain/sightings.h"

namespace interlock::store {

// Remembers what a test says.
class FakeSightings final : public domain::Sightings {
 public:
  Timestamp Newest(std::string_view agent_id, Timestamp stored) const override {
    const auto found = seen.find(agent_id);
    return found == seen.end() ? stored : std::max(stored, found->second);
  }
  std::vector<std::string> Remembered() const override {
    std::vector<std::string> agents;
    for (const auto& [id, at] : seen) agents.push_back(id);
    return agents;
  }

  std::map<std::string, Timestamp, std::less<>> seen;  // by the id of the agent
};

}  // namespace interlock::store
