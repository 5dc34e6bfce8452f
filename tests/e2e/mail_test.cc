// Sending mail over the wire: shapes of answers, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "e2e_test.h"
#include "json/parse.h"
#include "json/value.h"

namespace interlock::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class MailTest : public E2eTest {
 public:
  ~MailTest() override { EXPECT_EQ(server_->Stop(), 0) << server_->process().Stderr(); }

 protected:
  MailTest() : server_(Start()), client_(server_->Connect()) {}

  HttpAnswer Post(const std::string& target, const std::string& body) {
    if (!client_.Request("POST", target, body)) return {};
    return client_.Read().value_or(HttpAnswer{});
  }
  // The id of a new agent of project p, with a policy if one is named.
  std::string Register(const std::string& policy = "") {
    const auto agent = json::Parse(Post("/api/agents", R"({"project":"p"})").body);
    if (!agent.ok()) return "";
    const std::string id(json::View(agent->at("agent_id").get_string()));
    if (!policy.empty()) {
      const std::string target = "/api/agents/" + id + "/policy";
      EXPECT_EQ(Post(target, R"({"policy":")" + policy + "\"}").status, 200);
    }
    return id;
  }
  HttpAnswer Send(const std::string& body) { return Post("/api/messages", body); }
  HttpAnswer Broadcast(const std::string& body) { return Post("/api/broadcast", body); }

  const std::unique_ptr<ServerProcess> server_;
  HttpClient client_;
};

TEST_F(MailTest, AnAnswerHasTheShapeThatClientsKnow) {
  const auto one = Send(R"({"from":"a","to":["b"],"body":"hi"})");
  EXPECT_EQ(one.status, 200) << one.body;
  EXPECT_EQ(one.Header("Content-Type"), "application/json");
  EXPECT_THAT(one.body, MatchesRegex("\\{\"message_id\":\"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}\","
                                     "\"cursor\":1,\"delivery\":\"async\",\"delivered\":\\[\\],"
                                     "\"unknown\":\\[\\{\"to\":\"b\"\\}\\]\\}\n"));
  EXPECT_EQ(Send(R"({"from":"a","to":["b","c"],"cc":["c","d"],"id":"i","project":" p "})").body,
            "{\"message_id\":\"i\",\"cursor\":2,"
            "\"delivery\":{\"b\":\"async\",\"c\":\"async\",\"d\":\"async\"},\"delivered\":[],"
            "\"unknown\":[{\"to\":\"b\"},{\"to\":\"c\"},{\"to\":\"d\"}]}\n");
  // As the Go client sends it: fields that are ours to decide, and empty ones.
  EXPECT_EQ(Send(R"({"id":"j","thread_id":"t","project":"p","from":"a","to":["b"],"cc":null,)"
                 R"("subject":"","body":"x","importance":"","ack_required":false,)"
                 R"("created_at":"0001-01-01T00:00:00Z","cursor":99,"more":{"x":[]}} trailing)")
                .body,
            "{\"message_id\":\"j\",\"cursor\":3,\"delivery\":\"async\",\"delivered\":[],"
            "\"unknown\":[{\"to\":\"b\"}]}\n");
  EXPECT_EQ(Send(R"({"FROM":"a","To":["b"],"Id":"k"})").body,
            "{\"message_id\":\"k\",\"cursor\":4,\"delivery\":\"async\",\"delivered\":[],"
            "\"unknown\":[{\"to\":\"b\"}]}\n");
}

TEST_F(MailTest, DeliveryIsTextForOneToWhateverCcAndBccHold) {
  const std::string body =
      R"({"id":"i","project":"p","from":"a","to":["b"],"cc":["c"],"bcc":["d"],"body":"x"})";
  for (int i = 0; i < 2; ++i) {  // the second time it is the first answer
    EXPECT_THAT(Send(body).body, HasSubstr(R"("delivery":"async","delivered":[)"));
  }
  const std::string closed = Register("block_all");
  const auto only_cc = Send(R"({"project":"p","from":"a","to":[")" + closed + R"("],"cc":["c"]})");
  EXPECT_EQ(only_cc.status, 200) << only_cc.body;
  EXPECT_THAT(only_cc.body, Not(HasSubstr("delivery"))) << "nobody in `to` received it";
}

