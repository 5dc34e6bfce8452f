// Planning over the wire: every operation of every kind, who wins, and what is refused.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api_test.h"
#include "testing/on_threads.h"

namespace interlock::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Texts = std::vector<std::string>;

// One of each kind, as a client sends it.
struct Kind {
  std::string plural;
  std::string body;           // but for id and project
  std::string status;         // another one than the first
  Texts events;               // of making, changing and removing it
  Texts filters;              // each finds it
  std::string optional = {};  // a field that PUT empties
  bool locked = true;         // by version
  bool changes = true;        // with PUT and PATCH
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kKinds = {
      {"specs",
       R"("title":"t","vision":"v","users":"u","problem":"p")",
       "research",
       {"spec.created", "spec.updated", "spec.archived"},
       {"status=draft"},
       "vision"},
      {"epics",
       R"("title":"t","spec_id":"s1","description":"d")",
       "in_progress",
       {"epic.created", "epic.updated", "epic.deleted"},
       {"spec=s1"},
       "description"},
      {"stories",
       R"("title":"t","epic_id":"e1","acceptance_criteria":["a","b"])",
       "review",
       {"story.created", "story.updated", "story.deleted"},
       {"epic=e1"},
       "acceptance_criteria"},
      {"tasks",
       R"("title":"t","story_id":"st","agent":"ada","session_id":"se")",
       "blocked",
       {"task.created", "task.updated", "task.deleted"},
       {"status=pending", "agent=ada", "status=pending&agent=ada"},
       "story_id"},
      {"insights",
       R"("title":"t","spec_id":"s1","source":"web","category":"c","body":"b","url":"u",)"
       R"("score":1.5)",
       "",
       {"insight.created", "", "insight.deleted"},
       {"spec=s1", "category=c", "spec=s1&category=c"},
       "",
       false,
       false},
      {"sessions",
       R"("name":"n","agent":"ada","task_id":"t")",
       "idle",
       {"session.started", "session.updated", "session.stopped"},
       {"status=running"},
       "task_id",
       false},
      {"cujs",
       R"("title":"t","spec_id":"s1","persona":"p","entry_point":"in","exit_point":"out",)"
       R"("steps":[{"order":1,"action":"a","expected":"e","alternatives":["x"]}],)"
       R"("success_criteria":["ok"],"error_recovery":["retry"])",
       "archived",
       {"cuj.created", "cuj.updated", "cuj.archived"},
       {"spec=s1"},
       "persona"},
  };
  return kKinds;
}

class PlanningTest : public ApiTest {
 protected:
  HttpAnswer Make(const std::string& plural, const std::string& fields) {
    return Ask("POST", "/api/" + plural, R"({"project":"p",)" + fields + "}");
  }
  // The types of the events after the cursor, and the last cursor.
  Texts EventTypes() {
    const json::Value page =
        Get("/api/events?project=p&limit=1000&since_cursor=" + std::to_string(cursor_));
    Texts types;
    for (const json::Value& event : page.get_object().at("events").get_array()) {
      types.push_back(Text(event, "type"));
      cursor_ = event.get_object().at("cursor").get_int64();
    }
    return types;
  }

  std::int64_t cursor_ = 0;
};

