#include "api/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>

#include "api/dispatch_fixture.h"
#include "auth/sha256.h"
#include "store/agents.h"

namespace interlock::api {
namespace {

using ::testing::HasSubstr;

// Who asked, as "mode:project:identity:agent:actor".
boost::asio::awaitable<Result<Response>> WhoAmI(App& /*app*/, Request& request) {
  constexpr std::array kModes = {"local", "key"};
  constexpr std::array kIdentities = {"none", "claimed", "proved"};
  const auth::Caller& caller = request.caller;
  Response response;
  response.body = std::string(kModes.at(static_cast<std::size_t>(caller.mode))) + ":" +
                  request.project.value_or("-") + ":" +
                  kIdentities.at(static_cast<std::size_t>(caller.identity)) + ":" + caller.agent +
                  ":" + request.actor;
  co_return response;
}

Route Row(Method method, std::string_view path) {
  return {.method = method, .path = path, .handler = WhoAmI, .summary = "a test"};
}

std::vector<Route> TestRoutes() {
  std::vector<Route> rows = {Row(Method::kGet, "/open"),       Row(Method::kGet, "/who"),
                             Row(Method::kPost, "/send"),      Row(Method::kPost, "/agents/{id}"),
                             Row(Method::kPost, "/{id}/read"), Row(Method::kPost, "/register"),
                             Row(Method::kPost, "/plan"),      Row(Method::kPost, "/reserve")};
  rows[0].access = Access::kAnyone;
  rows[1].project = ProjectFrom::kKey;
  rows[2].body = BodyKind::kJson;
  rows[2].project = ProjectFrom::kBody;
  rows[2].actor = ActorFrom::kBodyFrom;
  rows[3].actor = ActorFrom::kPathId;
  rows[4].body = BodyKind::kOptionalJson;
  rows[4].actor = ActorFrom::kRecipient;
  rows[6].actor = ActorFrom::kAuthor;
  rows[7].body = BodyKind::kJson;
  rows[7].actor = ActorFrom::kBodyAgentId;
  return rows;
}

class AdmissionTest : public RealDispatchTest {
 protected:
  AdmissionTest() {
    services_.keys.Set(
        *auth::Keyring::Parse("projects: {mine: {keys: [k-mine]}, other: {keys: [k-other]}}"));
    Register("ann", "token-of-ann");
    Register("bob", "token-of-bob");
  }

  void Register(const std::string& id, const std::string& token) {
    Write([&](db::Transaction& tx) {
      const auth::Digest hash = auth::Sha256(token);
      const domain::Agent agent{
          .id = id, .project = "mine", .session_id = "session-" + id, .name = id};
      return store::InsertAgent(tx, agent, std::as_bytes(std::span(hash)));
    });
  }

  // The body of a 200, else "status error".
  std::string Outcome(http::Request request) {
    const Response response = Ask(test_table_, std::move(request));
    if (response.status == 200) return response.body;
    EXPECT_THAT(response.body, HasSubstr("\"message\":\"")) << response.body;
    const std::size_t begin = response.body.find("\"error\":\"") + 9;
    return std::to_string(response.status) + " " +
           response.body.substr(begin, response.body.find('"', begin) - begin);
  }
  std::string Who(Fields fields) { return Outcome(To(Method::kGet, "/who", "", fields)); }

