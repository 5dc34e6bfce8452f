#pragma once

#include "base/result.h"
#include "json/value_fwd.h"

namespace interlock::api {

// Refuses (400 `unknown_field`, with the field and the one that was probably meant) a body in which
// a field is unknown to `schema` and looks like a misspelt one: a known name of more than five
// letters is at most two edits away, or has the same words in another order. Other unknown fields
// are ignored, since clients may send more than this server knows. Names compare without regard to
// ASCII case. Objects inside the body are checked where the schema names their members.
//
// At most 256 unknown fields of a body are looked at, so that a hostile one costs little.
Result<void> RefuseMisspelt(const json::Value& body, const json::Value& schema);

}  // namespace interlock::api
