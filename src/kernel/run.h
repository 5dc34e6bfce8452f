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
#include "kernel/phase_chain.h"

// Runs as they are stored. A run is one piece of work that passes through phases. run_change.h and
// run_progress.h contain the functions that change runs.
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

// The statuses of a run. All except active are final, but a completed run can be rolled back.
inline constexpr std::string_view kRunActive = "active";
inline constexpr std::string_view kRunCompleted = "completed";
inline constexpr std::string_view kRunCancelled = "cancelled";
inline constexpr std::string_view kRunFailed = "failed";
inline constexpr std::string_view kRunAbandoned = "abandoned";

struct Run {
  std::string id;
  std::string project_dir;  // absolute; empty for a portfolio, whose children have the projects
  std::string goal;
  std::string status = std::string(kRunActive);
  std::string phase = {};
  std::int64_t complexity = 3;  // 1 to 5
  bool force_full = false;
  bool auto_advance = true;
  std::int64_t created_at = 0;
  std::int64_t updated_at = 0;
  std::optional<std::int64_t> completed_at = {};  // time when the run ended, with any final status
  std::optional<std::string> scope_id = {};
  std::optional<std::string> metadata = {};  // a JSON object
  std::optional<std::string> phases = {};    // PhaseChain::Text(); nullopt: the default chain
  std::optional<std::int64_t> token_budget = {};
  std::int64_t budget_warn_pct = 80;
  std::optional<std::string> parent_run_id = {};
  std::optional<std::string> goal_id = {};
  std::int64_t max_dispatches = 0;  // 0: no limit; the same for max_agents
  bool budget_enforce = false;
  std::int64_t max_agents = 0;
  std::optional<std::string> gate_rules = {};  // the result of ParseGateRules()
  // A unique index allows one active run per project and bead.
  std::optional<std::string> bead_id = {};
  std::optional<std::string> session_id = {};

  bool active() const { return status == kRunActive; }
  bool is_portfolio() const { return project_dir.empty(); }
  // kInvalidArgument: the stored phases cannot be parsed; only another program can cause that.
  Result<PhaseChain> Chain() const;
};

// The conditions of a list of runs. An unset field matches every run.
struct RunFilter {
  std::optional<std::string> project = {};  // absolute
  std::optional<std::string> bead = {};
  std::optional<std::string> status = {};
  std::optional<std::string> session = {};
  std::optional<std::string> scope = {};
  std::optional<std::string> parent = {};
  bool portfolios_only = false;
};

// kNotFound names the run.
Result<Run> FindRun(db::Connection& connection, std::string_view id);
// Newest first, by (created_at, order of insertion).
Result<std::vector<Run>> ListRuns(db::Connection& connection, const RunFilter& filter);
// Returns the newest active run. Without a project: of any project.
Result<std::optional<Run>> CurrentRun(db::Connection& connection,
                                      const std::optional<std::string>& project,
                                      const std::optional<std::string>& session);
// Returns the active run of this bead. It prevents a second one.
Result<std::optional<Run>> ActiveRunOf(db::Connection& connection, std::string_view project,
                                       std::string_view bead);

Error NoSuchRun(std::string_view id);

std::span<const db::NamedSql> RunStatements();

}  // namespace interlock::kernel
