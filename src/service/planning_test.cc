#include "service/planning.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/agents.h"
#include "service/service_fixture.h"
#include "testing/on_threads.h"

namespace interlock::service {
namespace {

using domain::PlanChange;
using domain::PlanKind;
using domain::PlanRef;
using domain::PlanValues;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Texts = std::vector<std::string>;

constexpr db::Sql kEvents =
    "SELECT type, project, entity_id, agent, data FROM events ORDER BY cursor";

class PlanningServiceTest : public ServiceTest {
 protected:
  // What the kind requires, and `values`.
  static PlanChange Draft(PlanKind kind, PlanValues values = {}) {
    PlanChange change{.values = std::move(values)};
    for (const domain::PlanField& field : InfoOf(kind).fields) {
      if (field.need != domain::PlanField::Need::kRequired) continue;
      change.values.try_emplace(field.name, "some " + std::string(field.name));
    }
    return change;
  }
  static PlanChange From(std::int64_t version, PlanValues values) {
    return {.version = version, .values = std::move(values)};
  }

  Result<std::string> Create(const PlanRef& ref, PlanChange change) {
    return Run(planning_.Create(ref, std::move(change), "ada"));
  }
  Result<std::string> Update(const PlanRef& ref, PlanChange change) {
    return Run(planning_.Update(ref, std::move(change), "bob"));
  }
  std::string Find(const PlanRef& ref) {
    auto found = Run(planning_.Find(ref));
    return found.ok() ? *std::move(found) : std::string(found.error().slug());
  }

  // The id of a new agent of the project.
  std::string Register(const std::string& name, const std::string& project = "p") {
    return Run(agents_.Register({.project = project, .name = name})).value().agent.id;
  }

  // The tasks of the list that an agent's text narrows, by their ids; or the slug of its error.
  Texts TasksOf(const std::string& agent, std::optional<std::string> project = "p",
                std::optional<std::string> status = {}) {
    const auto page = Run(planning_.List(
        {.kind = PlanKind::kTask, .project = project, .filters = {status, agent}, .limit = 100}));
    if (!page.ok()) return {std::string(page.error().slug())};
    Texts ids;
    constexpr std::string_view kId = "{\"id\":\"";
    for (auto at = page->json.find(kId); at != std::string::npos;
         at = page->json.find(kId, at + 1)) {
      const std::size_t begin = at + kId.size();
      ids.push_back(page->json.substr(begin, page->json.find('"', begin) - begin));
    }
    return ids;
  }

  // "type project entity_id agent data" of each event since the last call.
  Texts Events() {
    Texts events;
    std::size_t row_number = 0;
    EXPECT_TRUE(file_.Open()
                    ->ForEach(kEvents,
                              [&](const db::Row& row) {
                                if (row_number++ < events_seen_) return;
                                events.push_back(row.String(0) + " " + row.String(1) + " " +
                                                 row.String(2) + " " + row.String(3) + " " +
                                                 row.String(4));
                              })
                    .ok());
    events_seen_ = row_number;
    return events;
  }

