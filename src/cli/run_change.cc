#include "kernel/run_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "cli/output.h"
#include "cli/phase_hook.h"
#include "cli/run.h"
#include "cli/run_support.h"
#include "json/parse.h"
#include "json/value.h"
#include "json/write.h"
#include "kernel/run_artifacts.h"
#include "kernel/run_progress.h"

namespace interlock::cli::run {
namespace {

// ---- advance

std::string AdvanceText(const kernel::AdvanceResult& result) {
  const kernel::PhaseEvent& event = result.event;
  if (!result.advanced()) return fmt::format("{} (blocked: {})\n", event.from_phase, event.type);
  std::string text = fmt::format("{} → {}\n", event.from_phase, event.to_phase);
  for (const kernel::PhaseAction& action : result.actions) {
    text += fmt::format("  → {}", Column(action.command));
    if (action.args) text += fmt::format(" {}", Column(*action.args));
    text += fmt::format("  [{}]\n", action.mode);
  }
  return text;
}

std::string AdvanceJson(const kernel::AdvanceResult& result) {
  const kernel::PhaseEvent& event = result.event;
  json::ObjectText object;
  if (!result.actions.empty()) {
    json::ArrayText actions;
    for (const kernel::PhaseAction& action : result.actions) actions.Add(ActionObject(action));
    object.Add("actions", actions);
  }
  if (result.advanced()) object.Add("active_agent_count", result.active_agents);
  object.Add("advanced", result.advanced())
      .Add("event_type", event.type)
      .Add("from_phase", event.from_phase)
      .Add("gate_result", event.gate_result.value_or("none"))
      .Add("gate_tier", event.gate_tier.value_or("none"));
  if (!result.next_checks.empty()) object.Add("next_gate_requirements", result.next_checks);
  object.Add("reason", event.reason.value_or("")).Add("to_phase", event.to_phase);
  return object.Text() + '\n';
}

// ---- rollback

// A rollback prints indented JSON with and without --json.
CommandResult Pretty(const std::string& text) {
  const json::Value value = json::Parse(text).value();
  return Line(
      json::Write(value, {.layout = json::Layout::kPretty, .key_order = json::KeyOrder::kSorted}));
}

json::ObjectText PlanObject(const kernel::RollbackPlan& plan) {
  json::ObjectText object;
  object.Add("from_phase", plan.run.phase)
      .Add("to_phase", plan.to_phase)
      .Add("rolled_back_phases", plan.phases);
  return object;
}

std::string CodeJson(const std::vector<kernel::Artifact>& artifacts) {
  json::ArrayText array;
  for (const kernel::Artifact& artifact : artifacts) {
    json::ObjectText object;
    const auto add = [&object](std::string_view key, const std::optional<std::string>& text) {
      if (text) {
        object.Add(key, *text);
      } else {
        object.AddNull(key);
      }
    };
    add("dispatch_id", artifact.dispatch_id);
    add("dispatch_name", artifact.dispatch_name);
    object.Add("phase", artifact.phase).Add("path", artifact.path);
    add("content_hash", artifact.content_hash);
    object.Add("type", artifact.type).Add("status", artifact.status);
    array.Add(object);
  }
  return array.Text();
}

std::string CodeText(const std::vector<kernel::Artifact>& artifacts) {
  constexpr std::size_t kHashShown = 12;
  using Cells = std::array<std::string, 6>;
  std::vector<Cells> rows = {{"DISPATCH", "PHASE", "TYPE", "STATUS", "HASH", "PATH"}};
  rows.reserve(artifacts.size() + 1);
  for (const kernel::Artifact& artifact : artifacts) {
    std::string hash = artifact.content_hash.value_or("<none>");
    if (hash.starts_with("sha256:")) hash = hash.substr(7, kHashShown) + "...";
    rows.push_back({Column(artifact.dispatch_name.value_or("<unknown>")), Column(artifact.phase),
                    Column(artifact.type), artifact.status, std::move(hash),
                    Column(artifact.path)});
  }
  std::array<std::size_t, 5> widths = {};  // the last column needs no padding
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      text += fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    text += row.back() + '\n';
  }
  return text;
}

Result<CommandResult> CodeLayer(Context& context, const Arguments& arguments) {
  const std::string format(arguments.Text("format").value_or("json"));
  if (format != "json" && format != "text") {
    return UsageError(fmt::format("--format must be json or text, not '{}'", format));
  }
  IL_TRY(const std::optional<std::string> phase, NotEmpty(arguments, "phase"));
  using Artifacts = std::vector<kernel::Artifact>;
  IL_TRY(const Artifacts artifacts,
         context.Read([&](db::Connection& connection) -> Result<Artifacts> {
           IL_TRY_VOID(kernel::FindRun(connection, arguments[0]));
           return kernel::ListArtifacts(connection, arguments[0], phase);
         }));
  if (format == "text") return CommandResult{kExitOk, CodeText(artifacts)};
  return Pretty(CodeJson(artifacts));
}

// ---- other commands

Result<CommandResult> End(Context& context, const Arguments& arguments, std::string_view status) {
  const std::optional<std::string> reason = Optional(arguments, "reason");
  bool portfolio = false;
  IL_TRY(const std::int64_t children,
         context.Write([&](kernel::Transaction& tx) -> Result<std::int64_t> {
           IL_TRY(const kernel::Run run, kernel::FindRun(tx.connection(), arguments[0]));
           portfolio = run.is_portfolio();
           return kernel::EndRun(tx, run.id, status, reason, OriginOf(context));
         }));
  json::ObjectText object;
  if (portfolio) object.Add("children", children);
  object.Add("id", arguments[0]).Add("status", status);
  if (!portfolio) return Answer(context, status, object);
  return Answer(context, fmt::format("{} (portfolio + {} children)", status, children), object);
}

Result<std::optional<bool>> BoolFlag(const Arguments& arguments, std::string_view flag) {
  constexpr std::array<std::string_view, 6> kYes = {"1", "t", "T", "TRUE", "true", "True"};
  constexpr std::array<std::string_view, 6> kNo = {"0", "f", "F", "FALSE", "false", "False"};
  const std::optional<std::string_view> text = arguments.Text(flag);
  if (!text) return std::nullopt;
  if (std::ranges::find(kYes, *text) != kYes.end()) return true;
  if (std::ranges::find(kNo, *text) != kNo.end()) return false;
  return UsageError(fmt::format("--{} must be true or false, not '{}'", flag, *text));
}

}  // namespace

