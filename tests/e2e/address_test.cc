// Agents that are named by their names.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "api_test.h"
#include "json/write.h"
#include "testing/ws_client.h"

namespace interlock::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class AddressTest : public ApiTest {
 protected:
  using ApiTest::ApiTest;

  HttpAnswer Send(const std::string& to, const std::string& more = "", const std::string& h = "") {
    return Ask("POST", "/api/messages",
               R"({"project":"p","from":"s","body":"x","to":[")" + to + R"("])" + more + "}", h);
  }
  // The ids of the messages in an inbox.
  std::string Inbox(const std::string& agent, const std::string& more = "&since_cursor=0") {
    std::string ids;
    const json::Value page = Get("/api/inbox/" + agent + "?project=p" + more);
    for (const json::Value& message : page.at("messages").get_array()) {
      ids += Text(message, "id") + " ";
    }
    return ids;
  }
  std::string Counts(const std::string& agent) {
    return Ask("GET", "/api/inbox/" + agent + "/counts?project=p").body;
  }
};

TEST_F(AddressTest, ANameReachesTheAgentAndTheAnswerSaysSo) {
  const std::string ann = Register("p", "ann");
  const std::string bob = Register("other", "bob");
  const HttpAnswer sent = Send(R"(ann","nobody","bob)", R"(,"id":"m1")");
  EXPECT_EQ(sent.status, 200) << sent.body;
  EXPECT_EQ(sent.body, R"({"message_id":"m1","cursor":3,"delivery":{"ann":"async",)"
                       R"("nobody":"async","bob":"async"},"delivered":[{"to":"ann","agent_id":")" +
                           ann +
                           R"(","name":"ann"}],"unknown":[{"to":"nobody"},)"
                           R"({"to":"bob","project":"other"}]})"
                           "\n");
  EXPECT_EQ(Inbox(ann), "m1 ");
  EXPECT_EQ(Inbox("ann"), "m1 ");
  EXPECT_EQ(Inbox("nobody"), "m1 ");
  EXPECT_EQ(Get("/api/inbox/ann?project=p").at("messages").at(0).at("to").at(0),
            json::Value(json::String(ann)));
  EXPECT_EQ(Send(R"(ann","nobody","bob)", R"(,"id":"m1")").body, sent.body) << "again";
}

TEST_F(AddressTest, TwoActiveAgentsOfOneNameAreAmbiguousEverywhere) {
  const std::string one = Register("p", "ann");
  const std::string two = Register("p", "ann");
  EXPECT_EQ(
      Ask("POST", "/api/reservations", R"({"project":"p","agent_id":"holder","path_pattern":"a"})")
          .status,
      201);
  const std::string held = Text(Get("/api/reservations?project=p").at("reservations").at(0), "id");
  const std::string as_holder = "X-Agent-ID: holder\r\n";
  const std::vector<ApiCase> cases = {
      {"POST", "/api/messages", R"({"project":"p","from":"s","to":["ann"]})", 409},
      {"POST", "/api/messages", R"({"project":"p","from":"ann","to":["x"]})", 409},
      {"POST", "/api/reservations", R"({"project":"p","agent_id":"ann","path_pattern":"b"})", 409},
      {"POST", "/api/reservations/" + held + "/transfer", R"({"to_agent":"ann"})", 409, "",
       as_holder},
      {"GET", "/api/reservations?project=p&agent=ann", "", 409},
      {"GET", "/api/reservations/check?project=p&pattern=a&agent=ann", "", 409},
      {"GET", "/api/agents/ann", "", 409},
      {"POST", "/api/agents/ann/heartbeat", "{}", 409},
      {"GET", "/api/agents/ann/policy", "", 409},
      {"GET", "/api/inbox/ann?project=p", "", 409},
      {"GET", "/api/inbox/ann/counts?project=p", "", 409},
      {"GET", "/api/inbox/ann/stale-acks?project=p", "", 409},
      {"GET", "/api/threads?project=p&agent=ann", "", 409},
      {"GET", "/api/inbox/pokes?project=p&agent=ann", "", 409},
  };
  for (ApiCase c : cases) {
    c.part = R"("error":"ambiguous_recipient")";
    Check({c});
    c.part = one;
    Check({c});
    c.part = two;
    Check({c});
  }
  EXPECT_THAT(Send("ann").body, HasSubstr(R"("agent_ids":[")"));
  EXPECT_EQ(Ask("DELETE", "/api/agents/" + two).status, 204);
  EXPECT_THAT(Send("ann").body, HasSubstr(R"("agent_id":")" + one));
}

TEST_F(AddressTest, AnAgentThatLeftGetsNoMailAndNoReservation) {
  const std::string ann = Register("p", "ann");
  const std::string bob = Register("p", "bob");
  EXPECT_EQ(Ask("DELETE", "/api/agents/" + ann).status, 204);
  const HttpAnswer sent = Send(bob, R"(,"id":"m1","cc":[")" + ann + "\"]");
  EXPECT_THAT(sent.body, HasSubstr(R"("delivered":[{"to":")" + bob + R"(","agent_id":")" + bob +
                                   R"(","name":"bob"}],"unknown":[{"to":")" + ann +
                                   R"(","deregistered":true}])"));
  EXPECT_EQ(Inbox(ann), "m1 ") << "it is kept";
  const std::string wish = R"({"project":"p","path_pattern":"a","agent_id":")";
  const HttpAnswer held = Ask("POST", "/api/reservations", wish + bob + "\"}");
  ASSERT_EQ(held.status, 201);
  const std::string transfer =
      "/api/reservations/" + Text(json::Parse(held.body).value(), "id") + "/transfer";
  Check({{"POST", "/api/reservations", wish + ann + "\"}", 404, "register it again"},
         {"POST", transfer, R"({"to_agent":")" + ann + "\"}", 404, "register it again",
          "X-Agent-ID: " + bob + "\r\n"}});
}

