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

// How a run goes from phase to phase, forwards and back. Each function is one transaction's worth:
// what it changes and the event that tells of it. kConflict and kNotFound say what to do instead.
//
// (1) A step changes the row only where it still stands in the phase that was read, so that of many
//     who try at once each phase is passed by exactly one.
// (2) The events of a run form a chain: each advance and rollback begins where the one before it
//     ended.
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

struct AdvanceResult {
  // Type advance; or pause, which is recorded too but leaves the run where it is.
  PhaseEvent event;
  std::string project_dir;
  // Of the phase it came to, when it advanced:
  std::int64_t active_agents = 0;
  std::vector<std::string> next_checks = {};  // what the default rules ask of the step after it
  std::vector<PhaseAction> actions = {};      // resolved

  bool advanced() const { return event.type == "advance"; }
};

// To the next phase that is not to be skipped, and to its end when that is the last. A run that
// does not advance by itself needs a reason. kConflict when the run has ended.
Result<AdvanceResult> AdvanceRun(db::Transaction& tx, std::string_view id,
                                 const std::optional<std::string>& skip_reason,
                                 const Origin& origin);

// Marks a phase ahead, not the last one, to be passed over. Once marked, it stays as it was.
Result<void> SkipPhase(db::Transaction& tx, std::string_view id, std::string_view phase,
                       std::string reason, const Origin& origin);

struct RollbackPlan {
  Run run;
  std::string to_phase;
  std::vector<std::string> phases;  // that are undone: after to_phase, up to where it stands
};
// What a rollback would do. kConflict when it may not: the phase is not behind, the run has ended
// otherwise than by completion, or its bead has another active run.
Result<RollbackPlan> PlanRollback(db::Connection& connection, std::string_view id,
                                  std::string_view to_phase);

struct RollbackResult {
  RollbackPlan plan;
  std::int64_t cancelled_dispatches = 0;
  std::int64_t marked_artifacts = 0;
  std::int64_t failed_agents = 0;
};
// Takes the run back and makes it active; marks what came out of the undone phases, fails its
// agents and cancels its dispatches.
Result<RollbackResult> RollBack(db::Transaction& tx, std::string_view id, std::string_view to_phase,
                                const std::optional<std::string>& reason, const Origin& origin);

std::span<const db::NamedSql> RunProgressStatements();

}  // namespace interlock::kernel