TEST_F(PlanningTest, EveryKindLivesFromItsMakingToItsEnd) {
  for (const Kind& kind : Kinds()) {
    SCOPED_TRACE(kind.plural);
    const std::string all = "/api/" + kind.plural;
    const HttpAnswer made = Make(kind.plural, R"("id":"x",)" + kind.body);
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_EQ(Ask("GET", all + "/x?project=p").body, made.body);
    EXPECT_EQ(Ask("GET", all + "?project=p").body,
              "[" + made.body.substr(0, made.body.size() - 1) + "]\n");
    for (const std::string& filter : kind.filters) {
      const std::string narrowed = fmt::format("{}?project=p&{}", all, filter);
      EXPECT_THAT(Ask("GET", narrowed).body, HasSubstr(R"("id":"x")")) << filter;
      EXPECT_EQ(Ask("GET", narrowed + "no").body, "[]\n") << filter;
    }
    EXPECT_EQ(Ask("GET", all + "?project=other").body, "[]\n");
    Texts types = {kind.events[0]};
    if (kind.changes) {
      const std::string status = R"({"project":"p","status":")" + kind.status + "\"";
      // PATCH keeps the optional fields, which PUT then empties.
      const std::string optional = "\"" + kind.optional + "\":";
      for (const auto& [method, version] : {std::pair("PATCH", "1"), std::pair("PUT", "2")}) {
        const HttpAnswer changed =
            Ask(method, all + "/x", status + R"(,"version":)" + std::string(version) + "}");
        EXPECT_EQ(changed.status, 200) << changed.body;
        EXPECT_THAT(changed.body, HasSubstr(R"("status":")" + kind.status + "\""));
        EXPECT_EQ(changed.body.contains(optional), method == std::string_view("PATCH"));
        EXPECT_EQ(Ask("GET", all + "/x?project=p").body, changed.body) << "it persists";
        types.push_back(kind.events[1]);
      }
      const HttpAnswer stale = Ask("PUT", all + "/x", status + R"(,"version":1})");
      EXPECT_EQ(stale.status, kind.locked ? 409 : 200);
      if (kind.locked) {
        EXPECT_THAT(stale.body, HasSubstr(R"({"error":"version_conflict",)"));
        EXPECT_THAT(stale.body, HasSubstr(R"(,"version":3})"));
      } else {
        types.push_back(kind.events[1]);
      }
      for (const char* method : {"PUT", "PATCH"}) {
        EXPECT_EQ(Ask(method, all + "/nothing", status + R"(,"version":1})").status, 404);
        EXPECT_THAT(Ask(method, all + "/x", R"({"project":"p","version":3,"status":"?"})").body,
                    HasSubstr(R"({"error":"invalid_status",)"));
      }
    }
    EXPECT_EQ(Ask("DELETE", all + "/x?project=p").status, 204);
    EXPECT_EQ(Ask("DELETE", all + "/x?project=p").status, 204);
    EXPECT_EQ(Ask("GET", all + "/x?project=p").status, 404);
    types.push_back(kind.events[2]);
    EXPECT_EQ(EventTypes(), types);
  }
}

TEST_F(PlanningTest, WhatIsWrongIsNamed) {
  for (const Kind& kind : Kinds()) {
    const std::string all = "/api/" + kind.plural;
    ASSERT_EQ(Make(kind.plural, R"("id":"x",)" + kind.body).status, 201);
    Check({
        {"POST", all, "", 400, "bad_json"},
        {"POST", all, "{", 400, "line 1"},
        {"POST", all, "[]", 400, "invalid_request"},
        {"POST", all, "{}", 400, R"("field":")"},
        {"POST", all, R"({"project":"p","id":"x",)" + kind.body + "}", 409, "already_exists"},
        {"POST", all, R"({"project":7})", 400, R"("field":"project")"},
        {"GET", all + "/nothing?project=p", "", 404, "not_found"},
        {"GET", all + "/x", "", 404, "not_found"},
        {"DELETE", all, "", 405, "use GET, HEAD, POST"},
        {"GET", all + "?limit=no", "", 400, R"("field":"limit")"},
        {"GET", all + "?offset=-1", "", 400, R"("field":"offset")"},
    });
  }
  Check({
      {"PUT", "/api/insights/x", "{}", 405, "use GET, HEAD, DELETE"},
      {"POST", "/api/tasks/none/assign?project=p", R"({"agent":"a"})", 404, "not_found"},
      {"POST", "/api/tasks/x/assign?project=p", "", 400, "bad_json"},
      {"GET", "/api/tasks/x/assign?project=p", "", 405, "use POST"},
      {"POST", "/api/cujs/x/link?project=p", "{}", 400, R"("field":"feature_id")"},
      {"POST", "/api/insights/x/link?project=p", "{}", 400, R"("field":"spec_id")"},
      {"POST", "/api/tasks", R"({"id":"a/b","title":"t"})", 400, R"("field":"id")"},
      {"POST", "/api/specs", R"({"title":")" + std::string(300'000, 'x') + "\"}", 400, "bytes"},
  });
}

