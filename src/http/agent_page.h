#pragma once

#include <string>

#include "domain/agent.h"

namespace interlock::http {

// The text of a list of agents, written agent by agent as they are read: whoever reads them does
// the work, and the io thread that answers has only to send it. For one thread at a time.
class AgentPage final : public domain::AgentSink {
 public:
  using ToJson = std::string (*)(const domain::Agent& agent);

  // `to_json` makes the JSON object of one agent.
  explicit AgentPage(ToJson to_json) : to_json_(to_json) {}

  void Restart() override;
  void Add(const domain::Agent& agent) override;

  // {"agents":[…]}. Leaves nothing here.
  std::string TakeAnswer();

 private:
  const ToJson to_json_;
  std::string text_;
};

// Who is at work on what, as the agent's metadata has it.
std::string PresenceJson(const domain::Agent& agent);

}  // namespace interlock::http