TEST_F(AddressTest, AnIdWinsOverANameThatLooksLikeIt) {
  const std::string ann = Register("p", "ann");
  const std::string thief = Register("p", ann);
  EXPECT_EQ(Send(ann, R"(,"id":"m1")").status, 200);
  EXPECT_EQ(Inbox(ann), "m1 ");
  EXPECT_EQ(Inbox(thief), "") << "a name gives no right to another agent's mail";
  EXPECT_EQ(Text(Get("/api/agents/" + ann), "name"), "ann");
}

TEST_F(AddressTest, PathsTakeANameAndAnswerWithTheId) {
  const std::string ann = Register("p", "ann");
  const std::string bob = Register("p", "bob");
  const json::Value one = Get("/api/agents/ann?project=p");
  EXPECT_EQ(one, Get("/api/agents/" + ann));
  EXPECT_EQ(Text(one, "agent_id"), ann);
  const json::Value listed = Get("/api/agents?project=p");
  EXPECT_THAT(json::Write(listed), HasSubstr(json::Write(one)));
  EXPECT_EQ(Text(Post("/api/agents/ann/heartbeat", "{}"), "agent_id"), ann);
  EXPECT_EQ(Text(Post("/api/agents/ann/policy", R"({"policy":"contacts_only"})"), "agent_id"), ann);
  EXPECT_EQ(Text(Get("/api/agents/ann/policy"), "agent_id"), ann);
  EXPECT_EQ(json::Write(Post("/api/agents/ann/contacts", R"({"contact":"bob"})")),
            R"({"contacts":[")" + bob + R"("]})");
  EXPECT_EQ(Ask("POST", "/api/messages", R"({"project":"p","from":"bob","to":["ann"]})").status,
            200)
      << "a contact, by whichever name";
  EXPECT_EQ(Ask("DELETE", "/api/agents/ann/contacts/bob").body, "{\"contacts\":[]}\n");
  EXPECT_EQ(Ask("PATCH", "/api/agents/ann/metadata", R"({"metadata":{"k":"v"}})").status, 200);
  Check({{"GET", "/api/agents/nobody", "", 404},
         {"GET", "/api/agents/ann?project=other", "", 404},
         {"GET", "/api/agents/" + ann + "?project=other", "", 404}});
  EXPECT_EQ(Ask("DELETE", "/api/agents/ann").status, 204);
  Check({{"GET", "/api/agents/ann", "", 404}, {"GET", "/api/agents/" + ann, "", 404}});
}

