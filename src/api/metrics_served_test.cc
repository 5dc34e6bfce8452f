#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

#include "api/dispatch_fixture.h"
#include "api/metrics.h"
#include "store/agents.h"

namespace interlock::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MetricsServedTest : public RealDispatchTest {
 protected:
  std::string Text() { return Ask(To(Method::kGet, "/metrics")).body; }

  void InsertAgentSeen(char name, Duration ago) {
    const Timestamp seen = clock_.Now() - ago;
    const std::string id(1, name);
    const domain::Agent agent = {
        .id = id, .project = "p", .session_id = id, .name = id, .last_seen = seen};
    const std::array<std::byte, 32> token = {static_cast<std::byte>(name)};
    Write([&](db::Transaction& tx) { return store::InsertAgent(tx, agent, token); });
  }
};

TEST_F(MetricsServedTest, AgentsThatWereSeenLatelyAreAlive) {
  EXPECT_THAT(Text(), HasSubstr("\nintermute_agents_alive 0\n"));
  InsertAgentSeen('a', Duration::zero());
  InsertAgentSeen('b', std::chrono::minutes(4));
  InsertAgentSeen('c', std::chrono::minutes(6));
  EXPECT_THAT(Text(), HasSubstr("\nintermute_agents_alive 2\n"));
}

TEST_F(MetricsServedTest, WithoutStorageTheRestIsStillTold) {
  services_.storage.Stop();
  const Response answer = Ask(To(Method::kGet, "/metrics"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.Find("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(answer.body, Not(HasSubstr("agents_alive")));
  EXPECT_THAT(answer.body, HasSubstr("\nintermute_uptime_seconds 0\n"));
}

TEST_F(MetricsServedTest, EveryAnswerOfTheDispatcherIsCounted) {
  Ask(To(Method::kGet, "/openapi.json"));
  Ask(To(Method::kGet, "/nowhere"));
  Ask(To(Method::kGet, "/%zz"));
  Ask(To(Method::kGet, "//openapi.json"));
  Ask(To(Method::kPost, "/openapi.json"));
  http::Request stranger = To(Method::kGet, "/openapi.json");
  stranger.peer.address = "203.0.113.9";
  Ask(std::move(stranger));
  const std::string text = Text();
  const auto counted = [&](const std::string& labels) {
    return HasSubstr("\nintermute_http_requests_total{" + labels + "} 1\n");
  };
  EXPECT_THAT(text, counted(R"(method="GET",route="/openapi.json",status="200")"));
  EXPECT_THAT(text, counted(R"(method="GET",route="/openapi.json",status="401")"));
  EXPECT_THAT(text, counted(R"(method="GET",route="none",status="404")"));
  EXPECT_THAT(text, counted(R"(method="GET",route="none",status="400")"));
  EXPECT_THAT(text, counted(R"(method="GET",route="none",status="301")"));
  EXPECT_THAT(text, counted(R"(method="POST",route="none",status="405")"));
}

// Requests of a router that was built from another table.
TEST_F(MetricsServedTest, ARouteOfAnotherTableCountsAsNone) {
  const Route stranger = {.method = Method::kGet, .path = "/x", .handler = nullptr, .summary = ""};
  services_.metrics.Record(&stranger, Method::kPut, 200, Duration::zero());
  EXPECT_THAT(Text(), HasSubstr(R"({method="PUT",route="none",status="200"} 1)"));
}

}  // namespace
}  // namespace interlock::api
