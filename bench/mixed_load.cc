#include "mixed_load.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <queue>
#include <random>
#include <utility>

#include "testing/http_client.h"

namespace interlock::bench {
namespace {

using Clock = std::chrono::steady_clock;
using testing::HttpClient;

constexpr std::size_t kSamplesMax = 1000;
constexpr int kThreads = 100;
constexpr std::string_view kProject = "bench";

[[noreturn]] void Fail(std::string_view what) {
  std::fprintf(stderr, "mixed_load: %.*s\n", static_cast<int>(what.size()), what.data());
  std::exit(1);
}

// The text of the member `name` of a JSON object, as the server writes it: without blanks. `name`
// has its quotes and its colon.
std::string_view Member(std::string_view json, std::string_view name) {
  const std::size_t at = json.rfind(name);
  if (at == std::string_view::npos) return {};
  std::string_view rest = json.substr(at + name.size());
  if (rest.starts_with('"')) rest.remove_prefix(1);
  return rest.substr(0, rest.find_first_of("\",}"));
}

// The beginning of an answer.
struct Head {
  int status = 0;
  std::size_t head_bytes = 0;
  std::size_t all_bytes = 0;
};

std::optional<Head> ReadHead(std::string_view received) {
  constexpr std::string_view kLength = "\r\nContent-Length: ";
  constexpr std::size_t kStatusAt = 9;  // after "HTTP/1.1 "
  const std::size_t end = received.find("\r\n\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  Head head{.head_bytes = end + 4};
  std::from_chars(received.data() + kStatusAt, received.data() + end, head.status);
  std::size_t body = 0;
  if (const std::size_t at = received.find(kLength); at < end) {
    std::from_chars(received.data() + at + kLength.size(), received.data() + end, body);
  }
  head.all_bytes = head.head_bytes + body;
  return head;
}

struct Agent {
  std::string id;
  std::optional<HttpClient> connection = {};
  std::string received = {};
  Kind asked = Kind::kInbox;
  Clock::time_point asked_at = {};
  std::string cursor = "0";      // of the mail it has read
  std::string reservation = {};  // that it holds; "" = none
  int answers = 0;
};

bool IsRead(Kind kind) { return kind == Kind::kInbox || kind == Kind::kCheck; }

}  // namespace

std::vector<std::string> RegisterAgents(std::uint16_t port, int count) {
  HttpClient client = HttpClient::Tcp(port);
  std::vector<std::string> agents;
  agents.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    client.Request("POST", "/api/agents",
                   R"({"project":"bench","name":"agent )" + std::to_string(i) + "\"}");
    const auto answer = client.Read();
    if (!answer || answer->status != 200) Fail("an agent was not registered");
    agents.emplace_back(Member(answer->body, "\"agent_id\":"));
  }
  return agents;
}

class MixedLoad::Impl {
 public:
  Impl(const std::vector<std::string>& agents, const Options& options)
      : options_(options), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    agents_.reserve(agents.size());
    for (const std::string& id : agents) agents_.push_back({.id = id});
  }
  ~Impl() { ::close(epoll_); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Measured Run(std::uint16_t port, std::chrono::milliseconds warm_up,
               std::chrono::milliseconds measured);
  std::array<std::vector<Answer>, kKinds>& samples() { return samples_; }

 private:
  void Connect(std::size_t number);
  Kind Choose(const Agent& agent);
  std::string RequestOf(const Agent& agent);
  void Ask(std::size_t number);
  void AskLater(std::size_t number);
  void AskDue(Clock::time_point now);
  void Receive(std::size_t number);
  void Answered(Agent& agent, const Head& head);
  void Count(const Agent& agent, const Head& head, Clock::time_point now);
  int PauseMillis(Clock::time_point now) const;

  const Options options_;
  const int epoll_;
  std::uint16_t port_ = 0;
  std::vector<Agent> agents_;
  std::mt19937_64 random_{1};
  std::array<std::vector<Answer>, kKinds> samples_;
  Measured measured_;
  Clock::time_point begin_;  // of what is measured
  Clock::time_point end_;
  int under_way_ = 0;
  using Due = std::pair<Clock::time_point, std::size_t>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;  // who asks later
};

