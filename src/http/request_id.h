#pragma once

#include <string>
#include <string_view>

// The id of a request: a client finds it in the header X-Request-Id of the answer, and whoever runs
// the server in the log. Thread-safe.
namespace interlock::http {

class Headers;

inline constexpr std::string_view kRequestIdField = "X-Request-Id";

// The client's, if it sent one that is safe to repeat: up to 128 letters, digits and -._~:+/=@.
// Else a new one.
std::string RequestIdOf(const Headers& headers);

// 15 letters and digits, which no other request of this server has. Costs no allocation.
std::string NewRequestId();

}  // namespace interlock::http
