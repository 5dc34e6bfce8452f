#include "kernel/phase_actions.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "json/codec.h"
#include "kernel/run_artifacts.h"
#include "kernel/run_change.h"

namespace interlock::kernel {

struct ActionText {
  std::string command;
  std::optional<std::string> args;
  std::optional<std::string> mode;
  std::optional<std::string> type;
};
IL_JSON_FIELDS(ActionText, command, args, mode, type)

namespace {

// ic_phase_actions_one.
constexpr db::Sql kAddAction =
    "INSERT INTO phase_actions (run_id, phase, action_type, command, args, mode, priority, "
    "created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8) "
    "ON CONFLICT (run_id, phase, command) DO NOTHING RETURNING id";

// ic_phase_actions_one. One run has few actions, so sorting is cheap.
constexpr db::Sql kActionsOf =
    "SELECT id, run_id, phase, action_type, command, args, mode, priority FROM phase_actions "
    "WHERE run_id = ?1 AND (?2 IS NULL OR phase = ?2) ORDER BY priority, id";

// ic_phase_actions_one.
constexpr db::Sql kUpdateAction =
    "UPDATE phase_actions SET args = coalesce(?4, args), mode = coalesce(?5, mode), "
    "priority = coalesce(?6, priority), updated_at = ?7 "
    "WHERE run_id = ?1 AND phase = ?2 AND command = ?3";

// ic_phase_actions_one.
constexpr db::Sql kDeleteAction =
    "DELETE FROM phase_actions WHERE run_id = ?1 AND phase = ?2 AND command = ?3";

constexpr std::array kStatements = {IL_SQL(kAddAction), IL_SQL(kActionsOf), IL_SQL(kUpdateAction),
                                    IL_SQL(kDeleteAction)};

Error NoSuchAction(const PhaseAction& which) {
  return Error(Errc::kNotFound, fmt::format("run {} has no action '{}' for the phase '{}'",
                                            which.run_id, which.command, which.phase))
      .WithDetail("do",
                  fmt::format("run 'ic run action list {}' to see its actions", which.run_id));
}

// Returns the value of a variable, or nullopt if the name is unknown or has no value.
Result<std::optional<std::string>> ValueOf(db::Connection& connection, const Run& run,
                                           std::string_view name) {
  constexpr std::string_view kArtifact = "artifact:";
  if (name == "run_id") return run.id;
  if (name == "project_dir") return run.project_dir;
  if (!name.starts_with(kArtifact)) return std::nullopt;
  return NewestArtifactPath(connection, run.id, name.substr(kArtifact.size()));
}

// `args` is JSON, so a variable is inside a string and its value needs only JSON escapes.
Result<std::string> Resolved(db::Connection& connection, const Run& run, std::string_view args) {
  std::string text;
  while (true) {
    const std::size_t start = args.find("${");
    const std::size_t end = start == std::string_view::npos ? start : args.find('}', start);
    if (end == std::string_view::npos) return text.append(args);
    text.append(args.substr(0, start));
    IL_TRY(const std::optional<std::string> value,
           ValueOf(connection, run, args.substr(start + 2, end - start - 2)));
    if (value) {
      std::string quoted;
      json::AppendQuoted(quoted, *value);
      text.append(quoted, 1, quoted.size() - 2);
      args.remove_prefix(end + 1);
    } else {
      text.append("${");
      args.remove_prefix(start + 2);
    }
  }
}

}  // namespace

Result<std::int64_t> AddAction(db::Transaction& tx, const PhaseAction& action, std::int64_t now) {
  Result<Run> run = FindRun(tx.connection(), action.run_id);
  if (!run && run.error().code() == Errc::kNotFound) {
    return Error(Errc::kInvalidArgument, run.error().message())
        .WithDetail("do", "run 'ic run list' to list the runs");
  }
  if (!run) return std::move(run).error();
  IL_TRY(const std::optional<std::int64_t> id,
         tx->One(
             kAddAction, [](const db::Row& row) { return row.Int(0); }, action.run_id, action.phase,
             action.type, action.command, action.args, action.mode, action.priority, now));
  if (id) {
    IL_TRY_VOID(TouchRun(tx, action.run_id, now));
    return *id;
  }
  return Error(Errc::kAlreadyExists, fmt::format("run {} already has the action '{}' for the phase "
                                                 "'{}'",
                                                 action.run_id, action.command, action.phase))
      .WithDetail("do", "change it with 'ic run action update'");
}

Result<std::vector<PhaseAction>> ListActions(db::Connection& connection, std::string_view run_id,
                                             const std::optional<std::string>& phase) {
  std::vector<PhaseAction> actions;
  IL_TRY_VOID(connection.ForEach(
      kActionsOf,
      [&actions](const db::Row& row) {
        actions.push_back({.id = row.Int(0),
                           .run_id = row.String(1),
                           .phase = row.String(2),
                           .type = row.String(3),
                           .command = row.String(4),
                           .args = row.OptionalString(5),
                           .mode = row.String(6),
                           .priority = row.Int(7)});
      },
      run_id, phase));
  return actions;
}

Result<void> UpdateAction(db::Transaction& tx, const PhaseAction& which, const ActionChange& change,
                          std::int64_t now) {
  IL_TRY(const std::int64_t count, tx->Run(kUpdateAction, which.run_id, which.phase, which.command,
                                           change.args, change.mode, change.priority, now));
  if (count == 0) return NoSuchAction(which);
  return TouchRun(tx, which.run_id, now);
}

Result<void> DeleteAction(db::Transaction& tx, const PhaseAction& which, std::int64_t now) {
  IL_TRY(const std::int64_t count,
         tx->Run(kDeleteAction, which.run_id, which.phase, which.command));
  if (count == 0) return NoSuchAction(which);
  return TouchRun(tx, which.run_id, now);
}

Result<std::vector<PhaseAction>> ParseActions(std::string_view json) {
  using Actions = std::map<std::string, ActionText>;
  IL_TRY(const Actions parsed, json::DecodeText<Actions>(json, {}));
  std::vector<PhaseAction> actions;
  actions.reserve(parsed.size());
  for (const auto& [phase, text] : parsed) {
    if (phase.empty() || text.command.empty()) {
      return Error(Errc::kInvalidArgument, "an action needs a phase and a command");
    }
    if (text.args) {
      if (Result<json::Value> args = json::Parse(*text.args); !args) {
        return std::move(args).error().In(fmt::format("args of '{}'", text.command));
      }
    }
    PhaseAction action{.phase = phase, .command = text.command, .args = text.args};
    if (text.mode) action.mode = *text.mode;
    if (text.type) action.type = *text.type;
    actions.push_back(std::move(action));
  }
  return actions;
}

Result<std::vector<PhaseAction>> ResolvedActions(db::Connection& connection, const Run& run,
                                                 const std::string& phase) {
  IL_TRY(std::vector<PhaseAction> actions, ListActions(connection, run.id, phase));
  for (PhaseAction& action : actions) {
    if (!action.args) continue;
    IL_TRY(action.args, Resolved(connection, run, *action.args));
  }
  return actions;
}

std::span<const db::NamedSql> PhaseActionStatements() { return kStatements; }

}  // namespace interlock::kernel