TEST_F(AddressTest, ReservationsAreHeldByTheAgentThatTheNameMeans) {
  const std::string ann = Register("p", "ann");
  const std::string bob = Register("p", "bob");
  const HttpAnswer made = Ask("POST", "/api/reservations",
                              R"({"project":"p","agent_id":"ann","path_pattern":"a",)"
                              R"("exclusive":true})");
  EXPECT_EQ(made.status, 201) << made.body;
  EXPECT_THAT(made.body, HasSubstr(R"("agent_id":")" + ann));
  const std::string id =
      Text(Get("/api/reservations?agent=ann&project=p").at("reservations").at(0), "id");
  const std::string path = "/api/reservations/" + id;
  EXPECT_EQ(Ask("GET", "/api/reservations/check?project=p&pattern=a&agent=ann").body,
            "{\"conflicts\":[]}\n");
  EXPECT_EQ(Ask("POST", path + "/renew", "{}", "X-Agent-ID: ann\r\n").status, 200);
  EXPECT_EQ(Ask("POST", path + "/renew", "{}", "X-Agent-ID: bob\r\n").status, 403);
  const HttpAnswer moved =
      Ask("POST", path + "/transfer", R"({"to_agent":"bob"})", "X-Agent-ID: ann\r\n");
  EXPECT_THAT(moved.body, HasSubstr(R"("agent_id":")" + bob)) << moved.body;
  EXPECT_EQ(Ask("DELETE", path, "", "X-Agent-ID: bob\r\n").status, 200);
}

TEST_F(AddressTest, ThreadsUnderABareNameAreTheAgentsToo) {
  const auto send = [this](const std::string& to, const std::string& thread) {
    EXPECT_EQ(Send(to, R"(,"thread_id":")" + thread + "\"").status, 200);
  };
  const auto threads = [this](const std::string& agent, const std::string& more = "") {
    std::string text;
    const json::Value page = Get("/api/threads?project=p&agent=" + agent + more);
    for (const json::Value& thread : page.at("threads").get_array()) {
      text += Text(thread, "thread_id") + json::Write(thread.at("message_count")) + " ";
    }
    return text;
  };
  send("ann", "old");
  send("ann", "both");
  const std::string ann = Register("p", "ann");
  Register("p", "bob");
  send("ann", "both");
  send(ann, "new");
  send("bob", "other");
  for (const std::string& agent : {ann, std::string("ann")}) {
    EXPECT_EQ(threads(agent), "new1 both2 old1 ");
    EXPECT_EQ(threads(agent, "&limit=2"), "new1 both2 ");
  }
  const json::Value page = Get("/api/threads?project=p&limit=2&agent=" + ann);
  EXPECT_EQ(threads(ann, "&cursor=" + json::Write(page.at("cursor"))), "old1 ");
  EXPECT_EQ(threads("bob"), "other1 ");
}

TEST_F(AddressTest, MailUnderABareNameComesToTheAgentThatRegistersUnderIt) {
  EXPECT_EQ(Send("ann", R"(,"id":"m1","ack_required":true)").status, 200);
  EXPECT_EQ(Send("ann", R"(,"id":"m2")").status, 200);
  EXPECT_EQ(Inbox("ann"), "m1 m2 ");
  EXPECT_EQ(Inbox("ann", "&since_cursor=2"), "") << "known to be empty";
  const std::string ann = Register("p", "ann");
  const std::string bob = Register("p", "bob");
  const std::string away = Register("q", "ann");
  EXPECT_EQ(Inbox(ann), "m1 m2 ");
  EXPECT_EQ(Inbox("ann"), "m1 m2 ");
  EXPECT_EQ(Inbox(bob), "");
  EXPECT_EQ(Inbox(away), "") << "of another project";
  EXPECT_EQ(Send("ann", R"(,"id":"m3")").status, 200);
  EXPECT_EQ(Inbox(ann), "m1 m2 m3 ");
  EXPECT_EQ(Inbox(ann, "&limit=2"), "m1 m2 ");
  EXPECT_EQ(Inbox(ann, "&since_cursor=1"), "m2 m3 ");
  EXPECT_EQ(Inbox("ann", "&since_cursor=2"), "m3 ");
  EXPECT_THAT(Ask("GET", "/api/inbox/" + ann).body,
              AllOf(HasSubstr(R"("id":"m1")"), HasSubstr(R"("id":"m3")")))
      << "of all projects";
  EXPECT_EQ(Counts(ann), "{\"total\":3,\"unread\":3}\n");
  EXPECT_THAT(Ask("GET", "/api/inbox/ann/stale-acks?project=p&ttl_seconds=0").body,
              AllOf(HasSubstr(R"("count":1)"), HasSubstr(R"("id":"m1")")));
  const std::string by = "?project=p&agent=" + ann;
  EXPECT_EQ(Ask("POST", "/api/messages/m1/ack" + by).Header("X-Intermute-Notice"), "");
  EXPECT_EQ(Ask("POST", "/api/messages/m1/read" + by).Header("X-Intermute-Notice"), "");
  EXPECT_THAT(
      Ask("POST", "/api/messages/m2/read?project=p&agent=" + bob).Header("X-Intermute-Notice"),
      HasSubstr("no recipient"));
  EXPECT_EQ(Ask("POST", "/api/messages/m3/read?project=p&agent=ann").Header("X-Intermute-Notice"),
            "");
  EXPECT_EQ(Counts("ann"), "{\"total\":3,\"unread\":1}\n");
  EXPECT_THAT(Ask("GET", "/api/inbox/ann/stale-acks?project=p&ttl_seconds=0").body,
              HasSubstr(R"("count":0)"));
}

TEST_F(AddressTest, AMessageUnderBothIdAndNameIsThereOnce) {
  const std::string body = R"({"project":"p","name":"ann","session_id":)"
                           R"("0192f0c1-2345-7abc-8def-0123456789ab"})";
  const json::Value first = Post("/api/agents", body);
  const std::string ann = Text(first, "agent_id");
  EXPECT_EQ(Ask("DELETE", "/api/agents/" + ann).status, 204);
  EXPECT_EQ(Send(ann + R"(","ann)", R"(,"id":"m1")").status, 200);
  const HttpAnswer again =
      Ask("POST", "/api/agents", body, "X-Agent-Token: " + Text(first, "token") + "\r\n");
  ASSERT_THAT(again.body, HasSubstr(ann));
  EXPECT_EQ(Inbox(ann), "m1 ");
  EXPECT_EQ(Counts(ann), "{\"total\":1,\"unread\":1}\n");
}

TEST_F(AddressTest, TheNextAgentOfTheNameFindsTheMailOfTheBareNameToo) {
  EXPECT_EQ(Send("ann", R"(,"id":"m1")").status, 200);
  const std::string first = Register("p", "ann");
  EXPECT_EQ(Send("ann", R"(,"id":"m2")").status, 200);
  EXPECT_EQ(Ask("DELETE", "/api/agents/" + first).status, 204);
  EXPECT_EQ(Inbox(first), "m2 ") << "it has no name any more";
  const std::string second = Register("p", "ann");
  EXPECT_EQ(Inbox(second), "m1 ") << "m2 was meant for the other";
}

TEST_F(AddressTest, WhileAnotherOfTheNameComesEachMessageReachesOneOrIsRefused) {
  Register("p", "ann");
  int sent = 0;
  std::jthread another([this] {
    HttpClient client = server_->Connect();
    client.Request("POST", "/api/agents", R"({"project":"p","name":"ann"})");
    client.Read();
  });
  for (int i = 0; i < 100; ++i) {
    const HttpAnswer answer = Send("ann");
    ASSERT_TRUE(answer.status == 200 || answer.status == 409) << answer.status << answer.body;
    if (answer.status == 200) ++sent;
    if (answer.status == 409) {
      EXPECT_THAT(answer.body, HasSubstr("ambiguous_recipient"));
    }
  }
  another.join();
  EXPECT_EQ(Send("ann").status, 409);
  int received = 0;
  const json::Value agents = Get("/api/agents?project=p");
  for (const json::Value& agent : agents.at("agents").get_array()) {
    const json::Value counts = Get("/api/inbox/" + Text(agent, "agent_id") + "/counts?project=p");
    received += static_cast<int>(counts.at("total").as_int64());
  }
  EXPECT_EQ(received, sent);
}

TEST_F(AddressTest, AStreamMayBeNamedByTheNameOfItsAgent) {
  const std::string ann = Register("p", "ann");
  testing::WsClient stream(server_->Connect(), "/ws/agents/ann?project=p");
  EXPECT_EQ(Send("ann", R"(,"id":"m1")").status, 200);
  const std::string event = stream.ReadText().value_or("");
  EXPECT_THAT(event, AllOf(HasSubstr("m1"), HasSubstr(R"("agent":")" + ann + R"(")")));
  Register("p", "ann");
  testing::WsClient refused(server_->Connect(), "/ws/agents/ann?project=p");
  EXPECT_EQ(refused.answer().status, 409);
}

class KeyAddressTest : public E2eTest {
 protected:
  HttpAnswer Ask(HttpClient& client, std::string_view method, std::string_view target,
                 std::string_view body, std::string_view key) {
    if (!client.Request(method, target, body, key)) return {};
    return client.Read().value_or(HttpAnswer{});
  }
};

TEST_F(KeyAddressTest, AKeyNamesAgentsOfItsProjectAndLearnsOfNoOther) {
  std::ofstream(File("keys.yaml")) << "projects:\n  p: {keys: [key-of-p]}\n"
                                   << "  q: {keys: [key-of-q]}\n";
  std::filesystem::permissions(
      File("keys.yaml"), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const auto server = Start({"--keys-file=keys.yaml"});
  HttpClient client = server->Connect();
  const std::string p = "Authorization: Bearer key-of-p\r\n";
  const std::string q = "Authorization: Bearer key-of-q\r\n";
  EXPECT_EQ(Ask(client, "POST", "/api/agents", R"({"project":"p","name":"ann"})", p).status, 200);
  EXPECT_EQ(Ask(client, "POST", "/api/agents", R"({"project":"q","name":"ann"})", q).status, 200);
  EXPECT_EQ(Ask(client, "POST", "/api/agents", R"({"project":"q","name":"zoe"})", q).status, 200);
  const HttpAnswer sent =
      Ask(client, "POST", "/api/messages", R"({"project":"p","from":"s","to":["ann","zoe"]})", p);
  EXPECT_THAT(sent.body, AllOf(HasSubstr(R"("delivered":[{"to":"ann")"),
                               HasSubstr(R"("unknown":[{"to":"zoe"}])")));
  EXPECT_EQ(Ask(client, "GET", "/api/agents/zoe", "", p).status, 404);
  EXPECT_EQ(Ask(client, "GET", "/api/agents/zoe?project=q", "", p).status, 403);
  EXPECT_EQ(Ask(client, "POST", "/api/agents/zoe/heartbeat", "{}", p).status, 404);
  EXPECT_THAT(Ask(client, "GET", "/api/agents/ann", "", q).body, HasSubstr(R"("project":"q")"));
  EXPECT_EQ(server->Stop(), 0) << server->process().Stderr();
}

class ProvedAddressTest : public AddressTest {
 protected:
  ProvedAddressTest() : AddressTest({"--require-agent-token"}) {}

  std::pair<std::string, std::string> Join(const std::string& name) {
    const json::Value made = Post("/api/agents", R"({"project":"p","name":")" + name + R"("})");
    return {Text(made, "agent_id"), "X-Agent-Token: " + Text(made, "token") + "\r\n"};
  }
};

TEST_F(ProvedAddressTest, AnAgentMayUseItsOwnNameAndNoOther) {
  const auto [ann, anns] = Join("ann");
  const auto [bob, bobs] = Join("bob");
  const auto [thief, thiefs] = Join(ann);  // a name that is another agent's id
  const std::string as_ann = R"({"project":"p","agent_id":"ann","path_pattern":"a"})";
  Check({{"POST", "/api/reservations", as_ann, 201, R"("agent_id":")" + ann, anns},
         {"POST", "/api/reservations", as_ann, 201, ann, anns + "X-Agent-ID: ann\r\n"},
         {"POST", "/api/reservations", as_ann, 403, "", bobs},
         {"POST", "/api/reservations", as_ann, 403, "", ""},
         {"POST", "/api/reservations", as_ann, 403, "", anns + "X-Agent-ID: bob\r\n"},
         {"POST", "/api/agents/ann/heartbeat", "{}", 200, ann, anns},
         {"POST", "/api/agents/ann/heartbeat", "{}", 403, "", bobs},
         {"DELETE", "/api/agents/ann", "", 403, "", bobs},
         {"POST", "/api/agents/" + ann + "/heartbeat", "{}", 403, "", thiefs},
         {"POST", "/api/messages", R"({"project":"p","from":"ann","to":["bob"]})", 403, "", bobs},
         {"POST", "/api/messages", R"({"project":"p","from":"ann","to":["bob"],"id":"m"})", 200,
          bob, anns},
         {"POST", "/api/messages/m/read?project=p&agent=bob", "", 403, "", anns},
         {"POST", "/api/messages/m/read?project=p&agent=bob", "", 200, "", bobs}});
  EXPECT_EQ(Counts(bob), "{\"total\":1,\"unread\":0}\n");
  EXPECT_THAT(Ask("GET", "/api/inbox/" + bob + "?project=p").body,
              HasSubstr(R"("from":")" + ann + R"(")"));
}

TEST_F(ProvedAddressTest, AWindowBelongsToTheAgentOfTheTokenWhateverItCallsItself) {
  const json::Value ann = Post("/api/agents", R"({"project":"p","name":"ann"})");
  const json::Value bob = Post("/api/agents", R"({"project":"p","name":"bob"})");
  const auto window = [](const std::string& agent, const std::string& token) {
    return R"({"project":"p","window_uuid":"w","agent_id":")" + agent +
           R"(","registration_token":")" + token + R"("})";
  };
  Check({{"POST", "/api/windows", window("ann", Text(ann, "token")), 200,
          R"("agent_id":")" + Text(ann, "agent_id")},
         {"POST", "/api/windows", window("ann", Text(bob, "token")), 403, "agent_token_mismatch"}});
}

}  // namespace
}  // namespace interlock::e2e
