#include "api/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "api/prometheus.h"
#include "api/route.h"
#include "testing/fake_clock.h"

namespace interlock::api {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

const std::array<Route, 2> kRoutes = {{
    {.method = Method::kGet, .path = "/api/things/{id...}", .handler = nullptr, .summary = ""},
    {.method = Method::kPost, .path = "/api/things", .handler = nullptr, .summary = ""},
}};
const Route* const kGet = &kRoutes[0];
const Route* const kPost = &kRoutes[1];

class MetricsTest : public ::testing::Test {
 protected:
  // The value of a sample, by its name and labels as they stand in the text; "" when it is absent.
  std::string Sample(const std::string& sample) const {
    std::istringstream lines(metrics_.Text(counted_));
    std::string line;
    while (std::getline(lines, line)) {
      if (line.starts_with(sample + " ")) return line.substr(sample.size() + 1);
    }
    return "";
  }

  testing::FakeClock clock_;
  ServerNumbers numbers_;
  Counted counted_;
  Metrics metrics_{kRoutes, clock_, [this] { return numbers_; }};
};

TEST_F(MetricsTest, RequestsAreCountedByMethodRouteAndStatus) {
  metrics_.Record(kGet, Method::kGet, 200, microseconds(5));
  metrics_.Record(kGet, Method::kGet, 200, microseconds(5));
  metrics_.Record(kGet, Method::kGet, 404, microseconds(5));
  metrics_.Record(kPost, Method::kPost, 503, microseconds(5));
  metrics_.Record(kPost, Method::kPost, 299, microseconds(5));
  const std::string name = "intermute_http_requests_total";
  EXPECT_EQ(Sample(name + R"({method="GET",route="/api/things/{id...}",status="200"})"), "2");
  EXPECT_EQ(Sample(name + R"({method="GET",route="/api/things/{id...}",status="404"})"), "1");
  EXPECT_EQ(Sample(name + R"({method="POST",route="/api/things",status="503"})"), "1");
  EXPECT_EQ(Sample(name + R"({method="POST",route="/api/things",status="other"})"), "1");
}

TEST_F(MetricsTest, WhatFitsNoRouteSharesOneName) {
  metrics_.Record(nullptr, Method::kGet, 404, microseconds(5));
  metrics_.Record(nullptr, Method::kOther, 405, microseconds(5));
  const std::string name = "intermute_http_requests_total";
  EXPECT_EQ(Sample(name + R"({method="GET",route="none",status="404"})"), "1");
  EXPECT_EQ(Sample(name + R"({method="other",route="none",status="405"})"), "1");
}

TEST_F(MetricsTest, EveryStatusThatHasANameIsCountedByItself) {
  for (int status = 100; status < 600; ++status) {
    if (http::ReasonPhrase(status).empty()) continue;
    metrics_.Record(kGet, Method::kGet, status, microseconds(5));
    EXPECT_EQ(Sample("intermute_http_requests_total{method=\"GET\",route=\"/api/things/{id...}\","
                     "status=\"" +
                     std::to_string(status) + "\"}"),
              "1");
  }
  EXPECT_THAT(metrics_.Text({}), Not(HasSubstr("status=\"other\"")));
}

TEST_F(MetricsTest, ABucketHoldsWhatTookAtMostItsBound) {
  const auto bucket = [this](const std::string& bound) {
    return Sample(
        "intermute_http_request_duration_seconds_bucket{method=\"GET\","
        "route=\"/api/things/{id...}\",le=\"" +
        bound + "\"}");
  };
  metrics_.Record(kGet, Method::kGet, 200, Duration::zero());
  metrics_.Record(kGet, Method::kGet, 200, microseconds(100));
  metrics_.Record(kGet, Method::kGet, 200, microseconds(101));
  metrics_.Record(kGet, Method::kGet, 200, std::chrono::seconds(10));
  metrics_.Record(kGet, Method::kGet, 200, std::chrono::seconds(11));
  EXPECT_EQ(bucket("0.0001"), "2");
  EXPECT_EQ(bucket("0.00025"), "3");
  EXPECT_EQ(bucket("5"), "3");
  EXPECT_EQ(bucket("10"), "4");
  EXPECT_EQ(bucket("+Inf"), "5");
  const std::string labels = R"({method="GET",route="/api/things/{id...}"})";
  EXPECT_EQ(Sample("intermute_http_request_duration_seconds_count" + labels), "5");
  EXPECT_EQ(Sample("intermute_http_request_duration_seconds_sum" + labels), "21.000201");
  EXPECT_EQ(Sample("intermute_http_request_duration_seconds_count"
                   R"({method="POST",route="/api/things"})"),
            "");
}

TEST_F(MetricsTest, ATimeBelowZeroAddsNothingToTheSum) {
  metrics_.Record(kGet, Method::kGet, 200, microseconds(100));
  metrics_.Record(kGet, Method::kGet, 200, microseconds(-5));
  const std::string labels = R"({method="GET",route="/api/things/{id...}"})";
  EXPECT_EQ(Sample("intermute_http_request_duration_seconds_count" + labels), "2");
  EXPECT_EQ(Sample("intermute_http_request_duration_seconds_sum" + labels), "0.0001");
}

TEST_F(MetricsTest, TheNumbersOfTheServerStandThere) {
  numbers_.version = "1.2.3";
  numbers_.commit = "abc";
  numbers_.write_queue = {.depth = 1, .depth_max = 2, .refused = 3, .cancelled = 4};
  numbers_.read_queue = {.depth = 5, .depth_max = 6, .refused = 7, .cancelled = 8};
  numbers_.writer = {.commits = 9,
                     .committed = 10,
                     .failed = 11,
                     .unknown = 12,
                     .reopened = 13,
                     .batch_size_max = 14,
                     .commit_time_sum = std::chrono::milliseconds(1500),
                     .commit_time_max = std::chrono::milliseconds(250)};
  numbers_.breaker_state = 2;
  numbers_.breaker_read_state = 1;
  numbers_.breaker_write_state = 2;
  numbers_.breaker_opened = 15;
  numbers_.connections = 16;
  numbers_.event_cursor = 17;
  numbers_.websocket = {.consumers = 18, .lagged = 19};
  numbers_.process = {.resident_bytes = 20, .open_files = 21, .cpu_seconds = 0.5};
  numbers_.reservation_waiters = 24;
  counted_ = {.agents_alive = 22, .reservations_active = 25};
  clock_.Advance(std::chrono::seconds(23));
  const std::map<std::string, std::string> expected = {
      {R"(intermute_storage_queue_depth{queue="writer"})", "1"},
      {R"(intermute_storage_queue_depth{queue="readers"})", "5"},
      {R"(intermute_storage_queue_depth_max{queue="writer"})", "2"},
      {R"(intermute_storage_queue_depth_max{queue="readers"})", "6"},
      {R"(intermute_storage_refused_total{queue="writer"})", "3"},
      {R"(intermute_storage_refused_total{queue="readers"})", "7"},
      {R"(intermute_storage_cancelled_total{queue="writer"})", "4"},
      {R"(intermute_storage_cancelled_total{queue="readers"})", "8"},
      {R"(intermute_storage_writes_total{result="committed"})", "10"},
      {R"(intermute_storage_writes_total{result="failed"})", "11"},
      {R"(intermute_storage_writes_total{result="unknown"})", "12"},
      {"intermute_storage_batch_writes_sum", "10"},
      {"intermute_storage_batch_writes_count", "9"},
      {"intermute_storage_batch_writes_max", "14"},
      {"intermute_storage_commit_duration_seconds_sum", "1.5"},
      {"intermute_storage_commit_duration_seconds_count", "9"},
      {"intermute_storage_commit_duration_seconds_max", "0.25"},
      {"intermute_storage_reopened_total", "13"},
      {"intermute_circuit_breaker_state", "2"},
      {"intermute_circuit_breaker_read_state", "1"},
      {"intermute_circuit_breaker_write_state", "2"},
      {"intermute_circuit_breaker_opened_total", "15"},
      {"intermute_connections_open", "16"},
      {"intermute_event_cursor", "17"},
      {"intermute_websocket_consumers", "18"},
      {"intermute_websocket_lagged_total", "19"},
      {"process_resident_memory_bytes", "20"},
      {"process_open_fds", "21"},
      {"process_cpu_seconds_total", "0.5"},
      {"intermute_agents_alive", "22"},
      {"intermute_reservation_waiters", "24"},
      {"intermute_reservations_active", "25"},
      {"intermute_uptime_seconds", "23"},
      {R"(intermute_build_info{version="1.2.3",commit="abc"})", "1"},
  };
  for (const auto& [sample, value] : expected) EXPECT_EQ(Sample(sample), value) << sample;
}

TEST_F(MetricsTest, WhatIsNotKnownIsAbsent) {
  EXPECT_THAT(metrics_.Text({}), Not(HasSubstr("agents_alive")));
  EXPECT_THAT(metrics_.Text({}), Not(HasSubstr("process_")));
}

// What the format demands of a text: each family is announced once, right before its samples, and
// no sample comes twice.
void ExpectWellFormed(const std::string& text) {
  const auto is_sample = MatchesRegex(R"([a-z_]+(\{([a-z]+="([^"\]|\\["\n])*",?)+\})? [0-9.e+-]+)");
  const auto is_type = MatchesRegex("# TYPE [a-z_]+ (counter|gauge|histogram|summary)");
  constexpr std::string_view kType = "# TYPE ";
  std::set<std::string> families;
  std::set<std::string> samples;
  std::string family;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with("# HELP ")) continue;
    if (line.starts_with("# ")) {
      ASSERT_THAT(line, is_type);
      family = line.substr(kType.size(), line.rfind(' ') - kType.size());
      EXPECT_TRUE(families.insert(family).second) << line;
      continue;
    }
    ASSERT_THAT(line, is_sample);
    std::string rest = line.substr(0, line.find_first_of("{ "));
    ASSERT_TRUE(rest.starts_with(family)) << line;
    rest.erase(0, family.size());
    EXPECT_TRUE(rest.empty() || rest == "_sum" || rest == "_count" || rest == "_bucket") << line;
    EXPECT_TRUE(samples.insert(line.substr(0, line.rfind(' '))).second) << line;
  }
  EXPECT_TRUE(text.ends_with("\n"));
}

