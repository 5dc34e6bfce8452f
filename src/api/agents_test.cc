
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "api/agent_page.h"
#include "api/dispatch_fixture.h"
#include "json/codec.h"

namespace interlock::api {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr char kSession[] = "0198c5e2-7b1c-7d3e-8f00-0123456789ab";

struct Registered {
  std::string agent_id;
  std::string session_id;
  std::string name;
  std::string token;
  std::int64_t cursor;
};
IL_JSON_FIELDS(Registered, agent_id, session_id, name, token, cursor)

class AgentRoutesTest : public RealDispatchTest {
 protected:
  AgentRoutesTest() {
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

  Registered Register(const std::string& body, Fields fields = {}) {
    const Response response = Ask(To(Method::kPost, "/api/agents", body, fields));
    EXPECT_EQ(response.status, 200) << response.body;
    return json::DecodeText<Registered>(response.body, json::kLenient).value();
  }
};

TEST_F(AgentRoutesTest, AnAgentRegistersAndIsListedWithoutItsSecrets) {
  const Registered made = Register(
      std::string(R"({"id":"ignored","agent_id":"x","name":"Ada","project":" p ","session_id":")") +
      kSession + R"(","capabilities":["a"],"metadata":{"k":"v"},"status":"busy"})");
  EXPECT_NE(made.agent_id, "x");
  EXPECT_EQ(made.session_id, kSession);
  EXPECT_EQ(made.name, "Ada");
  EXPECT_EQ(made.token.size(), 32U);
  EXPECT_EQ(made.cursor, 0);
  EXPECT_EQ(Get("/api/agents"),
            R"(200 {"agents":[{"agent_id":")" + made.agent_id + R"(","session_id":")" + kSession +
                R"(","name":"Ada","project":"p","capabilities":["a"],"metadata":{"k":"v"},)"
                R"("status":"busy","last_seen":"2026-01-02T03:04:05Z",)"
                R"("created_at":"2026-01-02T03:04:05Z"}]})");
}

TEST_F(AgentRoutesTest, NullAndAbsentAreListedAsNullAndEmptyAsEmpty) {
  Register(R"({"capabilities":null})");
  EXPECT_THAT(Get("/api/agents"), HasSubstr(R"("capabilities":null,"metadata":null)"));
  Register(R"({"project":"e","capabilities":[],"metadata":{}})");
  EXPECT_THAT(Get("/api/agents?project=e"), HasSubstr(R"("capabilities":[],"metadata":{})"));
}

TEST_F(AgentRoutesTest, TheRegistrationErrorsAreThoseThatClientsKnow) {
  EXPECT_THAT(Post("/api/agents", R"({"session_id":"x"})"),
              HasSubstr(R"(400 {"error":"invalid session_id: must be a valid UUID",)"
                        R"("message":"session_id \"x\" is no UUID: )"));
  EXPECT_THAT(Post("/api/agents", R"({"session_id":"x"})"),
              HasSubstr(R"("code":"invalid_session_id"})"));
  const std::string body = std::string(R"({"session_id":")") + kSession + "\"}";
  const Registered first = Register(body);
  const std::string refused = Post("/api/agents", body);
  EXPECT_THAT(refused, HasSubstr(R"(409 {"error":"session_id is in use by an active agent",)"));
  EXPECT_THAT(refused, HasSubstr(R"("code":"active_session_conflict"})"));
  // Naming the agent is no proof; its token is.
  EXPECT_THAT(Say(Method::kPost, "/api/agents", body, {{"X-Agent-ID", first.agent_id}}),
              HasSubstr("409 "));
  EXPECT_THAT(Say(Method::kPost, "/api/agents", body, {{"X-Agent-Token", "wrong"}}),
              HasSubstr("409 "));
  const Registered again = Register(body, {{"X-Agent-Token", " " + first.token + " "}});
  EXPECT_EQ(again.agent_id, first.agent_id);
  EXPECT_NE(again.token, first.token);
  EXPECT_THAT(Say(Method::kPost, "/api/agents", body, {{"X-Agent-Token", first.token}}),
              HasSubstr("409 "));
}

