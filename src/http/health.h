#pragma once

#include <span>

#include "http/route.h"

namespace interlock::http {

// GET /health:
// {"status","circuit_breaker","circuit_breaker_read","circuit_breaker_write","version",
// "started_at","log_id"}, 200 while the storage answers, 503 with `error` and `message` when it
// does not. Every value is text, because clients decode the body into a map of strings; numbers are
// in /api/status and /metrics.
std::span<const Route> HealthRoutes();

}  // namespace interlock::http
