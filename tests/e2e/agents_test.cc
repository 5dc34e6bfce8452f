// Agents over the wire: what a client sees of their life, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>

#include "api_test.h"

namespace interlock::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AgentsTest : public ApiTest {};

std::string Many(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST_F(AgentsTest, AnAgentComesLivesAndGoes) {
  const std::string ada = Register("p", "ada");
  const std::string at = "/api/agents/" + ada;
  EXPECT_EQ(Ask("POST", at + "/heartbeat").body, "{\"agent_id\":\"" + ada + "\"}\n");
  EXPECT_EQ(Ask("POST", at + "/heartbeat", R"({"focus_state":"at-prompt"})").status, 200);
  EXPECT_THAT(Ask("PATCH", at + "/metadata", R"({"metadata":{"repo":"r","agent_kind":"k"}})").body,
              HasSubstr(R"("metadata":{"agent_kind":"k","repo":"r"})"));
  EXPECT_THAT(Ask("GET", "/api/agents/presence?project=p&repo=r").body, HasSubstr(R"("kind":"k")"));
  EXPECT_THAT(Ask("GET", "/api/agents?project=p&capability=none,").body, "{\"agents\":[]}\n");
  EXPECT_THAT(Ask("GET", "/api/agents?project=p").body, HasSubstr(R"("name":"ada")"));

  const std::string policies = R"({"agent_id":")" + ada +
                               R"(","policy":"open","live_contact_policy":"contacts_only"})"
                               "\n";
  EXPECT_EQ(Ask("GET", at + "/policy").body, policies);
  EXPECT_EQ(Ask("PUT", at + "/policy", R"({"policy":"contacts_only"})").status, 200);
  EXPECT_EQ(Ask("POST", at + "/contacts", R"({"contact":"bob"})").body,
            "{\"contacts\":[\"bob\"]}\n");
  EXPECT_EQ(Ask("POST", at + "/contacts", R"({"contact":"bob"})").body,
            "{\"contacts\":[\"bob\"]}\n");
  EXPECT_EQ(Ask("GET", at + "/contacts").body, "{\"contacts\":[\"bob\"]}\n");
  EXPECT_EQ(Ask("DELETE", at + "/contacts/bob").status, 200);

  EXPECT_EQ(Ask("DELETE", at).status, 204);
  EXPECT_EQ(Ask("GET", "/api/agents?project=p").body, "{\"agents\":[]}\n");
  EXPECT_EQ(Ask("POST", at + "/heartbeat").status, 404);
}

// An encoded slash separates segments, so the paths of agents take their ids, which the server
// makes.
TEST_F(AgentsTest, AnAgentWhoseNameHoldsASlashIsReachedByItsId) {
  const json::Value made =
      Post("/api/agents", R"({"project":"p","name":"a/b","id":"x/y","agent_id":"x/y"})");
  const std::string id = Text(made, "agent_id");
  EXPECT_EQ(id.find('/'), std::string::npos);
  Check({
      {"GET", "/api/agents/" + id, "", 200, R"("name":"a/b")"},
      {"POST", "/api/agents/" + id + "/heartbeat", "", 200, id},
      {"GET", "/api/agents/a%2Fb?project=p", "", 404, "not_found"},
      {"GET", "/api/inbox/a%2Fb?project=p", "", 200, R"("messages":[])"},
      {"POST", "/api/messages", R"({"project":"p","from":"a/b","to":["a/b"],"body":"hi"})", 200,
       id},
  });
}

TEST_F(AgentsTest, WhatIsWrongIsNamed) {
  const std::string ada = Register("p", "ada");
  const std::string at = "/api/agents/" + ada;
  const std::string session = "00000000-0000-4000-8000-000000000001";
  ASSERT_EQ(Ask("POST", "/api/agents", R"({"session_id":")" + session + R"("})").status, 200);
  Check({
      {"POST", "/api/agents", "", 400, "bad_json"},
      {"POST", "/api/agents", "{\"name\":", 400, "line 1, column 9"},
      {"POST", "/api/agents", "\"text\"", 400},
      {"POST", "/api/agents", R"({"name":7})", 400, R"("field":"name")"},
      {"POST", "/api/agents", R"({"capabilities":"x"})", 400, R"("field":"capabilities")"},
      {"POST", "/api/agents", R"({"metadata":{"a":1}})", 400, "metadata.a"},
      {"POST", "/api/agents", "{\"name\":\"\xff\xfe\"}", 400, "bad_json"},
      {"POST", "/api/agents", R"({"name":"\ud800"})", 400, "bad_json"},
      {"POST", "/api/agents", R"({"session_id":"x"})", 400,
       R"({"error":"invalid session_id: must be a valid UUID",)"},
      {"POST", "/api/agents", R"({"session_id":")" + session + R"("})", 409,
       R"({"error":"session_id is in use by an active agent")"},
  });
  Check({
      {"POST", at + "/heartbeat", "{", 400, "bad_json"},
      {"POST", at + "/heartbeat", R"({"focus_state":"asleep"})", 400,
       R"({"error":"invalid focus_state")"},
      {"POST", "/api/agents/nobody/heartbeat", "", 404, "not_found"},
      {"PATCH", at + "/metadata", "", 400, "bad_json"},
      {"PATCH", at + "/metadata", R"({"metadata":{}})", 400, R"({"error":"metadata map required")"},
      {"PATCH", at + "/metadata", R"({"metadata":[]})", 400, R"("field":"metadata")"},
      {"PATCH", "/api/agents/nobody/metadata", R"({"metadata":{"a":"b"}})", 404, "not_found"},
      {"GET", "/api/agents/nobody/policy", "", 200, R"("policy":"open")"},
      {"POST", "/api/agents/nobody/policy", R"({"policy":"open"})", 404, "not_found"},
      {"POST", at + "/policy", "{}", 400, R"({"error":"policy or live_contact_policy required")"},
      {"POST", at + "/policy", R"({"policy":"x"})", 400,
       R"({"error":"invalid policy: must be open, auto, contacts_only, or block_all")"},
      {"PUT", at + "/policy", R"({"live_contact_policy":"x"})", 400,
       R"({"error":"invalid live_contact_policy: must be)"},
      {"POST", at + "/contacts", R"({"contact":" "})", 400, "contact"},
      {"POST", at + "/contacts", "{}", 400, "contact"},
      {"GET", "/api/agents/nobody/contacts", "", 404, "not_found"},
      {"DELETE", "/api/agents/nobody", "", 404, "not_found"},
      {"DELETE", "/api/agents", "", 405, "use GET, HEAD, POST"},
      {"GET", at + "/nothing", "", 404, "not_found"},
      {"GET", "/api/agents?project=%zz", "", 400, "project"},
      {"GET", "/api/agents?project=%ff", "", 400, "project"},
      {"GET", "/api/agents", "", 200},
      {"GET", "/api/agents?capability=" + std::string(129, ','), "", 200},
      {"GET", "/api/agents?capability=" + Many("x,", 65), "", 400, R"("field":"capability")"},
  });
}

