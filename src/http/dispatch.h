#pragma once

#include <boost/asio/awaitable.hpp>

#include "http/message.h"
#include "http/router.h"

namespace interlock::http {

// From a whole request to its answer: reads the target, sends unclean paths to their clean form
// and collections of ids to their slash (301), finds the route (404, 405 with Allow), does what its
// row asks for (http/prepare.h), and runs the handler. An Error becomes an answer here, and
// whatever a handler throws a 500; the connection goes on.
//
// `router` and `app` must outlive the awaitable.
boost::asio::awaitable<Response> Dispatch(const Router& router, App& app, Request request);

}  // namespace interlock::http
