#pragma once

#include <boost/asio/awaitable.hpp>

#include "http/message.h"

namespace interlock::http {

struct App;

// {"status","circuit_breaker","version","uptime_seconds"}: 200 while the storage answers, 503 with
// `error` and `message` when it does not. Who balances load looks at the status code; who
// watches, at the fields.
boost::asio::awaitable<Response> GetHealth(App& app, Request request);

}  // namespace interlock::http
