#include "http/dispatch.h"

#include <exception>
#include <string>
#include <utility>

#include "base/log.h"
#include "http/admission.h"
#include "http/app.h"
#include "http/path.h"
#include "http/prepare.h"

namespace interlock::http {
namespace {

Response MovedTo(const std::string& path, const std::string& query) {
  Response response;
  response.status = 301;
  response.headers.Add("Location", EncodePath(path) + (query.empty() ? "" : "?" + query));
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

// Who asks, then what the row asks for, then the handler.
boost::asio::awaitable<Result<Response>> Serve(const Route& route, App& app, Request request) {
  IL_CO_TRY(request.caller, co_await Admit(route, app, request));
  IL_CO_TRY(Request prepared, Prepare(route, std::move(request), app.access));
  co_return co_await route.handler(app, std::move(prepared));
}

}  // namespace

boost::asio::awaitable<Response> Dispatch(const Router& router, App& app, Request request) {
  auto target = ParseTarget(request.target);
  if (!target.ok()) co_return ErrorResponse(target.error());
  request.path = std::move(target->path);
  request.query = std::move(target->query);
  const std::string clean = CleanPath(request.path);
  if (clean != request.path) co_return MovedTo(clean, request.query);

  Router::Match match = router.Find(request.method, request.path);
  switch (match.kind) {
    case Router::Match::Kind::kFound:
      break;
    case Router::Match::Kind::kNothing:
      co_return NothingThere(request.path);
    case Router::Match::Kind::kWrongMethod:
      co_return WrongMethod(request, match.allow);
    case Router::Match::Kind::kAddSlash:
      co_return MovedTo(request.path + "/", request.query);
  }
  request.params = std::move(match.params);

  std::string what;
  try {
    auto served = co_await Serve(*match.route, app, std::move(request));
    Response response = served.ok() ? *std::move(served) : ErrorResponse(served.error());
    if (!response.fault.empty()) {
      app.log.Error("a handler failed", {{"route", match.route->path}, {"what", response.fault}});
    }
    co_return response;
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
    what = "not a std::exception";
  }
  app.log.Error("a handler threw", {{"route", match.route->path}, {"what", what}});
  co_return ErrorResponse(Error(Errc::kInternal, std::move(what)));
}

}  // namespace interlock::http
