#pragma once

#include "base/result.h"
#include "http/route.h"

namespace interlock::http {

// What a route's row asks for before its handler runs, in this order, the first refusal counts:
// the query decoded (400), the path's parameters not blank (400), the body parsed (400), the
// project found and held against the caller's key (400, 403).
//
// Only looks at its arguments. REQUIRES: `request` has path, query, params and caller.
Result<Request> Prepare(const Route& route, Request request);

}  // namespace interlock::http
