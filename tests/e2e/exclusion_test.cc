// The promise of the product: no two agents hold the same path at once. Judged from what clients
// asked and were told, never from what the server says of itself.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "e2e_test.h"
#include "glob/overlap.h"
#include "json/parse.h"
#include "json/value.h"
#include "testing/on_threads.h"
#include "testing/random.h"
#include "testing/seeded_random.h"

namespace interlock::e2e {
namespace {

using testing::Below;
using Clock = std::chrono::steady_clock;

constexpr int kClients = testing::kSlowBuild ? 16 : 64;
constexpr int kRounds = testing::kSlowBuild ? 60 : 1000;  // of each client

// Each overlaps some of the others, and not all.
const std::vector<std::string> kPatterns = {
    "src/main.cc",     "src/*.cc",          "src/main.*",
    "**/*.cc",         "{src,lib}/main.cc", "lib/*.[ch]*",
    "src/[a-m]*.cc",   "docs/**",           "**",
    "docs/{a,b}/*.md", "docs/a/x.md",       "lib/util.h",
    "src/**/*.h",      "src/deep/a/b.h",    "*/main.cc",
    "tests/?_*.cc",    "tests/a_test.cc",   "tests/**/",
    "lib/**",          "src/deep/**",
};

// What a client was told it held: surely from when it heard so until it let go.
struct Hold {
  std::string agent;
  std::size_t pattern;
  std::int64_t fence;
  Clock::time_point granted;   // the answer was read
  Clock::time_point released;  // the release was about to be sent
};

std::string ReserveBody(const std::string& agent, const std::string& pattern, int wait) {
  return R"({"project":"p","exclusive":true,"agent_id":")" + agent + R"(","path_pattern":")" +
         pattern + R"(","wait_seconds":)" + std::to_string(wait) + "}";
}

std::string Field(const HttpAnswer& answer, std::string_view name) {
  const json::Value value = json::Parse(answer.body).value();
  return std::string(json::View(value.get_object().at(name).get_string()));
}

class ExclusionTest : public E2eTest {
 protected:
  static HttpAnswer Ask(HttpClient& client, std::string_view method, const std::string& target,
                        const std::string& body, const std::string& headers = "") {
    EXPECT_TRUE(client.Request(method, target, body, headers));
    return client.Read().value_or(HttpAnswer{});
  }

  // One client's rounds: reserve, and hold for a moment what is granted.
  std::vector<Hold> Play(ServerProcess& server, int number) {
    std::mt19937_64 rng(testing::TestSeed() + static_cast<std::uint64_t>(number));
    HttpClient client = server.Connect();
    client.StopRecording();
    const std::string agent = "agent-" + std::to_string(number);
    std::vector<Hold> holds;
    for (int round = 0; round < kRounds; ++round) {
      const std::size_t pattern = Below(rng, kPatterns.size());
      const int wait = Below(rng, 50) == 0 ? 1 : 0;
      const HttpAnswer answer =
          Ask(client, "POST", "/api/reservations", ReserveBody(agent, kPatterns[pattern], wait));
      if (answer.status == 409) {
        EXPECT_NE(answer.body.find(R"("witness")"), std::string::npos) << answer.body;
        continue;
      }
      EXPECT_EQ(answer.status, 201) << answer.body;
      if (answer.status != 201) return holds;
      Hold hold{
          .agent = agent, .pattern = pattern, .fence = 0, .granted = Clock::now(), .released = {}};
      const json::Value made = json::Parse(answer.body).value();
      hold.fence = made.get_object().at("fence").as_int64();
      if (Below(rng, 4) == 0) std::this_thread::yield();
      hold.released = Clock::now();
      EXPECT_EQ(Ask(client, "DELETE", "/api/reservations/" + Field(answer, "id"), "",
                    "X-Agent-ID: " + agent + "\r\n")
                    .status,
                200);
      holds.push_back(std::move(hold));
    }
    return holds;
  }

  // All clients at once, on a server that was prepared.
  void PlayAll(const std::function<void(ServerProcess&)>& prepare = [](ServerProcess&) {});
};

std::vector<std::vector<bool>> Overlaps() {
  std::vector<std::vector<bool>> table(kPatterns.size(), std::vector<bool>(kPatterns.size()));
  for (std::size_t a = 0; a < kPatterns.size(); ++a) {
    for (std::size_t b = 0; b < kPatterns.size(); ++b) {
      table[a][b] = glob::Overlap(glob::Pattern::Parse(kPatterns[a]).value(),
                                  glob::Pattern::Parse(kPatterns[b]).value())
                        .value()
                        .has_value();
    }
  }
  return table;
}

