#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "cli/run.h"
#include "cli/run_support.h"
#include "kernel/run_budget.h"

namespace interlock::cli::run {
namespace {

using kernel::Run;

constexpr std::array kStatuses = {kernel::kRunActive, kernel::kRunCompleted, kernel::kRunCancelled,
                                  kernel::kRunFailed, kernel::kRunAbandoned};

std::string StatusText(const Run& run, const std::vector<Run>& children) {
  std::string text;
  const auto add = [&text](std::string_view label, const auto& value) {
    text += fmt::format("{}: {}\n", label, value);
  };
  add("ID", run.id);
  add("Status", run.status);
  add("Phase", run.phase);
  add("Goal", Column(run.goal));
  add("Project", run.is_portfolio() ? std::string("(portfolio)") : Column(run.project_dir));
  add("Complexity", run.complexity);
  if (run.force_full) add("ForceFull", true);
  if (!run.auto_advance) add("AutoAdv", false);
  if (run.scope_id) add("Scope", Column(*run.scope_id));
  if (run.bead_id) add("Bead", Column(*run.bead_id));
  if (run.session_id) add("Session", Column(*run.session_id));
  if (run.token_budget) {
    add("Budget", fmt::format("{} (warning at {}%)", *run.token_budget, run.budget_warn_pct));
  }
  if (run.parent_run_id) add("Parent", *run.parent_run_id);
  if (run.max_dispatches > 0) add("MaxDisp", run.max_dispatches);
  if (children.empty()) return text;
  text += fmt::format("Children: ({})\n", children.size());
  for (const Run& child : children) {
    text += fmt::format("\t{}\t{}\t{}\t{}\n", child.id, child.status, child.phase,
                        Column(child.project_dir));
  }
  return text;
}

std::string ArrayOf(const std::vector<Run>& runs) {
  json::ArrayText array;
  for (const Run& run : runs) array.Add(RunObject(run));
  return array.Text();
}

Result<std::optional<std::string>> StatusFilter(const Arguments& arguments) {
  IL_TRY(std::optional<std::string> status, NotEmpty(arguments, "status"));
  if (status && std::ranges::find(kStatuses, *status) == kStatuses.end()) {
    return UsageError(
        fmt::format("--status must be one of {}, not '{}'", fmt::join(kStatuses, ", "), *status));
  }
  if (!arguments.IsOn("active")) return status;
  if (status && *status != kernel::kRunActive) {
    return UsageError(fmt::format("--active and --status={} exclude each other", *status));
  }
  return std::string(kernel::kRunActive);
}

std::string BudgetText(std::string_view id, const kernel::BudgetState& state,
                       std::int64_t usage_pct) {
  if (!state.budget) return fmt::format("Run {}: no budget set\n", id);
  std::string_view status = state.warning ? "WARNING" : "OK";
  if (state.exceeded) status = "EXCEEDED";
  return fmt::format("Run: {}\nBudget: {}\nUsed: {} ({}%)\nWarn at: {}%\nStatus: {}\n", id,
                     *state.budget, state.used, usage_pct, state.warn_pct, status);
}

std::string BudgetJson(std::string_view id, const kernel::BudgetState& state,
                       std::int64_t usage_pct) {
  json::ObjectText object;
  if (!state.budget) {
    object.AddNull("budget").Add("message", "no budget set").Add("run_id", id);
    return object.Text() + '\n';
  }
  object.Add("budget", *state.budget)
      .Add("exceeded", state.exceeded)
      .Add("run_id", id)
      .Add("usage_pct", usage_pct)
      .Add("used", state.used)
      .Add("warn_pct", state.warn_pct)
      .Add("warning", state.warning);
  return object.Text() + '\n';
}

}  // namespace

Result<CommandResult> Status(Context& context, const Arguments& arguments) {
  std::vector<Run> children;
  IL_TRY(const Run run, context.Read([&](db::Connection& connection) -> Result<Run> {
    IL_TRY(children, kernel::ListRuns(connection, {.parent = std::string(arguments[0])}));
    return kernel::FindRun(connection, arguments[0]);
  }));
  std::ranges::reverse(children);  // in order of creation
  if (!context.json()) return CommandResult{kExitOk, StatusText(run, children)};
  return Line(RunObject(run, children.empty() ? std::string() : ArrayOf(children)).Text());
}

Result<CommandResult> Phase(Context& context, const Arguments& arguments) {
  IL_TRY(const Run run, context.Read([&](db::Connection& connection) {
    return kernel::FindRun(connection, arguments[0]);
  }));
  return Line(run.phase);
}

Result<CommandResult> List(Context& context, const Arguments& arguments) {
  kernel::RunFilter filter;
  IL_TRY(filter.status, StatusFilter(arguments));
  IL_TRY(filter.project, NotEmpty(arguments, "project"));
  if (filter.project) {
    IL_TRY(filter.project, ProjectPath(context, *filter.project));
  }
  IL_TRY(filter.bead, NotEmpty(arguments, "bead"));
  IL_TRY(filter.session, NotEmpty(arguments, "session"));
  IL_TRY(filter.scope, NotEmpty(arguments, "scope"));
  filter.portfolios_only = arguments.IsOn("portfolio");
  IL_TRY(const std::vector<Run> runs, context.Read([&](db::Connection& connection) {
    return kernel::ListRuns(connection, filter);
  }));
  if (context.json()) return Line(ArrayOf(runs));
  std::string text;
  for (const Run& run : runs) {
    text += fmt::format("{}\t{}\t{}\t{}\n", run.id, run.status, run.phase, Column(run.goal));
  }
  return CommandResult{kExitOk, std::move(text)};
}

Result<CommandResult> Current(Context& context, const Arguments& arguments) {
  std::optional<std::string> project;
  if (!arguments.IsOn("all-projects")) {
    IL_TRY(project, ProjectFlag(context, arguments));
  } else if (arguments.Has("project")) {
    return UsageError("--project and --all-projects exclude each other");
  }
  IL_TRY(const std::optional<std::string> session, NotEmpty(arguments, "session"));
  IL_TRY(const std::optional<Run> run, context.Read([&](db::Connection& connection) {
    return kernel::CurrentRun(connection, project, session);
  }));
  if (!run) {
    const std::string where = project ? fmt::format(" in {}", *project) : std::string();
    context.Fail(Error(Errc::kNotFound, fmt::format("no run is active{}", where)),
                 "create one with 'ic run create', or name another project with --project");
    return CommandResult{kExitNegative, context.json() ? "{\"found\":false}\n" : ""};
  }
  if (!context.json()) return Line(run->id);
  return Line(json::ObjectText()
                  .Add("found", true)
                  .Add("goal", run->goal)
                  .Add("id", run->id)
                  .Add("phase", run->phase)
                  .Text());
}

Result<CommandResult> Events(Context& context, const Arguments& arguments) {
  IL_TRY(const std::vector<kernel::PhaseEvent> events,
         context.Read([&](db::Connection& connection) {
           return kernel::PhaseEventsOf(connection, arguments[0]);
         }));
  if (context.json()) {
    json::ArrayText array;
    for (const kernel::PhaseEvent& event : events) array.Add(EventObject(event));
    return Line(array.Text());
  }
  std::string text;
  for (const kernel::PhaseEvent& event : events) {
    text += fmt::format("{} → {}\t{}\t{}\t{}\n", event.from_phase, event.to_phase, event.type,
                        event.gate_result.value_or(""), Column(event.reason.value_or("")));
  }
  return CommandResult{kExitOk, std::move(text)};
}

Result<CommandResult> Tokens(Context& context, const Arguments& arguments) {
  const std::string_view id = arguments[0];
  IL_TRY(const kernel::TokenUse use, context.Read([&](db::Connection& connection) {
    return kernel::TokensOf(connection, id);
  }));
  std::optional<double> cache_ratio;
  if (use.input > 0) {
    const auto cached = static_cast<double>(use.cache_hits);
    cache_ratio = cached / (static_cast<double>(use.input) + cached) * 100;
  }
  if (context.json()) {
    json::ObjectText object;
    object.Add("cache_hits", use.cache_hits);
    if (cache_ratio) object.Add("cache_ratio", *cache_ratio);
    object.Add("input_tokens", use.input)
        .Add("output_tokens", use.output)
        .Add("run_id", id)
        .Add("total_tokens", use.total());
    return Line(object.Text());
  }
  std::string text = fmt::format("Run: {}\nInput: {}\nOutput: {}\nTotal: {}\nCache hits: {}\n", id,
                                 use.input, use.output, use.total(), use.cache_hits);
  if (cache_ratio) text += fmt::format("Cache ratio: {:.1f}%\n", *cache_ratio);
  return CommandResult{kExitOk, std::move(text)};
}

Result<CommandResult> Budget(Context& context, const Arguments& arguments) {
  const std::string_view id = arguments[0];
  bool unrecorded = false;
  IL_TRY(kernel::BudgetState state,
         context.Read([&](db::Connection& connection) -> Result<kernel::BudgetState> {
           IL_TRY(const kernel::BudgetState found, kernel::BudgetOf(connection, id));
           IL_TRY(unrecorded, kernel::HasUnrecordedBudgetEvent(connection, id, found));
           return found;
         }));
  if (unrecorded) {
    IL_TRY(state, context.Write([&](kernel::Transaction& tx) {
      return kernel::RecordBudgetEvents(tx, id, OriginOf(context));
    }));
  }
  const std::int64_t usage_pct =
      state.budget ? static_cast<std::int64_t>(static_cast<double>(state.used) * 100 /
                                               static_cast<double>(*state.budget))
                   : 0;
  return CommandResult{
      state.exceeded ? kExitNegative : kExitOk,
      context.json() ? BudgetJson(id, state, usage_pct) : BudgetText(id, state, usage_pct)};
}

}  // namespace interlock::cli::run
