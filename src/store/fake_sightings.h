#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "domain/sightings.h"

namespace interlock::store {

// Remembers what a test says.
class FakeSightings final : public domain::Sightings {
 public:
  Timestamp Newest(std::string_view agent_id, std::string_view project,
                   Timestamp stored) const override {
    const auto found = seen.find(std::pair(std::string(agent_id), std::string(project)));
    return found == seen.end() ? stored : std::max(stored, found->second);
  }
  std::vector<std::string> Remembered() const override {
    std::vector<std::string> agents;
    for (const auto& [key, at] : seen) agents.push_back(key.first);
    return agents;
  }

  std::map<std::pair<std::string, std::string>, Timestamp> seen;  // by agent and its project
};

}  // namespace interlock::store