  const std::vector<Route> test_routes_ = TestRoutes();
  const RouteTable test_table_{test_routes_};
};

TEST_F(AdmissionTest, AKeyOrThisMachineLetsIn) {
  EXPECT_EQ(Who({}), "local:-:none::");
  EXPECT_EQ(Who({{"Authorization", "Bearer k-mine"}}), "key:mine:none::");
  EXPECT_EQ(Who({{"Authorization", "Bearer nonsense"}}), "401 unauthorized");
  EXPECT_EQ(Who({{"Origin", "http://evil.example"}}), "403 forbidden_origin");
  EXPECT_EQ(Who({{"Host", "evil.example"}}), "403 forbidden_origin");
  EXPECT_EQ(Who({{"X-Forwarded-For", "203.0.113.9"}}), "401 unauthorized");

  http::Request remote = To(Method::kGet, "/who");
  remote.peer.address = "203.0.113.9";
  EXPECT_EQ(Outcome(remote), "401 unauthorized");
  remote.headers.Add("authorization", "bearer k-other");
  EXPECT_EQ(Outcome(remote), "key:other:none::");

  http::Request socket = To(Method::kGet, "/who");
  socket.peer = {.kind = Peer::Kind::kUnix, .address = ""};
  EXPECT_EQ(Outcome(socket), "local:-:none::");
}

TEST_F(AdmissionTest, AReloadedKeyringCountsForTheNextRequest) {
  services_.keys.Set(*auth::Keyring::Parse("projects: {third: {keys: [k-mine]}}"));
  EXPECT_EQ(Who({{"Authorization", "Bearer k-mine"}}), "key:third:none::");
  EXPECT_EQ(Who({{"Authorization", "Bearer k-other"}}), "401 unauthorized");
}

TEST_F(AdmissionTest, WhatIsForAnyoneAsksNothing) {
  http::Request request = To(Method::kGet, "/open", "",
                             {{"Authorization", "Bearer nonsense"},
                              {"Host", "evil.example"},
                              {"X-Agent-ID", "bob"},
                              {"X-Agent-Token", "token-of-ann"}});
  request.peer.address = "203.0.113.9";
  EXPECT_EQ(Outcome(request), "local:-:none::");
}

TEST_F(AdmissionTest, ATokenSuppliesTheIdentity) {
  EXPECT_EQ(Who({{"X-Agent-ID", " ann "}}), "local:-:claimed:ann:");
  EXPECT_EQ(Who({{"X-Agent-Token", "token-of-ann"}}), "local:-:proved:ann:");
  EXPECT_EQ(Who({{"X-Agent-Token", " token-of-ann "}, {"X-Agent-ID", "ann"}}),
            "local:-:proved:ann:");
  EXPECT_EQ(Who({{"X-Agent-Token", "token-of-ann"}, {"X-Agent-ID", "bob"}}),
            "403 agent identity mismatch");
  EXPECT_EQ(Who({{"X-Agent-Token", "token-of-ann"}, {"X-Agent-ID", " "}}), "local:-:proved:ann:");
  EXPECT_EQ(Who({{"Authorization", "Bearer k-mine"}, {"X-Agent-Token", "token-of-bob"}}),
            "key:mine:proved:bob:");
}

TEST_F(AdmissionTest, ATokenOfNobodyIsIgnored) {
  EXPECT_EQ(Who({{"X-Agent-Token", "guess"}}), "local:-:none::");
  EXPECT_EQ(Who({{"X-Agent-Token", " "}}), "local:-:none::");
  EXPECT_EQ(Who({{"X-Agent-Token", "guess"}, {"X-Agent-ID", "ann"}}), "local:-:claimed:ann:");
  Write([&](db::Transaction& tx) { return store::SetDeregistered(tx, "ann", clock_.Now()); });
  EXPECT_EQ(Who({{"X-Agent-Token", "token-of-ann"}}), "local:-:none::");
}

TEST_F(AdmissionTest, ATokenThatCannotBeLookedUpIsTheStoragesFailure) {
  services_.storage.Stop();
  EXPECT_EQ(Who({{"X-Agent-Token", "token-of-ann"}}), "503 unavailable");
  EXPECT_EQ(Who({{"X-Agent-Token", "guess"}}), "503 unavailable");
  EXPECT_EQ(Who({{"X-Agent-ID", "ann"}}), "local:-:claimed:ann:");
  // The door comes first: who is not let in does not get that far.
  EXPECT_EQ(Who({{"X-Agent-Token", "guess"}, {"Host", "evil.example"}}), "403 forbidden_origin");
}

TEST_F(AdmissionTest, IdentityFieldsAreSentOnceAndAsUtf8) {
  EXPECT_EQ(Who({{"X-Agent-ID", "ann"}, {"x-agent-id", "bob"}}), "400 invalid_request");
  EXPECT_EQ(Who({{"X-Agent-Token", "token-of-ann"}, {"X-Agent-Token", "token-of-bob"}}),
            "400 invalid_request");
  EXPECT_EQ(Who({{"X-Agent-ID", "ann\xFF"}}), "400 invalid_request");
  EXPECT_EQ(Who({{"X-Agent-Token", "\xFF"}}), "400 invalid_request");
}

TEST_F(AdmissionTest, TheActorIsFoundWhereTheRowSays) {
  const auto actor = [&](const char* target, const char* body, Fields fields = {}) {
    const std::string who = Outcome(To(Method::kPost, target, body, fields));
    return who.starts_with("4") ? who : who.substr(who.rfind(':') + 1);
  };
  EXPECT_EQ(actor("/send", R"({"from":"ann"})", {{"X-Agent-ID", "bob"}}), "ann");
  EXPECT_EQ(actor("/send", "{}", {{"X-Agent-ID", "bob"}}), "");
  EXPECT_EQ(actor("/send", R"({"from":7})"), "400 invalid_request");
  EXPECT_EQ(actor("/agents/ann", ""), "ann");
  EXPECT_EQ(actor("/register", R"({"from":"ann"})", {{"X-Agent-ID", "bob"}}), "");
  EXPECT_EQ(actor("/plan", "", {{"X-Agent-ID", "bob"}}), "bob");
  EXPECT_EQ(actor("/plan", "", {{"X-Agent-Token", "token-of-ann"}}), "ann");
  EXPECT_EQ(actor("/plan", ""), "");
  EXPECT_EQ(actor("/reserve", R"({"agent_id":"ann"})", {{"X-Agent-ID", "bob"}}), "ann");
  EXPECT_EQ(actor("/7/read?agent=bob", R"({"agent":" ann "})", {{"X-Agent-ID", "cy"}}), "ann");
  EXPECT_EQ(actor("/7/read?agent=+bob", R"({"agent":" "})", {{"X-Agent-ID", "cy"}}), "bob");
  EXPECT_EQ(actor("/7/read?agent=+", "", {{"X-Agent-ID", "cy"}}), "cy");
  EXPECT_EQ(actor("/7/read", ""), "");
  EXPECT_EQ(actor("/7/read", R"({"agent":7})"), "400 invalid_request");
  EXPECT_EQ(actor("/7/read?agent=bob", R"({"agent":7})"), "400 invalid_request");
  EXPECT_EQ(actor("/7/read?agent=bob", "{"), "400 bad_json");
}

TEST_F(AdmissionTest, WritesInAnAgentsNameNeedItsTokenWhereTheServerAsksForIt) {
  const struct {
    std::string target, body, token, claimed;
    bool allowed;  // with --require-agent-token
  } kCases[] = {
      {"/send", R"({"from":"ann"})", "token-of-ann", "", true},
      {"/send", R"({"from":"ann"})", "token-of-ann", "ann", true},
      {"/send", R"({"from":"ann"})", "", "ann", false},
      {"/send", R"({"from":"ann"})", "guess", "ann", false},
      {"/send", R"({"from":"ann"})", "token-of-bob", "", false},
      {"/send", R"({"from":"Ann"})", "token-of-ann", "", false},
      {"/send", R"({"from":" ann"})", "token-of-ann", "", false},
      {"/send", "{}", "token-of-ann", "", false},
      {"/agents/ann", "", "token-of-ann", "", true},
      {"/agents/ann", "", "token-of-bob", "", false},
      {"/agents/ann", "", "", "ann", false},
      {"/7/read", "", "token-of-ann", "", true},
      {"/7/read", R"({"agent":"ann"})", "token-of-ann", "", true},
      {"/7/read", R"({"agent":"bob"})", "token-of-ann", "", false},
      {"/7/read?agent=bob", "", "token-of-ann", "", false},
      {"/7/read", "", "", "ann", false},
      // The handler could still find out whose message it is.
      {"/7/read", "", "", "", false},
      {"/register", "{}", "", "", true},
      {"/register", "{}", "", "ann", true},
      {"/plan", "", "", "", true},
      {"/plan", "", "token-of-ann", "ann", true},
      {"/plan", "", "", "ann", false},
      {"/plan", "", "guess", "ann", false},
      {"/reserve", R"({"agent_id":"ann"})", "token-of-ann", "", true},
      {"/reserve", R"({"agent_id":"ann"})", "token-of-bob", "", false},
      {"/reserve", R"({"agent_id":"ann"})", "", "ann", false},
  };
  for (const auto& c : kCases) {
    http::Request request = To(Method::kPost, c.target, c.body);
    if (!c.token.empty()) request.headers.Add("X-Agent-Token", c.token);
    if (!c.claimed.empty()) request.headers.Add("X-Agent-ID", c.claimed);
    app_.access.require_agent_token = false;
    EXPECT_THAT(Outcome(request), HasSubstr("local:")) << c.target << c.body;
    app_.access.require_agent_token = true;
    const std::string outcome = Outcome(request);
    EXPECT_EQ(outcome.starts_with("local:"), c.allowed) << c.target << c.body << outcome;
    if (!c.allowed) {
      EXPECT_EQ(outcome, "403 agent_token_required");
    }
  }
  EXPECT_THAT(Ask(test_table_, To(Method::kPost, "/7/read")).body,
              HasSubstr("the request names no agent: name your own, and send its token"));
  EXPECT_EQ(Who({}), "local:-:none::");  // reads need none
}

TEST_F(AdmissionTest, RefusalsHaveOneOrder) {
  app_.access.require_agent_token = true;
  http::Request request =
      To(Method::kPut, "/nothing?a=%zz", "{", {{"Authorization", "Bearer nonsense"}});
  EXPECT_EQ(Outcome(request), "404 not_found");
  request.target = "/send?a=%zz";
  EXPECT_EQ(Outcome(request), "405 method_not_allowed");
  request.method = Method::kPost;
  EXPECT_EQ(Outcome(request), "401 unauthorized");
  request.headers = Headers();
  request.headers.Add("Authorization", "Bearer k-mine");
  request.headers.Add("X-Agent-Token", "token-of-ann");
  http::Request mismatch = request;
  mismatch.headers.Add("X-Agent-ID", "bob");
  EXPECT_EQ(Outcome(mismatch), "403 agent identity mismatch");
  EXPECT_EQ(Outcome(request), "400 invalid_request");  // the query
  request.target = "/send";
  EXPECT_EQ(Outcome(request), "400 bad_json");
  request.body = R"({"from":"bob"})";
  EXPECT_EQ(Outcome(request), "403 agent_token_required");
  request.body = R"({"from":"bob","project":"other"})";
  EXPECT_EQ(Outcome(request), "403 project_mismatch");
  request.body = R"({"from":"bob","project":"mine"})";
  EXPECT_EQ(Outcome(request), "403 agent_token_required");
  request.body = R"({"from":"ann","project":"mine"})";
  EXPECT_EQ(Outcome(request), "key:mine:proved:ann:ann");
}

}  // namespace
}  // namespace interlock::api
