#pragma once

#include <span>

#include "http/route.h"

namespace interlock::http {

// The messages of a topic.
std::span<const Route> TopicRoutes();

}  // namespace interlock::http