TEST_F(MetricsTest, TheTextIsWellFormed) {
  metrics_.Record(kGet, Method::kGet, 200, microseconds(70));
  metrics_.Record(kPost, Method::kPost, 201, microseconds(70));
  for (int method = 0; method <= static_cast<int>(Method::kOther); ++method) {
    metrics_.Record(nullptr, static_cast<Method>(method), 404, std::chrono::hours(1));
  }
  numbers_.process = {.resident_bytes = 1, .open_files = 1, .cpu_seconds = 1e-9};
  ExpectWellFormed(metrics_.Text({.agents_alive = 3}));
}

TEST(PrometheusTextTest, LabelValuesAreEscaped) {
  PrometheusText text;
  text.Family("x", PrometheusText::Type::kGauge, "About x.");
  text.Add(std::uint64_t{7}, {{"a", "q\"b\\n\nend"}, {"b", ""}});
  EXPECT_EQ(std::move(text).Take(),
            "# HELP x About x.\n# TYPE x gauge\nx{a=\"q\\\"b\\\\n\\nend\",b=\"\"} 7\n");
}

TEST_F(MetricsTest, NothingIsLostWhenManyThreadsRecordAndOneReads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 5'000;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < kEach; ++i) {
        metrics_.Record(kPost, Method::kPost, 200, microseconds(i));
      }
    });
  }
  for (int i = 0; i < 20; ++i) ExpectWellFormed(metrics_.Text({}));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Sample("intermute_http_request_duration_seconds_count"
                   R"({method="POST",route="/api/things"})"),
            std::to_string(kThreads * kEach));
}

}  // namespace
}  // namespace interlock::api
