#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"
#include "cli/output.h"
#include "cli/run.h"
#include "cli/run_support.h"
#include "kernel/phase_actions.h"
#include "kernel/run_agents.h"
#include "kernel/run_artifacts.h"

namespace interlock::cli::run {
namespace {

CommandResult Id(const Context& context, const std::string& id) {
  return Answer(context, id, json::ObjectText().Add("id", id));
}

json::ObjectText AgentObject(const kernel::RunAgent& agent) {
  json::ObjectText object;
  object.Add("agent_type", agent.type).Add("created_at", agent.created_at);
  if (agent.dispatch_id) object.Add("dispatch_id", *agent.dispatch_id);
  object.Add("id", agent.id);
  if (agent.name) object.Add("name", *agent.name);
  object.Add("run_id", agent.run_id)
      .Add("status", agent.status)
      .Add("updated_at", agent.updated_at);
  return object;
}

json::ObjectText ArtifactObject(const kernel::Artifact& artifact) {
  json::ObjectText object;
  if (artifact.content_hash) object.Add("content_hash", *artifact.content_hash);
  object.Add("created_at", artifact.created_at);
  if (artifact.dispatch_id) object.Add("dispatch_id", *artifact.dispatch_id);
  object.Add("id", artifact.id)
      .Add("path", artifact.path)
      .Add("phase", artifact.phase)
      .Add("run_id", artifact.run_id)
      .Add("status", artifact.status)
      .Add("type", artifact.type);
  return object;
}

// Reads run, phase and command, which identify an action.
Result<kernel::PhaseAction> WhichAction(const Arguments& arguments) {
  kernel::PhaseAction action{.run_id = std::string(arguments[0])};
  IL_TRY(action.phase, Required(arguments, "phase"));
  IL_TRY(action.command, Required(arguments, "command"));
  return action;
}

Result<std::optional<std::string>> ArgsFlag(const Arguments& arguments) {
  const std::optional<std::string_view> text = arguments.Text("args");
  if (!text) return std::nullopt;
  IL_TRY_VOID(JsonFlag("args", *text));
  return std::string(*text);
}

// The result of a change: "Updated: planned → /work".
CommandResult Changed(const Context& context, const kernel::PhaseAction& which,
                      std::string_view word, std::string_view status) {
  return Answer(context,
                fmt::format("{}: {} → {}", word, Column(which.phase), Column(which.command)),
                json::ObjectText()
                    .Add("command", which.command)
                    .Add("phase", which.phase)
                    .Add("run_id", which.run_id)
                    .Add("status", status));
}

std::string ActionRow(const kernel::PhaseAction& action) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\n", action.id, Column(action.phase),
                     Column(action.type), Column(action.command), Column(action.mode),
                     action.priority, Column(action.args.value_or("")));
}

}  // namespace

Result<CommandResult> AgentAdd(Context& context, const Arguments& arguments) {
  kernel::RunAgent agent{.id = ShortId(context.random()),
                         .run_id = std::string(arguments[0]),
                         .name = Optional(arguments, "name"),
                         .dispatch_id = Optional(arguments, "dispatch-id")};
  agent.type = Optional(arguments, "type").value_or(agent.type);
  IL_TRY_VOID(context.Write([&](kernel::Transaction& tx) {
    agent.created_at = agent.updated_at = context.Now();
    return kernel::AddAgent(tx, agent);
  }));
  return Id(context, agent.id);
}

Result<CommandResult> AgentList(Context& context, const Arguments& arguments) {
  IL_TRY(const std::vector<kernel::RunAgent> agents, context.Read([&](db::Connection& connection) {
    return kernel::ListAgents(connection, arguments[0]);
  }));
  if (context.json()) {
    json::ArrayText array;
    for (const kernel::RunAgent& agent : agents) array.Add(AgentObject(agent));
    return Line(array.Text());
  }
  std::string text;
  for (const kernel::RunAgent& agent : agents) {
    text += fmt::format("{}\t{}\t{}\t{}\n", agent.id, Column(agent.type), agent.status,
                        Column(agent.name.value_or("")));
  }
  return CommandResult{kExitOk, std::move(text)};
}

Result<CommandResult> AgentUpdate(Context& context, const Arguments& arguments) {
  constexpr std::array<std::string_view, 3> kStatuses = {"active", "completed", "failed"};
  IL_TRY(const std::string status, Required(arguments, "status"));
  if (std::ranges::find(kStatuses, status) == kStatuses.end()) {
    return UsageError(
        fmt::format("--status must be one of {}, not '{}'", fmt::join(kStatuses, ", "), status));
  }
  IL_TRY_VOID(context.Write([&](kernel::Transaction& tx) {
    return kernel::SetAgentStatus(tx, arguments[0], status, context.Now());
  }));
  return Answer(context, "updated",
                json::ObjectText().Add("id", arguments[0]).Add("status", status));
}

