#pragma once

#include "base/result.h"
#include "domain/planning.h"
#include "json/value_fwd.h"

// What agents plan by, as it stands in requests and in the description of the interface. Both
// follow domain/planning.h field by field. Stateless, so safe from any thread.
namespace interlock::http {

// What a body says of a plan: a field that is not there is not in the change, one that is null or
// empty clears. Names may differ in ASCII case. kInvalidArgument names the field of a wrong type.
// REQUIRES: `body` is an object.
Result<domain::PlanChange> DecodePlan(domain::PlanKind kind, const json::Value& body);

// JSON Schemas: of an answer, of what makes a new one, and of a change.
json::Value PlanSchema(domain::PlanKind kind);
json::Value NewPlanSchema(domain::PlanKind kind);
json::Value PlanChangeSchema(domain::PlanKind kind);

}  // namespace interlock::http
