#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "auth/caller.h"
#include "http/message.h"
#include "json/value_fwd.h"

namespace interlock::api {

using http::ErrorResponse;
using http::Headers;
using http::Method;
using http::MethodName;
using http::Peer;
using http::Response;

// A request as handlers see it: what was sent, and what the dispatcher found in it, as the row of
// the route (route.h) asks.
struct Request {
  explicit Request(http::Request& received) : sent(received) {}

  http::Request& sent;  // outlives the handler

  std::string path;                                               // percent-decoded, clean
  std::string query;                                              // without the '?', still encoded
  std::vector<std::pair<std::string_view, std::string>> params;   // of the route's template
  std::vector<std::pair<std::string, std::string>> query_fields;  // decoded, in the order sent
  auth::Caller caller;
  std::optional<std::string> project;       // nothing = every project
  std::string actor;                        // the agent it acts as; "" = it names none
  std::shared_ptr<const json::Value> json;  // the body, an object; null for BodyKind::kNone

  // REQUIRES: the route's template names it.
  const std::string& Param(std::string_view name) const;

  // A parameter of the query, decoded: the first of several, "" when there is none.
  std::string Query(std::string_view name) const;
  // The same as a whole number from 0 to 2^63 - 1; nothing when it is absent or blank. Where the
  // row has it as an integer, the dispatcher has refused every other value.
  std::optional<std::int64_t> QueryNumber(std::string_view name) const;
  std::int64_t QueryInt(std::string_view name, std::int64_t otherwise) const {
    return QueryNumber(name).value_or(otherwise);
  }
  // The same as a boolean: "true" or "1", "false" or "0"; nothing when it is absent or blank.
  std::optional<bool> QueryBool(std::string_view name) const;
  // The same as a cursor of the event log; absent is 0, the begin of the log.
  std::int64_t QueryCursor(std::string_view name) const { return QueryInt(name, 0); }
};

}  // namespace interlock::api
