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

// Runs as they are stored: one piece of work on its way through phases. How they change is
// run_change.h and run_progress.h.
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

// The statuses of a run. All but active are final, though a completed run can be rolled back.
inline constexpr std::string_view kRunActive = "active";
inline constexpr std::string_view kRunCompleted = "completed";
inline constexpr std::string_view kRunCancelled = "cancelled";
inline constexpr std::string_view kRunFailed = "failed";
inline constexpr std::string_view kRunAbandoned = "abandoned";

struct Run {
  std::string id;
  std::string project_dir;  // absolute; empty: a portfolio, whose children have the projects
  std::string goal;
  std::string status = std::string(kRunActive);
  std::string phase = {};
  std::int64_t complexity = 3;  // 1 to 5
  bool force_full = false;
  bool auto_advance = true;
  std::int64_t created_at = 0;
  std::int64_t updated_at = 0;
  std::optional<std::int64_t> completed_at = {};  // when it became final
  std::optional<std::string> scope_id = {};
  std::optional<std::string> metadata = {};  // text of a JSON object
  std::optional<std::string> phases = {};    // as PhaseChain reads it; none: the default chain
  std::optional<std::int64_t> token_budget = {};
  std::int64_t budget_warn_pct = 80;
  std::optional<std::string> parent_run_id = {};
  std::optional<std::string> goal_id = {};
  std::int64_t max_dispatches = 0;  // 0: no limit, here and below
  bool budget_enforce = false;
  std::int64_t max_agents = 0;
  std::optional<std::string> gate_rules = {};  // as ParseGateRules() writes them
  // At most one run of a project and a bead is active: the table's index says so.
  std::optional<std::string> bead_id = {};
  std::optional<std::string> session_id = {};

  bool active() const { return status == kRunActive; }
  bool is_portfolio() const { return project_dir.empty(); }
  // kInvalidArgument when the stored one cannot be read, which only another program can have done.
  Result<PhaseChain> Chain() const;
};

// What a list of runs must match; what is not set matches everything.
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
// Newest first, by (created_at, order of making).
Result<std::vector<Run>> ListRuns(db::Connection& connection, const RunFilter& filter);
// The newest active run; of any project when none is given.
Result<std::optional<Run>> CurrentRun(db::Connection& connection,
                                      const std::optional<std::string>& project,
                                      const std::optional<std::string>& session);
// The one that keeps others from being active for this bead.
Result<std::optional<Run>> ActiveRunOf(db::Connection& connection, std::string_view project,
                                       std::string_view bead);

Error NoSuchRun(std::string_view id);

std::span<const db::NamedSql> RunStatements();

}  // namespace interlock::kernel
