#pragma once

#include <span>

#include "http/route.h"

namespace interlock::http {

// Every operation that the server has.
std::span<const Route> Routes();

}  // namespace interlock::http
