#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/route.h"

namespace interlock::api {

// The route table as an OpenAPI 3.1 document, one operation per row: its parameters, its body, its
// success and every failure, with the schemas that the rows name. Made from what dispatches, so it
// cannot tell of an operation that is not there, nor leave one out.
//
// A parameter that takes several segments ("{id...}") is a plain one in OpenAPI, which has no word
// for it; it carries "x-takes-slashes": true.
std::string OpenApiText(std::span<const Route> routes, std::string_view version);

// GET /openapi.json
std::span<const Route> OpenApiRoutes();

}  // namespace interlock::api