// Two projects with a key each; the second one knocks at everything of the first.
class ForeignKeyTest : public E2eTest {};

TEST_F(ForeignKeyTest, AKeyReachesNothingOfAnotherProject) {
  const std::string keys = File("keys.yaml").string();
  std::ofstream(keys)
      << "projects:\n  mine: {keys: [key-of-mine]}\n  yours: {keys: [key-of-yours]}\n";
  const auto server = Start({"--keys-file", keys});
  HttpClient client = server->Connect();
  const auto ask = [&](const std::string& key, std::string_view method, const std::string& target,
                       std::string_view body = "") {
    EXPECT_TRUE(client.Request(method, target, body, "Authorization: Bearer " + key + "\r\n"));
    return client.Read().value_or(HttpAnswer{});
  };
  const auto registered = ask("key-of-mine", "POST", "/api/agents", R"({"project":"mine"})");
  ASSERT_EQ(registered.status, 200) << registered.body;
  const std::string agent = registered.body.substr(13, 36);
  const std::string to_me = R"("from":"x","to":[")" + agent + R"("],"body":"secret","topic":"t"})";
  ASSERT_EQ(ask("key-of-mine", "POST", "/api/messages",
                R"({"id":"m","thread_id":"th","project":"mine",)" + to_me)
                .status,
            200);
  const std::string at = "/api/agents/" + agent;
  const struct {
    std::string method, target, body;
    int status;
  } kCases[] = {
      {"POST", "/api/agents", R"({"project":"mine"})", 403},
      {"GET", "/api/agents?project=mine", "", 403},
      {"GET", "/api/agents", "", 200},
      {"GET", "/api/agents/presence?project=mine", "", 403},
      {"POST", at + "/heartbeat", "", 404},
      {"PATCH", at + "/metadata", R"({"metadata":{"a":"b"}})", 404},
      {"POST", at + "/policy", R"({"policy":"open"})", 404},
      {"GET", at + "/contacts", "", 404},
      {"POST", at + "/contacts", R"({"contact":"c"})", 404},
      {"DELETE", at, "", 404},
      {"POST", "/api/messages", R"({"project":"mine",)" + to_me, 403},
      {"POST", "/api/messages/m/ack?project=mine", R"({"agent":")" + agent + R"("})", 404},
      {"POST", "/api/messages/m/read?project=mine", R"({"agent":")" + agent + R"("})", 404},
      {"GET", "/api/inbox/" + agent + "?project=mine", "", 200},
      {"GET", "/api/inbox/" + agent + "/stale-acks?project=mine&ttl_seconds=0", "", 200},
      {"GET", "/api/threads?project=mine&agent=" + agent, "", 200},
      {"GET", "/api/threads/th?project=mine", "", 200},
      {"GET", "/api/topics/mine/t", "", 403},
      {"POST", "/api/broadcast", R"({"project":"mine","from":"x","topic":"t","body":"b"})", 403},
      {"GET", "/api/events?project=mine", "", 403},
      {"GET", "/api/events", "", 200},
  };
  for (const auto& c : kCases) {
    const auto answer = ask("key-of-yours", c.method, c.target, c.body);
    EXPECT_EQ(answer.status, c.status) << c.method << " " << c.target << "\n" << answer.body;
    EXPECT_THAT(answer.body, Not(HasSubstr("secret"))) << c.target;
    EXPECT_THAT(answer.body, Not(HasSubstr("agent.registered"))) << c.target;
  }
  // A body without a project stays in the key's own.
  EXPECT_EQ(ask("key-of-yours", "POST", "/api/messages", "{" + to_me).status, 200);
  EXPECT_THAT(ask("key-of-mine", "GET", "/api/inbox/" + agent + "/counts").body,
              HasSubstr(R"("total":1)"));
  EXPECT_EQ(ask("no-such-key", "GET", "/api/agents").status, 401);
  EXPECT_EQ(server->Stop(), 0);
}

}  // namespace
}  // namespace interlock::e2e