TEST_F(AgentRoutesTest, BadBodiesAreRefused) {
  const std::string id = Register("{}").agent_id;
  struct Case {
    Method method;
    std::string path;
    std::string body;
    std::string error;
  };
  const std::string policy_error =
      "invalid policy: must be open, auto, contacts_only, or block_all";
  const std::vector<Case> cases = {
      {Method::kPost, "", "", "bad_json"},
      {Method::kPost, "", "{", "bad_json"},
      {Method::kPost, "", R"({"name":1})", "invalid_request"},
      {Method::kPost, "", R"({"capabilities":"a"})", "invalid_request"},
      {Method::kPost, "", R"({"capabilities":[1]})", "invalid_request"},
      {Method::kPost, "", R"({"capabilities":["a",null]})", "invalid_request"},
      {Method::kPost, "", R"({"metadata":{"k":1}})", "invalid_request"},
      {Method::kPost, "", R"({"name":")" + std::string(1'000, 'x') + "\"}", "invalid_request"},
      {Method::kPost, "/heartbeat", "{", "bad_json"},
      {Method::kPost, "/heartbeat", R"({"focus_state":1})", "invalid_request"},
      {Method::kPost, "/heartbeat", R"({"focus_state":"asleep"})", "invalid focus_state"},
      {Method::kPatch, "/metadata", "", "bad_json"},
      {Method::kPatch, "/metadata", "{}", "metadata map required"},
      {Method::kPatch, "/metadata", R"({"metadata":null})", "metadata map required"},
      {Method::kPatch, "/metadata", R"({"metadata":{}})", "metadata map required"},
      {Method::kPatch, "/metadata", R"({"metadata":[]})", "invalid_request"},
      {Method::kPost, "/policy", "", "bad_json"},
      {Method::kPost, "/policy", "{}", "policy or live_contact_policy required"},
      {Method::kPut, "/policy", R"({"policy":"","live_contact_policy":null})",
       "policy or live_contact_policy required"},
      {Method::kPost, "/policy", R"({"policy":"closed"})", policy_error},
      {Method::kPut, "/policy", R"({"live_contact_policy":"OPEN"})",
       "invalid live_contact_policy: must be open, auto, contacts_only, or block_all"},
      {Method::kPost, "/contacts", "{}", "invalid_request"},
      {Method::kPost, "/contacts", R"({"contact":" "})", "invalid_request"},
      {Method::kPost, "/contacts", R"({"contact":["a"]})", "invalid_request"},
  };
  for (const Case& c : cases) {
    const std::string target = "/api/agents" + (c.path.empty() ? "" : "/" + id + c.path);
    const std::string answer = Say(c.method, target, c.body);
    EXPECT_TRUE(answer.starts_with(R"(400 {"error":")" + c.error + R"(","message":")"))
        << target << " " << c.body << "\n"
        << answer;
  }
}

