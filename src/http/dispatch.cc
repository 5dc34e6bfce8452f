#include "http/dispatch.h"

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "base/limited_log.h"
#include "base/log.h"
#include "http/admission.h"
#include "http/app.h"
#include "http/metrics.h"
#include "http/misspelt.h"
#include "http/path.h"
#include "http/prepare.h"
#include "http/speaker.h"
#include "service/agents.h"

namespace interlock::http {
namespace {

// As it was sent, but for bytes that no header may hold.
std::string Escaped(std::string_view query) {
  std::string escaped;
  escaped.reserve(query.size());
  for (const char c : query) {
    if (c > ' ' && c < 0x7F) {
      escaped += c;
    } else {
      escaped += EncodePath({&c, 1});
    }
  }
  return escaped;
}

Response MovedTo(const std::string& path, const std::string& query) {
  Response response;
  response.status = 301;
  response.headers.Add("Location", EncodePath(path) + (query.empty() ? "" : "?" + Escaped(query)));
  return response;
}

Response NothingThere(const std::string& path) {
  return ErrorResponse(Error(Errc::kNotFound, "There is nothing at " + path +
                                                  "; check the path against the documentation."));
}

Response WrongMethod(const Request& request, const std::string& allow) {
  const std::string_view name = MethodName(request.method);
  std::string message = request.path + " does not take ";
  message.append(name.empty() ? "this method" : name).append("; use ").append(allow).append(".");
  Response response = ErrorResponse(Error(Errc::kMethodNotAllowed, std::move(message)));
  response.headers.Add("Allow", allow);
  return response;
}

// Where a request goes: to a route, or straight back.
struct Located {
  const Route* route = nullptr;
  Response answer = {};  // without a route
};

Located Locate(const Router& router, Request& request) {
  auto target = ParseTarget(request.target);
  if (!target.ok()) return {.answer = ErrorResponse(target.error())};
  request.path = std::move(target->path);
  request.query = std::move(target->query);
  if (MayBeUnclean(request.path)) {
    const std::string clean = CleanPath(request.path);
    if (clean != request.path) return {.answer = MovedTo(clean, request.query)};
  }

  Router::Match match = router.Find(request.method, request.path);
  switch (match.kind) {
    case Router::Match::Kind::kFound:
      break;
    case Router::Match::Kind::kNothing:
      return {.answer = NothingThere(request.path)};
    case Router::Match::Kind::kWrongMethod:
      return {.answer = WrongMethod(request, match.allow)};
    case Router::Match::Kind::kAddSlash:
      return {.answer = MovedTo(request.path + "/", request.query)};
  }
  request.params = std::move(match.params);
  return {.route = match.route};
}

Result<void> CheckFields(const Router& router, const Route& route, const Request& request) {
  const json::Value* const schema = router.BodySchema(route);
  if (schema == nullptr || request.json == nullptr) return {};
  return RefuseMisspelt(*request.json, *schema);
}

// Who asks, then what the row asks for, then the handler.
boost::asio::awaitable<Result<Response>> Serve(const Router& router, const Route& route, App& app,
                                               Request& request) {
  IL_CO_TRY(Admitted admitted, Admit(route, app, request));
  if (!admitted.token.empty()) {
    IL_CO_TRY_VOID(co_await FindAgentOfToken(app, admitted));
  }
  request.caller = std::move(admitted.caller);
  IL_CO_TRY_VOID(Prepare(route, request, app.access));
  IL_CO_TRY_VOID(CheckFields(router, route, request));
  if (auto speaker = SpeakerOf(route, request, app.access)) {
    co_await app.agents.Saw(*std::move(speaker));
  }
  co_return co_await route.handler(app, request);
}

boost::asio::awaitable<Response> Run(const Router& router, const Route& route, App& app,
                                     Request& request) {
  std::string what;
  try {
    auto served = co_await Serve(router, route, app, request);
    if (!served.ok() && served.error().code() == Errc::kUnauthorized) {
      app.events.Info(
          "request refused, its key is wrong or missing",
          {{"request_id", request.id}, {"peer", request.peer.address}, {"route", route.path}});
    }
    Response response = served.ok() ? *std::move(served) : ErrorResponse(served.error());
    if (!response.fault.empty()) {
      app.events.Error(
          "a handler failed",
          {{"request_id", request.id}, {"route", route.path}, {"what", response.fault}});
    }
    co_return response;
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
    what = "not a std::exception";
  }
  app.events.Error("a handler threw",
                   {{"request_id", request.id}, {"route", route.path}, {"what", what}});
  co_return ErrorResponse(Error(Errc::kInternal, std::move(what)));
}

}  // namespace

boost::asio::awaitable<Response> Dispatch(const Router& router, App& app, Request& request) {
  const Duration began = app.metrics.Now();
  const Method method = request.method;
  Located located = Locate(router, request);
  Response response = std::move(located.answer);
  if (located.route != nullptr) response = co_await Run(router, *located.route, app, request);
  const Duration took = app.metrics.Now() - began;
  app.metrics.Record(located.route, method, response.status, took);
  if (app.log.Enabled(LogLevel::kDebug)) {
    app.log.Debug("answered a request", {{"request_id", request.id},
                                         {"method", MethodName(method)},
                                         {"path", request.path},
                                         {"status", response.status},
                                         {"took", took}});
  }
  co_return response;
}

}  // namespace interlock::http
