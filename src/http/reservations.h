#pragma once

#include <span>

#include "http/route.h"

namespace interlock::http {

// Claims on files: make, look at, renew, hand on and release them.
std::span<const Route> ReservationRoutes();

}  // namespace interlock::http
