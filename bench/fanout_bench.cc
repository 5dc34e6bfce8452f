// How long an event takes from its commit to everybody who follows the project, and what a thousand
// followers cost the server. One of them reads nothing, and the kernel already holds all that it
// may for it, so that the server has a message on its way there all the time. The followers run in
// this process, in one epoll loop, so the load generator is part of the figures.

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "process_use.h"
#include "report.h"
#include "testing/server_process.h"
#include "testing/ws_client.h"

namespace interlock::bench {
namespace {

using Clock = std::chrono::steady_clock;
using testing::HttpClient;
using testing::ServerProcess;
using testing::WsClient;

constexpr std::size_t kFollowers = 1000;  // and one that is stalled
constexpr int kWarmUp = 5;
constexpr int kEvents = 100;
constexpr std::chrono::milliseconds kPatience{10'000};

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "fanout_bench: %s\n", what);
  std::exit(1);
}

double Milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

std::string SendMessage(const std::string& id, std::size_t subject_bytes = 0) {
  const std::string body =
      R"({"project":"bench","id":")" + id + R"(","from":"sender","to":["somebody"],"subject":")" +
      std::string(subject_bytes, 's') + R"(","body":")" + std::string(500, 'x') + "\"}";
  return "POST /api/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Everybody who follows, and the one who sends.
class Crowd {
 public:
  explicit Crowd(std::uint16_t port) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    constexpr std::string_view kTarget = "/ws/events?project=bench";
    stalled_.push_back(WsClient::Tcp(port, kTarget));
    sender_.push_back(HttpClient::Tcp(port));
    if (!stalled_[0].open() || !sender_[0].connected()) Fail("the first peers were refused");
    Stall();
    followers_.reserve(kFollowers);
    for (std::size_t i = 0; i < kFollowers; ++i) {
      followers_.push_back(WsClient::Tcp(port, kTarget));
      if (!followers_.back().open()) Fail("a follower was refused");
      Watch(followers_.back().http().fd(), i);
    }
    Watch(sender_[0].fd(), kSender);
  }
  ~Crowd() { ::close(epoll_); }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  // One event, and how long after the answer that told of its commit each follower had it; who had
  // it before the answer counts as 0.
  void Measure(const std::string& id, std::vector<double>& latencies) {
    received_.assign(kFollowers, std::string());
    std::vector<Clock::time_point> arrivals;
    arrivals.reserve(kFollowers);
    if (!sender_[0].Send(SendMessage(id))) Fail("the server does not take a message");
    Clock::time_point committed{};
    const Clock::time_point end = Clock::now() + kPatience;
    while (arrivals.size() < kFollowers || committed == Clock::time_point{}) {
      std::array<epoll_event, 256> ready;
      const int count = ::epoll_wait(epoll_, ready.data(), ready.size(), 100);
      const Clock::time_point now = Clock::now();
      if (now > end) Fail("an event did not reach everybody");
      for (int i = 0; i < count; ++i) {
        if (ready[i].data.u64 != kSender) {
          if (Receive(ready[i].data.u64, id)) arrivals.push_back(Clock::now());
          continue;
        }
        const auto answer = sender_[0].Read();
        if (!answer || answer->status != 200) Fail("a message was refused");
        committed = now;
      }
    }
    for (const Clock::time_point arrival : arrivals) {
      latencies.push_back(arrival > committed ? Milliseconds(arrival - committed) : 0.0);
    }
  }

 private:
  static constexpr std::uint64_t kSender = kFollowers;

  // More than the kernel buffers for one connection: tcp_wmem allows 4 MiB.
  void Stall() {
    constexpr int kMessages = 700;
    constexpr std::size_t kSubjectBytes = 8'000;
    for (int i = 0; i < kMessages; ++i) {
      sender_[0].Send(SendMessage("stall-" + std::to_string(i), kSubjectBytes));
      const auto answer = sender_[0].Read();
      if (!answer || answer->status != 200) Fail("a message was refused");
    }
  }

  void Watch(int fd, std::uint64_t number) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = number}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }

  // True: this follower has the event now. A frame names it near its end or its beginning, so all
  // of it is kept until then.
  bool Receive(std::size_t number, const std::string& id) {
    std::array<char, 16384> chunk;
    const ssize_t size =
        ::recv(followers_[number].http().fd(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (size <= 0) Fail("a follower was closed");
    std::string& text = received_[number];
    const bool before = text.find(id) != std::string::npos;
    text.append(chunk.data(), static_cast<std::size_t>(size));
    return !before && text.find(id) != std::string::npos;
  }

  const int epoll_;
  std::vector<WsClient> followers_;
  std::vector<WsClient> stalled_;   // one
  std::vector<HttpClient> sender_;  // one
  std::vector<std::string> received_;
};

double Percentile(std::vector<double>& sorted, double part) {
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

int Run() {
  RaiseFileLimit();
  std::string directory = std::filesystem::temp_directory_path() / "fanout_bench.XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) return 1;
  {
    ServerProcess server(directory);
    if (!server.ready()) {
      std::fprintf(stderr, "fanout_bench: %s", server.process().Stderr().c_str());
      return 1;
    }
    std::vector<double> latencies;
    latencies.reserve(kFollowers * kEvents);
    double resident = 0;
    {
      Crowd crowd(server.port());
      for (int i = 0; i < kWarmUp; ++i) crowd.Measure("warm-up-" + std::to_string(i), latencies);
      latencies.clear();
      for (int i = 0; i < kEvents; ++i) crowd.Measure("event-" + std::to_string(i), latencies);
      resident = ResidentMiB(server.process().pid());
    }
    std::sort(latencies.begin(), latencies.end());
    Report({"fan-out to 1000 followers, commit to receipt, p50", Percentile(latencies, 0.5), "ms",
            "promised of p99", 50});
    Report({"fan-out to 1000 followers, commit to receipt, p99", Percentile(latencies, 0.99), "ms",
            "promised", 50});
    Report({"resident memory with 1001 followers", resident, "MiB", "promised", 150});
    server.Stop();
  }
  std::filesystem::remove_all(directory);
  return 0;
}

}  // namespace
}  // namespace interlock::bench

int main() { return interlock::bench::Run(); }