void MixedLoad::Impl::Connect(std::size_t number) {
  Agent& agent = agents_[number];
  agent.connection.reset();
  agent.connection.emplace(HttpClient::Tcp(port_));
  if (!agent.connection->connected()) Fail("the server takes no connection");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = number}};
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, agent.connection->fd(), &event);
}

Kind MixedLoad::Impl::Choose(const Agent& agent) {
  const auto part = random_() % 100;
  if (part < 50) return Kind::kInbox;
  if (part < 70) return Kind::kHeartbeat;
  if (part < 85) return Kind::kSend;
  if (part < 95) return agent.reservation.empty() ? Kind::kReserve : Kind::kRelease;
  return Kind::kCheck;
}

std::string MixedLoad::Impl::RequestOf(const Agent& agent) {
  static const std::string kBodyText(500, 'x');
  const std::string project(kProject);
  const Agent& other = agents_[random_() % agents_.size()];
  const std::string file = "src/part" + std::to_string(random_() % 50) + "/" + agent.id + ".cc";
  std::string line;
  std::string body;
  switch (agent.asked) {
    case Kind::kInbox:
      line = "GET /api/inbox/" + agent.id + "?project=" + project + "&since_cursor=" + agent.cursor;
      break;
    case Kind::kHeartbeat:
      line = "POST /api/agents/" + agent.id + "/heartbeat";
      body = R"({"focus_state":"thinking"})";
      break;
    case Kind::kSend:
      line = "POST /api/messages";
      body = R"({"project":")" + project + R"(","from":")" + agent.id + R"(","to":[")" + other.id +
             R"("],"thread_id":"thread )" + std::to_string(random_() % kThreads) +
             R"(","subject":"About the tests","body":")" + kBodyText + "\"}";
      break;
    case Kind::kReserve:
      line = "POST /api/reservations";
      body = R"({"project":")" + project + R"(","agent_id":")" + agent.id +
             R"(","path_pattern":")" + file + R"(","exclusive":true,"reason":"a change"})";
      break;
    case Kind::kRelease:
      line = "DELETE /api/reservations/" + agent.reservation;
      break;
    case Kind::kCheck:
      line = "GET /api/reservations/check?project=" + project + "&pattern=src/part" +
             std::to_string(random_() % 50) + "/" + other.id + ".cc";
      break;
  }
  std::string text = line + " HTTP/1.1\r\nHost: localhost\r\nX-Agent-ID: " + agent.id + "\r\n";
  if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + body;
}

void MixedLoad::Impl::Ask(std::size_t number) {
  Agent& agent = agents_[number];
  agent.asked = Choose(agent);
  const std::string text = RequestOf(agent);
  agent.asked_at = Clock::now();
  const ssize_t sent = ::send(agent.connection->fd(), text.data(), text.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(text.size())) Fail("the server does not take a request");
  ++under_way_;
}

// At the given pace, each agent at moments of its own.
void MixedLoad::Impl::AskLater(std::size_t number) {
  const double mean = static_cast<double>(agents_.size()) / options_.requests_per_s;
  const double pause = mean * 2 * static_cast<double>(random_() % 1024) / 1024;
  due_.emplace(Clock::now() + std::chrono::microseconds(static_cast<std::int64_t>(pause * 1e6)),
               number);
}

void MixedLoad::Impl::AskDue(Clock::time_point now) {
  while (!due_.empty() && due_.top().first <= now) {
    const std::size_t number = due_.top().second;
    due_.pop();
    if (now < end_) Ask(number);
  }
}