TEST_F(AgentRoutesTest, WhoIsNotThereIsNotFoundButHasPolicies) {
  struct Case {
    Method method;
    std::string path;
    std::string body;
  };
  const std::vector<Case> cases = {
      {Method::kPost, "/heartbeat", ""},
      {Method::kPost, "/heartbeat", R"({"focus_state":"thinking"})"},
      {Method::kPatch, "/metadata", R"({"metadata":{"k":"v"}})"},
      {Method::kPost, "/policy", R"({"policy":"open"})"},
      {Method::kPut, "/policy", R"({"policy":"open"})"},
      {Method::kGet, "/contacts", ""},
      {Method::kPost, "/contacts", R"({"contact":"x"})"},
      {Method::kDelete, "/contacts/x", ""},
      {Method::kDelete, "", ""},
  };
  const std::string id = Register(R"({"project":"p"})").agent_id;
  for (const Case& c : cases) {
    EXPECT_THAT(Say(c.method, "/api/agents/nobody" + c.path, c.body),
                HasSubstr(R"(404 {"error":"not_found","message":")"))
        << c.path;
    EXPECT_THAT(
        Say(c.method, "/api/agents/" + id + c.path, c.body, {{"Authorization", "Bearer k-q"}}),
        HasSubstr(R"(404 {"error":"not_found")"))
        << c.path << " with the key of another project";
  }
  EXPECT_THAT(
      Say(Method::kGet, "/api/agents/" + id + "/policy", "", {{"Authorization", "Bearer k-q"}}),
      HasSubstr(R"(200 {"agent_id":")" + id + R"(","policy":"open")"))
      << "as of one that is nowhere";
  EXPECT_EQ(Get("/api/agents/nobody/policy"),
            R"(200 {"agent_id":"nobody","policy":"open","live_contact_policy":"contacts_only"})");
  EXPECT_THAT(Get("/api/agents"), HasSubstr(id)) << "nothing has happened to it";
}

TEST_F(AgentRoutesTest, NullIsAbsentAsAFieldAndAsAnEntryButAListHasNoHoles) {
  Register(R"({"name":null,"project":"n","capabilities":null,"metadata":{"k":null,"l":"v"}})");
  EXPECT_THAT(Get("/api/agents?project=n"),
              HasSubstr(R"("capabilities":null,"metadata":{"l":"v"})"));
  EXPECT_THAT(Post("/api/agents", R"({"capabilities":["a",null]})"),
              HasSubstr("wrong type for field capabilities[1]: expected string, got null"));
}

TEST_F(AgentRoutesTest, WithAKeyAnAgentOfAnotherProjectIsWrittenToAsIfItWereNowhere) {
  const std::string id = Register(R"({"project":"p"})").agent_id;
  const std::string mine = Register(R"({"project":"q"})").agent_id;
  for (const std::string& agent : {id, mine}) {
    ASSERT_THAT(Post("/api/agents/" + agent + "/policy", R"({"policy":"block_all"})"),
                HasSubstr("200 "));
  }
  const auto write = [&](const std::string& to, const std::string& project, Fields fields) {
    const std::string answer =
        Say(Method::kPost, "/api/messages",
            R"({"from":"s","project":")" + project + R"(","to":[")" + to + "\"]}", fields);
    return answer.substr(0, answer.find(R"("message_id")"));
  };
  const Fields key = {{"Authorization", "Bearer k-q"}};
  EXPECT_EQ(write("nobody", "q", key), "200 {");
  EXPECT_EQ(write(id, "q", key), "200 {") << "what its policy is must not show";
  EXPECT_THAT(write(mine, "q", key), HasSubstr("403 {"));
  EXPECT_THAT(write(id, "p", {{"Authorization", "Bearer k-p"}}), HasSubstr("403 {"));
  // Without a key, on this machine, nothing is hidden, and a policy holds for every project.
  EXPECT_THAT(write(id, "q", {}), HasSubstr("403 {"));
}

domain::Agent Named(std::string id) {
  domain::Agent agent;
  agent.id = std::move(id);
  return agent;
}

TEST(AgentPageTest, AnAgentIsWrittenWhenItIsAddedAndNotWhenTheAnswerIsTaken) {
  static int written = 0;
  const auto to_json = [](const domain::Agent& agent) {
    ++written;
    return "\"" + agent.id + "\"";
  };
  AgentPage page(to_json, /*bytes_max=*/100);
  for (int run = 0; run < 2; ++run) {  // a read may begin again
    written = 0;
    page.Restart();
    page.Add(Named("a"));
    EXPECT_EQ(written, 1);
    page.Add(Named("b"));
  }
  EXPECT_EQ(page.TakeAnswer(), R"({"agents":["a","b"]})");
  EXPECT_EQ(written, 2);
  page.Restart();
  EXPECT_EQ(page.TakeAnswer(), R"({"agents":[]})");
}

