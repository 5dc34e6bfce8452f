// The log lines about what clients do: one line each, bounded, without message texts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "api_test.h"
#include "testing/raw_db.h"

namespace interlock::e2e {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Texts = std::vector<std::string>;

class LogTest : public E2eTest {
 protected:
  // Everything that is logged: a registration, a grant, a refusal, a force release, a message, a
  // wrong key and an agent that leaves.
  void Act(ServerProcess& server) {
    HttpClient client = server.Connect();
    const auto ask = [&client](const std::string& method, const std::string& target,
                               const std::string& body, const std::string& headers = "") {
      client.Request(method, target, body, headers);
      const auto answer = client.Read();
      EXPECT_TRUE(answer);
      return answer.value_or(HttpAnswer{});
    };
    const auto field = [](const HttpAnswer& answer, const std::string& name) {
      const std::string start = "\"" + name + "\":\"";
      const std::size_t at = answer.body.find(start);
      EXPECT_NE(at, std::string::npos) << answer.body;
      const std::size_t from = at + start.size();
      return answer.body.substr(from, answer.body.find('"', from) - from);
    };
    ann_ = field(ask("POST", "/api/agents", R"({"project":"web","name":"an\u001b[2Jn\nx"})"),
                 "agent_id");
    bob_ = field(ask("POST", "/api/agents", R"({"project":"web","name":"bob"})"), "agent_id");
    const std::string wish = R"({"project":"web","agent_id":")";
    reservation_ = field(
        ask("POST", "/api/reservations",
            wish + ann_ + R"(","path_pattern":"src/**","exclusive":true,"reason":"why-text"})"),
        "id");
    EXPECT_EQ(ask("POST", "/api/reservations",
                  wish + R"(bob","path_pattern":"src/a.cc","exclusive":true})")
                  .status,
              409);
    EXPECT_EQ(ask("POST", "/api/messages",
                  R"({"project":"web","from":"bob","to":[")" + ann_ +
                      R"("],"subject":"subject-text","body":"body-text"})")
                  .status,
              200);
    EXPECT_EQ(ask("GET", "/api/agents", "", "Authorization: Bearer wrong-key\r\n").status, 401);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the grace of the holder
    EXPECT_LT(ask("DELETE", "/api/reservations/" + reservation_ + "?force=true", "",
                  "X-Agent-ID: bob\r\n")
                  .status,
              300);
    EXPECT_EQ(ask("DELETE", "/api/agents/" + ann_, "").status, 204);
    EXPECT_EQ(ask("DELETE", "/api/agents/bob?project=web", "").status, 204);
  }

  std::string ann_;
  std::string bob_;
  std::string reservation_;
};

TEST_F(LogTest, WhatClientsDoIsOneLineEachWithIdsAndNames) {
  const auto server = Start({"--heartbeat-grace=1ms"});
  Act(*server);
  EXPECT_EQ(server->Stop(), 0);
  const std::string log = server->process().Stderr();
  EXPECT_THAT(log, HasSubstr(" INFO agent registered agent=" + ann_ +
                             " name=\"an\\u001b[2Jn\\nx\" project=web\n"));
  const std::string name = "\"an\\u001b[2Jn\\nx\"";
  EXPECT_THAT(log, HasSubstr(" INFO reservation granted reservation=" + reservation_ +
                             " agent=" + ann_ + " name=" + name + " project=web pattern=src/**\n"));
  EXPECT_THAT(log, HasSubstr(" INFO reservation refused agent=" + bob_ +
                             " name=bob project=web requested=src/a.cc holder=" + ann_ +
                             " held_by=" + name + " pattern=src/** conflicts=1\n"));
  EXPECT_THAT(log, HasSubstr(" INFO reservation forced reservation=" + reservation_ + " holder=" +
                             ann_ + " held_by=" + name + " project=web pattern=src/** by=bob\n"));
  EXPECT_THAT(log, ContainsRegex(" INFO request refused, its key is wrong or missing "
                                 "request_id=[^ ]+ peer=127\\.0\\.0\\.1 route=/api/agents\n"));
  EXPECT_THAT(log,
              HasSubstr(" INFO agent left agent=" + ann_ + " name=" + name + " project=web\n"));
  EXPECT_THAT(log, HasSubstr(" INFO agent left agent=" + bob_ + " name=bob project=web\n"));
  for (const char* text : {"body-text", "subject-text", "why-text", "wrong-key", "\x1b"}) {
    EXPECT_THAT(log, Not(HasSubstr(text)));
  }
}

