#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "api/route.h"
#include "http/router.h"

namespace interlock::api {

// The rows of the server with what dispatch needs of them: paths to find a row by, and the schema
// of its body. Immutable once built, so any thread may use it.
class RouteTable {
 public:
  // `routes` must outlive it. Building fails a check on a malformed row.
  explicit RouteTable(std::span<const Route> routes);
  RouteTable(const RouteTable&) = delete;
  RouteTable& operator=(const RouteTable&) = delete;

  const http::Router& router() const { return router_; }  // its matches are indexes of routes()
  std::span<const Route> routes() const { return routes_; }

  // The schema of the body that a route takes; nullptr when it takes none.
  // REQUIRES: `route` is one of routes().
  const json::Value* BodySchema(const Route& route) const {
    return body_schemas_[static_cast<std::size_t>(&route - routes_.data())].get();
  }

 private:
  const std::span<const Route> routes_;
  const http::Router router_;
  std::vector<std::shared_ptr<const json::Value>> body_schemas_;  // in the order of routes_
};

}  // namespace interlock::api
