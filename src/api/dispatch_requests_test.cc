// Rules that hold for the requests of all routes, on the real table and a real database.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/dispatch_fixture.h"

namespace interlock::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Sent {
  Method method;
  std::string target;
  std::string body;
};

class RequestsTest : public RealDispatchTest {
 protected:
  RequestsTest() { services_.keys.Set(*auth::Keyring::Parse("projects: {web/: {keys: [k-web]}}")); }

  // "200 body"
  std::string Say(const Sent& sent, Fields fields = {}) {
    const Response response = Ask(To(sent.method, sent.target, sent.body, fields));
    return std::to_string(response.status) + " " + response.body;
  }
  std::string Post(const std::string& target, const std::string& body, Fields fields = {}) {
    return Say({Method::kPost, target, body}, fields);
  }
};

TEST_F(RequestsTest, MisspeltFieldsAreRefusedWithTheOneMeant) {
  const struct {
    Sent sent;
    std::string field, meant;
  } kCases[] = {
      {{Method::kPost, "/api/reservations",
        R"({"project":"p","agent_id":"a","path_pattern":"x","exlusive":false})"},
       "exlusive",
       "exclusive"},
      {{Method::kPost, "/api/reservations", R"({"project":"p","agent_id":"a","pattern_path":"x"})"},
       "pattern_path",
       "path_pattern"},
      {{Method::kPost, "/api/reservations", R"({"projct":"p","agent_id":"a","path_pattern":"x"})"},
       "projct",
       "project"},
      {{Method::kPost, "/api/agents", R"({"capabilites":[]})"}, "capabilites", "capabilities"},
      {{Method::kPost, "/api/agents/a/heartbeat", R"({"focus-state":"thinking"})"},
       "focus-state",
       "focus_state"},
      {{Method::kPatch, "/api/agents/a/metadata", R"({"meta_data":{}})"}, "meta_data", "metadata"},
      {{Method::kPost, "/api/agents/a/policy", R"({"polcy":"open"})"}, "polcy", "policy"},
      {{Method::kPost, "/api/agents/a/contacts", R"({"contacts":"b"})"}, "contacts", "contact"},
      {{Method::kPost, "/api/messages",
        R"({"project":"p","from":"a","to":["b"],"ack_requried":true})"},
       "ack_requried",
       "ack_required"},
      {{Method::kPost, "/api/broadcast", R"({"projekt":"p","from":"a","topic":"t","body":"b"})"},
       "projekt",
       "project"},
      {{Method::kPost, "/api/windows", R"({"project":"p","uuid_window":"w","agent_id":"a"})"},
       "uuid_window",
       "window_uuid"},
      {{Method::kPost, "/api/tasks", R"({"project":"p","title":"t","sesion_id":"s"})"},
       "sesion_id",
       "session_id"},
      {{Method::kPut, "/api/tasks/t", R"({"project":"p","verison":1})"}, "verison", "version"},
      {{Method::kPost, "/api/cujs",
        R"({"project":"p","title":"t","spec_id":"s","steps":[{"order":1,"actoin":"a"}]})"},
       "steps[0].actoin",
       "action"},
      {{Method::kPost, "/api/cujs/c/link?project=p", R"({"featureid":"f"})"},
       "featureid",
       "feature_id"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(Say(c.sent),
                AllOf(HasSubstr(R"(400 {"error":"unknown_field")"), HasSubstr("did you mean"),
                      HasSubstr(R"("field":")" + c.field + R"(","did_you_mean":")" + c.meant)))
        << c.sent.target << c.sent.body;
  }
  EXPECT_EQ(Say({Method::kGet, "/api/reservations?project=p", ""}), "200 {\"reservations\":[]}\n");
}

// The bodies that public clients are known to send, extra fields and zero values included.
TEST_F(RequestsTest, BodiesOfOldClientsPass) {
  const std::vector<std::pair<Sent, int>> cases = {
      // The Go SDK.
      {{Method::kPost, "/api/agents",
        R"({"agent_id":"a","session_id":"","name":"a","project":"p","capabilities":["c"],)"
        R"("metadata":{"exlusive":"x"},"status":"idle","last_seen":"","created_at":""})"},
       200},
      {{Method::kPost, "/api/messages",
        R"({"id":"m","thread_id":"t","project":"p","from":"a","to":["b"],"cc":null,"bcc":[],)"
        R"("subject":"s","body":"b","importance":"low","ack_required":false,)"
        R"("created_at":"","cursor":0})"},
       200},
      {{Method::kPost, "/api/messages/m/ack?project=p", "{}"}, 200},
      {{Method::kPost, "/api/messages/m/read?project=p", "{}"}, 200},
      {{Method::kPost, "/api/reservations",
        R"({"id":"","agent_id":"a","project":"p","path_pattern":"x","exclusive":true,)"
        R"("reason":"r","ttl_minutes":15,"created_at":"0001-01-01T00:00:00Z",)"
        R"("expires_at":"0001-01-01T00:00:00Z","released_at":null,"is_active":false})"},
       201},
      // The hooks and the interlock client.
      {{Method::kPost, "/api/agents", R"({"id":"i","name":"b","project":"p","cursor":0})"}, 200},
      {{Method::kPost, "/api/windows",
        R"({"project":"p","window_uuid":"w","agent_id":"a","display_name":"d"})"},
       403},  // no token; that client expects the refusal
      {{Method::kPost, "/api/reservations?if_not_conflict=true",
        R"({"agent_id":"a","project":"p","path_pattern":"y","exclusive":true,"ttl_minutes":15})"},
       201},
  };
  for (const auto& [sent, status] : cases) {
    EXPECT_THAT(Say(sent), StartsWith(std::to_string(status) + " ")) << sent.target << sent.body;
  }
}

// The Go SDK sends whole plans, with times of the year 1 where it has none.
TEST_F(RequestsTest, PlansOfOldClientsPass) {
  const std::string times =
      R"(,"version":0,"created_at":"0001-01-01T00:00:00Z","updated_at":"0001-01-01T00:00:00Z"})";
  const std::string started = R"(,"started_at":"0001-01-01T00:00:00Z","updated_at":)"
                              R"("0001-01-01T00:00:00Z"})";
  const std::vector<std::pair<std::string, std::string>> plans = {
      {"specs", R"("title":"t","vision":"v","users":"u","problem":"p","status":"draft")" + times},
      {"epics", R"("spec_id":"s","title":"t","description":"d","status":"open")" + times},
      {"stories",
       R"("epic_id":"e","title":"t","acceptance_criteria":["c"],"status":"todo")" + times},
      {"tasks",
       R"("story_id":"s","title":"t","agent":"a","session_id":"s","status":"pending")" + times},
      {"insights", R"("spec_id":"s","source":"s","category":"c","title":"t","body":"b","url":"u",)"
                   R"("score":0.5)" +
                       times},
      {"sessions", R"("name":"n","agent":"a","task_id":"t","status":"running")" + started},
      {"cujs", R"("spec_id":"s","title":"t","persona":"p","priority":"high","entry_point":"e",)"
               R"("exit_point":"x","steps":[{"order":1,"action":"a","expected":"e",)"
               R"("alternatives":["b"]}],"success_criteria":["s"],"error_recovery":["r"],)"
               R"("status":"draft")" +
                   times},
  };
  for (const auto& [plural, fields] : plans) {
    const std::string body = R"({"id":"x","project":"p",)" + fields;
    EXPECT_THAT(Post("/api/" + plural, body), StartsWith("201 ")) << body;
    if (plural == "insights") continue;
    std::string changed = body;
    const std::size_t version = changed.find(R"("version":0)");
    if (version != std::string::npos) changed[version + 10] = '1';
    EXPECT_THAT(Say({Method::kPut, "/api/" + plural + "/x", changed}), StartsWith("200 "))
        << changed;
  }
  EXPECT_THAT(Post("/api/tasks/x/assign?project=p", R"({"agent":"a"})"), StartsWith("200 "));
  EXPECT_THAT(Post("/api/insights/x/link?project=p", R"({"spec_id":"s"})"), StartsWith("200 "));
  EXPECT_THAT(Post("/api/cujs/x/link?project=p", R"({"feature_id":"f"})"), StartsWith("200 "));
  EXPECT_THAT(Post("/api/cujs/x/unlink?project=p", R"({"feature_id":"f"})"), StartsWith("200 "));
}

TEST_F(RequestsTest, AReservationNeedsAProject) {
  for (const std::string project :
       {"", R"("project":"",)", R"("project":" ",)", R"("project":null,)"}) {
    EXPECT_THAT(
        Post("/api/reservations", "{" + project + R"("agent_id":"a","path_pattern":"x"})"),
        AllOf(HasSubstr(R"(400 {"error":"project_required")"), HasSubstr(R"("field":"project")")));
  }
  EXPECT_THAT(Say({Method::kGet, "/api/reservations/check?pattern=x&project=+", ""}),
              HasSubstr(R"(400 {"error":"project_required")"));
  EXPECT_THAT(Say({Method::kGet, "/api/reservations?agent=a", ""}),
              HasSubstr(R"("reservations":[])"));
  const Fields key = {{"Authorization", "Bearer k-web"}};
  EXPECT_THAT(Post("/api/reservations", R"({"agent_id":"a","path_pattern":"x"})", key),
              AllOf(HasSubstr("201 "), HasSubstr(R"("project":"web")")));
}

TEST_F(RequestsTest, AgentsAndMailWithoutAProjectAreTakenWithOneWarningEach) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Post("/api/agents", R"({"name":"ada"})"), HasSubstr("200 "));
    EXPECT_THAT(Post("/api/messages", R"({"from":"a","to":["b"]})"), HasSubstr("200 "));
    EXPECT_THAT(Post("/api/broadcast", R"({"from":"a","topic":"t","body":"b"})"),
                HasSubstr("200 "));
  }
  EXPECT_THAT(Post("/api/agents", R"({"name":"bob","project":"p"})"), HasSubstr("200 "));
  const std::string log = captured_.text();
  for (const std::string line : {"registered without a project", "sent without a project"}) {
    const std::size_t first = log.find(line);
    ASSERT_NE(first, std::string::npos) << log;
    EXPECT_EQ(log.find(line, first + 1), std::string::npos) << log;
  }
}

