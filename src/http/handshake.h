#pragma once

#include <string>

#include "base/result.h"
#include "http/message.h"

namespace interlock::http {

// The rules of a WebSocket handshake that are about the request alone. Pure.

// The request's Sec-WebSocket-Key. kUpgradeRequired: it asks for no upgrade to WebSocket, or in
// HTTP/1.0, where that means nothing;
// kInvalidArgument: for another version than 13, or without a proper key; kForbidden: a web page of
// another origin sent it, and browsers let pages of any origin open WebSockets.
Result<std::string> HandshakeKey(const Request& request);

// The answer to a request that HandshakeKey() refused; it says what would be understood.
Response HandshakeRefusal(const Error& error);

}  // namespace interlock::http