TEST_F(PlanningTest, TasksAreAssignedAndCompleted) {
  ASSERT_EQ(Make("tasks", R"("id":"t","title":"t")").status, 201);
  const HttpAnswer assigned = Ask("POST", "/api/tasks/t/assign?project=p", R"({"agent":"bob"})");
  EXPECT_EQ(assigned.status, 200);
  EXPECT_THAT(assigned.body, HasSubstr(R"("agent":"bob","status":"running","version":2,)"));
  EXPECT_THAT(Ask("GET", "/api/tasks?project=p&agent=bob&status=running").body,
              HasSubstr(R"("id":"t")"));
  EXPECT_EQ(Ask("PUT", "/api/tasks/t", R"({"project":"p","version":2,"status":"done"})").status,
            200);
  EXPECT_EQ(EventTypes(), (Texts{"task.created", "task.assigned", "task.completed"}));
}

TEST_F(PlanningTest, AClaimWithoutABodyTakesTheAgentOfTheQueryOrTheHeader) {
  for (const char* id : {"q", "h", "n"}) {
    ASSERT_EQ(Make("tasks", R"("title":"t","id":")" + std::string(id) + "\"").status, 201);
  }
  Check({
      {"POST", "/api/tasks/q/claim?project=p&agent=ada", "", 200, R"("agent":"ada")"},
      {"POST", "/api/tasks/h/claim?project=p", "", 200, R"("agent":"bob")", "X-Agent-ID: bob\r\n"},
      {"POST", "/api/tasks/n/claim?project=p&agent=ada", "null", 200, R"("agent":"ada")"},
      {"POST", "/api/tasks/n/claim?project=p", "", 400, R"("field":"agent")"},
      {"POST", "/api/tasks/n/claim?project=p&agent=ada", "[", 400, "bad_json"},
  });
}

TEST_F(PlanningTest, OfManyClientsThatClaimOneTaskOneGetsIt) {
  constexpr int kClients = 6;
  std::vector<std::string> agents;
  for (int i = 0; i < kClients; ++i) {
    agents.push_back(
        Text(json::Parse(Ask("POST", "/api/agents",
                             R"({"project":"p","name":"claimer-)" + std::to_string(i) + "\"}")
                             .body)
                 .value(),
             "agent_id"));
  }
  ASSERT_EQ(Make("tasks", R"("id":"t","title":"t")").status, 201);
  EventTypes();
  std::atomic<int> winner = -1;
  std::atomic<int> won = 0;
  Texts refusals(kClients);
  testing::OnThreads(kClients, [&](int client) {
    HttpClient connection = server_->Connect();
    const std::string body =
        R"({"agent":")" + agents[static_cast<std::size_t>(client)] + R"(","version":1})";
    ASSERT_TRUE(connection.Request("POST", "/api/tasks/t/claim?project=p", body));
    const HttpAnswer answer = connection.Read().value_or(HttpAnswer{});
    if (answer.status == 200) {
      ++won;
      winner = client;
      return;
    }
    EXPECT_EQ(answer.status, 409) << answer.body;
    refusals[static_cast<std::size_t>(client)] = answer.body;
  });
  ASSERT_EQ(won, 1);
  const std::string& holder = agents[static_cast<std::size_t>(winner.load())];
  for (int client = 0; client < kClients; ++client) {
    if (client == winner) continue;
    const std::string expected =
        fmt::format(R"("holder":"{}","holder_name":"claimer-{}"}})", holder, winner.load());
    EXPECT_THAT(refusals[static_cast<std::size_t>(client)],
                AllOf(HasSubstr(R"({"error":"task_claimed",)"), HasSubstr(expected)));
  }
  // The winner may repeat its claim; without a body that names it, X-Agent-ID does.
  const HttpAnswer again =
      Ask("POST", "/api/tasks/t/claim?project=p", "{}", "X-Agent-ID: " + holder + "\r\n");
  EXPECT_EQ(again.status, 200);
  EXPECT_THAT(again.body,
              HasSubstr(R"("agent":")" + holder + R"(","status":"running","version":2,)"));
  EXPECT_EQ(EventTypes(), Texts{"task.assigned"});
  EXPECT_EQ(Ask("PATCH", "/api/tasks/t", R"({"project":"p","version":2,"status":"done"})").status,
            200);
  Check({
      {"POST", "/api/tasks/t/claim?project=p", R"({"agent":"x"})", 409, "task_done"},
      {"POST", "/api/tasks/none/claim?project=p", R"({"agent":"x"})", 404, "not_found"},
      {"POST", "/api/tasks/t/claim?project=p", "{}", 400, R"("field":"agent")"},
      {"POST", "/api/tasks/t/claim?project=p", R"({"agent":7})", 400, R"("field":"agent")"},
      {"GET", "/api/tasks/t/claim?project=p", "", 405, "use POST"},
  });
}

