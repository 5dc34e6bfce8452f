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

// The primary key of runs. ?5 is null unless the run is completed.
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
                     ? fmt::format("move it back with 'ic run rollback {} --to-phase=P', or create "
                                   "a new run",
                                   run.id)
                     : "create a new run with 'ic run create'");
}

// A run, its phases, and the index of the current one.
struct RunPosition {
  Run run;
  PhaseChain chain;
  std::size_t at;
};

Result<RunPosition> FindPosition(db::Connection& connection, std::string_view id) {
  IL_TRY(Run run, FindRun(connection, id));
  IL_TRY(PhaseChain chain, run.Chain());
  const std::optional<std::size_t> at = chain.Find(run.phase);
  if (!at) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("run {} is in phase '{}', which is not one of its phases", id,
                             run.phase))
        .WithDetail("do", fmt::format("end it with 'ic run abandon {}' and create a new run", id));
  }
  return RunPosition{std::move(run), std::move(chain), *at};
}

Result<RunPosition> FindActivePosition(db::Connection& connection, std::string_view id) {
  IL_TRY(RunPosition position, FindPosition(connection, id));
  if (!position.run.active()) return Ended(position.run);
  if (position.at + 1 == position.chain.size()) {
    return Refused(fmt::format("run {} is in its last phase '{}'", id, position.run.phase),
                   "create a new run with 'ic run create'");
  }
  return position;
}

Result<void> Move(db::Transaction& tx, const Run& run, std::string_view to, std::string_view status,
                  std::int64_t now) {
  const std::optional<std::int64_t> completed_at =
      status == kRunCompleted ? std::optional(now) : std::nullopt;
  IL_TRY(const std::int64_t count,
         tx->Run(kMove, run.id, run.phase, to, status, completed_at, now));
  if (count == 1) return {};
  return Refused(fmt::format("another process moved run {} from the phase '{}'", run.id, run.phase),
                 "check its phase with 'ic run status', then try again");
}

}  // namespace

Result<AdvanceResult> AdvanceRun(db::Transaction& tx, std::string_view id,
                                 const std::optional<std::string>& skip_reason,
                                 const Origin& origin) {
  IL_TRY(const RunPosition position, FindActivePosition(tx.connection(), id));
  const Run& run = position.run;
  IL_TRY(const PhaseNames skipped, SkippedPhases(tx.connection(), id, position.chain));
  const std::size_t target = position.chain.Next(position.at, skipped);
  PhaseEvent event{.run_id = run.id,
                   .from_phase = run.phase,
                   .to_phase = position.chain[target],
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
  const bool last = target + 1 == position.chain.size();
  IL_TRY_VOID(Move(tx, run, event.to_phase, last ? kRunCompleted : kRunActive, origin.now));
  IL_TRY(result.event, AppendPhaseEvent(tx, std::move(event), origin));
  IL_TRY(result.active_agents, CountActiveAgents(tx.connection(), run.id));
  IL_TRY(result.actions, ResolvedActions(tx.connection(), run, result.event.to_phase));
  // The checks for the next phase of the chain, even if that phase is skipped.
  if (!last) result.next_checks = DefaultChecks(position.chain[target], position.chain[target + 1]);
  return result;
}

Result<void> SkipPhase(db::Transaction& tx, std::string_view id, std::string_view phase,
                       std::string reason, const Origin& origin) {
  IL_TRY(const RunPosition position, FindActivePosition(tx.connection(), id));
  const std::optional<std::size_t> wanted = position.chain.Find(phase);
  const std::string see = fmt::format("its phases are {}", fmt::join(position.chain.names(), ", "));
  if (!wanted) return Refused(fmt::format("run {} has no phase '{}'", id, phase), see);
  if (*wanted <= position.at) {
    return Refused(fmt::format("the phase '{}' is not after '{}', the current phase of run {}",
                               phase, position.run.phase, id),
                   see);
  }
  if (*wanted + 1 == position.chain.size()) {
    return Refused(fmt::format("'{}' is the last phase and cannot be skipped", phase), see);
  }
  IL_TRY(const PhaseNames skipped, SkippedPhases(tx.connection(), id, position.chain));
  if (skipped.contains(phase)) return {};
  IL_TRY_VOID(TouchRun(tx, id, origin.now));
  IL_TRY_VOID(AppendPhaseEvent(tx,
                               {.run_id = position.run.id,
                                .from_phase = position.run.phase,
                                .to_phase = std::string(phase),
                                .type = "skip",
                                .reason = std::move(reason)},
                               origin));
  return {};
}

Result<RollbackPlan> PlanRunRollback(db::Connection& connection, std::string_view id,
                                     std::string_view to_phase) {
  IL_TRY(RunPosition position, FindPosition(connection, id));
  if (!position.run.active() && position.run.status != kRunCompleted) return Ended(position.run);
  const std::optional<std::size_t> to = position.chain.Find(to_phase);
  if (!to || *to >= position.at) {
    return Refused(fmt::format("the phase '{}' is not before '{}', the current phase of run {}",
                               to_phase, position.run.phase, id),
                   fmt::format("its phases are {}", fmt::join(position.chain.names(), ", ")));
  }
  if (!position.run.active() && position.run.bead_id) {
    IL_TRY(const std::optional<Run> holder,
           ActiveRunOf(connection, position.run.project_dir, *position.run.bead_id));
    if (holder) return BeadConflict(*holder);
  }
  std::vector<std::string> phases = position.chain.Between(*to, position.at);
  return RollbackPlan{std::move(position.run), std::string(to_phase), std::move(phases)};
}

Result<RollbackResult> RollBackRun(db::Transaction& tx, std::string_view id,
                                   std::string_view to_phase,
                                   const std::optional<std::string>& reason, const Origin& origin) {
  IL_TRY(RollbackPlan plan, PlanRunRollback(tx.connection(), id, to_phase));
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
