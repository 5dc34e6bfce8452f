#pragma once

#include <span>

#include "http/route.h"

namespace interlock::http {

// An agent's mail: its inbox, how much of it is unread, and what waits for its acknowledgement.
std::span<const Route> InboxRoutes();

}  // namespace interlock::http
