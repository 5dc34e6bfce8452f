#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/secret.h"
#include "http/exchange.h"
#include "json/value_fwd.h"

namespace interlock::app {

struct Done;

// Which server a command asks, and as whom.
struct ServerAddress {
  std::string url = "http://127.0.0.1:7338";  // or "unix:/path"
  Secret api_key = {};                        // empty = sent without one, as on this machine
};

// What the commands beside `serve` ask a running server with. Blocks; a connection per call, ended
// after ten seconds at most. Every failure is an Error whose message says what to do:
//   kUsage         the address is none
//   kUnavailable   no intermute server answers there: nobody listens, or it hangs, or something
//                  else listens
//   as answered    the server refused: its slug and its sentence
// Used by one thread.
class Client {
 public:
  // Of a query; names and values unescaped.
  using Parameters = std::vector<std::pair<std::string, std::string>>;

  // `patience` is the time for one call.
  static Result<Client> For(const ServerAddress& address,
                            std::chrono::milliseconds patience = std::chrono::seconds(10));

  // The JSON of a 2xx answer; null when it has no body. `path` is escaped: see EncodeSegment().
  Result<json::Value> Get(std::string_view path, const Parameters& query) const;
  Result<json::Value> Post(std::string_view path, const Parameters& query,
                           std::string_view body = "") const;

  // kUnavailable: `reason` shows that an answer is not from an intermute server.
  Error NotIntermute(std::string_view reason) const;

 private:
  Client(ServerAddress address, http::Endpoint endpoint, std::chrono::milliseconds patience)
      : address_(std::move(address)), endpoint_(std::move(endpoint)), patience_(patience) {}
  Result<json::Value> Ask(std::string_view method, std::string_view path, const Parameters& query,
                          std::string_view body) const;
  Error ExplainSilence(const Error& failure) const;
  Error Explain(const http::Answer& answer) const;

  ServerAddress address_;
  http::Endpoint endpoint_;
  std::chrono::milliseconds patience_;
};

// The end of a command that asked a server and failed: exit code 2 when no intermute server
// answered, 1 for everything else.
Done Failed(const Error& error);

}  // namespace interlock::app
