#pragma once

#include <boost/asio/awaitable.hpp>

#include "http/message.h"

namespace interlock::http {

// Answers the requests of a server. Thread-safe: connections call it from all I/O threads.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;

  // Runs on the thread of the connection; may suspend, must not block, and does not throw. The
  // connection keeps `request` until the answer is made; the handler may move parts out of it.
  virtual boost::asio::awaitable<Response> Answer(Request& request) = 0;

  // The server itself answered a connection, or bytes that are no request, with this status.
  virtual void OnRefusal(int /*status*/) {}
};

}  // namespace interlock::http
