#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace interlock::http {

// A request and a response as plain values without any library type. A handler therefore compiles
// quickly and can be tested without a socket.

enum class Method : std::uint8_t { kGet, kPost, kPut, kPatch, kDelete, kHead, kOptions, kOther };

std::string_view MethodName(Method method);  // "GET"; kOther is ""
Method ParseMethod(std::string_view name);   // case-sensitive, as HTTP says

// In the order received. Names compare without regard to case.
class Headers {
 public:
  void Add(std::string name, std::string value) {
    constexpr std::size_t kUsual = 8;
    if (fields_.empty()) fields_.reserve(kUsual);
    fields_.emplace_back(std::move(name), std::move(value));
  }
  // The first field of that name.
  std::optional<std::string_view> Find(std::string_view name) const;
  std::size_t Count(std::string_view name) const { return Look(name).count; }
  // Both at once; `first` is empty where there is none.
  struct Seen {
    std::size_t count = 0;
    std::string_view first = {};
  };
  Seen Look(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

// Where a request came from.
struct Peer {
  enum class Kind : std::uint8_t { kTcp, kUnix };
  Kind kind = Kind::kTcp;
  std::string address;  // "127.0.0.1", "::1"; empty on a Unix socket
};

struct Request {
  Method method = Method::kGet;
  std::string target;  // as sent: "/api/agents?project=x"
  Headers headers;
  std::string body;
  Peer peer;
  bool http_1_0 = false;  // else 1.1
  std::string id = {};    // for the log and the answer, see http/request_id.h

  // For a handler that is about to wait long: from then on it is cancelled as soon as the peer has
  // hung up. Empty where there is no connection. To be called on the handler's executor.
  std::function<void()> watch_peer;
};

class Upgrade;  // http/websocket.h

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
  std::string fault = {};  // what is behind a 500 or a failure of storage: for the log, never sent
  // Instead of an answer: the connection leaves HTTP and becomes a WebSocket.
  std::shared_ptr<Upgrade> upgrade = {};

  // `json` is one compact JSON value; the body ends with a newline.
  static Response Json(int status, std::string json);
};

// True: the database file is not the one that was opened. A person must act before a retry helps.
bool IsFileLost(const Error& error);

// {"error","message", details…} with the status of the error's code. Errors that pass by themselves
// carry Retry-After, a 429 also `retry_after_seconds`; a 401 carries WWW-Authenticate. Of our own
// mistakes (kInternal) and of what failed in storage the client learns only that it did: the
// message may hold what it must not see, and becomes the response's fault.
Response ErrorResponse(const Error& error);

// "Not Found"; "" for a status we never send.
std::string_view ReasonPhrase(int status);

// What the connection does after an answer.
enum class Persistence : std::uint8_t {
  kClose,
  kKeepOpen,
  kKeepOpenAndSaySo,  // HTTP/1.0 clients must be told
};

// The status line and header of an answer, with the empty line; Content-Length as the body has it,
// Date as `now` has it.
std::string HeadText(const Response& response, Persistence persistence, Timestamp now);

}  // namespace interlock::http
