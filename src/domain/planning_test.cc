#include "domain/planning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace interlock::domain {
namespace {

using ::testing::ElementsAre;

// The texts that a kind requires, all of them "x".
PlanChange Minimal(PlanKind kind) {
  PlanChange change;
  for (const PlanField& field : InfoOf(kind).fields) {
    if (field.need == PlanField::Need::kRequired) change.values[field.name] = std::string("x");
  }
  return change;
}

Plan Blank(PlanKind kind) { return {.kind = kind}; }

Plan Made(PlanKind kind, const PlanValues& values = {}) {
  PlanChange change = Minimal(kind);
  for (const auto& [name, value] : values) change.values[name] = value;
  return Apply(change, Blank(kind)).value();
}

std::vector<std::string> RequiredBy(PlanKind kind) {
  std::vector<std::string> names;
  for (const auto& [name, value] : Minimal(kind).values) names.emplace_back(name);
  return names;
}

TEST(PlanningTest, EveryDescriptionHoldsTogether) {
  std::set<std::string_view> names;
  for (const PlanInfo& info : AllPlanInfos()) {
    SCOPED_TRACE(info.name);
    const auto has = [&](std::string_view name) {
      return std::ranges::find(info.fields, name, &PlanField::name) != info.fields.end();
    };
    EXPECT_EQ(&InfoOf(info.kind), &info);
    EXPECT_TRUE(names.insert(info.name).second);
    EXPECT_TRUE(names.insert(info.plural).second);
    for (const PlanFilter& filter : info.filters) EXPECT_TRUE(has(filter.field));
    EXPECT_TRUE(info.weighed_by.empty() || has(info.weighed_by));
    std::set<std::string_view> fields = {"id", "project", "version", info.created_name,
                                         info.updated_name};
    for (const PlanField& field : info.fields) {
      EXPECT_TRUE(fields.insert(field.name).second) << field.name;
      if (field.choices.empty()) continue;
      EXPECT_EQ(field.type, PlanField::Type::kText);
      EXPECT_EQ(std::ranges::count(field.choices, field.initial), 1) << field.name;
    }
    EXPECT_TRUE(info.created_event.starts_with(std::string(info.name) + "."));
    EXPECT_TRUE(info.updated_event.starts_with(std::string(info.name) + "."));
    EXPECT_TRUE(info.deleted_event.starts_with(std::string(info.name) + "."));
  }
}

TEST(PlanningTest, EachKindRequiresWhatItCannotBeWithout) {
  EXPECT_THAT(RequiredBy(PlanKind::kSpec), ElementsAre("title"));
  EXPECT_THAT(RequiredBy(PlanKind::kEpic), ElementsAre("title"));
  EXPECT_THAT(RequiredBy(PlanKind::kStory), ElementsAre("epic_id", "title"));
  EXPECT_THAT(RequiredBy(PlanKind::kTask), ElementsAre("title"));
  EXPECT_THAT(RequiredBy(PlanKind::kInsight), ElementsAre("category", "source", "title"));
  EXPECT_THAT(RequiredBy(PlanKind::kSession), ElementsAre("agent", "name"));
  EXPECT_THAT(RequiredBy(PlanKind::kCuj), ElementsAre("spec_id", "title"));
  for (const PlanInfo& info : AllPlanInfos()) {
    for (const std::string& name : RequiredBy(info.kind)) {
      for (const char* blank : {"", " \t\n"}) {
        PlanChange change = Minimal(info.kind);
        change.values[std::string_view(name)] = std::string(blank);
        const auto refused = Apply(change, Blank(info.kind));
        ASSERT_FALSE(refused.ok()) << info.name << " " << name;
        EXPECT_EQ(refused.error().code(), Errc::kInvalidArgument);
        EXPECT_EQ(std::get<std::string>(refused.error().details().at(0).second), name);
      }
    }
  }
}

TEST(PlanningTest, NoTextHoldsANulHoweverDeep) {
  const std::string nul("a\0b", 3);
  const PlanStep kSteps[] = {{.action = nul}, {.expected = nul}, {.alternatives = {"x", nul}}};
  for (const PlanInfo& info : AllPlanInfos()) {
    for (const PlanField& field : info.fields) {
      std::vector<PlanValue> values;
      if (field.type == PlanField::Type::kText) values = {nul};
      if (field.type == PlanField::Type::kTexts) values = {std::vector<std::string>{"x", nul}};
      if (field.type == PlanField::Type::kSteps) {
        for (const PlanStep& step : kSteps) values.emplace_back(std::vector{PlanStep{}, step});
      }
      for (const PlanValue& value : values) {
        PlanChange change = Minimal(info.kind);
        change.values[field.name] = value;
        const auto refused = Apply(change, Blank(info.kind));
        ASSERT_FALSE(refused.ok()) << info.name << " " << field.name;
        EXPECT_EQ(refused.error().message(),
                  std::string(field.name) + " holds a NUL byte; remove \\u0000 from it");
      }
    }
  }
}

TEST(PlanningTest, AnEpicIsNamedLikeOne) {
  EXPECT_EQ(Named(InfoOf(PlanKind::kSpec)), "a spec");
  EXPECT_EQ(Named(InfoOf(PlanKind::kEpic)), "an epic");
  EXPECT_EQ(Named(InfoOf(PlanKind::kInsight)), "an insight");
  PlanChange change = Minimal(PlanKind::kEpic);
  change.values["title"] = std::string();
  EXPECT_EQ(Apply(change, Blank(PlanKind::kEpic)).error().message(),
            "an epic needs a title, and this one's is blank: send \"title\"");
  change = Minimal(PlanKind::kStory);
  change.values["epic_id"] = std::string();
  EXPECT_EQ(Apply(change, Blank(PlanKind::kStory)).error().message(),
            "a story needs an epic_id, and this one's is blank: send \"epic_id\"");
  change = Minimal(PlanKind::kSession);
  change.values["agent"] = std::string();
  EXPECT_EQ(Apply(change, Blank(PlanKind::kSession)).error().message(),
            "a session needs an agent, and this one's is blank: send \"agent\"");
}

TEST(PlanningTest, ANewOneHasTheInitialOfItsChoices) {
  EXPECT_EQ(TextOf(Made(PlanKind::kSpec).values, "status"), "draft");
  EXPECT_EQ(TextOf(Made(PlanKind::kEpic).values, "status"), "open");
  EXPECT_EQ(TextOf(Made(PlanKind::kStory).values, "status"), "todo");
  EXPECT_EQ(TextOf(Made(PlanKind::kTask).values, "status"), "pending");
  EXPECT_EQ(TextOf(Made(PlanKind::kSession).values, "status"), "running");
  EXPECT_EQ(TextOf(Made(PlanKind::kCuj).values, "status"), "draft");
  EXPECT_EQ(TextOf(Made(PlanKind::kCuj).values, "priority"), "medium");
}

TEST(PlanningTest, EveryChoiceIsTakenAndNothingElse) {
  for (const PlanInfo& info : AllPlanInfos()) {
    for (const PlanField& field : info.fields) {
      for (const std::string_view choice : field.choices) {
        const Plan plan = Made(info.kind, {{field.name, std::string(choice)}});
        EXPECT_EQ(TextOf(plan.values, field.name), choice);
      }
      if (field.choices.empty()) continue;
      for (const char* wrong : {"nonsense", " ", "Draft", "done "}) {
        PlanChange change = Minimal(info.kind);
        change.values[field.name] = std::string(wrong);
        const auto refused = Apply(change, Blank(info.kind));
        ASSERT_FALSE(refused.ok()) << info.name << " " << wrong;
        EXPECT_EQ(refused.error().slug(), "invalid_" + std::string(field.name));
      }
    }
  }
}

TEST(PlanningTest, AChangeKeepsWhatItDoesNotNameAndClearsWhatItNamesEmpty) {
  const Plan before = Made(PlanKind::kCuj, {{"persona", std::string("p")},
                                            {"entry_point", std::string("e")},
                                            {"success_criteria", std::vector<std::string>{"a"}},
                                            {"steps", std::vector<PlanStep>{{.order = 1}}},
                                            {"status", std::string("validated")}});
  PlanChange change;
  change.values["persona"] = std::string();
  change.values["steps"] = std::vector<PlanStep>();
  change.values["status"] = std::string();
  change.values["exit_point"] = std::string("out");
  Plan expected = before;
  expected.values.erase("persona");
  expected.values.erase("steps");
  expected.values["status"] = std::string("draft");
  expected.values["exit_point"] = std::string("out");
  EXPECT_EQ(Apply(change, before).value(), expected);
}

TEST(PlanningTest, WhatIsEmptyIsNotKept) {
  EXPECT_EQ(Made(PlanKind::kInsight, {{"score", 0.0}, {"url", std::string()}}),
            Made(PlanKind::kInsight));
}

TEST(PlanningTest, AStatusThatEndsAThingHasItsOwnEvent) {
  const auto event = [](PlanKind kind, const std::string& status) {
    PlanChange change;
    if (!status.empty()) change.values["status"] = status;
    return UpdateEvent(InfoOf(kind), change);
  };
  EXPECT_EQ(event(PlanKind::kTask, "done"), "task.completed");
  EXPECT_EQ(event(PlanKind::kTask, "blocked"), "task.updated");
  EXPECT_EQ(event(PlanKind::kTask, ""), "task.updated");
  EXPECT_EQ(event(PlanKind::kCuj, "validated"), "cuj.validated");
  EXPECT_EQ(event(PlanKind::kCuj, "archived"), "cuj.updated");
  EXPECT_EQ(event(PlanKind::kSpec, "validated"), "spec.updated");
  EXPECT_EQ(event(PlanKind::kEpic, "done"), "epic.updated");
}

TEST(PlanningTest, ListsGoByPriorityByScoreOrByTime) {
  const auto cuj = [](const char* priority) {
    return WeightOf(Made(PlanKind::kCuj, {{"priority", std::string(priority)}}));
  };
  EXPECT_GT(cuj("high"), cuj("medium"));
  EXPECT_GT(cuj("medium"), cuj("low"));
  EXPECT_EQ(WeightOf(Made(PlanKind::kInsight, {{"score", 2.5}})), 2.5);
  EXPECT_EQ(WeightOf(Made(PlanKind::kInsight)), 0);
  EXPECT_EQ(WeightOf(Made(PlanKind::kTask)), 0);
  for (const PlanInfo& info : AllPlanInfos()) {
    const Plan plan = {.kind = info.kind, .created_at = {1}, .updated_at = {2}};
    const bool by_birth = info.kind == PlanKind::kInsight || info.kind == PlanKind::kSession;
    EXPECT_EQ(ListTimeOf(plan), Timestamp{by_birth ? 1 : 2}) << info.name;
  }
}

TEST(PlanningTest, FiltersLookAtTheFieldsOfTheirKind) {
  EXPECT_THAT(FilterValuesOf(Made(PlanKind::kTask, {{"agent", std::string("a")}})),
              ElementsAre("pending", "a"));
  EXPECT_THAT(FilterValuesOf(Made(PlanKind::kInsight, {{"spec_id", std::string("s")}})),
              ElementsAre("s", "x"));
  EXPECT_THAT(FilterValuesOf(Made(PlanKind::kEpic)), ElementsAre("", ""));
}

}  // namespace
}  // namespace interlock::domain
