#pragma once

#include <span>

#include "http/route.h"

namespace interlock::http {

// GET /api/events: the event log, page by page.
std::span<const Route> EventRoutes();

}  // namespace interlock::http
