#include "kernel/gate_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "json/codec.h"
#include "json/object_text.h"

namespace interlock::kernel {

struct GateRule {
  std::string check;
  std::string phase;
  std::string tier;
};
IL_JSON_FIELDS(GateRule, check, phase, tier)

namespace {

constexpr std::array<std::string_view, 5> kChecks = {
    "artifact_exists", "agents_complete", "verdict_exists", "verdict_clean", "budget_not_exceeded"};
constexpr std::array<std::string_view, 3> kTiers = {"", "hard", "soft"};

struct DefaultRule {
  std::string_view from;
  std::string_view to;
  std::string_view check;
};
constexpr std::array kDefaults = {
    DefaultRule{"brainstorm", "brainstorm-reviewed", "artifact_exists"},
    DefaultRule{"brainstorm-reviewed", "strategized", "artifact_exists"},
    DefaultRule{"strategized", "planned", "artifact_exists"},
    DefaultRule{"planned", "executing", "artifact_exists"},
    DefaultRule{"executing", "review", "agents_complete"},
    DefaultRule{"review", "polish", "verdict_exists"},
    DefaultRule{"reflect", "done", "artifact_exists"},
    DefaultRule{"goal-formed", "planned", "artifact_exists"},
};

Error Bad(std::string message) { return {Errc::kInvalidArgument, std::move(message)}; }

bool IsIn(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

Result<std::string> RulesText(std::string_view step, const json::Value& value) {
  constexpr json::DecodeOptions kRuleOptions = {.missing = json::Missing::kKeepDefault};
  const json::Array* const rules = value.if_array();
  if (rules == nullptr) {
    return Bad(fmt::format("the rules of '{}' must be an array; [] means no check", step));
  }
  json::ArrayText text;
  for (const json::Value& element : *rules) {
    Result<GateRule> rule = json::Decode<GateRule>(element, kRuleOptions);
    if (!rule) return std::move(rule).error().In(step);
    if (!IsIn(kChecks, rule->check)) {
      return Bad(fmt::format("'{}': unknown check '{}'; valid checks: {}", step, rule->check,
                             fmt::join(kChecks, ", ")));
    }
    if (!IsIn(kTiers, rule->tier)) {
      return Bad(fmt::format("'{}': the tier must be hard or soft, not '{}'", step, rule->tier));
    }
    text.Add(json::ObjectText()
                 .Add("Check", rule->check)
                 .Add("Phase", rule->phase)
                 .Add("Tier", rule->tier));
  }
  return text.Text();
}

}  // namespace

Result<std::string> ParseGateRules(std::string_view json, const PhaseChain& chain) {
  IL_TRY(const json::Value value, json::Parse(json));
  const json::Object* const object = value.if_object();
  if (object == nullptr) {
    return Bad(fmt::format("gates must be an object of steps, not {}", json::KindName(value)));
  }
  std::map<std::string, std::string> steps;
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    const std::string step = fmt::format("{}→{}", chain[i], chain[i + 1]);
    const json::Value* const rules = object->if_contains(step);
    if (rules == nullptr) {
      return Bad(fmt::format("the step '{}' is missing; use [] for a step without checks", step));
    }
    IL_TRY(steps[step], RulesText(step, *rules));
  }
  for (const auto& member : *object) {
    const std::string key(member.key().data(), member.key().size());
    if (!steps.contains(key)) {
      return Bad(fmt::format("'{}' is not a step between phases of this run", key));
    }
  }
  json::ObjectText text;
  for (const auto& [step, rules] : steps) text.AddRaw(step, rules);
  return text.Text();
}

std::vector<std::string> DefaultChecks(std::string_view from, std::string_view to) {
  std::vector<std::string> checks;
  for (const DefaultRule& rule : kDefaults) {
    if (rule.from == from && rule.to == to) checks.emplace_back(rule.check);
  }
  return checks;
}

}  // namespace interlock::kernel
