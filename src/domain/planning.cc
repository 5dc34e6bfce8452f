#include "domain/planning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "domain/text.h"

namespace interlock::domain {
namespace {

using Type = PlanField::Type;
using Need = PlanField::Need;
using Choices = std::span<const std::string_view>;

constexpr PlanField Required(std::string_view name) {
  return {.name = name, .need = Need::kRequired};
}
constexpr PlanField Optional(std::string_view name, Type type = Type::kText) {
  return {.name = name, .type = type};
}
constexpr PlanField Named(std::string_view name, Choices choices, std::string_view initial) {
  return {.name = name, .need = Need::kShown, .choices = choices, .initial = initial};
}

constexpr std::string_view kSpecStatuses[] = {"draft", "research", "validated", "archived"};
constexpr PlanField kSpecFields[] = {Required("title"), Optional("vision"), Optional("users"),
                                     Optional("problem"), Named("status", kSpecStatuses, "draft")};
constexpr PlanFilter kByStatus[] = {{"status", "status", "Only those with this status."}};

constexpr std::string_view kEpicStatuses[] = {"open", "in_progress", "done"};
constexpr PlanField kEpicFields[] = {Optional("spec_id"), Required("title"),
                                     Optional("description"),
                                     Named("status", kEpicStatuses, "open")};
constexpr PlanFilter kBySpec[] = {{"spec", "spec_id", "Only those of this spec."}};

constexpr std::string_view kStoryStatuses[] = {"todo", "in_progress", "review", "done"};
constexpr PlanField kStoryFields[] = {Required("epic_id"), Required("title"),
                                      Optional("acceptance_criteria", Type::kTexts),
                                      Named("status", kStoryStatuses, "todo")};
constexpr PlanFilter kByEpic[] = {{"epic", "epic_id", "Only those of this epic."}};

constexpr std::string_view kTaskStatuses[] = {"pending", "running", "blocked", "done"};
constexpr PlanField kTaskFields[] = {Optional("story_id"), Required("title"), Optional("agent"),
                                     Optional("session_id"),
                                     Named("status", kTaskStatuses, "pending")};
constexpr PlanFilter kTaskFilters[] = {{"status", "status", "Only those with this status."},
                                       {"agent", "agent", "Only those of this agent."}};

constexpr PlanField kInsightFields[] = {
    Optional("spec_id"),
    Required("source"),
    Required("category"),
    Required("title"),
    Optional("body"),
    Optional("url"),
    {.name = "score", .type = Type::kNumber, .need = Need::kShown}};
constexpr PlanFilter kInsightFilters[] = {{"spec", "spec_id", "Only those of this spec."},
                                          {"category", "category", "Only those of this category."}};

constexpr std::string_view kSessionStatuses[] = {"running", "idle", "error"};
constexpr PlanField kSessionFields[] = {Required("name"), Required("agent"), Optional("task_id"),
                                        Named("status", kSessionStatuses, "running")};

constexpr std::string_view kCujStatuses[] = {"draft", "validated", "archived"};
constexpr std::string_view kPriorities[] = {"high", "medium", "low"};
constexpr PlanField kCujFields[] = {Required("spec_id"),
                                    Required("title"),
                                    Optional("persona"),
                                    Named("priority", kPriorities, "medium"),
                                    Optional("entry_point"),
                                    Optional("exit_point"),
                                    Optional("steps", Type::kSteps),
                                    Optional("success_criteria", Type::kTexts),
                                    Optional("error_recovery", Type::kTexts),
                                    Named("status", kCujStatuses, "draft")};

constexpr PlanInfo kInfos[] = {
    {.kind = PlanKind::kSpec,
     .name = "spec",
     .plural = "specs",
     .fields = kSpecFields,
     .filters = kByStatus,
     .created_event = "spec.created",
     .updated_event = "spec.updated",
     .deleted_event = "spec.archived"},
    {.kind = PlanKind::kEpic,
     .name = "epic",
     .plural = "epics",
     .fields = kEpicFields,
     .filters = kBySpec,
     .created_event = "epic.created",
     .updated_event = "epic.updated",
     .deleted_event = "epic.deleted"},
    {.kind = PlanKind::kStory,
     .name = "story",
     .plural = "stories",
     .fields = kStoryFields,
     .filters = kByEpic,
     .created_event = "story.created",
     .updated_event = "story.updated",
     .deleted_event = "story.deleted"},
    {.kind = PlanKind::kTask,
     .name = "task",
     .plural = "tasks",
     .fields = kTaskFields,
     .filters = kTaskFilters,
     .created_event = "task.created",
     .updated_event = "task.updated",
     .deleted_event = "task.deleted",
     .final_status = "done",
     .final_event = "task.completed"},
    {.kind = PlanKind::kInsight,
     .name = "insight",
     .plural = "insights",
     .fields = kInsightFields,
     .filters = kInsightFilters,
     .locking = PlanInfo::Locking::kNone,
     .updated_name = "",
     .weighed_by = "score",
     .listed_by = PlanInfo::Time::kCreated,
     .created_event = "insight.created",
     .updated_event = "insight.linked",
     .deleted_event = "insight.deleted"},
    {.kind = PlanKind::kSession,
     .name = "session",
     .plural = "sessions",
     .fields = kSessionFields,
     .filters = kByStatus,
     .locking = PlanInfo::Locking::kNone,
     .created_name = "started_at",
     .listed_by = PlanInfo::Time::kCreated,
     .created_event = "session.started",
     .updated_event = "session.updated",
     .deleted_event = "session.stopped"},
    {.kind = PlanKind::kCuj,
     .name = "cuj",
     .plural = "cujs",
     .fields = kCujFields,
     .filters = kBySpec,
     .version = PlanInfo::Version::kAsSent,
     .weighed_by = "priority",
     .created_event = "cuj.created",
     .updated_event = "cuj.updated",
     .deleted_event = "cuj.archived",
     .final_status = "validated",
     .final_event = "cuj.validated"},
};

constexpr bool InfosFollowEnum() {
  for (std::size_t i = 0; i < std::size(kInfos); ++i) {
    if (static_cast<std::size_t>(kInfos[i].kind) != i) return false;
    if (kInfos[i].filters.size() > kPlanFiltersMax) return false;
  }
  return kInfos[std::size(kInfos) - 1].kind == PlanKind::kCuj;
}
static_assert(InfosFollowEnum(), "one row per PlanKind, in the order of the enum");

bool IsEmpty(const PlanValue& value) {
  return std::visit(
      []<typename T>(const T& held) {
        if constexpr (std::same_as<T, double>) {
          return held == 0;
        } else {
          return held.empty();
        }
      },
      value);
}

bool AnyHasNul(std::span<const std::string> texts) {
  return std::ranges::any_of(texts, [](const std::string& text) { return HasNul(text); });
}

bool AnyHasNul(const PlanValue& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) return HasNul(*text);
  if (const auto* const texts = std::get_if<std::vector<std::string>>(&value)) {
    return AnyHasNul(std::span(*texts));
  }
  const auto* const steps = std::get_if<std::vector<PlanStep>>(&value);
  return steps != nullptr && std::ranges::any_of(*steps, [](const PlanStep& step) {
           return HasNul(step.action) || HasNul(step.expected) ||
                  AnyHasNul(std::span(step.alternatives));
         });
}

Error Nul(std::string_view field) {
  return Error(Errc::kInvalidArgument,
               fmt::format("{} holds a NUL byte; remove \\u0000 from it", field))
      .WithDetail("field", std::string(field));
}

// "a title", "an epic_id"
std::string WithArticle(std::string_view noun) {
  const bool vowel = std::string_view("aeiou").contains(noun.front());
  return fmt::format("{} {}", vowel ? "an" : "a", noun);
}

Error Blank(const PlanInfo& info, std::string_view field) {
  return Error(Errc::kInvalidArgument,
               fmt::format("{} needs {}, and this one's is blank: send \"{}\"", Named(info),
                           WithArticle(field), field))
      .WithDetail("field", std::string(field));
}

Error NoneOf(const PlanInfo& info, const PlanField& field) {
  return Error(Errc::kInvalidArgument,
               fmt::format("the {} of {} must be one of {}; a new one without it gets {}",
                           field.name, Named(info), fmt::join(field.choices, ", "), field.initial))
      .WithSlug(field.name == "status" ? "invalid_status" : "invalid_priority")
      .WithDetail("field", std::string(field.name));
}

}  // namespace

