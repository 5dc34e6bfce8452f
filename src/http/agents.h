#pragma once

#include <span>

#include "http/route.h"

namespace interlock::http {

// /api/agents and what is below it: come, show that one lives, see who is there, say what one is
// and who may write to one, and go. With a key, an agent of another project is not there (404).
std::span<const Route> AgentRoutes();

}  // namespace interlock::http