void MixedLoad::Impl::Receive(std::size_t number) {
  std::array<char, 65536> buffer;
  Agent& agent = agents_[number];
  const ssize_t size = ::recv(agent.connection->fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size <= 0) Fail("the server closed a connection");
  agent.received.append(buffer.data(), static_cast<std::size_t>(size));
  const std::optional<Head> head = ReadHead(agent.received);
  if (!head || agent.received.size() < head->all_bytes) return;
  --under_way_;
  const Clock::time_point now = Clock::now();
  Count(agent, *head, now);
  Answered(agent, *head);
  agent.received.clear();
  ++agent.answers;
  if (options_.reconnect_every > 0 && agent.answers % options_.reconnect_every == 0) {
    Connect(number);
    ++measured_.reconnects;
  }
  if (now >= end_) return;
  if (options_.requests_per_s > 0) return AskLater(number);
  Ask(number);
}

void MixedLoad::Impl::Count(const Agent& agent, const Head& head, Clock::time_point now) {
  if (head.status != 200 && head.status != 201) Fail(agent.received);
  ++measured_.all_answers;
  if (now >= begin_ && now < end_) ++measured_.answers;
  if (agent.asked_at < begin_) return;
  const double micros = std::chrono::duration<double, std::micro>(now - agent.asked_at).count();
  (IsRead(agent.asked) ? measured_.reads : measured_.writes).push_back(micros);
  if (agent.asked == Kind::kSend) ++measured_.sends;
  measured_.bytes += static_cast<double>(head.all_bytes);
}

void MixedLoad::Impl::Answered(Agent& agent, const Head& head) {
  const std::string_view body = std::string_view(agent.received).substr(head.head_bytes);
  auto& samples = samples_[static_cast<std::size_t>(agent.asked)];
  const bool in_time = agent.asked_at >= begin_;
  if (in_time && samples.size() < kSamplesMax) samples.push_back({head.status, std::string(body)});
  if (agent.asked == Kind::kInbox) agent.cursor = Member(body, "\"cursor\":");
  if (agent.asked == Kind::kReserve) agent.reservation = Member(body, "{\"id\":");
  if (agent.asked == Kind::kRelease) agent.reservation.clear();
}

int MixedLoad::Impl::PauseMillis(Clock::time_point now) const {
  constexpr int kPatience = 10'000;
  if (due_.empty()) return kPatience;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_.top().first - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kPatience));
}

MixedLoad::Measured MixedLoad::Impl::Run(std::uint16_t port, std::chrono::milliseconds warm_up,
                                         std::chrono::milliseconds measured) {
  const bool fresh = port_ != port;
  port_ = port;
  measured_ = {};
  due_ = {};
  for (std::size_t i = 0; fresh && i < agents_.size(); ++i) Connect(i);
  begin_ = Clock::now() + warm_up;
  end_ = begin_ + measured;
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    if (options_.requests_per_s > 0) {
      AskLater(i);
    } else {
      Ask(i);
    }
  }
  std::array<epoll_event, 256> ready;
  while (under_way_ > 0 || (!due_.empty() && Clock::now() < end_)) {
    const int wait = PauseMillis(Clock::now());
    const int events = ::epoll_wait(epoll_, ready.data(), ready.size(), wait);
    if (events == 0 && due_.empty()) Fail("the server does not answer");
    for (int i = 0; i < events; ++i) Receive(ready[i].data.u64);
    AskDue(Clock::now());
  }
  measured_.seconds = std::chrono::duration<double>(measured).count();
  std::ranges::sort(measured_.reads);
  std::ranges::sort(measured_.writes);
  return std::move(measured_);
}

MixedLoad::MixedLoad(const std::vector<std::string>& agents, const Options& options)
    : impl_(std::make_unique<Impl>(agents, options)) {}
MixedLoad::~MixedLoad() = default;

MixedLoad::Measured MixedLoad::Run(std::uint16_t port, std::chrono::milliseconds warm_up,
                                   std::chrono::milliseconds measured) {
  return impl_->Run(port, warm_up, measured);
}

const std::array<std::vector<MixedLoad::Answer>, kKinds>& MixedLoad::samples() const {
  return impl_->samples();
}

double Percentile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

}  // namespace interlock::bench
