#include "http/routes.h"

#include <array>
#include <vector>

#include "http/agents.h"
#include "http/health.h"
#include "http/mail.h"
#include "http/openapi.h"

namespace interlock::http {

std::span<const Route> Routes() {
  static const std::vector<Route> kRoutes = [] {
    const std::array nouns = {
        AgentRoutes(),
        HealthRoutes(),
        MailRoutes(),
        OpenApiRoutes(),
    };
    std::vector<Route> routes;
    for (const std::span<const Route> noun : nouns) {
      routes.insert(routes.end(), noun.begin(), noun.end());
    }
    return routes;
  }();
  return kRoutes;
}

}  // namespace interlock::http