TEST_F(MailTest, TheSameIdGivesTheSameAnswerOrAConflict) {
  const std::string body = R"({"id":"i","project":"p","from":"a","to":["b","c"],"body":"x")";
  const auto first = Send(body + "}");
  ASSERT_EQ(first.status, 200);
  // What does not belong to the content may differ.
  for (const char* more :
       {"}", R"(,"created_at":"2026-01-01T00:00:00Z","cursor":5})", R"(,"transport":"both"})",
        R"(,"transport":"live","target_window_uuid":"w"})", R"(,"to":["c","b","c"]})",
        R"(,"subject":null,"topic":""})"}) {
    const auto again = Send(body + more);
    EXPECT_EQ(again.status, 200) << more;
    EXPECT_EQ(again.body, first.body) << more;
  }
  for (const char* more : {R"(,"subject":"s"})", R"(,"to":["b"]})", R"(,"from":"z"})",
                           R"(,"body":"y"})", R"(,"ack_required":true})"}) {
    const auto other = Send(body + more);
    EXPECT_EQ(other.status, 409) << more;
    EXPECT_THAT(other.body, StartsWith(R"({"error":"message_id_conflict","message":")")) << more;
  }
  EXPECT_EQ(Send(R"({"id":"i","project":"q","from":"z","to":["b"]})").status, 200);
}

TEST_F(MailTest, NamesAreShortAndCanStandInAPath) {
  const struct {
    std::string path;
    std::string body;
    int status;
    std::string part;  // of the answer
  } kCases[] = {
      {"/api/messages", R"({"from":")" + std::string(257, 'f') + R"(","to":["b"]})", 400,
       R"("field":"from")"},
      {"/api/messages", R"({"from":"a","to":[")" + std::string(257, 't') + R"("]})", 400,
       R"("field":"to")"},
      {"/api/messages", R"({"from":"a","to":["b"],"bcc":["c\u0000"]})", 400, R"("field":"bcc")"},
      {"/api/messages", R"({"from":"a","to":["b"],"id":")" + std::string(257, 'i') + "\"}", 400,
       R"("field":"id")"},
      {"/api/messages", R"({"from":"a","to":["b"],"id":"\u0000"})", 400, R"("field":"id")"},
      {"/api/messages", R"({"from":"a","to":["b"],"subject":"\u0000"})", 400,
       R"("field":"subject")"},
      {"/api/broadcast", R"({"from":"a","topic":"t","body":"b","subject":"\u0000"})", 400,
       R"("field":"subject")"},
      {"/api/messages", R"({"from":"a","to":["b"],"thread_id":")" + std::string(257, 't') + "\"}",
       400, R"("field":"thread_id")"},
      {"/api/messages", R"({"from":"a","to":["b"],"topic":")" + std::string(257, 't') + "\"}", 400,
       R"("field":"topic")"},
      {"/api/messages", R"({"from":"a","to":["b"],"project":")" + std::string(257, 'p') + "\"}",
       400, R"("field":"project")"},
      {"/api/broadcast", R"({"from":"a","body":"b","topic":")" + std::string(257, 't') + "\"}", 400,
       R"("field":"topic")"},
  };
  for (const auto& c : kCases) {
    const auto answer = Post(c.path, c.body);
    EXPECT_EQ(answer.status, c.status) << c.part;
    EXPECT_THAT(answer.body, HasSubstr(c.part));
  }
  const std::string longest(256, 'x');
  EXPECT_EQ(
      Send(R"({"from":"a","to":["b"],"id":")" + longest + R"(","thread_id":")" + longest + "\"}")
          .status,
      200);
}