TEST_F(RequestsTest, BlanksAndATrailingSlashMakeNoOtherProject) {
  EXPECT_THAT(
      Post("/api/reservations", R"({"project":" /srv/web/ ","agent_id":"a","path_pattern":"x"})"),
      HasSubstr(R"("project":"/srv/web")"));
  for (const std::string project : {"/srv/web", "/srv/web/", "%20/srv/web//%20"}) {
    EXPECT_THAT(Say({Method::kGet, "/api/reservations?project=" + project, ""}),
                HasSubstr(R"("path_pattern":"x")"))
        << project;
  }
  EXPECT_THAT(Post("/api/messages", R"({"project":"web/","from":"a","to":["b"],"topic":"t"})"),
              HasSubstr("200 "));
  EXPECT_THAT(Say({Method::kGet, "/api/topics/%20web%20/t", ""}), HasSubstr(R"("project":"web")"));
}

// Every route that names its project in the body, with a key and without one.
TEST_F(RequestsTest, WithAKeyABodyWithoutAProjectMeansTheProjectOfTheKey) {
  const Fields key = {{"Authorization", "Bearer k-web"}};
  const std::vector<std::pair<std::string, std::string>> bodies = {
      {"/api/agents", R"("name":"ada")"},
      {"/api/messages", R"("from":"a","to":["b"])"},
      {"/api/broadcast", R"("from":"a","topic":"t","body":"b")"},
      {"/api/reservations", R"("agent_id":"a","path_pattern":"x")"},
      {"/api/specs", R"("title":"t")"},
      {"/api/tasks", R"("title":"t")"},
      {"/api/sessions", R"("name":"n","agent":"a")"},
  };
  for (const auto& [path, fields] : bodies) {
    for (const std::string project : {"", R"(,"project":" ")", R"(,"project":"web/")"}) {
      EXPECT_THAT(Post(path, "{" + fields + project + "}", key), StartsWith("20"))
          << path << project;
    }
    EXPECT_THAT(Post(path, "{" + fields + R"(,"project":"other"})", key),
                HasSubstr(R"(403 {"error":"project_mismatch")"))
        << path;
  }
  // A window needs the token of its agent; that is asked for last.
  EXPECT_THAT(Post("/api/windows", R"({"window_uuid":"w","agent_id":"a"})", key),
              HasSubstr(R"(403 {"error":"agent_token_mismatch")"));
  EXPECT_THAT(Say({Method::kPut, "/api/specs/none", R"({"version":1})"}, key), HasSubstr("404 "));
  for (const std::string list : {"/api/agents", "/api/reservations", "/api/tasks"}) {
    EXPECT_THAT(Say({Method::kGet, list, ""}, key),
                AllOf(HasSubstr(R"("project":"web")"), Not(HasSubstr(R"("project":"")"))))
        << list;
  }
}

