#pragma once

#include <boost/asio/awaitable.hpp>

#include "api/app.h"
#include "api/route_table.h"
#include "http/request_handler.h"

namespace interlock::api {

// Answers every request of the server. The steps, of which the first refusal is the answer:
//
// - read the target (400); redirect unclean paths to their clean form, and a path that only ids can
//   follow to its slash (301)
// - find the route (404, 405 with Allow)
// - admit the caller (api/admission.h: 401, 403)
// - check what the row of the route asks for (api/prepare.h: 400, 403)
// - refuse misspelt fields of the body (api/misspelt.h: 400)
// - record the sign of life of the agent that speaks (api/speaker.h)
// - run the handler
//
// An Error becomes an answer here, and an exception of a handler a 500; the connection goes on.
// Each request is counted in the metrics. The log has its id, path and status at level debug, and
// its id beside every failure.
class Dispatcher final : public http::RequestHandler {
 public:
  // Both must outlive it.
  Dispatcher(const RouteTable& table, App& app) : table_(table), app_(app) {}

  boost::asio::awaitable<Response> Answer(http::Request& sent) override;
  void OnRefusal(int status) override;

 private:
  const RouteTable& table_;
  App& app_;
};

}  // namespace interlock::api