TEST_F(MailTest, WhatIsWrongIsNamed) {
  std::string crowd = R"({"from":"a","to":["b")";
  for (int i = 0; i < 10'000; ++i) crowd += ",\"agent-" + std::to_string(i) + "\"";
  crowd += "]}";
  const struct {
    std::string path;
    std::string body;
    int status;
    std::string part;  // of the answer
  } kCases[] = {
      {"/api/messages", "", 400, "bad_json"},
      {"/api/messages", "{", 400, "line 1, column 2"},
      {"/api/messages", "[]", 400, ""},
      {"/api/messages", R"({"to":["b"]})", 400, "from"},
      {"/api/messages", R"({"from":null,"to":["b"]})", 400, "from"},
      {"/api/messages", R"({"from":" ","to":["b"]})", 400, R"("field":"from")"},
      {"/api/messages", R"({"from":7,"to":["b"]})", 400, R"("field":"from")"},
      {"/api/messages", R"({"from":"a"})", 400, "to"},
      {"/api/messages", R"({"from":"a","to":[]})", 400, R"("field":"to")"},
      {"/api/messages", R"({"from":"a","to":"b"})", 400, R"("field":"to")"},
      {"/api/messages", R"({"from":"a","to":["b",7]})", 400, R"("field":"to[1]")"},
      {"/api/messages", R"({"from":"a","to":[""]})", 400, R"("field":"to")"},
      {"/api/messages", R"({"from":"a","to":["b"],"cc":["\t"]})", 400, R"("field":"cc")"},
      {"/api/messages", R"({"from":"a","to":["b"],"bcc":{}})", 400, R"("field":"bcc")"},
      {"/api/messages", R"({"from":"a","to":["b"],"ack_required":"yes"})", 400, "ack_required"},
      {"/api/messages", R"({"from":"a","to":["b"],"transport":"pigeon"})", 400,
       R"({"error":"invalid transport","message":")"},
      {"/api/messages", "{\"from\":\"a\",\"to\":[\"\xff\"]}", 400, "bad_json"},
      {"/api/messages", std::string("{\"from\":\"a\0\",\"to\":[\"b\"]}", 24), 400, "bad_json"},
      {"/api/messages", crowd, 400, R"("error":"too_many_recipients")"},
      {"/api/messages", R"({"from":"a","to":["b"],"body":")" + std::string(1 << 20, 'x') + "\"}",
       413, "payload_too_large"},
      {"/api/broadcast", "", 400, "bad_json"},
      {"/api/broadcast", R"({"topic":"t","body":"b"})", 400, "from"},
      {"/api/broadcast", R"({"from":"a","body":"b"})", 400, "topic"},
      {"/api/broadcast", R"({"from":"a","topic":"t"})", 400, "body"},
      {"/api/broadcast", R"({"from":"a","topic":" ","body":"b"})", 400, R"("field":"topic")"},
      {"/api/broadcast", R"({"from":"a","topic":"t","body":"\n"})", 400, R"("field":"body")"},
      {"/api/broadcast", R"({"from":"","topic":"t","body":"b"})", 400, R"("field":"from")"},
      {"/api/broadcast", R"({"from":"a","topic":["t"],"body":"b"})", 400, R"("field":"topic")"},
  };
  for (const auto& c : kCases) {
    HttpClient client = server_->Connect();
    ASSERT_TRUE(client.Request("POST", c.path, c.body));
    const auto answer = client.Read();
    ASSERT_TRUE(answer) << c.body.substr(0, 80);
    EXPECT_EQ(answer->status, c.status) << c.body.substr(0, 80);
    EXPECT_THAT(answer->body, HasSubstr(c.part)) << c.body.substr(0, 80);
    EXPECT_THAT(answer->body, HasSubstr(R"("message":")"));
  }
  // Nothing of all this was kept.
  EXPECT_THAT(Send(R"({"from":"a","to":["b"]})").body, HasSubstr("\"cursor\":1,"));
  for (const char* path : {"/api/messages", "/api/broadcast"}) {
    ASSERT_TRUE(client_.Request("GET", path));
    const auto answer = client_.Read();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 405);
    EXPECT_EQ(answer->Header("Allow"), "POST");
  }
}

TEST_F(MailTest, WhoDoesNotWantItIsNamedAndIfNobodyDoesItIsRefused) {
  const std::string open = Register();
  const std::string closed = Register("block_all");
  const auto denied = [](const std::string& id) { return R"("denied":[")" + id + "\"]"; };
  const auto some = Send(R"({"project":"p","id":"i","from":"a","to":[")" + open + R"("],"bcc":[")" +
                         closed + R"("]})");
  EXPECT_EQ(some.status, 200) << some.body;
  EXPECT_THAT(some.body, StartsWith(R"({"message_id":"i","cursor":)"));
  EXPECT_THAT(some.body, HasSubstr("," + denied(closed) + R"(,"delivery":"async",)"));
  EXPECT_THAT(some.body, HasSubstr(R"("delivered":[{"to":")" + open + R"(","agent_id":")" + open));
  EXPECT_THAT(some.body, HasSubstr(R"(],"unknown":[]})"));
  const auto none = Send(R"({"project":"p","from":"a","to":[")" + closed + R"("]})");
  EXPECT_EQ(none.status, 403);
  EXPECT_THAT(none.body, StartsWith(R"({"error":"policy_denied","message":")"));
  EXPECT_THAT(none.body, HasSubstr(denied(closed)));

  const std::string all = R"("project":"p","topic":"t","body":"b"})";
  const auto sent = Broadcast(R"({"from":"a",)" + all);
  EXPECT_EQ(sent.status, 200);
  EXPECT_THAT(sent.body, HasSubstr(R"(,"delivered":1,)" + denied(closed)));
  const auto refused = Broadcast(R"({"from":")" + open + "\"," + all);
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.body, StartsWith(R"({"error":"policy_denied","message":")"));
}

TEST_F(MailTest, BroadcastsToNobodyAreFineAndTheEleventhIsTooMany) {
  const std::string body = R"({"from":"a","topic":"t","body":"b","project":"p"})";
  for (int i = 0; i < 10; ++i) {
    const auto answer = Broadcast(body);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "{\"message_id\":\"\",\"cursor\":0,\"delivered\":0}\n");
  }
  const auto refused = Broadcast(body);
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.Header("Retry-After"), MatchesRegex("60|[1-5]?[0-9]"));
  const auto parsed = json::Parse(refused.body);
  ASSERT_TRUE(parsed.ok()) << refused.body;
  for (const char* field : {"error", "message", "retry_after", "retry_after_seconds"}) {
    EXPECT_TRUE(parsed->get_object().contains(field)) << refused.body;
  }
  EXPECT_EQ(Broadcast(R"({"from":"b","topic":"t","body":"b","project":"p"})").status, 200);
}

}  // namespace
}  // namespace interlock::e2e
