#include "kernel/lift.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace interlock::kernel {
namespace {

// A column that a table of the older program may lack. A NOT NULL column needs a default.
struct Addition {
  std::string_view table;
  std::string_view column;
  std::string_view type;
};

constexpr std::array kAdditions = {
    Addition{"state", "expires_at", "INTEGER"},
    Addition{"state", "version", "INTEGER NOT NULL DEFAULT 1"},
    Addition{"sentinels", "interval_s", "INTEGER"},
    Addition{"runs", "complexity", "INTEGER NOT NULL DEFAULT 3"},
    Addition{"runs", "force_full", "INTEGER NOT NULL DEFAULT 0"},
    Addition{"runs", "auto_advance", "INTEGER NOT NULL DEFAULT 1"},
    Addition{"runs", "completed_at", "INTEGER"},
    Addition{"runs", "scope_id", "TEXT"},
    Addition{"runs", "metadata", "TEXT"},
    Addition{"runs", "phases", "TEXT"},
    Addition{"runs", "token_budget", "INTEGER"},
    Addition{"runs", "budget_warn_pct", "INTEGER NOT NULL DEFAULT 80"},
    Addition{"runs", "parent_run_id", "TEXT"},
    Addition{"runs", "goal_id", "TEXT"},
    Addition{"runs", "max_dispatches", "INTEGER NOT NULL DEFAULT 0"},
    Addition{"runs", "budget_enforce", "INTEGER NOT NULL DEFAULT 0"},
    Addition{"runs", "max_agents", "INTEGER NOT NULL DEFAULT 0"},
    Addition{"runs", "gate_rules", "TEXT"},
    Addition{"runs", "bead_id", "TEXT"},
    Addition{"runs", "session_id", "TEXT"},
    Addition{"phase_events", "event_type", "TEXT NOT NULL DEFAULT 'advance'"},
    Addition{"phase_events", "gate_result", "TEXT"},
    Addition{"phase_events", "gate_tier", "TEXT"},
    Addition{"phase_events", "reason", "TEXT"},
    Addition{"phase_events", "envelope_json", "TEXT"},
    Addition{"run_agents", "name", "TEXT"},
    Addition{"run_agents", "dispatch_id", "TEXT"},
    Addition{"run_artifacts", "type", "TEXT NOT NULL DEFAULT 'file'"},
    Addition{"run_artifacts", "content_hash", "TEXT"},
    Addition{"run_artifacts", "dispatch_id", "TEXT"},
    Addition{"run_artifacts", "status", "TEXT NOT NULL DEFAULT 'active'"},
    Addition{"phase_actions", "action_type", "TEXT NOT NULL DEFAULT 'command'"},
    Addition{"phase_actions", "args", "TEXT"},
    Addition{"phase_actions", "mode", "TEXT NOT NULL DEFAULT 'interactive'"},
    Addition{"phase_actions", "priority", "INTEGER NOT NULL DEFAULT 0"},
    Addition{"dispatches", "prompt_hash", "TEXT"},
    Addition{"dispatches", "name", "TEXT"},
    Addition{"dispatches", "sandbox_spec", "TEXT"},
    Addition{"dispatches", "sandbox_effective", "TEXT"},
    Addition{"dispatches", "input_tokens", "INTEGER NOT NULL DEFAULT 0"},
    Addition{"dispatches", "output_tokens", "INTEGER NOT NULL DEFAULT 0"},
    Addition{"dispatches", "cache_hits", "INTEGER"},
    Addition{"dispatches", "completed_at", "INTEGER"},
    Addition{"dispatches", "error_message", "TEXT"},
    Addition{"dispatches", "scope_id", "TEXT"},
    Addition{"dispatches", "parent_id", "TEXT"},
    Addition{"dispatches", "base_repo_commit", "TEXT"},
    Addition{"dispatches", "retry_count", "INTEGER NOT NULL DEFAULT 0"},
    Addition{"dispatches", "conflict_type", "TEXT"},
    Addition{"dispatches", "quarantine_reason", "TEXT"},
    Addition{"dispatches", "spawn_depth", "INTEGER NOT NULL DEFAULT 0"},
    Addition{"dispatches", "parent_dispatch_id", "TEXT NOT NULL DEFAULT ''"},
    Addition{"dispatches", "pid_start", "INTEGER"},
    Addition{"coordination_locks", "dispatch_id", "TEXT"},
    Addition{"coordination_locks", "run_id", "TEXT"},
    Addition{"coordination_locks", "fence", "INTEGER"},
};

// The columns of a table; no rows if the table does not exist. Reads SQLite's own small catalogue.
constexpr db::Sql kColumns = "SELECT name FROM pragma_table_info(?1)";
constexpr db::Sql kMark = "PRAGMA application_id";

constexpr db::NamedSql kStatements[] = {IL_SQL(kColumns), IL_SQL(kMark)};

Result<std::vector<std::string>> ColumnsOf(db::Connection& connection, std::string_view table) {
  std::vector<std::string> names;
  IL_TRY_VOID(connection.ForEach(
      kColumns, [&names](const db::Row& row) { names.push_back(row.String(0)); }, table));
  return names;
}

Result<bool> Recognise(db::Migratable& file) {
  IL_TRY(const std::optional<std::int64_t> mark,
         file.connection().One(kMark, [](const db::Row& row) { return row.Int(0); }));
  if (mark.value_or(0) != 0) return false;
  IL_TRY(const std::vector<std::string> columns, ColumnsOf(file.connection(), "state"));
  return std::ranges::all_of(
      std::to_array<std::string_view>({"key", "scope_id", "payload", "updated_at"}),
      [&columns](std::string_view name) {
        return std::ranges::find(columns, name) != columns.end();
      });
}

Result<void> Lift(db::Migratable& file) {
  std::string_view table;
  std::vector<std::string> columns;
  for (const Addition& addition : kAdditions) {
    if (addition.table != table) {
      table = addition.table;
      IL_TRY(columns, ColumnsOf(file.connection(), table));
    }
    if (columns.empty()) continue;  // the first migration step creates the whole table
    if (std::ranges::find(columns, addition.column) != columns.end()) continue;
    IL_TRY_VOID(file.RunScript(
        fmt::format("ALTER TABLE {} ADD COLUMN {} {}", table, addition.column, addition.type)));
  }
  return {};
}

}  // namespace

db::Predecessor OlderProgram() { return {.newest = 39, .recognise = Recognise, .lift = Lift}; }

std::span<const db::NamedSql> LiftStatements() { return kStatements; }

}  // namespace interlock::kernel
