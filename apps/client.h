#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/secret.h"
#include "http/exchange.h"
#include "json/value_fwd.h"

namespace interlock::app {

// Which server a command asks, and as whom.
struct ServerAddress {
  std::string url = "http://127.0.0.1:7338";  // or "unix:/path"
  Secret api_key = {};                        // empty = sent without one, as on this machine
};

// What the commands beside `serve` ask a running server with. Blocks; a connection per call, ended
// after ten seconds at most. Every failure is an Error whose message says what to do:
//   kUsage         the address is none
//   kUnavailable   nobody listens there, or what answers is no intermute
//   as answered    the server said no: its slug and its sentence
// Used by one thread.
class Client {
 public:
  // Of a query; names and values unescaped.
  using Parameters = std::vector<std::pair<std::string, std::string>>;

  static Result<Client> For(const ServerAddress& address);

  // The JSON of a 2xx answer; null when it has no body. `path` is escaped: see EncodeSegment().
  Result<json::Value> Get(std::string_view path, const Parameters& query) const;
  Result<json::Value> Post(std::string_view path, const Parameters& query,
                           std::string_view body = "") const;

 private:
  Client(ServerAddress address, http::Endpoint endpoint)
      : address_(std::move(address)), endpoint_(std::move(endpoint)) {}
  Result<json::Value> Ask(std::string_view method, std::string_view path, const Parameters& query,
                          std::string_view body) const;
  Error Explain(const http::Answer& answer) const;

  ServerAddress address_;
  http::Endpoint endpoint_;
};

}  // namespace interlock::app