TEST(AgentPageTest, WhatDoesNotFitIsLeftOutWithAllThatFollows) {
  AgentPage page([](const domain::Agent& agent) { return agent.id; }, /*bytes_max=*/19);
  page.Restart();
  page.Add(Named(std::string(50, '1')));  // a list with nobody would help nobody
  EXPECT_EQ(page.TakeAnswer(), R"({"agents":[)" + std::string(50, '1') + "]}");
  page.Restart();
  for (const char* id : {"1234", "12345", "1"}) page.Add(Named(id));
  EXPECT_EQ(page.TakeAnswer(), R"({"agents":[1234],"more":true})");
  page.Restart();
  page.Add(Named("1"));
  EXPECT_EQ(page.TakeAnswer(), R"({"agents":[1]})");
}

TEST_F(AgentRoutesTest, AHeartbeatNeedsNoBodyAndIgnoresWhatItDoesNotKnow) {
  const std::string id = Register(R"({"project":"p"})").agent_id;
  const std::string target = "/api/agents/" + id + "/heartbeat";
  const std::string ok = R"(200 {"agent_id":")" + id + "\"}";
  clock_.Advance(seconds(2));
  EXPECT_EQ(Post(target, ""), ok);
  EXPECT_THAT(Get("/api/agents"), HasSubstr(R"("last_seen":"2026-01-02T03:04:07Z")"));
  for (const char* body : {"{}", "null", R"({"focus_state":""})", R"({"focus_state":"at-prompt"})",
                           R"({"renew_minutes":5})", R"({"Focus_State":"tool-use"} trailing)"}) {
    EXPECT_EQ(Post(target, body), ok) << body;
  }
  EXPECT_EQ(Say(Method::kPost, target, "", {{"Authorization", "Bearer k-p"}}), ok);
}

