#include "service/status.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "api/app.h"
#include "api/routes.h"
#include "base/clock.h"
#include "json/codec.h"
#include "json/schema.h"

namespace interlock::api {
namespace {

struct StatusAnswer {
  std::optional<std::string> project = {};
  std::string version = {};
  std::int64_t uptime_seconds = 0;
  Timestamp time = {};
  std::int64_t heartbeat_grace_seconds = 0;
  std::string circuit_breaker = {};
  std::string circuit_breaker_read = {};
  std::string circuit_breaker_write = {};
  std::int64_t agents_alive = 0;
  std::int64_t agents_registered = 0;
  std::int64_t reservations_active = 0;
  std::int64_t waiting = 0;
  std::int64_t mail_unread = 0;
  std::int64_t cursor = 0;
};
IL_JSON_FIELDS(StatusAnswer, project, version, uptime_seconds, time, heartbeat_grace_seconds,
               circuit_breaker, circuit_breaker_read, circuit_breaker_write, agents_alive,
               agents_registered, reservations_active, waiting, mail_unread, cursor)

boost::asio::awaitable<Result<Response>> GetStatus(App& app, Request& request) {
  StatusAnswer answer{.project = request.project, .version = std::string(app.version)};
  IL_CO_TRY(const auto report, co_await app.status.Read(std::move(request.project)));
  answer.uptime_seconds = report.uptime_seconds;
  answer.time = report.now;
  answer.heartbeat_grace_seconds =
      std::chrono::duration_cast<std::chrono::seconds>(report.heartbeat_grace).count();
  answer.circuit_breaker = report.circuit_breaker;
  answer.circuit_breaker_read = report.circuit_breaker_read;
  answer.circuit_breaker_write = report.circuit_breaker_write;
  answer.agents_alive = report.counts.agents_alive;
  answer.agents_registered = report.counts.agents_registered;
  answer.reservations_active = report.counts.reservations_active;
  answer.waiting = report.waiting;
  answer.mail_unread = report.counts.mail_unread;
  answer.cursor = report.cursor;
  co_return Response::Json(200, json::EncodeText(answer));
}

constexpr std::array kQuery = {
    QueryParameter{"project", QueryParameter::Type::kText,
                   "Only this project; without it, and without a key, all of them."},
};
constexpr std::array kFailures = {
    Failure{503,
            "the database does not answer; `circuit_breaker` and its like say how the "
            "breakers stand"},
};

constexpr std::array kRoutes = {
    Route{.method = Method::kGet,
          .path = "/api/status",
          .handler = GetStatus,
          .summary = "Who is there and what goes on, in numbers.",
          .project = ProjectFrom::kQueryChecked,
          .answer_schema = json::SchemaOf<StatusAnswer>,
          .query = kQuery,
          .failures = kFailures},
};

}  // namespace

std::span<const Route> StatusRoutes() { return kRoutes; }

}  // namespace interlock::api
