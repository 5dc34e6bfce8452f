#pragma once

#include <span>

#include "http/route.h"

namespace interlock::http {

// GET /api/status: who is there and what goes on, in numbers, in one project or in all.
std::span<const Route> StatusRoutes();

}  // namespace interlock::http
