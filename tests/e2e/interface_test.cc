// What the server says of itself: its description and its numbers. The description that is served
// here is the one against which check_answers.py holds every answer of the suite.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "e2e_test.h"
#include "json/parse.h"
#include "json/value.h"

namespace interlock::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class InterfaceTest : public E2eTest {
 public:
  ~InterfaceTest() override { EXPECT_EQ(server_->Stop(), 0) << server_->process().Stderr(); }

 protected:
  // The value of a sample of /metrics; -1 when it is absent.
  double Metric(HttpClient& client, const std::string& sample) const {
    const auto answer = client.Get("/metrics");
    EXPECT_EQ(answer->status, 200);
    const std::size_t at = answer->body.find("\n" + sample + " ");
    if (at == std::string::npos) return -1;
    return std::stod(answer->body.substr(at + sample.size() + 2));
  }

  const std::unique_ptr<ServerProcess> server_ = Start();
};

TEST_F(InterfaceTest, TheInterfaceIsServedAsOpenApi) {
  HttpClient client = server_->Connect();
  const auto answer = client.Get("/openapi.json");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->Header("Content-Type"), "application/json");
  const auto document = json::Parse(answer->body);
  ASSERT_TRUE(document.ok()) << document.error();
  EXPECT_EQ(json::View(document->at("openapi").get_string()), "3.1.0");
  EXPECT_TRUE(document->at("paths").at("/openapi.json").get_object().contains("get"));
  EXPECT_EQ(client.Get("/openapi.json")->body, answer->body);
}

TEST_F(InterfaceTest, TheMetricsCountWhatWasAsked) {
  HttpClient client = server_->Connect();
  const std::string health =
      R"(intermute_http_requests_total{method="GET",route="/health",status="200"})";
  const std::string latency =
      R"(intermute_http_request_duration_seconds_count{method="GET",route="/health"})";
  EXPECT_EQ(Metric(client, health), -1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Get("/health")->status, 200);
  EXPECT_EQ(Metric(client, health), 3);
  EXPECT_EQ(Metric(client, latency), 3);
  client.Get("/nowhere/" + std::string(100, 'x'));
  client.Get("/nowhere/else");
  EXPECT_EQ(Metric(client, R"(intermute_http_requests_total{method="GET",route="none",)"
                           R"(status="404"})"),
            2);
  HttpClient broken = server_->Connect();
  broken.Send("broken\r\n\r\n");
  EXPECT_EQ(broken.Read()->status, 400);
  EXPECT_EQ(Metric(client, R"(intermute_http_requests_total{method="other",route="none",)"
                           R"(status="400"})"),
            1);
}

TEST_F(InterfaceTest, TheMetricsTellHowTheServerIs) {
  HttpClient client = server_->Connect();
  const auto answer = client.Get("/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->Header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(answer->body, HasSubstr("intermute_build_info{version=\""));
  EXPECT_THAT(answer->body, Not(HasSubstr("nan")));
  EXPECT_EQ(Metric(client, "intermute_agents_alive"), 0);
  EXPECT_EQ(Metric(client, "intermute_circuit_breaker_state"), 0);
  EXPECT_EQ(Metric(client, "intermute_connections_open"), 1);
  EXPECT_EQ(Metric(client, R"(intermute_storage_queue_depth{queue="writer"})"), 0);
  EXPECT_GE(Metric(client, "process_open_fds"), 3);
  EXPECT_GE(Metric(client, "process_resident_memory_bytes"), 1e6);
  const HttpClient other = server_->Connect();
  HttpClient third = server_->Connect();
  EXPECT_EQ(third.Get("/health")->status, 200);
  EXPECT_EQ(Metric(client, "intermute_connections_open"), 3);
}

TEST_F(InterfaceTest, TheMetricsFollowAgentsAndEvents) {
  HttpClient client = server_->Connect();
  EXPECT_EQ(Metric(client, "intermute_event_cursor"), 0);
  client.Request("POST", "/api/agents", R"({"name":"ada","project":"p"})");
  EXPECT_EQ(client.Read()->status, 200);
  EXPECT_EQ(Metric(client, "intermute_agents_alive"), 1);
  // At least: the sweeper writes too, when it likes.
  EXPECT_GE(Metric(client, R"(intermute_storage_writes_total{result="committed"})"), 1);
  EXPECT_GE(Metric(client, "intermute_storage_batch_writes_count"), 1);
  EXPECT_GT(Metric(client, "intermute_storage_commit_duration_seconds_sum"), 0);
  EXPECT_EQ(Metric(client, "intermute_websocket_consumers"), 0);
  // The log is read after the commit, by another thread.
  const auto end = std::chrono::steady_clock::now() + ServerProcess::kPatience;
  while (Metric(client, "intermute_event_cursor") < 1) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
  }
  EXPECT_EQ(Metric(client, "intermute_event_cursor"), 1);
}

}  // namespace
}  // namespace interlock::e2e
