#pragma once

#include <cstdint>

#include "base/result.h"
#include "domain/planning.h"
#include "json/value_fwd.h"

// What agents plan by, as it stands in requests and in the description of the interface. Both
// follow domain/planning.h field by field. Stateless, so safe from any thread.
namespace interlock::api {

enum class PlanBody : std::uint8_t {
  // POST and PUT: the whole entity. An optional field that is absent or null becomes empty; a
  // required field and the status stay if the body does not give them a value.
  kWhole,
  // PATCH: a JSON Merge Patch (RFC 7396). An absent field stays; null clears it.
  kPatch,
};

// The change that a body asks for. Names may differ in ASCII case. kInvalidArgument names the field
// of a wrong type.
// REQUIRES: `body` is an object.
Result<domain::PlanChange> DecodePlan(domain::PlanKind kind, const json::Value& body, PlanBody as);

// JSON Schemas: of an answer, of what makes a new one, and of a change.
json::Value PlanSchema(domain::PlanKind kind);
json::Value NewPlanSchema(domain::PlanKind kind);
json::Value PlanChangeSchema(domain::PlanKind kind, PlanBody as);

}  // namespace interlock::api