TEST_F(LogTest, ExpiredReservationIsLoggedWithTheNameOfItsAgent) {
  {
    const auto server = Start();
    HttpClient client = server->Connect();
    client.Request("POST", "/api/agents", R"({"project":"web","name":"ann"})");
    ASSERT_EQ(client.Read()->status, 200);
    client.Request("POST", "/api/reservations",
                   R"({"project":"web","agent_id":"ann","path_pattern":"src/**"})");
    ASSERT_EQ(client.Read()->status, 201);
    EXPECT_EQ(server->Stop(), 0);
  }
  testing::RawDb(File("test.db")).Run("UPDATE reservations SET expires_at = 1");
  const auto server = Start({"--heartbeat-grace=1ms"});
  EXPECT_TRUE(server->process().WaitForLog("INFO reservation expired ", ServerProcess::kPatience));
  EXPECT_EQ(server->Stop(), 0);
  EXPECT_THAT(server->process().Stderr(),
              ContainsRegex(" INFO reservation expired reservation=[^ ]+ agent=[^ ]+ name=ann "
                            "project=web pattern=src/\\*\\*\n"));
}

TEST_F(LogTest, AnAgentThatShowsNoSignOfLifeExpires) {
  const auto server = Start({"--heartbeat-grace=50ms", "--sweep-interval=10ms"});
  HttpClient client = server->Connect();
  client.Request("POST", "/api/agents", R"({"project":"web","name":"ann"})");
  ASSERT_EQ(client.Read()->status, 200);
  EXPECT_TRUE(
      server->process().WaitForLog(" name=ann project=web last_seen=", ServerProcess::kPatience));
  EXPECT_EQ(server->Stop(), 0);
  const std::string log = server->process().Stderr();
  const std::size_t first = log.find(" INFO agent expired agent=");
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("agent expired", first + 20), std::string::npos) << log;
}

TEST_F(LogTest, TheLevelWarnSilencesThem) {
  const auto server = Start({"--heartbeat-grace=1ms", "--log-level=warn"});
  Act(*server);
  EXPECT_EQ(server->Stop(), 0);
  EXPECT_EQ(server->process().Stderr(), "");
}

TEST_F(LogTest, ManyLinesOfAKindAreCounted) {
  const auto server = Start({"--max-connections=1", "--durability=fast"});
  HttpClient served = server->Connect();
  for (int i = 0; i < 50; ++i) {
    served.Request("POST", "/api/agents", R"({"project":"web"})");
    ASSERT_EQ(served.Read()->status, 200);
  }
  HttpClient refused = server->Connect();
  refused.Request("GET", "/health");
  EXPECT_EQ(refused.Read()->status, 503);
  EXPECT_EQ(server->Stop(), 0);
  const std::string log = server->process().Stderr();
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = log.find("INFO agent registered", at)) != std::string::npos;
       ++at) {
    ++lines;
  }
  EXPECT_GE(lines, 20U);
  EXPECT_LT(lines, 50U) << "unless it took many windows";
  EXPECT_THAT(log, AllOf(HasSubstr("INFO more lines of this kind are not shown "
                                   "kind=\"agent registered\" count="),
                         HasSubstr("INFO connection refused, too many are open peer=127.0.0.1")));
}

}  // namespace
}  // namespace interlock::e2e
