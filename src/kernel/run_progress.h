#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "kernel/phase_actions.h"
#include "kernel/phase_event.h"
#include "kernel/run.h"

// Moves a run between its phases. Each function makes its change and records the event of it in the
// caller's transaction. kConflict and kNotFound have a remedy.
//
// (1) An update matches only the phase that was read before, so of several concurrent callers only
//     one passes each phase.
// (2) The events of a run form a chain: each advance and rollback begins in the phase where the
//     previous one ended.
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

struct AdvanceResult {
  // Its type is advance, or pause: a pause is recorded too, but the run stays in its phase.
  PhaseEvent event;
  std::string project_dir;
  // The remaining fields describe the new phase and are set only if the run advanced.
  std::int64_t active_agents = 0;
  std::vector<std::string> next_checks = {};  // the default rules for the step after it
  std::vector<PhaseAction> actions = {};      // with variables substituted

  bool advanced() const { return event.type == "advance"; }
};

// Moves the run to the next phase that is not skipped. The last phase completes the run. A run with
// auto_advance off needs a reason to advance. kConflict: the run has ended.
Result<AdvanceResult> AdvanceRun(db::Transaction& tx, std::string_view id,
                                 const std::optional<std::string>& skip_reason,
                                 const Origin& origin);

// Marks a later phase, except the last, to be skipped. No effect if the phase is already marked.
Result<void> SkipPhase(db::Transaction& tx, std::string_view id, std::string_view phase,
                       std::string reason, const Origin& origin);

struct RollbackPlan {
  Run run;
  std::string to_phase;
  std::vector<std::string> phases;  // the undone phases: after to_phase, up to the current one
};
// Computes a rollback without doing it. kConflict: the phase is not behind the current one, the run
// ended without completion, or its bead has another active run.
Result<RollbackPlan> PlanRunRollback(db::Connection& connection, std::string_view id,
                                     std::string_view to_phase);

struct RollbackResult {
  RollbackPlan plan;
  std::int64_t cancelled_dispatches = 0;
  std::int64_t marked_artifacts = 0;
  std::int64_t failed_agents = 0;
};
// Moves the run back and makes it active. Marks the artifacts of the undone phases, fails the run's
// active agents and cancels its dispatches.
Result<RollbackResult> RollBackRun(db::Transaction& tx, std::string_view id,
                                   std::string_view to_phase,
                                   const std::optional<std::string>& reason, const Origin& origin);

std::span<const db::NamedSql> RunProgressStatements();

}  // namespace interlock::kernel