TEST_F(PlanningTest, AgentsTakeTasksByTheirNamesOrTheirIds) {
  const auto join = [this](const std::string& name) {
    const std::string body = R"({"project":"p","name":")" + name + "\"}";
    return Text(json::Parse(Ask("POST", "/api/agents", body).body).value(), "agent_id");
  };
  const std::string ada = join("ada");
  const std::string first = join("twin");
  const std::string second = join("twin");
  ASSERT_EQ(Make("tasks", R"("id":"t","title":"t")").status, 201);
  for (const std::string& text : {std::string("ada"), ada}) {
    EXPECT_THAT(Ask("POST", "/api/tasks/t/claim?project=p", R"({"agent":")" + text + "\"}").body,
                HasSubstr(R"("agent":")" + ada + R"(","status":"running","version":2,)"));
    EXPECT_THAT(Ask("GET", "/api/tasks?project=p&agent=" + text).body, HasSubstr(R"("id":"t")"));
  }
  const std::string held = R"("holder":")" + ada + R"(","holder_name":"ada"})";
  Check({
      {"POST", "/api/tasks/t/claim?project=p", R"({"agent":")" + first + "\"}", 409, held},
      {"POST", "/api/tasks/t/claim?project=p", R"({"agent":"twin"})", 409, second},
      {"POST", "/api/tasks/t/assign?project=p", R"({"agent":"twin"})", 409, first},
      {"GET", "/api/tasks?project=p&agent=twin", "", 409, "ambiguous_recipient"},
      {"POST", "/api/tasks/t/assign?project=p", R"({"agent":"ada"})", 200, R"("agent":"ada",)"},
  });
}

TEST_F(PlanningTest, InsightsAndJourneysAreLinked) {
  ASSERT_EQ(Make("insights", R"("id":"i","title":"t","source":"s","category":"c")").status, 201);
  EXPECT_EQ(Ask("POST", "/api/insights/i/link?project=p", R"({"spec_id":"s9"})").status, 200);
  EXPECT_THAT(Ask("GET", "/api/insights?project=p&spec=s9").body, HasSubstr(R"("id":"i")"));
  const HttpAnswer unknown = Ask("POST", "/api/insights/j/link?project=p", R"({"spec_id":"s9"})");
  EXPECT_EQ(unknown.status, 200);
  EXPECT_THAT(unknown.Header("X-Intermute-Notice"), HasSubstr("nothing was linked"));

  ASSERT_EQ(Make("cujs", R"("id":"c","title":"t","spec_id":"s9")").status, 201);
  for (const char* feature : {"f1", "f2", "f1"}) {
    const HttpAnswer linked = Ask("POST", "/api/cujs/c/link?project=p",
                                  R"({"feature_id":")" + std::string(feature) + "\"}");
    EXPECT_EQ(linked.status, 200);
    EXPECT_EQ(linked.body, "");
  }
  const auto links = [&] { return Get("/api/cujs/c/links?project=p").get_array().size(); };
  EXPECT_EQ(links(), 2U);
  EXPECT_EQ(Ask("POST", "/api/cujs/c/unlink?project=p", R"({"feature_id":"f1"})").status, 200);
  EXPECT_EQ(links(), 1U);
  EXPECT_EQ(Ask("PUT", "/api/cujs/c", R"({"project":"p","version":1,"status":"validated"})").status,
            200);
  EXPECT_EQ(Ask("DELETE", "/api/cujs/c?project=p").status, 204);
  EXPECT_EQ(links(), 0U);
  EXPECT_EQ(EventTypes(),
            (Texts{"insight.created", "insight.linked", "cuj.created", "cuj.linked", "cuj.linked",
                   "cuj.linked", "cuj.unlinked", "cuj.validated", "cuj.archived"}));
}