  Limits limits_;
  UuidMaker uuids_{clock_, random_};
  Planning planning_{*storage_, clock_, uuids_, limits_};
  Agents agents_{*storage_, clock_, random_, uuids_};
  std::size_t events_seen_ = 0;
};

TEST_F(PlanningServiceTest, EveryKindIsMadeReadChangedAndRemoved) {
  for (const domain::PlanInfo& info : domain::AllPlanInfos()) {
    SCOPED_TRACE(info.name);
    const std::string name(info.name);
    const PlanRef ref = {info.kind, "p", "the " + name};
    const std::string made = Create(ref, Draft(info.kind)).value();
    EXPECT_THAT(made, HasSubstr(R"({"id":"the )" + name + R"(","project":"p",)"));
    EXPECT_EQ(Find(ref), made);
    EXPECT_EQ(Find({info.kind, "q", ref.id}), "not_found");
    EXPECT_EQ(Run(planning_.List({.kind = info.kind, .project = "p", .limit = 9})).value().json,
              "[" + made + "]");
    EXPECT_THAT(Events(),
                ElementsAre(std::string(info.created_event) + " p " + ref.id + " ada " + made));
    clock_.Advance(seconds(1));
    const std::string field(info.fields.front().name);
    const auto changed = Update(ref, From(1, {{info.fields.front().name, "new " + field}}));
    ASSERT_TRUE(changed.ok()) << changed.error();
    EXPECT_THAT(*changed, HasSubstr(fmt::format(R"("{}":"new {}")", field, field)));
    EXPECT_EQ(Find(ref), *changed);
    EXPECT_THAT(Events(),
                ElementsAre(std::string(info.updated_event) + " p " + ref.id + " bob " + *changed));
    ASSERT_TRUE(Run(planning_.Remove(ref, "")).ok());
    EXPECT_EQ(Find(ref), "not_found");
    EXPECT_THAT(Events(), ElementsAre(std::string(info.deleted_event) + " p " + ref.id + "  "));
    ASSERT_TRUE(Run(planning_.Remove(ref, "")).ok()) << "also what is gone";
    EXPECT_EQ(Update(ref, From(2, {})).error().code(), Errc::kNotFound);
    EXPECT_THAT(Events(), IsEmpty());
  }
}

TEST_F(PlanningServiceTest, AStaleVersionIsRefusedWithTheCurrentOne) {
  for (const domain::PlanInfo& info : domain::AllPlanInfos()) {
    SCOPED_TRACE(info.name);
    const PlanRef ref = {info.kind, "p", "x"};
    ASSERT_TRUE(Create(ref, Draft(info.kind)).ok());
    const bool locked = info.locking == domain::PlanInfo::Locking::kVersion;
    for (const std::int64_t version : {1, 2}) {  // 1→2→3
      const auto changed = Update(ref, From(version, {}));
      ASSERT_TRUE(changed.ok()) << changed.error();
      const std::string shown = "\"version\":" + std::to_string(version + 1) + ",";
      EXPECT_EQ(changed->find(shown) != std::string::npos, locked) << *changed;
      EXPECT_EQ(Find(ref), *changed);
    }
    Events();
    for (const std::int64_t version : {0, 1, 2, 4, -1}) {
      const auto refused = Update(ref, From(version, {}));
      ASSERT_EQ(refused.ok(), !locked);
      if (!locked) continue;
      EXPECT_EQ(refused.error().http_status(), 409);
      EXPECT_EQ(refused.error().slug(), "version_conflict");
      ASSERT_EQ(refused.error().details().size(), 1U);
      EXPECT_EQ(refused.error().details()[0],
                (std::pair<std::string, Error::Value>("version", std::int64_t{3})));
    }
    EXPECT_EQ(Events().empty(), locked) << "what is refused leaves no event";
  }
}

TEST_F(PlanningServiceTest, AChangeKeepsTheBirthAndMovesTheTimeOfChange) {
  const PlanRef ref = {PlanKind::kSpec, "p", "s"};
  PlanChange draft = Draft(ref.kind, {{"vision", std::string("v")}});
  draft.created_at = Timestamp{0};
  ASSERT_THAT(Create(ref, draft).value(), HasSubstr(R"("created_at":"1970-01-01T00:00:00Z",)"
                                                    R"("updated_at":"2026-01-02T03:04:05Z"})"));
  clock_.Advance(seconds(10));
  PlanChange change = From(1, {{"users", std::string("u")}});
  change.created_at = Timestamp{1};
  change.updated_at = Timestamp{2};
  EXPECT_EQ(Update(ref, change).value(),
            R"({"id":"s","project":"p","title":"some title","vision":"v","users":"u",)"
            R"("status":"draft","version":2,"created_at":"1970-01-01T00:00:00Z",)"
            R"("updated_at":"2026-01-02T03:04:15Z"})");
}

TEST_F(PlanningServiceTest, ANewOneGetsAnIdItsTimesAndVersionOne) {
  PlanChange draft = Draft(PlanKind::kSession);
  draft.version = 7;
  draft.created_at = Timestamp{-62'135'596'800'000'000};  // 0001-01-01, how Go says none
  draft.updated_at = draft.created_at;
  const std::string session = Create({PlanKind::kSession, "p", " "}, draft).value();
  EXPECT_THAT(session, HasSubstr(R"("started_at":"2026-01-02T03:04:05Z",)"
                                 R"("updated_at":"2026-01-02T03:04:05Z")"));
  EXPECT_TRUE(Uuid::Parse(session.substr(7, 36)).ok()) << session;
  draft.values = Draft(PlanKind::kEpic).values;
  EXPECT_THAT(Create({PlanKind::kEpic, "p", ""}, draft).value(), HasSubstr(R"("version":1,)"));
  draft.values = Draft(PlanKind::kCuj).values;
  EXPECT_THAT(Create({PlanKind::kCuj, "p", "c"}, draft).value(), HasSubstr(R"("version":7,)"));
  EXPECT_THAT(Update({PlanKind::kCuj, "p", "c"}, From(7, {})).value(),
              HasSubstr(R"("version":8,)"));
  draft.version = -1;
  EXPECT_THAT(Create({PlanKind::kCuj, "p", "d"}, draft).value(), HasSubstr(R"("version":1,)"));
  draft.version = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(Create({PlanKind::kCuj, "p", "e"}, draft).error().code(), Errc::kInvalidArgument);
}

TEST_F(PlanningServiceTest, AnIdThatIsTakenIsRefusedAndNothingChanges) {
  const PlanRef ref = {PlanKind::kTask, "p", "t"};
  const std::string first = Create(ref, Draft(ref.kind)).value();
  Events();
  const auto refused = Create(ref, Draft(ref.kind, {{"agent", std::string("x")}}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().slug(), "already_exists");
  EXPECT_EQ(refused.error().http_status(), 409);
  EXPECT_EQ(Find(ref), first);
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(PlanningServiceTest, WhatIsNotAllowedChangesNothing) {
  const PlanRef ref = {PlanKind::kTask, "p", "t"};
  const std::string first = Create(ref, Draft(ref.kind)).value();
  Events();
  const auto slug = [&](PlanValues values) {
    return std::string(Update(ref, From(1, std::move(values))).error().slug());
  };
  const std::string longest(limits_.plan_name_bytes_max, 'x');
  EXPECT_EQ(slug({{"status", std::string("asleep")}}), "invalid_status");
  EXPECT_EQ(slug({{"title", std::string()}}), "invalid_request");
  EXPECT_EQ(slug({{"agent", longest + "x"}}), "invalid_request");
  EXPECT_EQ(slug({{"agent", std::string("a\0b", 3)}}), "invalid_request");
  EXPECT_EQ(slug({{"title", std::string(limits_.plan_bytes_max, 'x')}}), "invalid_request");
  EXPECT_EQ(Find(ref), first);
  const auto created = [&](PlanKind kind, const std::string& id) {
    return Create({kind, "p", id}, Draft(kind)).ok();
  };
  EXPECT_TRUE(created(PlanKind::kSpec, longest));
  EXPECT_TRUE(created(PlanKind::kSpec, "a/b"));
  Events();
  for (const std::string& id : {longest + "x", std::string("a\0b", 3), std::string("/a"),
                                std::string("a//b"), std::string("..")}) {
    EXPECT_FALSE(created(PlanKind::kSpec, id)) << id;
  }
  for (const PlanKind kind : {PlanKind::kTask, PlanKind::kInsight, PlanKind::kCuj}) {
    EXPECT_FALSE(created(kind, "a/b")) << "no path would name it";
  }
  EXPECT_FALSE(Create({PlanKind::kSpec, std::string(limits_.project_bytes_max + 1, 'p'), "x"},
                      Draft(PlanKind::kSpec))
                   .ok());
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(PlanningServiceTest, ATaskIsAssignedAndThenRuns) {
  const PlanRef ref = {PlanKind::kTask, "p", "t"};
  EXPECT_EQ(Run(planning_.Assign(ref, "eve", "")).error().code(), Errc::kNotFound);
  ASSERT_TRUE(Create(ref, Draft(ref.kind)).ok());
  Events();
  clock_.Advance(seconds(1));
  const std::string assigned = Run(planning_.Assign(ref, "eve", "boss")).value();
  EXPECT_EQ(assigned, R"({"id":"t","project":"p","title":"some title","agent":"eve",)"
                      R"("status":"running","version":2,"created_at":"2026-01-02T03:04:05Z",)"
                      R"("updated_at":"2026-01-02T03:04:06Z"})");
  EXPECT_EQ(Find(ref), assigned);
  EXPECT_THAT(Events(), ElementsAre("task.assigned p t boss " + assigned));
  const std::string freed = Run(planning_.Assign(ref, "", "boss")).value();
  EXPECT_THAT(freed, Not(HasSubstr("agent")));
  EXPECT_THAT(Update(ref, From(3, {{"status", std::string("done")}})).value(),
              HasSubstr(R"("version":4,)"));
  EXPECT_THAT(Events().back(), HasSubstr("task.completed p t bob {"));
}

TEST_F(PlanningServiceTest, ATaskIsClaimedByOneAgentAndTheOthersLearnWhoHasIt) {
  const PlanRef ref = {PlanKind::kTask, "p", "t"};
  EXPECT_EQ(Run(planning_.Claim(ref, "eve", {})).error().code(), Errc::kNotFound);
  ASSERT_TRUE(Create(ref, Draft(ref.kind)).ok());
  Events();
  EXPECT_EQ(Run(planning_.Claim(ref, " ", {})).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(Run(planning_.Claim(ref, "eve", 7)).error().slug(), "version_conflict");
  EXPECT_THAT(Events(), IsEmpty());

  const std::string claimed = Run(planning_.Claim(ref, "eve", 1)).value();
  EXPECT_THAT(claimed, HasSubstr(R"("agent":"eve","status":"running","version":2,)"));
  EXPECT_THAT(Events(), ElementsAre("task.assigned p t eve " + claimed));
  // The same claim again, as a client sends it whose answer was lost.
  EXPECT_EQ(Run(planning_.Claim(ref, "eve", 1)).value(), claimed);
  const Error refused = Run(planning_.Claim(ref, "bob", 2)).error();
  EXPECT_EQ(refused.slug(), "task_claimed");
  EXPECT_EQ(refused.http_status(), 409);
  EXPECT_EQ(refused.details(),
            (std::vector<std::pair<std::string, Error::Value>>{{"holder", std::string("eve")}}));
  EXPECT_EQ(Find(ref), claimed);
  EXPECT_THAT(Events(), IsEmpty());

  ASSERT_TRUE(Update(ref, From(2, {{"status", std::string("blocked")}})).ok());
  EXPECT_THAT(Run(planning_.Claim(ref, "eve", 3)).value(),
              HasSubstr(R"("status":"running","version":4,)"));
  ASSERT_TRUE(Update(ref, From(4, {{"status", std::string("done")}})).ok());
  for (const char* agent : {"eve", "bob"}) {
    EXPECT_EQ(Run(planning_.Claim(ref, agent, {})).error().slug(), "task_done");
  }
}

using Details = std::vector<std::pair<std::string, Error::Value>>;

TEST_F(PlanningServiceTest, AnAgentClaimsByItsNameOrItsIdAlike) {
  const PlanRef ref = {PlanKind::kTask, "p", "t"};
  ASSERT_TRUE(Create(ref, Draft(ref.kind)).ok());
  const std::string ada = Register("ada");
  const std::string bob = Register("bob");
  Events();
  const std::string claimed = Run(planning_.Claim(ref, "ada", {})).value();
  EXPECT_THAT(claimed,
              HasSubstr("\"agent\":\"" + ada + "\",\"status\":\"running\",\"version\":2,"));
  EXPECT_THAT(Events(), ElementsAre("task.assigned p t " + ada + " " + claimed));
  EXPECT_EQ(Run(planning_.Claim(ref, ada, {})).value(), claimed);
  EXPECT_EQ(Run(planning_.Claim(ref, "ada", {})).value(), claimed);
  EXPECT_THAT(Events(), IsEmpty());
  for (const std::string& other : {std::string("bob"), bob, std::string("nobody")}) {
    const Error refused = Run(planning_.Claim(ref, other, {})).error();
    EXPECT_EQ(refused.slug(), "task_claimed");
    EXPECT_EQ(refused.details(), (Details{{"holder", ada}, {"holder_name", std::string("ada")}}));
  }
}

TEST_F(PlanningServiceTest, ANameOfTwoActiveAgentsClaimsNothingAndIsAssignedNothing) {
  const PlanRef ref = {PlanKind::kTask, "p", "t"};
  ASSERT_TRUE(Create(ref, Draft(ref.kind)).ok());
  const std::string first = Register("twin");
  const std::string second = Register("twin");
  Register("twin", "q");
  Events();
  for (const Error& refused : {Run(planning_.Claim(ref, "twin", {})).error(),
                               Run(planning_.Assign(ref, "twin", "boss")).error()}) {
    EXPECT_EQ(refused.slug(), "ambiguous_recipient");
    EXPECT_EQ(refused.http_status(), 409);
    EXPECT_THAT(refused.message(), AllOf(HasSubstr(first), HasSubstr(second)));
  }
  EXPECT_EQ(TasksOf("twin"), Texts{"ambiguous_recipient"});
  EXPECT_THAT(Events(), IsEmpty());
  ASSERT_TRUE(Run(planning_.Claim(ref, second, {})).ok());
  const Error refused = Run(planning_.Claim(ref, first, {})).error();
  EXPECT_EQ(refused.details(), (Details{{"holder", second}, {"holder_name", std::string("twin")}}));
}

TEST_F(PlanningServiceTest, ATaskUnderABareNameIsItsAgentsOwn) {
  const PlanRef ref = {PlanKind::kTask, "p", "t"};
  ASSERT_TRUE(Create(ref, Draft(ref.kind)).ok());
  ASSERT_TRUE(Run(planning_.Claim(ref, "ada", {})).ok()) << "nobody has the name yet";
  const std::string ada = Register("ada");
  const std::string bob = Register("bob");
  Events();
  EXPECT_EQ(Run(planning_.Claim(ref, bob, {})).error().details(),
            (Details{{"holder", ada}, {"holder_name", std::string("ada")}}));
  // The claim makes it the agent's by its id, so that no later agent of the name can have it.
  EXPECT_THAT(Run(planning_.Claim(ref, ada, 1)).value(),
              HasSubstr("\"agent\":\"" + ada + "\",\"status\":\"running\",\"version\":3,"));
  EXPECT_EQ(Events().size(), 1U);
  clock_.Advance(std::chrono::hours(1));
  const std::string other = Register("ada");
  EXPECT_EQ(Run(planning_.Claim(ref, other, {})).error().slug(), "task_claimed");
}

TEST_F(PlanningServiceTest, ATaskUnderTheNameOfTwoAgentsBelongsToOneOfThem) {
  const PlanRef ref = {PlanKind::kTask, "p", "t"};
  ASSERT_TRUE(Create(ref, Draft(ref.kind)).ok());
  ASSERT_TRUE(Run(planning_.Assign(ref, "twin", "boss")).ok());
  const std::string first = Register("twin");
  clock_.Advance(seconds(1));
  const std::string second = Register("twin");
  EXPECT_EQ(Run(planning_.Claim(ref, second, {})).error().details(),
            (Details{{"holder", first}, {"holder_name", std::string("twin")}}));
  EXPECT_TRUE(Run(planning_.Claim(ref, first, {})).ok());
}

TEST_F(PlanningServiceTest, AssignKeepsTheTextThatItWasGiven) {
  const PlanRef ref = {PlanKind::kTask, "p", "t"};
  ASSERT_TRUE(Create(ref, Draft(ref.kind)).ok());
  const std::string ada = Register("ada");
  EXPECT_THAT(Run(planning_.Assign(ref, "ada", "boss")).value(), HasSubstr(R"("agent":"ada",)"));
  EXPECT_THAT(Run(planning_.Claim(ref, ada, {})).value(), HasSubstr("\"agent\":\"" + ada + "\","));
}

TEST_F(PlanningServiceTest, TasksAreFoundByTheIdAndByTheNameOfTheirAgent) {
  const std::string ada = Register("ada");
  Register("bob");
  for (const char* id : {"1", "2", "3", "4"}) {
    clock_.Advance(seconds(1));
    ASSERT_TRUE(Create({PlanKind::kTask, "p", id}, Draft(PlanKind::kTask)).ok());
  }
  for (const auto& [id, agent] : std::vector<std::pair<std::string, std::string>>{
           {"1", "ada"}, {"2", ada}, {"3", "ada"}, {"4", "bob"}}) {
    clock_.Advance(seconds(1));
    ASSERT_TRUE(Run(planning_.Assign({PlanKind::kTask, "p", id}, agent, "")).ok());
  }
  for (const std::string& text : {std::string("ada"), ada}) {
    EXPECT_THAT(TasksOf(text), ElementsAre("3", "2", "1"));
    EXPECT_THAT(TasksOf(text, "p", "running"), ElementsAre("3", "2", "1"));
    EXPECT_THAT(TasksOf(text, std::nullopt), ElementsAre("3", "2", "1"));
    EXPECT_THAT(TasksOf(text, "p", "done"), IsEmpty());
  }
  EXPECT_THAT(TasksOf("bob"), ElementsAre("4"));
  EXPECT_THAT(TasksOf("nobody"), IsEmpty());
}

TEST_F(PlanningServiceTest, OfManyWhoClaimOneTaskAtOnceOneGetsIt) {
  constexpr int kThreads = 8;
  for (int round = 0; round < 5; ++round) {
    const PlanRef ref = {PlanKind::kTask, "p", std::to_string(round)};
    ASSERT_TRUE(Create(ref, Draft(ref.kind)).ok());
    Events();
    std::atomic<int> winner = -1;
    std::atomic<int> won = 0;
    std::vector<std::string> holders(kThreads);
    testing::OnThreads(kThreads, [&](int thread) {
      const auto claimed = Run(planning_.Claim(ref, std::to_string(thread), {}));
      if (claimed.ok()) {
        ++won;
        winner = thread;
        return;
      }
      ASSERT_EQ(claimed.error().slug(), "task_claimed");
      holders[static_cast<std::size_t>(thread)] =
          std::get<std::string>(claimed.error().details().at(0).second);
    });
    EXPECT_EQ(won, 1);
    for (int thread = 0; thread < kThreads; ++thread) {
      if (thread == winner) continue;
      EXPECT_EQ(holders[static_cast<std::size_t>(thread)], std::to_string(winner));
    }
    EXPECT_THAT(Find(ref), HasSubstr("\"agent\":\"" + std::to_string(winner) + "\""));
    EXPECT_EQ(Events().size(), 1U);
  }
}

TEST_F(PlanningServiceTest, AnInsightIsLinkedOnceToEachSpec) {
  const PlanRef ref = {PlanKind::kInsight, "p", "i"};
  const auto link = [&](const std::string& spec) {
    return Run(planning_.LinkInsight(ref, spec, "ada"));
  };
  EXPECT_FALSE(link("s").value()) << "there is none";
  EXPECT_THAT(Events(), IsEmpty());
  ASSERT_TRUE(Create(ref, Draft(ref.kind)).ok());
  Events();
  EXPECT_TRUE(link("s").value());
  EXPECT_THAT(Find(ref), HasSubstr(R"("spec_id":"s")"));
  EXPECT_THAT(Events(), ElementsAre(R"(insight.linked p i ada {"spec_id":"s"})"));
  EXPECT_TRUE(link("s").value());
  EXPECT_THAT(Events(), IsEmpty());
  const auto of_spec = [&](const std::string& spec) {
    return Run(planning_.List(
                   {.kind = PlanKind::kInsight, .project = "p", .filters = {spec}, .limit = 10}))
        .value()
        .count;
  };
  EXPECT_EQ(of_spec("s"), 1);
  EXPECT_TRUE(link("").value());
  EXPECT_EQ(of_spec("s"), 0);
  EXPECT_THAT(Find(ref), Not(HasSubstr("spec_id")));
  EXPECT_FALSE(link(std::string(limits_.plan_name_bytes_max + 1, 's')).ok());
}

TEST_F(PlanningServiceTest, AJourneyIsLinkedToFeaturesAndLosesThemWithItself) {
  const PlanRef ref = {PlanKind::kCuj, "p", "c"};
  const auto links = [&] { return Run(planning_.CujLinks(ref, 10, 0)).value(); };
  ASSERT_TRUE(Create(ref, Draft(ref.kind)).ok());
  Events();
  EXPECT_EQ(links(), "[]");
  ASSERT_TRUE(Run(planning_.LinkCuj({"p", "c", "f"}, "ada")).ok());
  EXPECT_EQ(links(), R"([{"cuj_id":"c","feature_id":"f","project":"p",)"
                     R"("linked_at":"2026-01-02T03:04:05Z"}])");
  clock_.Advance(seconds(1));
  ASSERT_TRUE(Run(planning_.LinkCuj({"p", "c", "f"}, "ada")).ok());
  EXPECT_THAT(links(), HasSubstr("2026-01-02T03:04:06Z"));
  ASSERT_TRUE(Run(planning_.UnlinkCuj({"p", "c", "f"}, "bob")).ok());
  ASSERT_TRUE(Run(planning_.UnlinkCuj({"p", "c", "f"}, "bob")).ok());
  EXPECT_EQ(links(), "[]");
  EXPECT_THAT(Events(), ElementsAre(R"(cuj.linked p c ada {"feature_id":"f"})",
                                    R"(cuj.linked p c ada {"feature_id":"f"})",
                                    R"(cuj.unlinked p c bob {"feature_id":"f"})"));
  EXPECT_FALSE(Run(planning_.LinkCuj({"p", "c", " "}, "")).ok());
  EXPECT_FALSE(Run(planning_.UnlinkCuj({"p", "c", ""}, "")).ok());
  ASSERT_TRUE(Run(planning_.LinkCuj({"p", "c", "g"}, "")).ok());
  Events();
  ASSERT_TRUE(Run(planning_.Remove(ref, "")).ok());
  EXPECT_EQ(links(), "[]");
  EXPECT_THAT(Events(), ElementsAre("cuj.archived p c  "));

  ASSERT_TRUE(Run(planning_.LinkCuj({"p", "c", "h"}, "")).ok());
  Events();
  ASSERT_TRUE(Run(planning_.Remove(ref, "")).ok()) << "there is none";
  EXPECT_THAT(links(), HasSubstr("\"h\"")) << "so nothing changes";
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(PlanningServiceTest, APageIsNeverLongerThanTheLimit) {
  limits_.plans_listed_max = 3;
  limits_.page_bytes_max = 400;
  Planning narrow(*storage_, clock_, uuids_, limits_);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Create({PlanKind::kSpec, "p"}, Draft({})).ok());
  const auto page = Run(narrow.List({.kind = PlanKind::kSpec, .limit = 100})).value();
  EXPECT_EQ(page.count, 2);
  EXPECT_TRUE(page.cut);
  EXPECT_EQ(Run(planning_.List({.kind = PlanKind::kSpec, .limit = 100})).value().count, 5);
  EXPECT_EQ(Run(planning_.List({.kind = PlanKind::kSpec, .limit = -1})).value().json, "[]");
}

// Each thread counts up one list in a task, always from the version that it has read. Whatever was
// overwritten would be missing in the end.
TEST_F(PlanningServiceTest, OfManyWhoChangeOneAtOnceNoChangeIsLost) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kEach = 5;
#else
  constexpr int kEach = 20;
#endif
  constexpr int kThreads = 8;
  const PlanRef ref = {PlanKind::kStory, "p", "s"};
  ASSERT_TRUE(Create(ref, Draft(ref.kind)).ok());
  std::atomic<int> refused = 0;
  testing::OnThreads(kThreads, [&](int thread) {
    std::int64_t version = 1;
    Texts seen;
    for (int i = 0; i < kEach;) {
      Texts next = seen;
      next.push_back(std::to_string(thread) + "." + std::to_string(i));
      const auto changed = Update(ref, From(version, {{"acceptance_criteria", next}}));
      if (changed.ok()) {
        seen = std::move(next);
        ++version;
        ++i;
        continue;
      }
      ++refused;
      ASSERT_EQ(changed.error().slug(), "version_conflict");
      // Reads the list and its version together, as a client does.
      const std::string now = Find(ref);
      const std::size_t at = now.find("\"version\":") + 10;
      version = std::stoll(now.substr(at));
      seen.clear();
      const std::size_t open = now.find('[');
      if (open == std::string::npos) continue;
      std::size_t quote = open;
      while (now[quote + 1] == '"') {
        const std::size_t end = now.find('"', quote + 2);
        seen.push_back(now.substr(quote + 2, end - quote - 2));
        quote = end + 1;
      }
    }
  });
  const std::string last = Find(ref);
  EXPECT_THAT(last, HasSubstr("\"version\":" + std::to_string(1 + (kThreads * kEach)) + ","));
  for (int thread = 0; thread < kThreads; ++thread) {
    for (int i = 0; i < kEach; ++i) {
      EXPECT_THAT(last, HasSubstr("\"" + std::to_string(thread) + "." + std::to_string(i) + "\""));
    }
  }
  EXPECT_EQ(Events().size(), 1U + (kThreads * kEach)) << refused << " were refused";
  EXPECT_GT(refused, 0) << "nobody came between anybody";
}

TEST_F(PlanningServiceTest, OfManyWhoMakeTheSameOneOneDoes) {
  std::atomic<int> made = 0;
  testing::OnThreads(8, [&](int thread) {
    const auto result = Create({PlanKind::kEpic, "p", "e"},
                               Draft(PlanKind::kEpic, {{"spec_id", std::to_string(thread)}}));
    if (result.ok()) {
      ++made;
    } else {
      EXPECT_EQ(result.error().code(), Errc::kAlreadyExists);
    }
  });
  EXPECT_EQ(made, 1);
  EXPECT_EQ(Events().size(), 1U);
}

}  // namespace
}  // namespace interlock::service
