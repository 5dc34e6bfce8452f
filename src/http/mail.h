#pragma once

#include <span>

#include "http/route.h"

namespace interlock::http {

// Sending mail: POST /api/messages to named agents, POST /api/broadcast to a whole project.
std::span<const Route> MailRoutes();

}  // namespace interlock::http
