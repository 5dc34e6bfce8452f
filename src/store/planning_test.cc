#include "store/planning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/store_fixture.h"

namespace interlock::store {
namespace {

using domain::Plan;
using domain::PlanKind;
using domain::PlanQuery;
using ::testing::HasSubstr;
using ::testing::Not;
using Texts = std::vector<std::string>;

constexpr Timestamp kNow = {1'767'323'045'250'000};  // 2026-01-02T03:04:05.25Z

constexpr db::Sql kSpoil = "UPDATE plans SET body = ?1";
constexpr db::Sql kColumns =
    "SELECT kind || ' ' || version || ' ' || filter_a || ' ' || filter_b FROM plans";

class PlanningTest : public StoreTest {
 protected:
  // A plan with what its kind requires; `id` is also its title.
  static Plan Make(PlanKind kind, const std::string& id, domain::PlanValues values = {}) {
    domain::PlanChange change{.values = std::move(values)};
    for (const domain::PlanField& field : InfoOf(kind).fields) {
      if (field.need != domain::PlanField::Need::kRequired) continue;
      change.values.try_emplace(field.name, id);
    }
    const Plan blank = {
        .kind = kind, .project = "p", .id = id, .created_at = kNow, .updated_at = kNow};
    return Apply(change, blank).value();
  }
  static domain::PlanRef Ref(const Plan& plan) { return {plan.kind, plan.project, plan.id}; }

  bool Insert(const Plan& plan) {
    return Write<bool>([&](db::Transaction& tx) { return InsertPlan(tx, plan, PlanJson(plan)); })
        .value();
  }
  bool Replace(const Plan& plan) {
    return Write<bool>([&](db::Transaction& tx) { return ReplacePlan(tx, plan, PlanJson(plan)); })
        .value();
  }
  bool Remove(const domain::PlanRef& ref) {
    return Write<bool>([&](db::Transaction& tx) { return RemovePlan(tx, ref); }).value();
  }
  void Link(const domain::CujLink& link) {
    ASSERT_TRUE(Write<void>([&](db::Transaction& tx) { return PutCujLink(tx, link); }).ok());
  }
  std::optional<Plan> Find(const Plan& plan) { return FindPlan(connection(), Ref(plan)).value(); }

  // The ids of a list, in its order.
  Texts Ids(PlanQuery query) {
    if (query.limit == 0) query.limit = 100;
    if (query.bytes_max == 0) query.bytes_max = 1'000'000;
    const std::string page = ListPlans(connection(), query).value().json;
    Texts ids;
    constexpr std::string_view kId = R"({"id":")";
    for (std::size_t at = page.find(kId); at != std::string::npos; at = page.find(kId, at + 1)) {
      const std::size_t begin = at + kId.size();
      ids.push_back(page.substr(begin, page.find('"', begin) - begin));
    }
    return ids;
  }
};

// A plan of the kind in which every field holds something.
Plan Full(PlanKind kind) {
  Plan plan = {.kind = kind, .project = "p", .id = "i", .created_at = kNow, .updated_at = kNow};
  for (const domain::PlanField& field : InfoOf(kind).fields) {
    switch (field.type) {
      case domain::PlanField::Type::kText:
        plan.values[field.name] =
            field.choices.empty() ? "\"ä\n" + std::string(field.name) : std::string(field.initial);
        break;
      case domain::PlanField::Type::kTexts:
        plan.values[field.name] = Texts{"one", "", "<&>"};
        break;
      case domain::PlanField::Type::kNumber:
        plan.values[field.name] = -0.125;
        break;
      case domain::PlanField::Type::kSteps:
        plan.values[field.name] = std::vector<domain::PlanStep>{
            {.order = 1, .action = "a", .expected = "e", .alternatives = {"b", "c"}},
            {.order = -2, .action = "", .expected = ""}};
        break;
    }
  }
  return plan;
}

TEST_F(PlanningTest, EveryFieldOfEveryKindComesBackAsItWas) {
  for (const domain::PlanInfo& info : domain::AllPlanInfos()) {
    SCOPED_TRACE(info.name);
    Plan plan = Full(info.kind);
    EXPECT_FALSE(Find(plan));
    EXPECT_TRUE(Insert(plan));
    EXPECT_EQ(Find(plan), plan);
    EXPECT_EQ(FindPlanJson(connection(), Ref(plan)).value(), PlanJson(plan));
    plan.version = 2;
    plan.updated_at = kNow + std::chrono::seconds(1);
    if (info.updated_name.empty()) plan.updated_at = plan.created_at;
    EXPECT_TRUE(Replace(plan));
    EXPECT_EQ(Find(plan), plan);
  }
  EXPECT_EQ(Ids({.kind = PlanKind::kTask}), Texts{"i"}) << "kinds are kept apart";
}

TEST_F(PlanningTest, ClientsSeeWhatIsThereAndNothingEmpty) {
  EXPECT_EQ(PlanJson(Make(PlanKind::kSpec, "s")),
            R"({"id":"s","project":"p","title":"s","status":"draft","version":1,)"
            R"("created_at":"2026-01-02T03:04:05.25Z","updated_at":"2026-01-02T03:04:05.25Z"})");
  EXPECT_EQ(PlanJson(Make(PlanKind::kInsight, "i")),
            R"({"id":"i","project":"p","source":"i","category":"i","title":"i","score":0.0,)"
            R"("created_at":"2026-01-02T03:04:05.25Z"})");
  EXPECT_EQ(PlanJson(Make(PlanKind::kSession, "n")),
            R"({"id":"n","project":"p","name":"n","agent":"n","status":"running",)"
            R"("started_at":"2026-01-02T03:04:05.25Z","updated_at":"2026-01-02T03:04:05.25Z"})");
  const std::vector<domain::PlanStep> steps = {{.order = 1, .action = "a", .expected = "e"}};
  EXPECT_THAT(PlanJson(Make(PlanKind::kCuj, "c", {{"steps", steps}})),
              HasSubstr(R"("steps":[{"order":1,"action":"a","expected":"e"}],)"));
}

TEST_F(PlanningTest, AnIdIsTakenOncePerKindAndProject) {
  const Plan plan = Make(PlanKind::kTask, "x", {{"agent", std::string("first")}});
  EXPECT_TRUE(Insert(plan));
  EXPECT_FALSE(Insert(Make(PlanKind::kTask, "x", {{"agent", std::string("second")}})));
  EXPECT_EQ(Find(plan), plan);
  EXPECT_TRUE(Insert(Make(PlanKind::kSpec, "x")));
  Plan elsewhere = plan;
  elsewhere.project = "q";
  EXPECT_TRUE(Insert(elsewhere));
  EXPECT_TRUE(Remove(Ref(elsewhere)));
  EXPECT_FALSE(Remove(Ref(elsewhere)));
  EXPECT_EQ(Find(plan), plan);
}

TEST_F(PlanningTest, OnlyTheVersionBeforeIsReplaced) {
  Plan plan = Make(PlanKind::kEpic, "e");
  plan.version = 2;
  EXPECT_FALSE(Replace(plan)) << "it is not there";
  plan.version = 1;
  ASSERT_TRUE(Insert(plan));
  Plan next = plan;
  for (const std::int64_t version : {0, 1, 3, -5}) {
    next.version = version;
    EXPECT_FALSE(Replace(next)) << version;
  }
  EXPECT_EQ(Find(plan), plan);
  next.version = 2;
  EXPECT_TRUE(Replace(next));
  EXPECT_FALSE(Replace(next));
}

TEST_F(PlanningTest, AListIsNarrowedByEachFilterAndByBoth) {
  const auto task = [&](const char* id, const char* project, const char* status,
                        const char* agent) {
    Plan plan =
        Make(PlanKind::kTask, id, {{"status", std::string(status)}, {"agent", std::string(agent)}});
    plan.project = project;
    ASSERT_TRUE(Insert(plan));
  };
  task("a", "p", "pending", "ada");
  task("b", "p", "running", "ada");
  task("c", "p", "running", "bob");
  task("d", "q", "running", "ada");
  ASSERT_TRUE(Insert(Make(PlanKind::kSpec, "s")));
  const auto ids = [&](std::optional<std::string> project, std::optional<std::string> status,
                       std::optional<std::string> agent) {
    return Ids({.kind = PlanKind::kTask,
                .project = std::move(project),
                .filters = {std::move(status), std::move(agent)}});
  };
  EXPECT_EQ(ids("p", {}, {}), (Texts{"c", "b", "a"}));
  EXPECT_EQ(ids("p", "running", {}), (Texts{"c", "b"}));
  EXPECT_EQ(ids("p", {}, "ada"), (Texts{"b", "a"}));
  EXPECT_EQ(ids("p", "running", "ada"), (Texts{"b"}));
  EXPECT_EQ(ids({}, {}, {}), (Texts{"d", "c", "b", "a"}));
  EXPECT_EQ(ids({}, "running", {}), (Texts{"d", "c", "b"}));
  EXPECT_EQ(ids({}, {}, "ada"), (Texts{"d", "b", "a"}));
  EXPECT_EQ(ids({}, "running", "bob"), (Texts{"c"}));
  EXPECT_EQ(ids("p", "blocked", {}), Texts{});
  EXPECT_EQ(ids("", {}, {}), Texts{}) << "the project without a name is one of its own";
  Plan moved = Make(PlanKind::kTask, "a", {{"status", std::string("done")}});
  moved.version = 2;
  ASSERT_TRUE(Replace(moved));
  EXPECT_EQ(ids("p", "pending", {}), Texts{});
  EXPECT_EQ(ids("p", "done", {}), (Texts{"a"}));
  EXPECT_EQ(ids("p", {}, "ada"), (Texts{"b"}));
}

TEST_F(PlanningTest, JourneysAreListedHighMediumLowAndInsightsByScore) {
  std::int64_t minute = 0;
  const auto add = [&](Plan plan) {
    plan.created_at = {kNow.micros + (60'000'000 * ++minute)};
    plan.updated_at = plan.created_at;
    ASSERT_TRUE(Insert(plan));
  };
  for (const char* priority : {"medium", "low", "high"}) {
    for (const char* number : {"1", "2"}) {
      add(Make(PlanKind::kCuj, std::string(priority) + number,
               {{"priority", std::string(priority)}, {"spec_id", std::string("s")}}));
    }
  }
  const Texts order = {"high2", "high1", "medium2", "medium1", "low2", "low1"};
  EXPECT_EQ(Ids({.kind = PlanKind::kCuj, .project = "p"}), order);
  EXPECT_EQ(Ids({.kind = PlanKind::kCuj, .project = "p", .filters = {"s"}}), order);
  EXPECT_EQ(Ids({.kind = PlanKind::kCuj}), order);
  for (const double score : {0.5, 10.0, -1.0, 9.5}) {
    add(Make(PlanKind::kInsight, std::to_string(static_cast<int>(score * 10)), {{"score", score}}));
  }
  EXPECT_EQ(Ids({.kind = PlanKind::kInsight, .project = "p"}), (Texts{"100", "95", "5", "-10"}));
}

TEST_F(PlanningTest, PagesFollowEachOtherAndABoundCutsThem) {
  for (const char* id : {"a", "b", "c", "d", "e"}) ASSERT_TRUE(Insert(Make(PlanKind::kSpec, id)));
  const auto page = [&](std::int64_t limit, std::int64_t offset) {
    return Ids({.kind = PlanKind::kSpec, .project = "p", .limit = limit, .offset = offset});
  };
  EXPECT_EQ(page(2, 0), (Texts{"e", "d"}));
  EXPECT_EQ(page(2, 2), (Texts{"c", "b"}));
  EXPECT_EQ(page(2, 4), (Texts{"a"}));
  EXPECT_EQ(page(2, 6), Texts{});
  PlanQuery query = {.kind = PlanKind::kSpec, .project = "p", .limit = 5};
  const std::size_t one = PlanJson(Make(PlanKind::kSpec, "a")).size();
  const auto counted = [&](std::size_t bytes_max) {
    query.bytes_max = bytes_max;
    const auto cut = ListPlans(connection(), query).value();
    return std::pair(cut.count, cut.cut);
  };
  EXPECT_EQ(counted(1), std::pair(std::int64_t{1}, true)) << "one is always there";
  EXPECT_EQ(counted(3 * (one + 1)), std::pair(std::int64_t{2}, true));
  EXPECT_EQ(counted((3 * (one + 1)) + 1), std::pair(std::int64_t{3}, true));
  EXPECT_EQ(counted(6 * (one + 1)), std::pair(std::int64_t{5}, false));
}

TEST_F(PlanningTest, NoListSortsWhatItReads) {
  for (const db::NamedSql& statement : PlanStatements()) {
    const auto plan = connection_->QueryPlan(statement.sql).value();
    for (const std::string& line : plan) {
      EXPECT_THAT(line, Not(HasSubstr("TEMP B-TREE"))) << statement.name;
    }
  }
}

TEST_F(PlanningTest, LinksAreKeptPerProjectAndGoWithTheirJourney) {
  const Plan cuj = Make(PlanKind::kCuj, "c");
  ASSERT_TRUE(Insert(cuj));
  Link({"p", "c", "f2", kNow});
  Link({"p", "c", "f1", kNow});
  Link({"p", "d", "f1", kNow});
  Link({"q", "c", "f3", kNow});
  Link({"p", "c", "f2", kNow + std::chrono::seconds(1)});
  const auto links = [&](const char* project, const char* id, int limit = 10, int offset = 0) {
    return ListCujLinks(connection(), {PlanKind::kCuj, project, id}, limit, offset).value();
  };
  const std::string first =
      R"({"cuj_id":"c","feature_id":"f1","project":"p","linked_at":"2026-01-02T03:04:05.25Z"})";
  const std::string second =
      R"({"cuj_id":"c","feature_id":"f2","project":"p","linked_at":"2026-01-02T03:04:06.25Z"})";
  EXPECT_EQ(links("p", "c"), "[" + first + "," + second + "]");
  EXPECT_EQ(links("p", "c", 1, 1), "[" + second + "]");
  const auto remove = [&](const domain::CujLink& link) {
    return Write<bool>([&](db::Transaction& tx) { return RemoveCujLink(tx, link); }).value();
  };
  EXPECT_TRUE(remove({"p", "c", "f1"}));
  EXPECT_FALSE(remove({"p", "c", "f1"}));
  EXPECT_FALSE(Remove({PlanKind::kSpec, "p", "c"}));
  EXPECT_EQ(links("p", "c"), "[" + second + "]") << "a spec of that id has none";
  EXPECT_TRUE(Remove(Ref(cuj)));
  EXPECT_EQ(links("p", "c"), "[]");
  EXPECT_FALSE(Remove({PlanKind::kCuj, "p", "d"}));
  EXPECT_THAT(links("p", "d"), HasSubstr("f1")) << "there was nothing to remove";
  EXPECT_THAT(links("q", "c"), HasSubstr("f3"));
}

TEST_F(PlanningTest, TheColumnsRepeatTheBody) {
  ASSERT_TRUE(Insert(Make(PlanKind::kInsight, "i", {{"spec_id", std::string("s")}})));
  EXPECT_EQ(connection().One(kColumns, [](const db::Row& row) { return row.String(0); }).value(),
            "insight 1 s i");
}

TEST_F(PlanningTest, ABodyThatIsNoPlanIsReportedAsCorrupt) {
  const Plan plan = Make(PlanKind::kSpec, "s");
  ASSERT_TRUE(Insert(plan));
  const std::string times =
      R"("created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z"})";
  for (const std::string& text : {std::string(), std::string("[]"), std::string("{}"),
                                  std::string(R"({"created_at":1})"), R"({"title":1,)" + times}) {
    ASSERT_TRUE(connection().Run(kSpoil, text).ok());
    const auto found = FindPlan(connection(), Ref(plan));
    ASSERT_FALSE(found.ok()) << text;
    EXPECT_EQ(found.error().code(), Errc::kCorrupt);
  }
}

}  // namespace
}  // namespace interlock::store
