#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/result.h"
#include "domain/planning.h"

namespace interlock::service {

class Storage;

// What agents plan by, of every kind that domain/planning.h describes. Each change is one
// transaction with the one event that tells of it: of many who change one from the same version one
// succeeds, and the others learn the version that is there now.
//
// Thread-safe. The coroutines run on the caller's strand and own what they are given. `by` is the
// agent that asks, for the event; empty = not known. Texts of answers are JSON, as
// store::PlanJson() has it. A name or a text beyond its limit is kInvalidArgument.
class Planning {
 public:
  template <typename T>
  using Awaitable = boost::asio::awaitable<Result<T>>;

  // All must outlive it.
  Planning(Storage& storage, Clock& clock, UuidMaker& uuids, const Limits& limits = {})
      : storage_(storage), clock_(clock), uuids_(uuids), limits_(limits) {}

  // A new one, made of nothing by the change; without an id in `ref` it gets one. Times that it
  // does not bring are now. kAlreadyExists.
  Awaitable<std::string> Create(domain::PlanRef ref, domain::PlanChange change, std::string by);

  // kNotFound; kConflict, slug version_conflict with the detail version, when its kind is locked by
  // versions and the change was made from another one.
  Awaitable<std::string> Update(domain::PlanRef ref, domain::PlanChange change, std::string by);

  // Also fine when there is none.
  Awaitable<void> Remove(domain::PlanRef ref, std::string by);

  // kNotFound.
  Awaitable<std::string> Find(domain::PlanRef ref);
  // `limit` is at most Limits::plans_listed_max. Tasks are narrowed to those of an agent by its id
  // or its name, as AddressBook says, and both find the same; kConflict (ambiguous_recipient).
  Awaitable<domain::PlanPage> List(domain::PlanQuery query);

  // Gives a task to an agent, which may be empty, and lets it run, whatever its version. The text
  // is kept as it is, since clients compare it with what they sent. kNotFound; kConflict
  // (ambiguous_recipient).
  Awaitable<std::string> Assign(domain::PlanRef task, std::string agent, std::string by);

  // The task for `agent`, an id or a name, which then runs; of several agents that claim it one
  // gets it, and is kept by its id. A task under a bare name is its agent's own (AddressBook::
  // FindKeeper). If the agent runs it already `version` is not looked at, so that a claim can be
  // repeated. kNotFound; kConflict: slug ambiguous_recipient; task_done; task_claimed with the
  // details holder, its id if it is registered, and, if that is in the project, holder_name;
  // version_conflict when `version` is another than its own.
  Awaitable<std::string> Claim(domain::PlanRef task, std::string agent,
                               std::optional<std::int64_t> version);

  // Lets an insight belong to a spec, or with an empty one to none. False when there is no such
  // insight. When it belongs to it already nothing happens.
  Awaitable<bool> LinkInsight(domain::PlanRef insight, std::string spec_id, std::string by);

  // A critical user journey touches a feature, or no longer does. Linking again renews the time of
  // the link; taking away one that is not there changes nothing. `link.linked_at` is not looked at.
  Awaitable<void> LinkCuj(domain::CujLink link, std::string by);
  Awaitable<void> UnlinkCuj(domain::CujLink link, std::string by);
  // A JSON array.
  Awaitable<std::string> CujLinks(domain::PlanRef cuj, std::int64_t limit, std::int64_t offset);

 private:
  Storage& storage_;
  Clock& clock_;
  UuidMaker& uuids_;
  const Limits limits_;
};

}  // namespace interlock::service
