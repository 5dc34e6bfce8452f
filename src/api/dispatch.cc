#include "api/dispatch.h"

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "api/admission.h"
#include "api/app.h"
#include "api/metrics.h"
#include "api/misspelt.h"
#include "api/prepare.h"
#include "api/route_table.h"
#include "api/speaker.h"
#include "base/limited_log.h"
#include "base/log.h"
#include "http/path.h"
#include "service/agents.h"

namespace interlock::api {
namespace {

// As it was sent, but for bytes that no header may hold.
std::string Escaped(std::string_view query) {
  std::string escaped;
  escaped.reserve(query.size());
  for (const char c : query) {
    if (c > ' ' && c < 0x7F) {
      escaped += c;
    } else {
      escaped += http::EncodePath({&c, 1});
    }
  }
  return escaped;
}

Response MovedTo(const std::string& path, const std::string& query) {
  Response response;
  response.status = 301;
  response.headers.Add("Location",
                       http::EncodePath(path) + (query.empty() ? "" : "?" + Escaped(query)));
  return response;
}

Response NothingThere(const std::string& path) {
  return ErrorResponse(Error(Errc::kNotFound, "There is nothing at " + path +
                                                  "; check the path against the documentation."));
}

Response WrongMethod(const Request& request, const std::string& allow) {
  const std::string_view name = MethodName(request.sent.method);
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

Located Locate(const RouteTable& table, Request& request) {
  auto target = http::ParseTarget(request.sent.target);
  if (!target.ok()) return {.answer = ErrorResponse(target.error())};
  request.path = std::move(target->path);
  request.query = std::move(target->query);
  if (http::MayBeUnclean(request.path)) {
    const std::string clean = http::CleanPath(request.path);
    if (clean != request.path) return {.answer = MovedTo(clean, request.query)};
  }

  using Match = http::Router::Match;
  Match match = table.router().Find(request.sent.method, request.path);
  switch (match.kind) {
    case Match::Kind::kFound:
      break;
    case Match::Kind::kNothing:
      return {.answer = NothingThere(request.path)};
    case Match::Kind::kWrongMethod:
      return {.answer = WrongMethod(request, match.allow)};
    case Match::Kind::kAddSlash:
      return {.answer = MovedTo(request.path + "/", request.query)};
  }
  request.params = std::move(match.params);
  return {.route = &table.routes()[match.row]};
}

Result<void> CheckFields(const RouteTable& table, const Route& route, const Request& request) {
  const json::Value* const schema = table.BodySchema(route);
  if (schema == nullptr || request.json == nullptr) return {};
  return RefuseMisspelt(*request.json, *schema);
}

// Who asks, then what the row asks for, then the handler.
boost::asio::awaitable<Result<Response>> Serve(const RouteTable& table, const Route& route,
                                               App& app, Request& request) {
  IL_CO_TRY(Admitted admitted, Admit(route, app, request));
  if (!admitted.token.empty()) {
    IL_CO_TRY_VOID(co_await FindAgentOfToken(app, admitted));
  }
  request.caller = std::move(admitted.caller);
  IL_CO_TRY_VOID(Prepare(route, request, app.access));
  IL_CO_TRY_VOID(CheckFields(table, route, request));
  if (auto speaker = SpeakerOf(route, request, app.access)) {
    co_await app.agents.Saw(*std::move(speaker));
  }
  co_return co_await route.handler(app, request);
}

boost::asio::awaitable<Response> Run(const RouteTable& table, const Route& route, App& app,
                                     Request& request) {
  std::string what;
  try {
    auto served = co_await Serve(table, route, app, request);
    if (!served.ok() && served.error().code() == Errc::kUnauthorized) {
      app.events.Info("request refused, its key is wrong or missing",
                      {{"request_id", request.sent.id},
                       {"peer", request.sent.peer.address},
                       {"route", route.path}});
    }
    Response response = served.ok() ? *std::move(served) : ErrorResponse(served.error());
    if (!response.fault.empty()) {
      app.events.Error(
          "a handler failed",
          {{"request_id", request.sent.id}, {"route", route.path}, {"what", response.fault}});
    }
    co_return response;
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
    what = "not a std::exception";
  }
  app.events.Error("a handler threw",
                   {{"request_id", request.sent.id}, {"route", route.path}, {"what", what}});
  co_return ErrorResponse(Error(Errc::kInternal, std::move(what)));
}

}  // namespace

boost::asio::awaitable<Response> Dispatcher::Answer(http::Request& sent) {
  Request request(sent);
  App& app = app_;
  const Duration began = app.metrics.Now();
  const Method method = sent.method;
  Located located = Locate(table_, request);
  Response response = std::move(located.answer);
  if (located.route != nullptr) response = co_await Run(table_, *located.route, app, request);
  const Duration took = app.metrics.Now() - began;
  app.metrics.Record(located.route, method, response.status, took);
  if (app.log.Enabled(LogLevel::kDebug)) {
    app.log.Debug("answered a request", {{"request_id", request.sent.id},
                                         {"method", MethodName(method)},
                                         {"path", request.path},
                                         {"status", response.status},
                                         {"took", took}});
  }
  co_return response;
}

void Dispatcher::OnRefusal(int status) {
  app_.metrics.Record(nullptr, Method::kOther, status, Duration::zero());
}

}  // namespace interlock::api
