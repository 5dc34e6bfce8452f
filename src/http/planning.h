#pragma once

#include <span>

#include "http/route.h"

namespace interlock::http {

// /api/specs, /api/epics, /api/stories, /api/tasks, /api/insights, /api/sessions, /api/cujs
std::span<const Route> PlanningRoutes();

}  // namespace interlock::http
