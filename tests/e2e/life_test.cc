// Signs of life: what keeps an agent alive that sends no heartbeats.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "api_test.h"
#include "testing/ws_client.h"

namespace interlock::e2e {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::WsClient;

std::string As(const std::string& agent) { return "X-Agent-ID: " + agent + "\r\n"; }

class LifeTest : public ApiTest {
 protected:
  LifeTest() : ApiTest({"--heartbeat-grace=2s"}) {}

  std::string Reserve(const std::string& agent) {
    const HttpAnswer answer = Ask("POST", "/api/reservations",
                                  R"({"project":"p","exclusive":true,"path_pattern":"src/**",)"
                                  R"("agent_id":")" +
                                      agent + R"("})");
    EXPECT_EQ(answer.status, 201) << answer.body;
    return Text(json::Parse(answer.body).value(), "id");
  }
  HttpAnswer Force(const std::string& id) {
    return Ask("DELETE", "/api/reservations/" + id + "?force=true", "", As("other"));
  }
  static void Wait(milliseconds time) { std::this_thread::sleep_for(time); }
};

TEST_F(LifeTest, AgentThatRenewsButSendsNoHeartbeatsIsActive) {
  const std::string ada = Register("p", "ada");
  const std::string id = Reserve(ada);
  for (int i = 0; i < 5; ++i) {
    Wait(milliseconds(600));
    const std::string called = i % 2 == 0 ? ada : "ada";  // by its id and by its name
    EXPECT_EQ(Ask("POST", "/api/reservations/" + id + "/renew", "{}", As(called)).status, 200);
  }
  const HttpAnswer forced = Force(id);
  EXPECT_EQ(forced.status, 409);
  EXPECT_THAT(forced.body, HasSubstr("holder_active"));
  EXPECT_THAT(Ask("GET", "/api/reservations/check?project=p&pattern=src/a").body,
              HasSubstr(R"("holder_state":"active")"));
  Wait(milliseconds(2100));
  // Somebody who looks into its inbox does not keep it alive.
  EXPECT_EQ(Ask("GET", "/api/inbox/" + ada + "?project=p", "", As("ann")).status, 200);
  EXPECT_THAT(Ask("GET", "/api/reservations/check?project=p&pattern=src/a").body,
              HasSubstr(R"("holder_state":"stale")"));
  EXPECT_EQ(Force(id).status, 200);
}

TEST_F(LifeTest, AgentWithAnOpenWebSocketIsActive) {
  const std::string ada = Register("p", "ada");
  const std::string id = Reserve(ada);
  {
    const WsClient client = WsClient::Tcp(server_->port(), "/ws/agents/" + ada + "?project=p");
    ASSERT_TRUE(client.open());
    Wait(milliseconds(2500));
    EXPECT_EQ(Force(id).status, 409);
  }
  Wait(milliseconds(2500));
  EXPECT_EQ(Force(id).status, 200);
}

class LifeRestartTest : public E2eTest {};

TEST_F(LifeRestartTest, LastSeenOutlivesARestart) {
  const auto last_seen = [](ServerProcess& server) {
    HttpClient client = server.Connect();
    client.Request("GET", "/api/agents?project=p");
    const json::Value list = json::Parse(client.Read().value_or(HttpAnswer{}).body).value();
    return std::string(json::View(
        list.get_object().at("agents").as_array().at(0).as_object().at("last_seen").get_string()));
  };
  std::string seen;
  {
    const auto server = Start();
    HttpClient client = server->Connect();
    client.Request("POST", "/api/agents", R"({"project":"p"})");
    const json::Value made = json::Parse(client.Read().value_or(HttpAnswer{}).body).value();
    const std::string id(json::View(made.get_object().at("agent_id").get_string()));
    const std::string registered = last_seen(*server);
    std::this_thread::sleep_for(milliseconds(1100));
    client.Request("GET", "/api/inbox/" + id + "?project=p");
    EXPECT_EQ(client.Read().value_or(HttpAnswer{}).status, 200);
    seen = last_seen(*server);
    EXPECT_GT(seen, registered);
    EXPECT_EQ(server->Stop(), 0);
  }
  const auto server = Start();
  EXPECT_EQ(last_seen(*server), seen);
  EXPECT_EQ(server->Stop(), 0);
}

}  // namespace
}  // namespace interlock::e2e
