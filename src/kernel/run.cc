#include "kernel/run.h"

#include <fmt/format.h>

#include <array>
#include <limits>

namespace interlock::kernel {
namespace {

#define IL_RUN_COLUMNS                                                                        \
  "id, project_dir, goal, status, phase, complexity, force_full, auto_advance, created_at, "  \
  "updated_at, completed_at, scope_id, metadata, phases, token_budget, budget_warn_pct, "     \
  "parent_run_id, goal_id, max_dispatches, budget_enforce, max_agents, gate_rules, bead_id, " \
  "session_id"

// All conditions of a list, whichever index finds the rows. With the condition on ?8, the lists of
// all runs and of one status are a range of their index and need no sort.
#define IL_RUN_FILTER                                                                        \
  " created_at >= ?8 AND (?1 IS NULL OR project_dir = ?1) AND (?2 IS NULL OR bead_id = ?2) " \
  "AND (?3 IS NULL OR status = ?3) AND (?4 IS NULL OR session_id = ?4) "                     \
  "AND (?5 IS NULL OR scope_id = ?5) AND (?6 IS NULL OR parent_run_id = ?6) "                \
  "AND (?7 = 0 OR project_dir = '') ORDER BY created_at DESC, rowid DESC"

// runs' primary key.
constexpr db::Sql kFind = "SELECT " IL_RUN_COLUMNS " FROM runs WHERE id = ?1";

// ic_runs_created, in reverse. Returns every run.
constexpr db::Sql kListAll = "SELECT " IL_RUN_COLUMNS " FROM runs WHERE" IL_RUN_FILTER;
// ic_runs_project, in reverse.
constexpr db::Sql kListProject =
    "SELECT " IL_RUN_COLUMNS " FROM runs WHERE project_dir = ?1 AND" IL_RUN_FILTER;
// ic_runs_status, in reverse.
constexpr db::Sql kListStatus =
    "SELECT " IL_RUN_COLUMNS " FROM runs WHERE status = ?3 AND" IL_RUN_FILTER;
// ic_runs_scope. One scope has few runs, so sorting is cheap.
constexpr db::Sql kListScope =
    "SELECT " IL_RUN_COLUMNS " FROM runs WHERE scope_id = ?5 AND" IL_RUN_FILTER;
// ic_runs_parent. One portfolio has few runs, so sorting is cheap.
constexpr db::Sql kListParent =
    "SELECT " IL_RUN_COLUMNS " FROM runs WHERE parent_run_id = ?6 AND" IL_RUN_FILTER;

// ic_runs_current, in reverse.
constexpr db::Sql kCurrent =
    "SELECT " IL_RUN_COLUMNS
    " FROM runs WHERE status = 'active' AND project_dir = ?1 AND (?2 IS NULL OR session_id = ?2) "
    "ORDER BY created_at DESC, rowid DESC LIMIT 1";
// ic_runs_status, in reverse.
constexpr db::Sql kCurrentAnywhere =
    "SELECT " IL_RUN_COLUMNS
    " FROM runs WHERE status = 'active' AND (?1 IS NULL OR session_id = ?1) "
    "ORDER BY created_at DESC, rowid DESC LIMIT 1";

// ic_runs_one_per_bead.
constexpr db::Sql kActiveOfBead =
    "SELECT " IL_RUN_COLUMNS
    " FROM runs WHERE status = 'active' AND project_dir = ?1 AND bead_id = ?2 "
    "AND bead_id IS NOT NULL";

#undef IL_RUN_FILTER
#undef IL_RUN_COLUMNS

constexpr std::array kStatements = {
    IL_SQL(kFind),       IL_SQL(kListAll),         IL_SQL(kListProject),
    IL_SQL(kListStatus), IL_SQL(kListScope),       IL_SQL(kListParent),
    IL_SQL(kCurrent),    IL_SQL(kCurrentAnywhere), IL_SQL(kActiveOfBead)};

Run RunFrom(const db::Row& row) {
  return {.id = row.String(0),
          .project_dir = row.String(1),
          .goal = row.String(2),
          .status = row.String(3),
          .phase = row.String(4),
          .complexity = row.Int(5),
          .force_full = row.Bool(6),
          .auto_advance = row.Bool(7),
          .created_at = row.Int(8),
          .updated_at = row.Int(9),
          .completed_at = row.OptionalInt(10),
          .scope_id = row.OptionalString(11),
          .metadata = row.OptionalString(12),
          .phases = row.OptionalString(13),
          .token_budget = row.OptionalInt(14),
          .budget_warn_pct = row.Int(15),
          .parent_run_id = row.OptionalString(16),
          .goal_id = row.OptionalString(17),
          .max_dispatches = row.Int(18),
          .budget_enforce = row.Bool(19),
          .max_agents = row.Int(20),
          .gate_rules = row.OptionalString(21),
          .bead_id = row.OptionalString(22),
          .session_id = row.OptionalString(23)};
}

const db::Sql& ListFor(const RunFilter& filter) {
  if (filter.parent) return kListParent;
  if (filter.scope) return kListScope;
  if (filter.project) return kListProject;
  if (filter.status) return kListStatus;
  return kListAll;
}

}  // namespace

Result<PhaseChain> Run::Chain() const {
  if (!phases) return PhaseChain::Default();
  Result<PhaseChain> chain = PhaseChain::Parse(*phases);
  if (chain) return chain;
  return Error(Errc::kInvalidArgument,
               fmt::format("the phases of run {} cannot be read: {}", id, chain.error().message()))
      .WithDetail("do", fmt::format("end it with 'ic run abandon {}' and create a new one", id));
}

Error NoSuchRun(std::string_view id) {
  return Error(Errc::kNotFound, fmt::format("there is no run '{}'", id))
      .WithDetail("do", "run 'ic run list' to list the runs");
}

Result<Run> FindRun(db::Connection& connection, std::string_view id) {
  IL_TRY(std::optional<Run> run, connection.One(kFind, RunFrom, id));
  if (!run) return NoSuchRun(id);
  return *std::move(run);
}

Result<std::vector<Run>> ListRuns(db::Connection& connection, const RunFilter& filter) {
  std::vector<Run> runs;
  IL_TRY_VOID(connection.ForEach(
      ListFor(filter), [&runs](const db::Row& row) { runs.push_back(RunFrom(row)); },
      filter.project, filter.bead, filter.status, filter.session, filter.scope, filter.parent,
      filter.portfolios_only, std::numeric_limits<std::int64_t>::min()));
  return runs;
}

Result<std::optional<Run>> CurrentRun(db::Connection& connection,
                                      const std::optional<std::string>& project,
                                      const std::optional<std::string>& session) {
  if (project) return connection.One(kCurrent, RunFrom, *project, session);
  return connection.One(kCurrentAnywhere, RunFrom, session);
}

Result<std::optional<Run>> ActiveRunOf(db::Connection& connection, std::string_view project,
                                       std::string_view bead) {
  return connection.One(kActiveOfBead, RunFrom, project, bead);
}

std::span<const db::NamedSql> RunStatements() { return kStatements; }

}  // namespace interlock::kernel