TEST_F(RequestsTest, AWholeNumberOfABodyIsAnInteger) {
  EXPECT_THAT(Post("/api/reservations",
                   R"({"project":"p","agent_id":"a","path_pattern":"x","ttl_minutes":5.0})"),
              HasSubstr("201 "));
  EXPECT_THAT(Post("/api/reservations",
                   R"({"project":"p","agent_id":"a","path_pattern":"y","ttl_minutes":5.5})"),
              AllOf(HasSubstr("400 "), HasSubstr(R"("field":"ttl_minutes")")));
}

TEST_F(RequestsTest, AQueryBooleanThatIsNoneIs400) {
  const std::string check = "/api/reservations/check?project=p&pattern=x&";
  for (const char* field : {"literal", "exclusive"}) {
    for (const char* value : {"=no", "=True", "=2"}) {
      EXPECT_THAT(Say({Method::kGet, check + field + value, ""}),
                  AllOf(HasSubstr("400 "), HasSubstr(R"("field":")" + std::string(field) + "\"")));
    }
    for (const char* value : {"", "=", "=1", "=0", "=true", "=false"}) {
      EXPECT_THAT(Say({Method::kGet, check + field + value, ""}), HasSubstr("200 ")) << value;
    }
  }
  EXPECT_THAT(Say({Method::kDelete, "/api/reservations/r?force=yes", ""}),
              AllOf(HasSubstr("400 "), HasSubstr(R"("field":"force")")));
}

}  // namespace
}  // namespace interlock::api
