#pragma once

#include <boost/asio/awaitable.hpp>

#include "http/message.h"
#include "http/router.h"

namespace interlock::http {

// From a whole request to its answer. In this order, and the first refusal is the answer:
//
// - the target is read (400); unclean paths move to their clean form, and where only ids can
// follow,
//   to their slash (301)
// - the route is found (404, 405 with Allow)
// - the caller is let in (http/admission.h: 401, 403)
// - what the route's row asks for is there (http/prepare.h: 400, 403)
// - no field of the body is misspelt (http/misspelt.h: 400)
// - the agent in whose name it is made is seen to live (http/speaker.h)
// - the handler runs
//
// An Error becomes an answer here, and whatever a handler throws a 500; the connection goes on.
// Each request is counted in the metrics; the log has its id, path and status at level debug, and
// its id beside every failure.
//
// `router`, `app` and `request` must outlive the awaitable; handlers may take what they want out of
// the request.
boost::asio::awaitable<Response> Dispatch(const Router& router, App& app, Request& request);

}  // namespace interlock::http
