
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "api/dispatch_fixture.h"

namespace interlock::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class PlanningRoutesTest : public RealDispatchTest {
 protected:
  PlanningRoutesTest() {
    services_.keys.Set(
        auth::Keyring::Parse("projects: {p: {keys: [k-p]}, q: {keys: [k-q]}}").value());
  }

  // "200 {…}", without the newline at the end.
  std::string Say(Method method, const std::string& target, const std::string& body = "",
                  Fields fields = {}) {
    const Response response = Ask(To(method, target, body, fields));
    std::string text = std::to_string(response.status) + " " + response.body;
    if (text.ends_with('\n')) text.pop_back();
    return text;
  }
  std::string Get(const std::string& target) { return Say(Method::kGet, target); }
  std::string Post(const std::string& target, const std::string& body) {
    return Say(Method::kPost, target, body);
  }
  std::string Put(const std::string& target, const std::string& body) {
    return Say(Method::kPut, target, body);
  }
  std::string Patch(const std::string& target, const std::string& body) {
    return Say(Method::kPatch, target, body);
  }
};

TEST_F(PlanningRoutesTest, PatchKeepsAbsentFieldsAndClearsNullOrEmptyOnes) {
  EXPECT_EQ(
      Post("/api/cujs",
           R"({"id":"c","project":" p ","title":"t","spec_id":"s","persona":"x","Priority":"high",)"
           R"("steps":[{"order":1,"action":"a","expected":"e","alternatives":["b"]},{"order":2}],)"
           R"("success_criteria":["ok"],"error_recovery":null,"unknown":1})"),
      R"(201 {"id":"c","project":"p","spec_id":"s","title":"t","persona":"x","priority":"high",)"
      R"("steps":[{"order":1,"action":"a","expected":"e","alternatives":["b"]},)"
      R"({"order":2,"action":"","expected":""}],"success_criteria":["ok"],"status":"draft",)"
      R"("version":1,"created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z"})");
  clock_.Advance(std::chrono::milliseconds(1'500));
  EXPECT_EQ(Patch("/api/cujs/c", R"({"project":"p","version":1,"TITLE":"new"})"),
            R"(200 {"id":"c","project":"p","spec_id":"s","title":"new","persona":"x",)"
            R"("priority":"high","steps":[{"order":1,"action":"a","expected":"e",)"
            R"("alternatives":["b"]},{"order":2,"action":"","expected":""}],)"
            R"("success_criteria":["ok"],"status":"draft","version":2,)"
            R"("created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:06.5Z"})");
  EXPECT_EQ(Patch("/api/cujs/c", R"({"id":"other","project":"p","version":2,"persona":null,)"
                                 R"("steps":[],"success_criteria":null,"priority":"",)"
                                 R"("created_at":"0001-01-01T00:00:00Z"})"),
            R"(200 {"id":"c","project":"p","spec_id":"s","title":"new","priority":"medium",)"
            R"("status":"draft","version":3,"created_at":"2026-01-02T03:04:05Z",)"
            R"("updated_at":"2026-01-02T03:04:06.5Z"})");
}

TEST_F(PlanningRoutesTest, PutEmptiesAbsentOptionalFieldsAndKeepsRequiredOnesAndTheStatus) {
  ASSERT_THAT(
      Post("/api/cujs",
           R"({"id":"c","project":"p","title":"t","spec_id":"s","persona":"x","priority":"high",)"
           R"("entry_point":"in","steps":[{"order":1}],"success_criteria":["ok"],)"
           R"("status":"validated"})"),
      StartsWith("201 "));
  clock_.Advance(std::chrono::seconds(1));
  const std::string replaced =
      R"("spec_id":"s","title":"t","priority":"medium","entry_point":"new","status":"validated",)";
  const std::string times =
      R"("created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:06Z"})";
  EXPECT_EQ(Put("/api/cujs/c", R"({"project":"p","version":1,"entry_point":"new"})"),
            R"(200 {"id":"c","project":"p",)" + replaced + R"("version":2,)" + times);
  // null and an empty status count as absent.
  EXPECT_EQ(Put("/api/cujs/c", R"({"project":"p","version":2,"entry_point":"new","title":null,)"
                               R"("steps":null,"status":""})"),
            R"(200 {"id":"c","project":"p",)" + replaced + R"("version":3,)" + times);
  EXPECT_THAT(Put("/api/cujs/c", R"({"project":"p","version":3,"title":""})"),
              StartsWith(R"(400 {"error":"invalid_request")"));
  // A session has no version.
  ASSERT_THAT(Post("/api/sessions", R"({"id":"s","name":"n","agent":"a","task_id":"t"})"),
              StartsWith("201 "));
  EXPECT_THAT(Put("/api/sessions/s", "{}"), Not(HasSubstr("task_id")));
}

TEST_F(PlanningRoutesTest, PatchFollowsTheVersionRuleAndRefusesToClearARequiredField) {
  ASSERT_THAT(Post("/api/tasks", R"({"id":"t","title":"t","agent":"ada","story_id":"st"})"),
              StartsWith("201 "));
  EXPECT_THAT(Patch("/api/tasks/t", R"({"status":"blocked"})"),
              StartsWith(R"(409 {"error":"version_conflict")"));
  EXPECT_THAT(Patch("/api/tasks/t", R"({"version":1,"title":null})"),
              HasSubstr(R"("message":"a task needs a title, and this one's is blank)"));
  EXPECT_THAT(Patch("/api/tasks/t", R"({"version":1,"status":"asleep"})"),
              StartsWith(R"(400 {"error":"invalid_status")"));
  EXPECT_THAT(Patch("/api/tasks/t", R"({"version":1,"agent":null})"),
              StartsWith(R"(200 {"id":"t","project":"","story_id":"st","title":"t",)"
                         R"("status":"pending","version":2,)"));
  EXPECT_THAT(Patch("/api/tasks/t", R"({"version":2,"status":"done"})"), StartsWith("200 "));
  EXPECT_THAT(Patch("/api/tasks/none", R"({"version":1})"), StartsWith("404 "));
  EXPECT_THAT(Patch("/api/insights/i", "{}"), StartsWith("405 "));
  const std::string events = Get("/api/events?types=task.updated,task.completed");
  EXPECT_THAT(events, HasSubstr(R"("type":"task.updated")"));
  EXPECT_THAT(events, HasSubstr(R"("type":"task.completed")"));
}

TEST_F(PlanningRoutesTest, TheConflictNamesTheVersionThatIsThere) {
  ASSERT_THAT(Post("/api/specs", R"({"id":"a/b","title":"t","version":9})"),
              HasSubstr(R"("version":1,)"));
  EXPECT_THAT(Put("/api/specs/a/b", R"({"title":"u"})"),
              StartsWith(R"(409 {"error":"version_conflict","message":")"));
  EXPECT_THAT(Put("/api/specs/a/b", R"({"title":"u","version":7})"), HasSubstr(R"(,"version":1})"));
  EXPECT_THAT(Put("/api/specs/a%2Fb", R"({"title":"u","version":1})"), StartsWith("200 "));
  EXPECT_THAT(Put("/api/specs/nothing", R"({"title":"u","version":1})"),
              StartsWith(R"(404 {"error":"not_found")"));
  EXPECT_THAT(Post("/api/specs", R"({"id":"a/b","title":"t"})"),
              StartsWith(R"(409 {"error":"already_exists")"));
}

TEST_F(PlanningRoutesTest, WrongTypesNameTheirField) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/api/specs", R"({"title":1})"},
      {"/api/specs", R"({"title":"t","version":"1"})"},
      {"/api/specs", R"({"title":"t","version":1.5})"},
      {"/api/specs", R"({"title":"t","created_at":"yesterday"})"},
      {"/api/specs", R"({"title":"t","id":7})"},
      {"/api/stories", R"({"title":"t","epic_id":"e","acceptance_criteria":"x"})"},
      {"/api/stories", R"({"title":"t","epic_id":"e","acceptance_criteria":["a",null]})"},
      {"/api/insights", R"({"title":"t","source":"s","category":"c","score":"1"})"},
      {"/api/cujs", R"({"title":"t","spec_id":"s","steps":[{"order":"1"}]})"},
      {"/api/cujs", R"({"title":"t","spec_id":"s","steps":{}})"},
      {"/api/sessions", R"({"name":"n","agent":"a","started_at":5})"},
      {"/api/specs", R"({"title":" "})"},
      {"/api/stories", R"({"title":"t"})"},
      {"/api/insights", R"({"title":"t","source":"s"})"},
      {"/api/sessions", R"({"name":"n"})"},
      {"/api/cujs", R"({"title":"t"})"},
  };
  for (const auto& [path, body] : cases) {
    const std::string answer = Post(path, body);
    EXPECT_THAT(answer, StartsWith(R"(400 {"error":"invalid_request")")) << body;
    EXPECT_THAT(answer, HasSubstr("\"field\":\"")) << body;
  }
  EXPECT_THAT(Post("/api/cujs", R"({"title":"t","spec_id":"s","steps":[{"order":"1"}]})"),
              HasSubstr(R"("field":"steps[0].order")"));
  EXPECT_THAT(Post("/api/tasks", R"({"title":"t","status":"asleep"})"),
              StartsWith(R"(400 {"error":"invalid_status")"));
  EXPECT_THAT(Post("/api/cujs", R"({"title":"t","spec_id":"s","priority":"top"})"),
              StartsWith(R"(400 {"error":"invalid_priority")"));
}

TEST_F(PlanningRoutesTest, AKeyWorksInItsOwnProject) {
  const Fields mine = {{"Authorization", "Bearer k-p"}};
  const Fields yours = {{"Authorization", "Bearer k-q"}};
  EXPECT_THAT(Say(Method::kPost, "/api/tasks", R"({"id":"t","title":"t","project":"p"})", mine),
              HasSubstr(R"(201 {"id":"t","project":"p")"));
  for (const char* body : {R"({"title":"t"})", R"({"title":"t","project":" "})"}) {
    EXPECT_THAT(Say(Method::kPost, "/api/tasks", body, mine), HasSubstr(R"("project":"p")"))
        << body;
  }
  EXPECT_THAT(Say(Method::kPost, "/api/tasks", R"({"title":"t","project":"p"})", yours),
              StartsWith(R"(403 {"error":"project_mismatch")"));
  EXPECT_THAT(Say(Method::kPut, "/api/tasks/t", R"({"version":1,"project":"p"})", yours),
              StartsWith(R"(403 {"error":"project_mismatch")"));
  EXPECT_THAT(Say(Method::kPut, "/api/tasks/t", R"({"version":1})", yours), StartsWith("404 "));
  EXPECT_THAT(Say(Method::kGet, "/api/tasks/t?project=p", "", yours), StartsWith("404 "));
  EXPECT_EQ(Say(Method::kGet, "/api/tasks?project=p", "", yours), "200 []");
  EXPECT_THAT(Say(Method::kPost, "/api/tasks/t/assign?project=p", R"({"agent":"x"})", yours),
              StartsWith("404 "));
  EXPECT_EQ(Say(Method::kDelete, "/api/tasks/t?project=p", "", yours), "204 ");
  EXPECT_THAT(Say(Method::kPut, "/api/tasks/t", R"({"version":1})", mine), StartsWith("200 "));
  EXPECT_EQ(Get("/api/tasks?project=q"), "200 []");
  EXPECT_THAT(Get("/api/tasks"), HasSubstr(R"("id":"t")"));
  EXPECT_THAT(Get("/api/tasks/t"), StartsWith("404 ")) << "of the project without a name";
}

TEST_F(PlanningRoutesTest, WhatCannotBeIsNoMethod) {
  ASSERT_THAT(Post("/api/tasks", R"({"id":"t","title":"t"})"), StartsWith("201 "));
  const auto allow = [&](Method method, const std::string& target) {
    const Response response = Ask(To(method, target, "{}"));
    EXPECT_EQ(response.status, 405) << target << " " << response.body;
    return std::string(response.headers.Find("Allow").value_or(""));
  };
  for (const char* all : {"specs", "epics", "stories", "tasks", "insights", "sessions", "cujs"}) {
    EXPECT_EQ(allow(Method::kDelete, std::string("/api/") + all), "GET, HEAD, POST");
    EXPECT_EQ(allow(Method::kPut, std::string("/api/") + all), "GET, HEAD, POST");
  }
  EXPECT_EQ(allow(Method::kPut, "/api/insights/i"), "GET, HEAD, DELETE");
  EXPECT_EQ(allow(Method::kGet, "/api/tasks/t/assign"), "POST");
  EXPECT_EQ(allow(Method::kDelete, "/api/insights/i/link"), "POST");
  EXPECT_EQ(allow(Method::kPut, "/api/cujs/c/unlink"), "POST");
  EXPECT_EQ(allow(Method::kPost, "/api/cujs/c/links"), "GET, HEAD");
  EXPECT_THAT(Get("/api/tasks/t/other"), StartsWith("404 "));
  EXPECT_THAT(Say(Method::kDelete, "/api/tasks/t/other"), StartsWith("404 "));
  EXPECT_THAT(Get("/api/tasks/t"), StartsWith("200 "));
}

TEST_F(PlanningRoutesTest, LinksAreAnsweredWithoutABody) {
  const Response nobody = Ask(To(Method::kPost, "/api/insights/none/link", R"({"spec_id":"s"})"));
  EXPECT_EQ(nobody.status, 200);
  EXPECT_EQ(nobody.body, "");
  EXPECT_THAT(std::string(nobody.headers.Find("X-Intermute-Notice").value_or("")),
              HasSubstr("no such insight"));
  EXPECT_EQ(Post("/api/cujs/c/link?project=p", R"({"feature_id":"f"})"), "200 ");
  EXPECT_EQ(Get("/api/cujs/c/links?project=p"),
            R"(200 [{"cuj_id":"c","feature_id":"f","project":"p",)"
            R"("linked_at":"2026-01-02T03:04:05Z"}])");
  EXPECT_EQ(Get("/api/cujs/c/links"), "200 []");
  EXPECT_EQ(Post("/api/cujs/c/unlink?project=p", R"({"feature_id":"f"})"), "200 ");
  EXPECT_EQ(Post("/api/cujs/c/unlink?project=p", R"({"feature_id":"f"})"), "200 ");
  EXPECT_EQ(Get("/api/cujs/c/links?project=p&limit=0&offset=0"), "200 []");
  for (const char* path : {"/api/cujs/c/link", "/api/cujs/c/unlink", "/api/insights/i/link"}) {
    EXPECT_THAT(Post(path, "{}"),
                HasSubstr(R"(400 {"error":"invalid_request","message":"missing)"));
    EXPECT_THAT(Post(path, ""), StartsWith(R"(400 {"error":"bad_json")"));
  }
  EXPECT_THAT(Post("/api/cujs/c/link", R"({"feature_id":" "})"), StartsWith("400 "));
}

TEST_F(PlanningRoutesTest, APageThatIsTooLongSaysWhereToGoOn) {
  const std::string body = R"({"title":")" + std::string(250'000, 'x') + "\"}";
  for (int i = 0; i < 70; ++i) ASSERT_THAT(Post("/api/specs", body), StartsWith("201 "));
  const Response first = Ask(To(Method::kGet, "/api/specs?offset=1"));
  EXPECT_EQ(first.status, 200);
  EXPECT_LE(first.body.size(), Limits().page_bytes_max + 1);
  EXPECT_EQ(first.headers.Find("X-Intermute-Notice"),
            "the page was too long; go on with offset=68");
  const Response rest = Ask(To(Method::kGet, "/api/specs?offset=68"));
  EXPECT_FALSE(rest.headers.Find("X-Intermute-Notice").has_value());
  EXPECT_GT(rest.body.size(), 500'000U);
  EXPECT_THAT(Post("/api/specs", R"({"title":")" + std::string(262'144, 'x') + "\"}"),
              StartsWith(R"(400 {"error":"invalid_request")"));
}

// The agent that asks is named in the event, as far as it is known.
TEST_F(PlanningRoutesTest, AnEventSaysWhoDidIt) {
  ASSERT_THAT(Say(Method::kPost, "/api/sessions", R"({"project":"p","name":"n","agent":"bob"})",
                  {{"X-Agent-ID", "ada"}}),
              StartsWith("201 "));
  ASSERT_THAT(Post("/api/specs", R"({"project":"p","title":"t"})"), StartsWith("201 "));
  const std::string events = Get("/api/events?project=p");
  EXPECT_THAT(events, HasSubstr(R"("type":"session.started","project":"p")"));
  EXPECT_THAT(events, HasSubstr(R"("agent":"ada","created_at")"));
  EXPECT_THAT(events.substr(events.find("spec.created")), Not(HasSubstr("ada")));
}

}  // namespace
}  // namespace interlock::api
