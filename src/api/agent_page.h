#pragma once

#include <cstddef>
#include <string>

#include "domain/agent.h"

namespace interlock::api {

// The text of a list of agents, written agent by agent as they are read: whoever reads them does
// the work, and the io thread that answers has only to send it. For one thread at a time.
class AgentPage final : public domain::AgentSink {
 public:
  using ToJson = std::string (*)(const domain::Agent& agent);

  // `to_json` makes the JSON object of one agent. What does not fit into `bytes_max` is left out,
  // but for the first one.
  AgentPage(ToJson to_json, std::size_t bytes_max) : to_json_(to_json), bytes_max_(bytes_max) {}

  void Restart() override;
  void Add(const domain::Agent& agent) override;

  // {"agents":[…]}, and "more":true when some were left out. Leaves nothing here.
  std::string TakeAnswer();

 private:
  const ToJson to_json_;
  const std::size_t bytes_max_;
  std::string text_;
  bool more_ = false;  // and none that comes later is taken
};

// Who is at work on what, as the agent's metadata has it.
std::string PresenceJson(const domain::Agent& agent);

}  // namespace interlock::api
