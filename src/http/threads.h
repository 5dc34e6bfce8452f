#pragma once

#include <span>

#include "http/route.h"

namespace interlock::http {

// Threads: those of an agent, and the messages of one.
std::span<const Route> ThreadRoutes();

}  // namespace interlock::http
