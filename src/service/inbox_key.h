#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace interlock::service {

// The size of project and agent together that mail can be delivered to; tables in memory keep no
// longer key.
inline constexpr std::size_t kInboxKeyBytesMax = 512;

// The key of an inbox in a table. No project and no agent that mail is delivered to has a NUL.
inline std::string InboxKey(std::string_view project, std::string_view agent) {
  std::string key;
  key.reserve(project.size() + 1 + agent.size());
  return key.append(project).append(1, '\0').append(agent);
}

}  // namespace interlock::service
