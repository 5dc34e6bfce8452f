#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/planning.h"

// What agents plan by (table `plans`, one for all kinds) and the links of critical user journeys
// (table `cuj_links`). A row holds its plan as the JSON that clients see, so a read hands that on
// as it is; only a change makes values of it.
namespace interlock::store {

// The plan as answers, lists and events show it.
std::string PlanJson(const domain::Plan& plan);

// {"feature_id":"…"}: one text of it, for an event that tells of nothing else.
std::string PlanFieldJson(std::string_view field, std::string_view text);

Result<std::optional<domain::Plan>> FindPlan(db::Connection& connection,
                                             const domain::PlanRef& ref);
// The same as PlanJson() has it.
Result<std::optional<std::string>> FindPlanJson(db::Connection& connection,
                                                const domain::PlanRef& ref);

// One page, those with the greater weight first, then the later ones. It takes at least one,
// however large, so that whoever follows the pages gets on.
Result<domain::PlanPage> ListPlans(db::Connection& connection, const domain::PlanQuery& query);

// `json` is the plan's PlanJson(). False when there is one of that kind, project and id: then
// nothing is changed.
Result<bool> InsertPlan(db::Transaction& tx, const domain::Plan& plan, std::string_view json);
// The plan in the place of the one with the version before its own; false when that is not there.
Result<bool> ReplacePlan(db::Transaction& tx, const domain::Plan& plan, std::string_view json);
// With the links of a critical user journey; false when there is none, and nothing changes.
Result<bool> RemovePlan(db::Transaction& tx, const domain::PlanRef& ref);

// A link that is there gets the new time.
Result<void> PutCujLink(db::Transaction& tx, const domain::CujLink& link);
// False when there is none.
Result<bool> RemoveCujLink(db::Transaction& tx, const domain::CujLink& link);
// In the order of their features' bytes: [{"cuj_id","feature_id","project","linked_at"}]
Result<std::string> ListCujLinks(db::Connection& connection, const domain::PlanRef& cuj,
                                 std::int64_t limit, std::int64_t offset);

std::span<const db::NamedSql> PlanStatements();

}  // namespace interlock::store
