#include "kernel/run_progress.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "kernel/gate_rules.h"
#include "kernel/run_agents.h"
#include "kernel/run_artifacts.h"
#include "kernel/run_change.h"

namespace interlock::kernel {
namespace {

// runs' primary key. Of completed runs completed_at is ?5.
constexpr db::Sql kMove =
    "UPDATE runs SET phase = ?3, status = ?4, completed_at = ?5, updated_at = ?6 "
    "WHERE id = ?1 AND phase = ?2";

// ic_dispatches_scope.
constexpr db::Sql kCancelDispatches =
    "UPDATE dispatches SET status = 'cancelled', completed_at = ?2 "
    "WHERE scope_id = ?1 AND status IN ('spawned', 'running')";

constexpr std::array kStatements = {IL_SQL(kMove), IL_SQL(kCancelDispatches)};

Error Refused(std::string message, std::string what_to_do) {
  return Error(Errc::kConflict, std::move(message)).WithDetail("do", std::move(what_to_do));
}

Error Ended(const Run& run) {
  return Refused(fmt::format("run {} is {}", run.id, run.status),
                 run.status == kRunCompleted
                     ? fmt::format("take it back with 'ic run rollback {} --to-phase=P', or create "
                                   "a new one",
                                   run.id)
                     : "create a new one with 'ic run create'");
}

// Where the run stands in its chain.
struct Place {
  Run run;
  PhaseChain chain;
  std::size_t at;
};

Result<Place> PlaceOf(db::Connection& connection, std::string_view id) {
  IL_TRY(Run run, FindRun(connection, id));
  IL_TRY(PhaseChain chain, run.Chain());
  const std::optional<std::size_t> at = chain.Find(run.phase);
  if (!at) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("run {} stands in '{}', which is none of its phases", id, run.phase))
        .WithDetail("do", fmt::format("end it with 'ic run abandon {}' and create a new one", id));
  }
  return Place{std::move(run), std::move(chain), *at};
}

Result<Place> ActivePlaceOf(db::Connection& connection, std::string_view id) {
  IL_TRY(Place place, PlaceOf(connection, id));
  if (!place.run.active()) return Ended(place.run);
  if (place.at + 1 == place.chain.size()) {
    return Refused(fmt::format("run {} is in its last phase '{}'", id, place.run.phase),
                   "create a new one with 'ic run create'");
  }
  return place;
}

Result<void> Move(db::Transaction& tx, const Run& run, std::string_view to, std::string_view status,
                  std::int64_t now) {
  const std::optional<std::int64_t> completed_at =
      status == kRunCompleted ? std::optional(now) : std::nullopt;
  IL_TRY(const std::int64_t count,
         tx->Run(kMove, run.id, run.phase, to, status, completed_at, now));
  if (count == 1) return {};
  return Refused(fmt::format("run {} left the phase '{}' meanwhile", run.id, run.phase),
                 "look where it stands with 'ic run status', then try again");
}

}  // namespace

Result<AdvanceResult> AdvanceRun(db::Transaction& tx, std::string_view id,
                                 const std::optional<std::string>& skip_reason,
                                 const Origin& origin) {
  IL_TRY(const Place place, ActivePlaceOf(tx.connection(), id));
  const Run& run = place.run;
  IL_TRY(const PhaseNames skipped, SkippedPhases(tx.connection(), id, place.chain));
  const std::size_t target = place.chain.Next(place.at, skipped);
  PhaseEvent event{.run_id = run.id,
                   .from_phase = run.phase,
                   .to_phase = place.chain[target],
                   .type = "advance",
                   .gate_result = "none",
                   .gate_tier = "none",
                   .reason = skip_reason};
  AdvanceResult result{.event = {}, .project_dir = run.project_dir};
  if (!run.auto_advance && !skip_reason) {
    event.type = "pause";
    event.reason = "auto_advance disabled";
    IL_TRY(result.event, AppendPhaseEvent(tx, std::move(event), origin));
    IL_TRY_VOID(TouchRun(tx, run.id, origin.now));
    return result;
  }
  const bool last = target + 1 == place.chain.size();
  IL_TRY_VOID(Move(tx, run, event.to_phase, last ? kRunCompleted : kRunActive, origin.now));
  IL_TRY(result.event, AppendPhaseEvent(tx, std::move(event), origin));
  IL_TRY(result.active_agents, CountActiveAgents(tx.connection(), run.id));
  IL_TRY(result.actions, ResolvedActions(tx.connection(), run, result.event.to_phase));
  // What leaving the phase asks for, whether or not the phase behind it is to be skipped.
  if (!last) result.next_checks = DefaultChecks(place.chain[target], place.chain[target + 1]);
  return result;
}

