#include "cli/run_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "json/parse.h"
#include "json/value.h"
#include "json/write.h"
#include "kernel/payload.h"

namespace interlock::cli::run {

namespace fs = std::filesystem;

Error UsageError(std::string message, std::string what_to_do) {
  Error error(Errc::kUsage, std::move(message));
  if (what_to_do.empty()) return error;
  return std::move(error).WithDetail("do", std::move(what_to_do));
}

Error BadFlag(std::string_view flag, const Error& error) {
  return UsageError(fmt::format("--{}: {}", flag, error.message()));
}

Result<std::string> Required(const Arguments& arguments, std::string_view flag) {
  const std::optional<std::string_view> text = arguments.Text(flag);
  if (!text || text->empty()) return UsageError(fmt::format("--{} is missing", flag));
  return std::string(*text);
}

Result<std::optional<std::string>> NotEmpty(const Arguments& arguments, std::string_view flag) {
  const std::optional<std::string_view> text = arguments.Text(flag);
  if (!text) return std::nullopt;
  if (text->empty()) {
    return UsageError(fmt::format("--{} is empty", flag),
                      "give it a value, or omit it; check for an unset variable in your script");
  }
  return std::string(*text);
}

std::optional<std::string> Optional(const Arguments& arguments, std::string_view flag) {
  const std::optional<std::string_view> text = arguments.Text(flag);
  if (!text || text->empty()) return std::nullopt;
  return std::string(*text);
}

Result<void> JsonFlag(std::string_view flag, std::string_view text) {
  const Result<std::string_view> checked = kernel::CheckPayload(text);
  if (checked) return {};
  const Error& error = checked.error();
  if (error.code() != Errc::kInvalidArgument) return BadFlag(flag, error);
  return Error(error).In(fmt::format("--{}", flag));
}

Result<std::optional<std::string>> ObjectFlag(const Arguments& arguments, std::string_view flag) {
  std::optional<std::string> text = Optional(arguments, flag);
  if (!text) return std::nullopt;
  IL_TRY_VOID(JsonFlag(flag, *text));
  const Result<json::Value> value = json::Parse(*text);
  if (!value) return BadFlag(flag, value.error());
  if (!value->is_object()) {
    return UsageError(
        fmt::format("--{} must be a JSON object, not {}", flag, json::KindName(*value)));
  }
  return text;
}

Result<std::string> ProjectPath(const Context& context, std::string_view path) {
  IL_TRY(const fs::path directory, context.Directory());
  std::string clean = (directory / path).lexically_normal().string();
  while (clean.size() > 1 && clean.ends_with('/')) clean.pop_back();
  return clean;
}

Result<std::string> ProjectFlag(const Context& context, const Arguments& arguments) {
  return ProjectPath(context, arguments.Text("project").value_or(""));
}

kernel::Origin OriginOf(Context& context) {
  return {.now = context.Now(),
          .trace_id = context.Environment("IC_TRACE_ID"),
          .span_id = context.Environment("IC_SPAN_ID"),
          .parent_span_id = context.Environment("IC_PARENT_SPAN_ID")};
}

std::string Column(std::string_view text) {
  std::string column(text);
  std::ranges::replace_if(column, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return column;
}

void AddJson(json::ObjectText& object, std::string_view key, const std::string& stored) {
  if (const Result<json::Value> value = json::Parse(stored)) {
    object.AddRaw(key, json::Write(*value));
  } else {
    object.Add(key, stored);
  }
}

json::ObjectText RunObject(const kernel::Run& run, std::string_view children) {
  json::ObjectText object;
  const auto add = [&object](std::string_view key, const auto& value) {
    if (value) object.Add(key, *value);
  };
  object.Add("auto_advance", run.auto_advance);
  add("bead_id", run.bead_id);
  if (run.budget_enforce) object.Add("budget_enforce", true);
  if (run.token_budget) object.Add("budget_warn_pct", run.budget_warn_pct);
  if (!children.empty()) object.AddRaw("children", children);
  add("completed_at", run.completed_at);
  object.Add("complexity", run.complexity);
  object.Add("created_at", run.created_at);
  object.Add("force_full", run.force_full);
  if (run.gate_rules) AddJson(object, "gate_rules", *run.gate_rules);
  object.Add("goal", run.goal);
  add("goal_id", run.goal_id);
  object.Add("id", run.id);
  if (run.max_agents > 0) object.Add("max_agents", run.max_agents);
  if (run.max_dispatches > 0) object.Add("max_dispatches", run.max_dispatches);
  add("metadata", run.metadata);
  add("parent_run_id", run.parent_run_id);
  object.Add("phase", run.phase);
  if (run.phases) AddJson(object, "phases", *run.phases);
  object.Add("project_dir", run.project_dir);
  add("scope_id", run.scope_id);
  add("session_id", run.session_id);
  object.Add("status", run.status);
  add("token_budget", run.token_budget);
  object.Add("updated_at", run.updated_at);
  return object;
}

json::ObjectText ActionObject(const kernel::PhaseAction& action) {
  json::ObjectText object;
  object.Add("action_type", action.type);
  if (action.args) AddJson(object, "args", *action.args);
  object.Add("command", action.command)
      .Add("id", action.id)
      .Add("mode", action.mode)
      .Add("phase", action.phase)
      .Add("priority", action.priority)
      .Add("run_id", action.run_id);
  return object;
}

json::ObjectText EventObject(const kernel::PhaseEvent& event) {
  json::ObjectText object;
  object.Add("created_at", event.created_at);
  if (event.envelope) AddJson(object, "envelope", *event.envelope);
  object.Add("event_type", event.type).Add("from_phase", event.from_phase);
  if (event.gate_result) object.Add("gate_result", *event.gate_result);
  if (event.gate_tier) object.Add("gate_tier", *event.gate_tier);
  object.Add("id", event.id);
  if (event.reason) object.Add("reason", *event.reason);
  object.Add("run_id", event.run_id).Add("to_phase", event.to_phase);
  return object;
}

}  // namespace interlock::cli::run
