#pragma once

#include <span>

#include "http/route.h"

namespace interlock::http {

// GET /health: {"status","circuit_breaker","version","uptime_seconds"}, 200 while the storage
// answers, 503 with `error` and `message` when it does not. Who balances load looks at the status
// code; who watches, at the fields.
std::span<const Route> HealthRoutes();

}  // namespace interlock::http
