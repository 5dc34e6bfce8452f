#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// One question to a server and its answer, for commands that ask and end. Blocks the caller, on a
// connection of its own that is closed afterwards. Stateless, so safe from any thread; not for the
// server itself, whose threads never block.
namespace interlock::http {

// Where a server listens.
struct Endpoint {
  enum class Kind : std::uint8_t { kTcp, kUnix } kind = Kind::kTcp;
  std::string host = {};  // name or literal, without brackets; of kTcp
  std::string port = {};  // of kTcp
  std::string path = {};  // of the socket; of kUnix

  bool operator==(const Endpoint&) const = default;
};

// Takes what `intermute serve` prints: "http://host:port", "http://[::1]:port" (without a port: 80)
// and "unix:/path". kUsage: anything else, with the reason.
Result<Endpoint> ParseEndpoint(std::string_view url);

struct Question {
  std::string method;
  std::string target;                                             // escaped: "/path?query"
  std::vector<std::pair<std::string, std::string>> headers = {};  // besides Host and Content-…
  std::string body = {};                                          // JSON; empty = none
};

struct Answer {
  int status = 0;
  std::string body;
};

struct ExchangeLimits {
  std::chrono::milliseconds patience{10'000};  // for all of it
  std::uint64_t answer_bytes_max = std::uint64_t{64} << 20;
};

// kUnavailable, with the slug no_connection, no_answer (in time) or not_http (an answer of another
// kind, or one that breaks off).
Result<Answer> Exchange(const Endpoint& endpoint, const Question& question,
                        const ExchangeLimits& limits = {});

// "name=value&…", escaped. What may stand in one part of a path may stand here too.
std::string EncodeQuery(const std::vector<std::pair<std::string, std::string>>& parameters);
// Escapes everything but letters, digits and "-._~": one segment of a path, or a value of a query.
std::string EncodeSegment(std::string_view text);

}  // namespace interlock::http
