#include "api/routes.h"

#include <array>
#include <vector>

#include "api/metrics.h"
#include "api/openapi.h"

namespace interlock::api {

std::span<const Route> Routes() {
  static const std::vector<Route> kRoutes = [] {
    const std::array nouns = {
        AgentRoutes(),       EventRoutes(),   FollowRoutes(),  HealthRoutes(),   InboxRoutes(),
        MailRoutes(),        MetricsRoutes(), OpenApiRoutes(), PlanningRoutes(), ReceiptRoutes(),
        ReservationRoutes(), StatusRoutes(),  ThreadRoutes(),  TopicRoutes(),    WindowRoutes(),
    };
    std::vector<Route> routes;
    for (const std::span<const Route> noun : nouns) {
      routes.insert(routes.end(), noun.begin(), noun.end());
    }
    return routes;
  }();
  return kRoutes;
}

}  // namespace interlock::api
