#include "service/planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "domain/event.h"
#include "domain/text.h"
#include "service/address.h"
#include "service/await.h"
#include "service/storage.h"
#include "store/events.h"
#include "store/planning.h"

namespace interlock::service {
namespace {

namespace event_type = domain::event_type;
using domain::InfoOf;
using domain::Plan;
using domain::PlanChange;
using domain::PlanInfo;
using domain::PlanKind;
using domain::PlanRef;

// The time that some clients send for none: 0001-01-01T00:00:00Z.
constexpr Timestamp kNoTime = {-62'135'596'800'000'000};
// Far above what one gets by changes, and far below where counting on would end.
constexpr std::int64_t kVersionMax = 1'000'000'000'000;

Error Wrong(std::string_view field, std::string message) {
  return Error(Errc::kInvalidArgument, std::move(message)).WithDetail("field", std::string(field));
}

Error NoSuchPlan(const PlanRef& ref) {
  const PlanInfo& info = InfoOf(ref.kind);
  return {Errc::kNotFound,
          fmt::format("there is no {} {} in the project \"{}\": check its id, and name its project",
                      info.name, ref.id, ref.project)};
}

Error VersionConflict(const Plan& plan, std::int64_t made_from) {
  return Error(Errc::kConflict,
               fmt::format("the {} has version {}, and this change was made from version {}: read "
                           "it, make the change again and send version {}",
                           InfoOf(plan.kind).name, plan.version, made_from, plan.version))
      .WithSlug("version_conflict")
      .WithDetail("version", plan.version);
}

// A name is a key: it must fit one.
Result<void> CheckName(std::string_view field, std::string_view name, std::size_t bytes_max) {
  if (name.size() > bytes_max) {
    return Wrong(field,
                 fmt::format("{} has {} bytes; send at most {}", field, name.size(), bytes_max));
  }
  if (domain::HasNul(name)) {
    return Wrong(field, fmt::format("{} holds a NUL byte; remove \\u0000 from it", field));
  }
  return {};
}

// Whatever is not blank.
Result<void> CheckGiven(std::string_view field, std::string_view name, std::size_t bytes_max) {
  if (domain::Trim(name).empty()) return Wrong(field, fmt::format("{} is blank: send one", field));
  return CheckName(field, name, bytes_max);
}

// An id must be one that a path can say: /api/specs/{id...}, and /api/tasks/{id}/assign.
Result<void> CheckId(const PlanRef& ref, const Limits& limits) {
  IL_TRY_VOID(CheckGiven("id", ref.id, limits.plan_name_bytes_max));
  const bool has_actions =
      ref.kind == PlanKind::kTask || ref.kind == PlanKind::kInsight || ref.kind == PlanKind::kCuj;
  if (has_actions && ref.id.find('/') != std::string::npos) {
    return Wrong("id", fmt::format("the id of {} may hold no slash; choose another one",
                                   Named(InfoOf(ref.kind))));
  }
  const std::string framed = fmt::format("/{}/", ref.id);
  for (const std::string_view lost : {"//", "/./", "/../"}) {
    if (framed.find(lost) == std::string::npos) continue;
    return Wrong("id",
                 "id has a slash at an end, two in a row, or a segment of dots, which no path can "
                 "name; choose another one");
  }
  return {};
}

// What the change says of the names that lists are narrowed by.
Result<void> CheckFilters(const PlanInfo& info, const PlanChange& change, const Limits& limits) {
  for (const domain::PlanFilter& filter : info.filters) {
    IL_TRY_VOID(
        CheckName(filter.field, TextOf(change.values, filter.field), limits.plan_name_bytes_max));
  }
  return {};
}

// The JSON of a plan that is to be stored.
Result<std::string> FittingJson(const Plan& plan, const Limits& limits) {
  std::string json = store::PlanJson(plan);
  if (json.size() <= limits.plan_bytes_max) return json;
  return Error(Errc::kInvalidArgument,
               fmt::format("the {} would have {} bytes of JSON; keep it to {}",
                           InfoOf(plan.kind).name, json.size(), limits.plan_bytes_max));
}

Timestamp TimeOr(std::optional<Timestamp> sent, Timestamp otherwise) {
  return sent && *sent != kNoTime ? *sent : otherwise;
}

// What tells of a change.
struct Telling {
  std::string_view type;
  std::string by;
  Timestamp at;
};

Result<void> Tell(db::Transaction& tx, const Telling& telling, const PlanRef& ref,
                  std::string data) {
  domain::Event event = {.type = std::string(telling.type),
                         .project = ref.project,
                         .entity_id = ref.id,
                         .created_at = telling.at,
                         .data = std::move(data)};
  if (!telling.by.empty()) event.agent = telling.by;
  IL_TRY_VOID(store::AppendEvent(tx, event));
  return {};
}

// The change made in the plan as it is stored; the JSON of what it is now.
Result<std::string> Rewrite(db::Transaction& tx, Plan plan, const PlanChange& change, Timestamp now,
                            const Limits& limits) {
  const std::int64_t before = plan.version;
  IL_TRY(plan, Apply(change, std::move(plan)));
  plan.version = before + 1;
  plan.updated_at = now;
  IL_TRY(std::string json, FittingJson(plan, limits));
  IL_TRY(const bool replaced, store::ReplacePlan(tx, plan, json));
  // Not with one writer; where there are several, storage runs us again.
  if (!replaced) return Error(Errc::kBusy, "another change came between; try again");
  return json;
}

Result<Plan> Existing(db::Transaction& tx, const PlanRef& ref) {
  IL_TRY(std::optional<Plan> plan, store::FindPlan(tx.connection(), ref));
  if (!plan) return NoSuchPlan(ref);
  return *std::move(plan);
}

Error TaskDone(const Plan& task) {
  return Error(Errc::kConflict,
               fmt::format("the task {} is done: claim another one, or set its status to pending "
                           "first",
                           task.id))
      .WithSlug("task_done");
}

// The agent that works on a task.
struct Holder {
  std::string agent;  // its id; the text of the task when it means nobody; empty = nobody has it
  std::string name = {};  // of an agent that is registered in the project
};
Result<Holder> FindHolder(db::Connection& connection, AddressBook& book, const Plan& task,
                          Timestamp now) {
  const std::string text(TextOf(task.values, "agent"));
  if (text.empty()) return Holder{};
  IL_TRY(auto keeper, book.FindKeeper(connection, task.project, text, now));
  if (!keeper) return Holder{.agent = text};
  const bool here = keeper->project == task.project;
  return Holder{.agent = std::move(keeper->id), .name = here ? std::move(keeper->name) : ""};
}

Error TaskClaimed(const Plan& task, const Holder& holder) {
  Error error = Error(Errc::kConflict,
                      fmt::format("the task {} is with {}: claim another one, or ask that agent",
                                  task.id, holder.name.empty() ? holder.agent : holder.name))
                    .WithSlug("task_claimed")
                    .WithDetail("holder", holder.agent);
  if (holder.name.empty()) return error;
  return std::move(error).WithDetail("holder_name", holder.name);
}

// The tasks of the agent that the query names are those under its id and those under its bare name.
Result<void> FindAgent(db::Connection& connection, AddressBook& book, Timestamp now,
                       domain::PlanQuery& query) {
  const auto filters = InfoOf(query.kind).filters;
  constexpr std::size_t kSecond = 1;
  if (filters.size() <= kSecond || filters[kSecond].field != "agent") return {};
  std::optional<std::string>& agent = query.filters[kSecond];
  if (!agent) return {};
  IL_TRY(AddressBook::Owner owner, book.OwnerOf(connection, query.project, *agent, now));
  agent = std::move(owner.agent);
  if (owner.also) query.second_or = std::move(owner.also->name);
  return {};
}

}  // namespace

Planning::Awaitable<std::string> Planning::Create(PlanRef ref, PlanChange change, std::string by) {
  const PlanInfo& info = InfoOf(ref.kind);
  if (domain::Trim(ref.id).empty()) ref.id = uuids_.Next().Text();
  IL_CO_TRY_VOID(CheckId(ref, limits_));
  IL_CO_TRY_VOID(CheckName("project", ref.project, limits_.project_bytes_max));
  IL_CO_TRY_VOID(CheckFilters(info, change, limits_));
  const Timestamp now = clock_.Now();
  Plan blank = {.kind = ref.kind,
                .project = ref.project,
                .id = ref.id,
                .created_at = TimeOr(change.created_at, now),
                .updated_at = TimeOr(change.updated_at, now)};
  if (info.version == PlanInfo::Version::kAsSent && change.version > 0) {
    if (change.version > kVersionMax) {
      co_return Wrong("version", fmt::format("version is above {}; leave it out", kVersionMax));
    }
    blank.version = change.version;
  }
  IL_CO_TRY(Plan plan, Apply(change, std::move(blank)));
  IL_CO_TRY(std::string json, FittingJson(plan, limits_));
  auto write = [ref = std::move(ref), plan = std::move(plan), json,
                telling = Telling{info.created_event, std::move(by), now}](
                   db::Transaction& tx) -> Result<bool> {
    IL_TRY(const bool inserted, store::InsertPlan(tx, plan, json));
    if (!inserted) {
      return Error(
          Errc::kAlreadyExists,
          fmt::format("there is {} {} in the project \"{}\" already: change it with PUT, or choose "
                      "another id",
                      Named(InfoOf(ref.kind)), ref.id, ref.project));
    }
    IL_TRY_VOID(Tell(tx, telling, ref, json));
    return true;
  };
  IL_CO_TRY([[maybe_unused]] const bool made,
            co_await AwaitWrite<bool>(storage_, std::move(write)));
  co_return json;
}

Planning::Awaitable<std::string> Planning::Update(PlanRef ref, PlanChange change, std::string by) {
  const PlanInfo& info = InfoOf(ref.kind);
  IL_CO_TRY_VOID(CheckFilters(info, change, limits_));
  auto write = [ref = std::move(ref), change = std::move(change), by = std::move(by),
                now = clock_.Now(), limits = limits_,
                &info](db::Transaction& tx) -> Result<std::string> {
    IL_TRY(Plan plan, Existing(tx, ref));
    if (info.locking == PlanInfo::Locking::kVersion && change.version != plan.version) {
      return VersionConflict(plan, change.version);
    }
    IL_TRY(std::string json, Rewrite(tx, std::move(plan), change, now, limits));
    IL_TRY_VOID(Tell(tx, {UpdateEvent(info, change), by, now}, ref, json));
    return json;
  };
  co_return co_await AwaitWrite<std::string>(storage_, std::move(write));
}

Planning::Awaitable<void> Planning::Remove(PlanRef ref, std::string by) {
  Telling telling = {InfoOf(ref.kind).deleted_event, std::move(by), clock_.Now()};
  auto write = [telling = std::move(telling),
                ref = std::move(ref)](db::Transaction& tx) -> Result<bool> {
    IL_TRY(const bool removed, store::RemovePlan(tx, ref));
    if (removed) IL_TRY_VOID(Tell(tx, telling, ref, ""));
    return removed;
  };
  IL_CO_TRY([[maybe_unused]] const bool removed,
            co_await AwaitWrite<bool>(storage_, std::move(write)));
  co_return Result<void>();
}

Planning::Awaitable<std::string> Planning::Find(PlanRef ref) {
  auto read = [ref = std::move(ref)](db::Connection& connection) -> Result<std::string> {
    IL_TRY(std::optional<std::string> json, store::FindPlanJson(connection, ref));
    if (!json) return NoSuchPlan(ref);
    return *std::move(json);
  };
  co_return co_await AwaitRead<std::string>(storage_, std::move(read));
}

Planning::Awaitable<domain::PlanPage> Planning::List(domain::PlanQuery query) {
  query.limit = std::clamp(query.limit, std::int64_t{0}, limits_.plans_listed_max);
  query.offset = std::max(query.offset, std::int64_t{0});
  query.bytes_max = limits_.page_bytes_max;
  auto read = [&book = storage_.addresses(), query = std::move(query),
               now = clock_.Now()](db::Connection& connection) -> Result<domain::PlanPage> {
    domain::PlanQuery by_id = query;
    IL_TRY_VOID(FindAgent(connection, book, now, by_id));
    return store::ListPlans(connection, by_id);
  };
  co_return co_await AwaitRead<domain::PlanPage>(storage_, std::move(read));
}

Planning::Awaitable<std::string> Planning::Assign(PlanRef task, std::string agent, std::string by) {
  PlanChange change;
  change.values["agent"] = agent;
  change.values["status"] = std::string("running");
  IL_CO_TRY_VOID(CheckFilters(InfoOf(task.kind), change, limits_));
  auto write = [&book = storage_.addresses(), task = std::move(task), agent = std::move(agent),
                change = std::move(change), limits = limits_,
                telling = Telling{event_type::kTaskAssigned, std::move(by), clock_.Now()}](
                   db::Transaction& tx) -> Result<std::string> {
    IL_TRY(Plan plan, Existing(tx, task));
    IL_TRY_VOID(book.Find(tx.connection(), task.project, agent, telling.at));
    IL_TRY(std::string json, Rewrite(tx, std::move(plan), change, telling.at, limits));
    IL_TRY_VOID(Tell(tx, telling, task, json));
    return json;
  };
  co_return co_await AwaitWrite<std::string>(storage_, std::move(write));
}

Planning::Awaitable<std::string> Planning::Claim(PlanRef task, std::string agent,
                                                 std::optional<std::int64_t> version) {
  IL_CO_TRY_VOID(CheckGiven("agent", agent, limits_.plan_name_bytes_max));
  auto write = [&book = storage_.addresses(), task = std::move(task), text = std::move(agent),
                version, limits = limits_,
                now = clock_.Now()](db::Transaction& tx) -> Result<std::string> {
    IL_TRY(Plan plan, Existing(tx, task));
    if (TextOf(plan.values, "status") == "done") return TaskDone(plan);
    IL_TRY(const std::string id, book.IdOf(tx.connection(), task.project, text, now));
    IL_TRY(const Holder holder, FindHolder(tx.connection(), book, plan, now));
    if (!holder.agent.empty() && holder.agent != id) return TaskClaimed(plan, holder);
    const bool runs = !holder.agent.empty() && TextOf(plan.values, "status") == "running";
    if (runs && TextOf(plan.values, "agent") == id) return store::PlanJson(plan);
    if (!runs && version && *version != plan.version) return VersionConflict(plan, *version);
    PlanChange change;
    change.values["agent"] = id;
    change.values["status"] = std::string("running");
    IL_TRY(std::string json, Rewrite(tx, std::move(plan), change, now, limits));
    IL_TRY_VOID(Tell(tx, {event_type::kTaskAssigned, id, now}, task, json));
    return json;
  };
  co_return co_await AwaitWrite<std::string>(storage_, std::move(write));
}

Planning::Awaitable<bool> Planning::LinkInsight(PlanRef insight, std::string spec_id,
                                                std::string by) {
  PlanChange change;
  change.values["spec_id"] = spec_id;
  IL_CO_TRY_VOID(CheckFilters(InfoOf(insight.kind), change, limits_));
  auto write = [insight = std::move(insight), change = std::move(change),
                spec_id = std::move(spec_id), limits = limits_,
                telling = Telling{InfoOf(PlanKind::kInsight).updated_event, std::move(by),
                                  clock_.Now()}](db::Transaction& tx) -> Result<bool> {
    IL_TRY(std::optional<Plan> plan, store::FindPlan(tx.connection(), insight));
    if (!plan) return false;
    if (TextOf(plan->values, "spec_id") == spec_id) return true;
    IL_TRY_VOID(Rewrite(tx, *std::move(plan), change, telling.at, limits));
    IL_TRY_VOID(Tell(tx, telling, insight, store::PlanFieldJson("spec_id", spec_id)));
    return true;
  };
  co_return co_await AwaitWrite<bool>(storage_, std::move(write));
}

Planning::Awaitable<void> Planning::LinkCuj(domain::CujLink link, std::string by) {
  IL_CO_TRY_VOID(CheckGiven("feature_id", link.feature_id, limits_.plan_name_bytes_max));
  IL_CO_TRY_VOID(CheckName("id", link.cuj_id, limits_.plan_name_bytes_max));
  IL_CO_TRY_VOID(CheckName("project", link.project, limits_.project_bytes_max));
  link.linked_at = clock_.Now();
  Telling telling = {event_type::kCujLinked, std::move(by), link.linked_at};
  auto write = [telling = std::move(telling),
                link = std::move(link)](db::Transaction& tx) -> Result<bool> {
    IL_TRY_VOID(store::PutCujLink(tx, link));
    IL_TRY_VOID(Tell(tx, telling, {PlanKind::kCuj, link.project, link.cuj_id},
                     store::PlanFieldJson("feature_id", link.feature_id)));
    return true;
  };
  IL_CO_TRY([[maybe_unused]] const bool linked,
            co_await AwaitWrite<bool>(storage_, std::move(write)));
  co_return Result<void>();
}

Planning::Awaitable<void> Planning::UnlinkCuj(domain::CujLink link, std::string by) {
  IL_CO_TRY_VOID(CheckGiven("feature_id", link.feature_id, limits_.plan_name_bytes_max));
  auto write = [telling = Telling{event_type::kCujUnlinked, std::move(by), clock_.Now()},
                link = std::move(link)](db::Transaction& tx) -> Result<bool> {
    IL_TRY(const bool removed, store::RemoveCujLink(tx, link));
    if (!removed) return false;
    IL_TRY_VOID(Tell(tx, telling, {PlanKind::kCuj, link.project, link.cuj_id},
                     store::PlanFieldJson("feature_id", link.feature_id)));
    return true;
  };
  IL_CO_TRY([[maybe_unused]] const bool removed,
            co_await AwaitWrite<bool>(storage_, std::move(write)));
  co_return Result<void>();
}

Planning::Awaitable<std::string> Planning::CujLinks(PlanRef cuj, std::int64_t limit,
                                                    std::int64_t offset) {
  limit = std::clamp(limit, std::int64_t{0}, limits_.plans_listed_max);
  offset = std::max(offset, std::int64_t{0});
  auto read = [cuj = std::move(cuj), limit, offset](db::Connection& connection) {
    return store::ListCujLinks(connection, cuj, limit, offset);
  };
  co_return co_await AwaitRead<std::string>(storage_, std::move(read));
}

}  // namespace interlock::service
