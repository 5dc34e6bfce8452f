#pragma once

#include <span>

#include "http/route.h"

namespace interlock::http {

// The terminals that agents work in, and what waits to be surfaced there.
std::span<const Route> WindowRoutes();

}  // namespace interlock::http