Result<void> SkipPhase(db::Transaction& tx, std::string_view id, std::string_view phase,
                       std::string reason, const Origin& origin) {
  IL_TRY(const Place place, ActivePlaceOf(tx.connection(), id));
  const std::optional<std::size_t> wanted = place.chain.Find(phase);
  const std::string see = fmt::format("its phases are {}", fmt::join(place.chain.names(), ", "));
  if (!wanted) return Refused(fmt::format("run {} has no phase '{}'", id, phase), see);
  if (*wanted <= place.at) {
    return Refused(fmt::format("the phase '{}' is not ahead of '{}', where run {} stands", phase,
                               place.run.phase, id),
                   see);
  }
  if (*wanted + 1 == place.chain.size()) {
    return Refused(fmt::format("'{}' is the last phase and cannot be skipped", phase), see);
  }
  IL_TRY(const PhaseNames skipped, SkippedPhases(tx.connection(), id, place.chain));
  if (skipped.contains(phase)) return {};
  IL_TRY_VOID(TouchRun(tx, id, origin.now));
  IL_TRY_VOID(AppendPhaseEvent(tx,
                               {.run_id = place.run.id,
                                .from_phase = place.run.phase,
                                .to_phase = std::string(phase),
                                .type = "skip",
                                .reason = std::move(reason)},
                               origin));
  return {};
}

Result<RollbackPlan> PlanRollback(db::Connection& connection, std::string_view id,
                                  std::string_view to_phase) {
  IL_TRY(Place place, PlaceOf(connection, id));
  if (!place.run.active() && place.run.status != kRunCompleted) return Ended(place.run);
  const std::optional<std::size_t> to = place.chain.Find(to_phase);
  if (!to || *to >= place.at) {
    return Refused(fmt::format("the phase '{}' is not behind '{}', where run {} stands", to_phase,
                               place.run.phase, id),
                   fmt::format("its phases are {}", fmt::join(place.chain.names(), ", ")));
  }
  if (!place.run.active() && place.run.bead_id) {
    IL_TRY(const std::optional<Run> holder,
           ActiveRunOf(connection, place.run.project_dir, *place.run.bead_id));
    if (holder) return BeadIsTaken(*holder);
  }
  std::vector<std::string> phases = place.chain.Between(*to, place.at);
  return RollbackPlan{std::move(place.run), std::string(to_phase), std::move(phases)};
}

Result<RollbackResult> RollBack(db::Transaction& tx, std::string_view id, std::string_view to_phase,
                                const std::optional<std::string>& reason, const Origin& origin) {
  IL_TRY(RollbackPlan plan, PlanRollback(tx.connection(), id, to_phase));
  RollbackResult result{.plan = std::move(plan)};
  const Run& run = result.plan.run;
  IL_TRY_VOID(Move(tx, run, to_phase, kRunActive, origin.now));
  IL_TRY_VOID(AppendPhaseEvent(tx,
                               {.run_id = run.id,
                                .from_phase = run.phase,
                                .to_phase = result.plan.to_phase,
                                .type = "rollback",
                                .reason = reason},
                               origin));
  for (const std::string& phase : result.plan.phases) {
    IL_TRY(const std::int64_t marked, RollBackArtifacts(tx, run.id, phase));
    result.marked_artifacts += marked;
  }
  IL_TRY(result.cancelled_dispatches, tx->Run(kCancelDispatches, run.id, origin.now));
  IL_TRY(result.failed_agents, FailActiveAgents(tx, run.id, origin.now));
  return result;
}

std::span<const db::NamedSql> RunProgressStatements() { return kStatements; }

}  // namespace interlock::kernel