TEST_F(AgentRoutesTest, TheCapabilityFilterIsACommaListOfWhichOneMustMatch) {
  Register(R"({"project":"p","name":"ann","capabilities":["go","c++"]})");
  Register(R"({"project":"p","name":"bob","capabilities":["rust"]})");
  Register(R"({"project":"q","name":"cat","capabilities":["go"]})");
  const auto names = [&](const std::string& query) {
    const std::string listed = Get("/api/agents" + query);
    std::string found;
    for (const char* name : {"ann", "bob", "cat"}) {
      if (listed.find(std::string(R"("name":")") + name) != std::string::npos) found += name[0];
    }
    return found;
  };
  EXPECT_EQ(names(""), "abc");
  EXPECT_EQ(names("?project=p"), "ab");
  EXPECT_EQ(names("?capability=go"), "ac");
  EXPECT_EQ(names("?capability=rust,%20c%2B%2B%20,"), "ab");
  EXPECT_EQ(names("?capability=,%20,"), "abc") << "blanks filter nothing";
  EXPECT_EQ(names("?capability=Go"), "");
  EXPECT_EQ(Get("/api/agents?project=none"), R"(200 {"agents":[]})");
}

TEST_F(AgentRoutesTest, AKeySeesItsOwnProjectOnly) {
  const Fields key = {{"Authorization", "Bearer k-p"}};
  Register(R"({"project":"p","name":"mine"})", key);
  Register(R"({"project":"q","name":"theirs"})");
  const std::string listed = Say(Method::kGet, "/api/agents", "", key);
  EXPECT_THAT(listed, HasSubstr("mine"));
  EXPECT_THAT(listed, ::testing::Not(HasSubstr("theirs")));
  EXPECT_THAT(Say(Method::kGet, "/api/agents?project=q", "", key), HasSubstr("403 "));
  EXPECT_THAT(Say(Method::kGet, "/api/agents/presence?project=q", "", key), HasSubstr("403 "));
  EXPECT_THAT(Say(Method::kPost, "/api/agents", R"({"project":"q"})", key), HasSubstr("403 "));
  EXPECT_THAT(Say(Method::kPost, "/api/agents", "{}", key), HasSubstr("200 "));
}

TEST_F(AgentRoutesTest, ANameInAPathIsLookedUpInTheProjectOfTheQuery) {
  struct Case {
    Method method;
    std::string path;
    std::string body = {};
  };
  const std::vector<Case> cases = {
      {Method::kPost, "/heartbeat", "{}"},
      {Method::kPatch, "/metadata", R"({"metadata":{"k":"v"}})"},
      {Method::kPost, "/policy", R"({"policy":"auto"})"},
      {Method::kPut, "/policy", R"({"policy":"auto"})"},
      {Method::kPost, "/contacts", R"({"contact":"x"})"},
      {Method::kDelete, "/contacts/x"},
      {Method::kGet, "/contacts"},
      {Method::kDelete, ""},
  };
  const std::string seven = Register(R"({"project":"p","name":"seven"})").agent_id;
  const Fields key = {{"Authorization", "Bearer k-p"}};
  for (const Case& c : cases) {
    for (const std::string& agent : {seven, std::string("seven")}) {
      const std::string target = "/api/agents/" + agent + c.path;
      EXPECT_THAT(Say(c.method, target + "?project=q", c.body), HasSubstr("404 ")) << target;
      EXPECT_THAT(Say(c.method, target + "?project=q", c.body, key),
                  HasSubstr(R"(403 {"error":"project_mismatch")"))
          << target;
    }
  }
  const std::string other = Register(R"({"project":"q","name":"seven"})").agent_id;
  for (const Case& c : cases) {
    const std::string target = "/api/agents/seven" + c.path;
    EXPECT_THAT(Say(c.method, target, c.body), HasSubstr("ambiguous_recipient")) << target;
    EXPECT_THAT(Say(c.method, target + "?project=q", c.body), HasSubstr("20")) << target;
  }
  EXPECT_THAT(Get("/api/agents/" + other), HasSubstr("404 "));
  EXPECT_THAT(Get("/api/agents/" + seven), HasSubstr(R"("metadata":null,"status":"")"));
  EXPECT_THAT(Get("/api/agents/" + seven + "/policy"), HasSubstr(R"("policy":"open")"));
  EXPECT_THAT(Get("/api/agents/seven/policy?project=q"), HasSubstr(R"("agent_id":"seven")"));
  EXPECT_THAT(Say(Method::kPost, "/api/agents/seven/heartbeat", "{}", key), HasSubstr(seven));
}

TEST_F(AgentRoutesTest, AProjectInTheQueryKeepsNoReservationFromTheAgentThatLeaves) {
  Register(R"({"project":"p","name":"ada"})");
  for (const std::string project : {"p", "q"}) {
    const std::string id = Say(Method::kGet, "/api/agents/ada?project=p").substr(17, 36);
    ASSERT_THAT(Post("/api/reservations", R"({"project":")" + project + R"(","agent_id":")" + id +
                                              R"(","path_pattern":"a"})"),
                HasSubstr("201 "));
  }
  EXPECT_THAT(Say(Method::kDelete, "/api/agents/ada?project=p"), HasSubstr("204 "));
  for (const std::string project : {"p", "q"}) {
    EXPECT_EQ(Get("/api/reservations?project=" + project), R"(200 {"reservations":[]})");
  }
}