// How many pairs of holds contradict each other. `holds` in the order of fences: an earlier grant
// must have been let go before a later one that overlaps it was heard of.
int Contradictions(const std::vector<Hold>& holds) {
  const auto overlap = Overlaps();
  int count = 0;
  for (std::size_t later = 0; later < holds.size(); ++later) {
    // Nobody holds for long, so only what was granted shortly before can still be held.
    const std::size_t first = later < 2000 ? 0 : later - 2000;
    for (std::size_t earlier = first; earlier < later; ++earlier) {
      const Hold& a = holds[earlier];
      const Hold& b = holds[later];
      if (a.agent == b.agent || !overlap[a.pattern][b.pattern]) continue;
      if (a.released >= b.granted) ++count;
    }
  }
  return count;
}

TEST(ExclusionHistoryTest, AHistoryWithTwoHoldersIsFound) {
  const Clock::time_point zero;
  const auto at = [&](int ms) { return zero + std::chrono::milliseconds(ms); };
  std::vector<Hold> holds = {{"a", 0, 1, at(10), at(20)}, {"b", 1, 2, at(30), at(40)}};
  EXPECT_EQ(Contradictions(holds), 0);
  holds[1].granted = at(15);
  EXPECT_EQ(Contradictions(holds), 1);
  holds[1].pattern = 10;  // docs/a/x.md
  EXPECT_EQ(Contradictions(holds), 0);
}

void ExclusionTest::PlayAll(const std::function<void(ServerProcess&)>& prepare) {
  const auto server = Start();
  prepare(*server);
  std::vector<Hold> all;
  std::mutex mutex;
  testing::OnThreads(kClients, [&](int number) {
    const std::vector<Hold> holds = Play(*server, number);
    const std::scoped_lock lock(mutex);
    all.insert(all.end(), holds.begin(), holds.end());
  });
  EXPECT_EQ(server->Stop(), 0);
  std::ranges::sort(all, {}, &Hold::fence);
  EXPECT_GT(all.size(), static_cast<std::size_t>(kRounds / 2)) << "somebody must get something";
  EXPECT_EQ(std::ranges::adjacent_find(all, {}, &Hold::fence), all.end()) << "a fence repeats";
  EXPECT_EQ(Contradictions(all), 0);
}

TEST_F(ExclusionTest, NoPathEverHasTwoHolders) { PlayAll(); }

// So much is held that nothing can be decided without a look beside the write lock.
TEST_F(ExclusionTest, NoPathEverHasTwoHoldersInAFullProject) {
  PlayAll([](ServerProcess& server) {
    HttpClient client = server.Connect();
    client.StopRecording();
    for (int agent = 0; agent < 32; ++agent) {
      std::string body = R"({"project":"p","exclusive":false,"agent_id":"filler-)" +
                         std::to_string(agent) + R"(","path_patterns":[)";
      for (int i = 0; i < 64; ++i) {
        body += (i > 0 ? ",\"" : "\"") + ("zz*/" + std::to_string(agent * 64 + i)) + "\"";
      }
      EXPECT_EQ(Ask(client, "POST", "/api/reservations", body + "]}").status, 201);
    }
  });
}

TEST_F(ExclusionTest, WhatWasAcknowledgedUnderLoadIsThereAfterAStop) {
  std::set<std::string> acknowledged;
  std::mutex mutex;
  {
    const auto server = Start();
    std::atomic<int> total = 0;
    std::vector<std::thread> clients;
    clients.reserve(8);
    for (int number = 0; number < 8; ++number) {
      clients.emplace_back([&, number] {
        HttpClient client = server->Connect();
        client.StopRecording();
        for (int i = 0;; ++i) {
          const std::string file = std::to_string(number) + "/" + std::to_string(i);
          const std::string agent = std::to_string(number) + "-" + std::to_string(i / 200);
          if (!client.Request("POST", "/api/reservations", ReserveBody(agent, file, 0))) return;
          const auto answer = client.Read();
          if (!answer || answer->status != 201) return;
          const std::scoped_lock lock(mutex);
          acknowledged.insert(file);
          ++total;
        }
      });
    }
    while (total < (testing::kSlowBuild ? 100 : 1000)) std::this_thread::yield();
    EXPECT_EQ(server->Stop(), 0);
    for (std::thread& client : clients) client.join();
  }
  EXPECT_FALSE(std::filesystem::exists(File("test.db-wal")));
  const auto server = Start();
  HttpClient client = server->Connect();
  client.StopRecording();
  const HttpAnswer answer = Ask(client, "GET", "/api/reservations?project=p", "");
  const json::Value listed =
      json::Parse(answer.body, {.limits = {.bytes_max = std::size_t{64} << 20U}}).value();
  std::set<std::string> kept;
  for (const json::Value& one : listed.get_object().at("reservations").as_array()) {
    kept.insert(std::string(json::View(one.get_object().at("path_pattern").get_string())));
  }
  EXPECT_TRUE(std::ranges::includes(kept, acknowledged));
  EXPECT_LE(kept.size(), acknowledged.size() + 8) << "only what was on its way may be unknown";
  EXPECT_EQ(server->Stop(), 0);
}

}  // namespace
}  // namespace interlock::e2e
