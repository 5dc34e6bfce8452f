#pragma once

#include <optional>
#include <string_view>

#include "api/route.h"
#include "auth/access.h"
#include "service/agents.h"

namespace interlock::api {

// In whose name a request is made, which is a sign of life of that agent:
//
// (1) With X-Agent-ID or a token it is that agent, whoever else the request names. So somebody who
//     looks into the inbox of an agent does not keep it alive.
// (2) Else it is the agent that the request names as its sender, its reader or its owner: the row's
//     `actor` or `asker`. The {id} of a path counts for nothing: anybody may look after an agent.
// (3) With --require-agent-token, only a token counts.
// (4) With a key, and without a token, it speaks for an agent of the key's project only.
//
// Nothing: in nobody's name. REQUIRES: Prepare() has let the request pass.
std::optional<service::Agents::Speaker> SpeakerOf(const Route& route, const Request& request,
                                                  const auth::AccessRules& rules);

// The same when the agent that the request names is known: an id or a name.
std::optional<service::Agents::Speaker> SpeakerOf(const Request& request, std::string_view named,
                                                  const auth::AccessRules& rules);

}  // namespace interlock::api
