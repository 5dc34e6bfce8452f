#include "http/routes.h"

#include <array>
#include <vector>

#include "http/agents.h"
#include "http/events.h"
#include "http/follow.h"
#include "http/health.h"
#include "http/inbox.h"
#include "http/mail.h"
#include "http/metrics.h"
#include "http/openapi.h"
#include "http/planning.h"
#include "http/receipts.h"
#include "http/reservations.h"
#include "http/status.h"
#include "http/threads.h"
#include "http/topics.h"
#include "http/windows.h"

namespace interlock::http {

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

}  // namespace interlock::http
