#pragma once

#include "api/request.h"
#include "base/check.h"
#include "base/result.h"
#include "json/codec.h"

namespace interlock::api {

// The body as a described struct (json/codec.h): fields that T does not name are ignored, null
// counts as absent, names differ in ASCII case if they must. kInvalidArgument names the field that
// is missing or of another type.
//
// For .cc files: json/codec.h is heavy. REQUIRES: the route's row has a BodyKind other than kNone.
template <typename T>
Result<T> DecodeBody(const Request& request) {
  IL_CHECK(request.json != nullptr, request.path);
  return json::Decode<T>(*request.json, json::kLenient.decode);
}

}  // namespace interlock::api