Result<CommandResult> ArtifactAdd(Context& context, const Arguments& arguments) {
  kernel::Artifact artifact{.id = ShortId(context.random()),
                            .run_id = std::string(arguments[0]),
                            .dispatch_id = Optional(arguments, "dispatch")};
  IL_TRY(artifact.phase, Required(arguments, "phase"));
  IL_TRY(artifact.path, Required(arguments, "path"));
  artifact.type = Optional(arguments, "type").value_or(artifact.type);
  artifact.content_hash = kernel::ContentHash(artifact.path);
  IL_TRY_VOID(context.Write([&](kernel::Transaction& tx) {
    artifact.created_at = context.Now();
    return kernel::AddArtifact(tx, artifact);
  }));
  return Id(context, artifact.id);
}

Result<CommandResult> ArtifactList(Context& context, const Arguments& arguments) {
  IL_TRY(const std::optional<std::string> phase, NotEmpty(arguments, "phase"));
  IL_TRY(const std::vector<kernel::Artifact> artifacts,
         context.Read([&](db::Connection& connection) {
           return kernel::ListArtifacts(connection, arguments[0], phase);
         }));
  if (context.json()) {
    json::ArrayText array;
    for (const kernel::Artifact& artifact : artifacts) array.Add(ArtifactObject(artifact));
    return Line(array.Text());
  }
  std::string text;
  for (const kernel::Artifact& artifact : artifacts) {
    text += fmt::format("{}\t{}\t{}\t{}\n", artifact.id, Column(artifact.phase),
                        Column(artifact.type), Column(artifact.path));
  }
  return CommandResult{kExitOk, std::move(text)};
}

Result<CommandResult> ActionAdd(Context& context, const Arguments& arguments) {
  IL_TRY(kernel::PhaseAction action, WhichAction(arguments));
  IL_TRY(action.args, ArgsFlag(arguments));
  action.mode = Optional(arguments, "mode").value_or(action.mode);
  action.type = Optional(arguments, "type").value_or(action.type);
  IL_TRY(const auto priority, arguments.Integer("priority"));
  action.priority = priority.value_or(0);
  IL_TRY(const std::int64_t id, context.Write([&](kernel::Transaction& tx) {
    return kernel::AddAction(tx, action, context.Now());
  }));
  return Answer(
      context,
      fmt::format("Added action {}: {} → {}", id, Column(action.phase), Column(action.command)),
      json::ObjectText().Add("id", id));
}

Result<CommandResult> ActionList(Context& context, const Arguments& arguments) {
  IL_TRY(const std::optional<std::string> phase, NotEmpty(arguments, "phase"));
  IL_TRY(const std::vector<kernel::PhaseAction> actions,
         context.Read([&](db::Connection& connection) {
           return kernel::ListActions(connection, arguments[0], phase);
         }));
  if (context.json()) {
    json::ArrayText array;
    for (const kernel::PhaseAction& action : actions) array.Add(ActionObject(action));
    return Line(array.Text());
  }
  if (actions.empty()) return Line("No actions registered.");
  std::string text;
  for (const kernel::PhaseAction& action : actions) text += ActionRow(action);
  return CommandResult{kExitOk, std::move(text)};
}

Result<CommandResult> ActionUpdate(Context& context, const Arguments& arguments) {
  IL_TRY(const kernel::PhaseAction which, WhichAction(arguments));
  kernel::ActionChange change;
  IL_TRY(change.args, ArgsFlag(arguments));
  IL_TRY(change.mode, NotEmpty(arguments, "mode"));
  IL_TRY(change.priority, arguments.Integer("priority"));
  if (!change.args && !change.mode && !change.priority) {
    return UsageError("nothing to update", "give at least one of --args, --mode, --priority");
  }
  IL_TRY_VOID(context.Write([&](kernel::Transaction& tx) {
    return kernel::UpdateAction(tx, which, change, context.Now());
  }));
  return Changed(context, which, "Updated", "updated");
}

Result<CommandResult> ActionDelete(Context& context, const Arguments& arguments) {
  IL_TRY(const kernel::PhaseAction which, WhichAction(arguments));
  IL_TRY_VOID(context.Write(
      [&](kernel::Transaction& tx) { return kernel::DeleteAction(tx, which, context.Now()); }));
  return Changed(context, which, "Deleted", "deleted");
}

}  // namespace interlock::cli::run