const PlanInfo& InfoOf(PlanKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  IL_CHECK(index < std::size(kInfos));
  return kInfos[index];
}

std::span<const PlanInfo> AllPlanInfos() { return kInfos; }

std::string Named(const PlanInfo& info) { return WithArticle(info.name); }

Result<Plan> Apply(const PlanChange& change, Plan plan) {
  const PlanInfo& info = InfoOf(plan.kind);
  for (const auto& [name, value] : change.values) {
    if (AnyHasNul(value)) return Nul(name);
    if (IsEmpty(value)) {
      plan.values.erase(name);
    } else {
      plan.values.insert_or_assign(name, value);
    }
  }
  for (const PlanField& field : info.fields) {
    const std::string_view text = TextOf(plan.values, field.name);
    if (field.need == Need::kRequired && Trim(text).empty()) return Blank(info, field.name);
    if (field.choices.empty()) continue;
    if (text.empty()) {
      plan.values.insert_or_assign(field.name, std::string(field.initial));
    } else if (std::ranges::find(field.choices, text) == field.choices.end()) {
      return NoneOf(info, field);
    }
  }
  return plan;
}

std::string_view TextOf(const PlanValues& values, std::string_view field) {
  const auto found = values.find(field);
  if (found == values.end()) return {};
  const auto* const text = std::get_if<std::string>(&found->second);
  return text == nullptr ? std::string_view() : *text;
}

std::string_view UpdateEvent(const PlanInfo& info, const PlanChange& change) {
  const bool is_final =
      !info.final_status.empty() && TextOf(change.values, "status") == info.final_status;
  return is_final ? info.final_event : info.updated_event;
}

double WeightOf(const Plan& plan) {
  const PlanInfo& info = InfoOf(plan.kind);
  const auto found = plan.values.find(info.weighed_by);
  if (found == plan.values.end()) return 0;
  if (const auto* const number = std::get_if<double>(&found->second)) return *number;
  const auto field = std::ranges::find(info.fields, info.weighed_by, &PlanField::name);
  const auto choice = std::ranges::find(field->choices, TextOf(plan.values, info.weighed_by));
  return static_cast<double>(field->choices.end() - choice);
}

Timestamp ListTimeOf(const Plan& plan) {
  const bool by_birth = InfoOf(plan.kind).listed_by == PlanInfo::Time::kCreated;
  return by_birth ? plan.created_at : plan.updated_at;
}

std::array<std::string_view, kPlanFiltersMax> FilterValuesOf(const Plan& plan) {
  std::array<std::string_view, kPlanFiltersMax> values = {};
  const std::span<const PlanFilter> filters = InfoOf(plan.kind).filters;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    values[i] = TextOf(plan.values, filters[i].field);
  }
  return values;
}

}  // namespace interlock::domain
