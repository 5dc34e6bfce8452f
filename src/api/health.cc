#include "service/health.h"

#include <array>

#include "api/app.h"
#include "api/routes.h"
#include "base/time_text.h"
#include "json/object_text.h"
#include "json/schema.h"

namespace interlock::api {
namespace {

boost::asio::awaitable<Result<Response>> GetHealth(App& app, Request& /*request*/) {
  using Report = service::Health::Report;
  const Report report = co_await app.health.Check();
  json::ObjectText body;
  body.Add("status", report.status == Report::Status::kOk ? "ok" : "degraded")
      .Add("circuit_breaker", report.circuit_breaker)
      .Add("circuit_breaker_read", report.circuit_breaker_read)
      .Add("circuit_breaker_write", report.circuit_breaker_write)
      .Add("version", app.version)
      .Add("started_at", FormatRfc3339(report.started_at))
      .Add("log_id", app.log_id);
  if (report.ping_error) {
    body.Add("error", report.ping_error->slug())
        .Add("message", "The database does not answer (" + report.ping_error->message() +
                            "); look at the server's log and at the disk that holds it.");
  }
  Response response = Response::Json(report.ping_error ? 503 : 200, body.Text());
  if (report.ping_error && !http::IsFileLost(*report.ping_error)) {
    response.headers.Add("Retry-After", "1");
  }
  co_return response;
}

json::Value BreakerSchema() { return json::EnumSchema({"closed", "open", "half_open", "unknown"}); }

json::Value HealthSchema() {
  return json::ObjectSchema({{"status", json::EnumSchema({"ok", "degraded"})},
                             {"circuit_breaker", BreakerSchema()},
                             {"circuit_breaker_read", BreakerSchema()},
                             {"circuit_breaker_write", BreakerSchema()},
                             {"version", json::StringSchema()},
                             {"started_at", json::TimeSchema()},
                             {"log_id", json::StringSchema()}});
}

constexpr std::array kRoutes = {
    Route{.method = Method::kGet,
          .path = "/health",
          .handler = GetHealth,
          .summary = "Is the server fit to serve? Needs no key.",
          .access = Access::kAnyone,
          .answer_schema = HealthSchema},
};

}  // namespace

std::span<const Route> HealthRoutes() { return kRoutes; }

}  // namespace interlock::api
