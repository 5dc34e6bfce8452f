#include "api/route_table.h"

#include "base/check.h"
#include "json/value.h"

namespace interlock::api {
namespace {

std::vector<http::Router::Row> RowsOf(std::span<const Route> routes) {
  std::vector<http::Router::Row> rows;
  rows.reserve(routes.size());
  for (const Route& route : routes) {
    IL_CHECK(route.handler != nullptr, route.path);
    rows.push_back(
        {.method = route.method, .path = route.path, .is_upgrade = route.success == 101});
  }
  return rows;
}

}  // namespace

RouteTable::RouteTable(std::span<const Route> routes) : routes_(routes), router_(RowsOf(routes)) {
  for (const Route& route : routes) {
    body_schemas_.push_back(route.body_schema == nullptr
                                ? nullptr
                                : std::make_shared<const json::Value>(route.body_schema()));
  }
}

}  // namespace interlock::api
