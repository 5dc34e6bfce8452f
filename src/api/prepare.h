#pragma once

#include <string>

#include "api/route.h"
#include "auth/access.h"
#include "base/result.h"

namespace interlock::api {

// What a route's row asks for before its handler runs, in this order, and the first refusal counts:
// the query decoded, with numbers and booleans where the row has them (400), the path's parameters
// not blank (400), the body parsed (400), the project found and held against the caller's key (400,
// 403), and the agent found in whose name it acts, whose token must have been shown where `rules`
// ask for it (403).
//
// Looks at nothing but its arguments, and fills in what it found. A request that it refuses has no
// meaning any more. REQUIRES: `request` has path, query, params and caller.
Result<void> Prepare(const Route& route, Request& request, const auth::AccessRules& rules);

// The agent that `from` means in the request; empty when it names none. REQUIRES: as Prepare().
Result<std::string> FindAgent(ActorFrom from, const Request& request);

}  // namespace interlock::api