TEST_F(PlanningTest, ListsAreInOrderAndInPages) {
  for (const char* priority : {"low", "high", "medium"}) {
    const std::string fields =
        fmt::format(R"("title":"t","spec_id":"s","id":"{}","priority":"{}")", priority, priority);
    ASSERT_EQ(Make("cujs", fields).status, 201);
  }
  const auto ids = [&](const std::string& target) {
    const json::Value page = Get(target);
    Texts found;
    for (const json::Value& one : page.get_array()) found.push_back(Text(one, "id"));
    return found;
  };
  EXPECT_EQ(ids("/api/cujs?project=p"), (Texts{"high", "medium", "low"}));
  EXPECT_EQ(ids("/api/cujs?project=p&limit=2"), (Texts{"high", "medium"}));
  EXPECT_EQ(ids("/api/cujs?project=p&limit=2&offset=2"), (Texts{"low"}));
  for (const char* id : {"a", "b", "c"}) {
    ASSERT_EQ(Make("specs", R"("title":"t","id":")" + std::string(id) + "\"").status, 201);
  }
  ASSERT_EQ(Ask("PUT", "/api/specs/a", R"({"project":"p","version":1})").status, 200);
  EXPECT_EQ(ids("/api/specs?project=p"), (Texts{"a", "c", "b"})) << "the last changed first";
}

// The wire form of Go's client: every field is there, times are year one.
TEST_F(PlanningTest, TheGoClientsZeroTimesCountAsNone) {
  const HttpAnswer made =
      Make("tasks", R"("id":"","story_id":"","title":"t","agent":"","status":"","version":0,)"
                    R"("created_at":"0001-01-01T00:00:00Z","updated_at":"0001-01-01T00:00:00Z")");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_THAT(made.body, Not(HasSubstr("0001")));
  EXPECT_THAT(made.body, HasSubstr(R"("title":"t","status":"pending","version":1,)"));
  const HttpAnswer kept =
      Make("tasks", R"("title":"t","created_at":"2020-05-06T07:08:09.5+02:00")");
  EXPECT_THAT(kept.body, HasSubstr(R"("created_at":"2020-05-06T05:08:09.5Z")"));
}

// Each of several clients adds what it can to a counter in one spec; no addition is lost.
TEST_F(PlanningTest, ManyWhoChangeOneSpecLoseNothing) {
  constexpr int kClients = 4;
  constexpr int kEach = 10;
  ASSERT_EQ(Make("specs", R"("id":"s","title":"0")").status, 201);
  std::atomic<int> conflicts = 0;
  testing::OnThreads(kClients, [&](int) {
    HttpClient client = server_->Connect();
    const auto ask = [&](std::string_view method, std::string_view target,
                         const std::string& body = "") {
      EXPECT_TRUE(client.Request(method, target, body));
      return client.Read().value_or(HttpAnswer{});
    };
    for (int i = 0; i < kEach;) {
      const auto spec = json::Parse(ask("GET", "/api/specs/s?project=p").body);
      ASSERT_TRUE(spec.ok());
      const int count = std::stoi(Text(*spec, "title"));
      const std::int64_t version = spec->get_object().at("version").get_int64();
      const int status = ask("PUT", "/api/specs/s",
                             R"({"project":"p","title":")" + std::to_string(count + 1) +
                                 R"(","version":)" + std::to_string(version) + "}")
                             .status;
      if (status == 200) ++i;
      if (status == 409) ++conflicts;
      ASSERT_TRUE(status == 200 || status == 409) << status;
    }
  });
  EXPECT_THAT(Ask("GET", "/api/specs/s?project=p").body,
              HasSubstr("\"title\":\"" + std::to_string(kClients * kEach) + "\""))
      << conflicts << " conflicts";
}

}  // namespace
}  // namespace interlock::e2e