TEST_F(AgentRoutesTest, PresenceIsWhatTheMetadataSaysTrimmed) {
  const std::string a =
      Register(R"({"project":"p","status":" idle ","metadata":{"agent_kind":" coder ",)"
               R"("status":" ","repo":" r ","files_touched":"[\" a.go \",\"\",null,\"b.go\"]",)"
               R"("objective":"fix","active_bead_confidence":"high","active_bead_id":"b1 ",)"
               R"("thread_id":"t"}})")
          .agent_id;
  const std::string expected =
      R"({"agent_id":")" + a +
      R"(","kind":"coder","status":"idle","last_seen":"2026-01-02T03:04:05Z","repo":"r",)"
      R"("files":["a.go","b.go"],"objective":"fix","confidence":"high","active_bead_id":"b1",)"
      R"("thread_id":"t"})";
  EXPECT_EQ(Get("/api/agents/presence?project=p"), R"(200 {"agents":[)" + expected + "]}");
  EXPECT_EQ(Get("/api/agents/presence?repo=%20r%20&active_bead_id=b1"),
            R"(200 {"agents":[)" + expected + "]}");
  EXPECT_EQ(Get("/api/agents/presence?repo=R"), R"(200 {"agents":[]})");
  EXPECT_EQ(Get("/api/agents/presence?active_bead_id=b"), R"(200 {"agents":[]})");
  EXPECT_EQ(Get("/api/agents/presence?project=q"), R"(200 {"agents":[]})");
}

TEST_F(AgentRoutesTest, PresenceOfAnAgentThatSaysNothingHasDefaults) {
  const std::string id =
      Register(R"({"status":"x","metadata":{"files_touched":"[\"a\",1]","status":"y"}})").agent_id;
  EXPECT_EQ(Get("/api/agents/presence"),
            R"(200 {"agents":[{"agent_id":")" + id +
                R"(","kind":"","status":"y","last_seen":"2026-01-02T03:04:05Z","repo":"",)"
                R"("files":[],"objective":"","confidence":"unknown","active_bead_id":"",)"
                R"("thread_id":""}]})");
  for (const char* files : {"", "{}", "a.go", "[\\\"a\\\"", "\\\"a\\\""}) {
    Say(Method::kPatch, "/api/agents/" + id + "/metadata",
        std::string(R"({"metadata":{"files_touched":")") + files + "\"}}");
    EXPECT_THAT(Get("/api/agents/presence"), HasSubstr(R"("files":[])")) << files;
  }
}

TEST_F(AgentRoutesTest, AMergeAnswersTheWholeAgent) {
  const std::string id = Register(R"({"name":"Ada","metadata":{"a":"1","b":"2"}})").agent_id;
  clock_.Advance(seconds(1));
  const std::string answer =
      Say(Method::kPatch, "/api/agents/" + id + "/metadata", R"({"metadata":{"b":"3"}})");
  EXPECT_THAT(answer, HasSubstr(R"("metadata":{"a":"1","b":"3"})"));
  EXPECT_THAT(answer, HasSubstr(R"("last_seen":"2026-01-02T03:04:06Z")"));
  EXPECT_EQ("200 {\"agents\":[" + answer.substr(4) + "]}", Get("/api/agents"));
}

TEST_F(AgentRoutesTest, PoliciesAreSetByPostAndPut) {
  const std::string id = Register("{}").agent_id;
  const std::string target = "/api/agents/" + id + "/policy";
  const std::string start = R"(200 {"agent_id":")" + id + R"(","policy":")";
  EXPECT_EQ(Post(target, R"({"policy":"auto"})"),
            start + R"(auto","live_contact_policy":"contacts_only"})");
  EXPECT_EQ(Say(Method::kPut, target, R"({"live_contact_policy":"block_all"})"),
            start + R"(auto","live_contact_policy":"block_all"})");
  EXPECT_EQ(Get(target), start + R"(auto","live_contact_policy":"block_all"})");
}

TEST_F(AgentRoutesTest, ContactsAreAddedAndRemovedAlsoWithSlashesInTheirIds) {
  const std::string id = Register("{}").agent_id;
  const std::string target = "/api/agents/" + id + "/contacts";
  EXPECT_EQ(Get(target), R"(200 {"contacts":[]})");
  EXPECT_EQ(Post(target, R"({"contact":"team/bob"})"), R"(200 {"contacts":["team/bob"]})");
  EXPECT_EQ(Post(target, R"({"contact":"ann"})"), R"(200 {"contacts":["ann","team/bob"]})");
  EXPECT_EQ(Post(target, R"({"contact":"ann"})"), R"(200 {"contacts":["ann","team/bob"]})");
  EXPECT_EQ(Say(Method::kDelete, target + "/team%2Fbob"), R"(200 {"contacts":["ann"]})");
  EXPECT_EQ(Say(Method::kDelete, target + "/team/bob"), R"(200 {"contacts":["ann"]})");
}