Result<CommandResult> Advance(Context& context, const Arguments& arguments) {
  IL_TRY_VOID(arguments.Integer("priority"));
  const std::optional<std::string> skip_reason = Optional(arguments, "skip-reason");
  IL_TRY(const kernel::AdvanceResult result, context.Write([&](kernel::Transaction& tx) {
    return kernel::AdvanceRun(tx, arguments[0], skip_reason, OriginOf(context));
  }));
  if (result.advanced()) {
    if (const auto trouble = RunPhaseHook(result.project_dir, result.event, context.clock())) {
      context.Warn(*trouble, "the run was advanced; fix the hook, or remove it");
    }
  }
  return CommandResult{result.advanced() ? kExitOk : kExitNegative,
                       context.json() ? AdvanceJson(result) : AdvanceText(result)};
}

Result<CommandResult> Skip(Context& context, const Arguments& arguments) {
  IL_TRY(std::string reason, Required(arguments, "reason"));
  if (const auto actor = Optional(arguments, "actor")) {
    reason = fmt::format("actor={}: {}", *actor, reason);
  }
  IL_TRY_VOID(context.Write([&](kernel::Transaction& tx) {
    return kernel::SkipPhase(tx, arguments[0], arguments[1], reason, OriginOf(context));
  }));
  return Answer(context, fmt::format("skipped: {}", arguments[1]),
                json::ObjectText().Add("phase", arguments[1]).Add("status", "skipped"));
}

Result<CommandResult> Rollback(Context& context, const Arguments& arguments) {
  if (const auto layer = arguments.Text("layer")) {
    if (*layer == "code") return CodeLayer(context, arguments);
    return UsageError(fmt::format("--layer must be code, not '{}'", *layer));
  }
  IL_TRY(const std::string to_phase, Required(arguments, "to-phase"));
  if (arguments.IsOn("dry-run")) {
    IL_TRY(const kernel::RollbackPlan plan, context.Read([&](db::Connection& connection) {
      return kernel::PlanRunRollback(connection, arguments[0], to_phase);
    }));
    return Pretty(PlanObject(plan).Add("dry_run", true).Text());
  }
  const std::optional<std::string> reason = Optional(arguments, "reason");
  IL_TRY(const kernel::RollbackResult result, context.Write([&](kernel::Transaction& tx) {
    return kernel::RollBackRun(tx, arguments[0], to_phase, reason, OriginOf(context));
  }));
  return Pretty(PlanObject(result.plan)
                    .Add("reason", reason.value_or(""))
                    .Add("cancelled_dispatches", result.cancelled_dispatches)
                    .Add("marked_artifacts", result.marked_artifacts)
                    .Add("failed_agents", result.failed_agents)
                    .Text());
}

Result<CommandResult> Cancel(Context& context, const Arguments& arguments) {
  return End(context, arguments, kernel::kRunCancelled);
}

Result<CommandResult> Abandon(Context& context, const Arguments& arguments) {
  return End(context, arguments, kernel::kRunAbandoned);
}

Result<CommandResult> Set(Context& context, const Arguments& arguments) {
  kernel::RunSettings settings;
  IL_TRY(settings.complexity, arguments.Integer("complexity", 1, 5));
  IL_TRY(settings.auto_advance, BoolFlag(arguments, "auto-advance"));
  IL_TRY(settings.force_full, BoolFlag(arguments, "force-full"));
  IL_TRY(settings.max_dispatches, arguments.Integer("max-dispatches", 0));
  IL_TRY(settings.metadata_to_merge, ObjectFlag(arguments, "metadata-merge"));
  if (!settings.complexity && !settings.auto_advance && !settings.force_full &&
      !settings.max_dispatches && !settings.metadata_to_merge) {
    return UsageError("nothing to set",
                      "give at least one of --complexity, --auto-advance, --force-full, "
                      "--max-dispatches, --metadata-merge");
  }
  IL_TRY_VOID(context.Write([&](kernel::Transaction& tx) {
    return kernel::ChangeSettings(tx, arguments[0], settings, OriginOf(context));
  }));
  return Answer(context, "updated",
                json::ObjectText().Add("id", arguments[0]).Add("status", "updated"));
}

}  // namespace interlock::cli::run