TEST_F(AgentRoutesTest, ADeregisteredAgentIsGoneForEveryRoute) {
  const Registered made = Register(std::string(R"({"session_id":")") + kSession + "\"}");
  const std::string target = "/api/agents/" + made.agent_id;
  EXPECT_EQ(Say(Method::kDelete, target), "204 ");
  EXPECT_THAT(Say(Method::kDelete, target), HasSubstr("404 "));
  EXPECT_THAT(Post(target + "/heartbeat", ""), HasSubstr("404 "));
  EXPECT_THAT(Get(target + "/contacts"), HasSubstr("404 "));
  EXPECT_EQ(Get("/api/agents"), R"(200 {"agents":[]})");
  EXPECT_EQ(Get("/api/agents/presence"), R"(200 {"agents":[]})");
  EXPECT_EQ(Register(std::string(R"({"session_id":")") + kSession + "\"}").agent_id, made.agent_id)
      << "at once";
}

TEST_F(AgentRoutesTest, WritesInAnAgentsNameNeedItsTokenWhereThatIsAskedFor) {
  app_.access.require_agent_token = true;
  const Registered ann = Register(R"({"name":"ann"})");
  const Registered bob = Register(R"({"name":"bob"})");
  struct Case {
    Method method;
    std::string path;
    std::string body;
  };
  const std::vector<Case> cases = {
      {Method::kPost, "/heartbeat", ""},
      {Method::kPatch, "/metadata", R"({"metadata":{"k":"v"}})"},
      {Method::kPost, "/policy", R"({"policy":"open"})"},
      {Method::kPut, "/policy", R"({"policy":"open"})"},
      {Method::kPost, "/contacts", R"({"contact":"x"})"},
      {Method::kDelete, "/contacts/x", ""},
      {Method::kDelete, "", ""},
  };
  for (const Case& c : cases) {
    const std::string target = "/api/agents/" + ann.agent_id + c.path;
    EXPECT_THAT(Say(c.method, target, c.body), HasSubstr("403 ")) << c.path;
    EXPECT_THAT(Say(c.method, target, c.body, {{"X-Agent-ID", ann.agent_id}}), HasSubstr("403 "));
    EXPECT_THAT(Say(c.method, target, c.body, {{"X-Agent-Token", bob.token}}), HasSubstr("403 "));
    EXPECT_THAT(Say(c.method, target, c.body, {{"X-Agent-Token", ann.token}}), HasSubstr("20"));
  }
  EXPECT_THAT(Get("/api/agents/" + bob.agent_id + "/contacts"), HasSubstr("200 ")) << "a read";
}

TEST_F(AgentRoutesTest, ASessionThatEndedIsTakenUpWithItsOldTokenWhereProofIsAskedFor) {
  app_.access.require_agent_token = true;
  const std::string body = std::string(R"({"session_id":")") + kSession + "\"}";
  const Registered made = Register(body);
  const std::pair<std::string, std::string> proof = {"X-Agent-Token", made.token};
  ASSERT_EQ(Say(Method::kDelete, "/api/agents/" + made.agent_id, "", {proof}), "204 ");
  EXPECT_THAT(Say(Method::kPost, "/api/agents", body),
              AllOf(HasSubstr("409 "), HasSubstr("X-Agent-Token")));
  EXPECT_THAT(Say(Method::kPost, "/api/agents", body, {{"X-Agent-Token", "another"}}),
              HasSubstr("409 "));
  EXPECT_THAT(Say(Method::kPost, "/api/agents", body, {proof}), HasSubstr(made.agent_id));
}

}  // namespace
}  // namespace interlock::api
