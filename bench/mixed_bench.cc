// What a server carries that many agents use at once: the mixed workload of mixed_load.h against
// the real server, and against the same answers from memory, which our own server gives (what
// storage costs) and a bare epoll loop (what all of it costs). They take turns in one run, and a
// rate is held against the one of the same turn: what the machine has to give may change by a third
// within seconds. The load generator runs beside them on the same processors; processor time is
// told without it.
//
// Also: how this grows with the number of agents.
//
// The database lies in the current directory, or in the one given as the first argument. A tmpfs
// has no fsync and would make the comparison meaningless: it is refused.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "http/message.h"
#include "memory_server.h"
#include "mixed_load.h"
#include "on_disk.h"
#include "process_use.h"
#include "report.h"
#include "testing/server_process.h"
#include "turns.h"

namespace interlock::bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::ServerProcess;

constexpr int kAgents = 100;
constexpr std::size_t kTurns = 13;
constexpr milliseconds kWarmUp{300};
constexpr milliseconds kMeasured{800};
constexpr double kTailMax = 20;  // what p99 may be of p50

// In the order of Kind.
constexpr std::array<std::pair<std::string_view, std::string_view>, kKinds> kRoutes = {{
    {"GET", "/api/inbox/{agent...}"},
    {"POST", "/api/agents/{id}/heartbeat"},
    {"POST", "/api/messages"},
    {"POST", "/api/reservations"},
    {"DELETE", "/api/reservations/{id...}"},
    {"GET", "/api/reservations/check"},
}};

std::vector<MemoryAnswer> AnswersFrom(const MixedLoad& load) {
  std::vector<MemoryAnswer> answers;
  answers.reserve(kKinds);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const auto& samples = load.samples()[kind];
    IL_CHECK(!samples.empty(), kRoutes[kind].second);
    MemoryAnswer answer{.method = std::string(kRoutes[kind].first),
                        .path = std::string(kRoutes[kind].second),
                        .status = samples.front().status};
    answer.bodies.reserve(samples.size());
    for (const auto& sample : samples) {
      answer.bodies.push_back(sample.body.substr(0, sample.body.find('\n')));
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

// The least that can give these answers: one thread, one read and one write per request, which is
// known by its first letters and never looked at. In a process of its own until it is destroyed.
class BareServer {
 public:
  explicit BareServer(const std::vector<MemoryAnswer>& answers) {
    for (const MemoryAnswer& answer : answers) {
      Canned& canned = canned_.emplace_back();
      canned.prefix = answer.method + " " + answer.path.substr(0, answer.path.find('{'));
      for (const std::string& body : answer.bodies) canned.texts.push_back(WholeText(answer, body));
    }
    // The longest first, since one is the beginning of another.
    std::ranges::sort(canned_, std::greater(), [](const Canned& c) { return c.prefix.size(); });
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    IL_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    IL_CHECK(::listen(listener_, 128) == 0);
    socklen_t length = sizeof(address);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    child_ = ::fork();
    if (child_ == 0) Serve();
  }
  ~BareServer() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::close(listener_);
  }
  BareServer(const BareServer&) = delete;
  BareServer& operator=(const BareServer&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  struct Canned {
    std::string prefix;
    std::vector<std::string> texts;
    std::size_t turn = 0;
  };

  static std::string WholeText(const MemoryAnswer& answer, const std::string& body) {
    http::Response response;
    response.status = answer.status;
    if (!body.empty()) response = http::Response::Json(answer.status, body);
    return http::HeadText(response, http::Persistence::kKeepOpen, {}) + response.body;
  }

  void Accept(int epoll) const {
    const int on = 1;
    epoll_event event{.events = EPOLLIN, .data = {.fd = ::accept(listener_, nullptr, nullptr)}};
    ::setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
  }

  void Answer(int fd) {
    std::array<char, 16384> buffer;
    const ssize_t size = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (size <= 0) {
      ::close(fd);
      return;
    }
    const std::string_view request(buffer.data(), static_cast<std::size_t>(size));
    for (Canned& canned : canned_) {
      if (!request.starts_with(canned.prefix)) continue;
      const std::string& text = canned.texts[canned.turn++ % canned.texts.size()];
      ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      return;
    }
  }

  [[noreturn]] void Serve() {
    const int epoll = ::epoll_create1(0);
    epoll_event event{.events = EPOLLIN, .data = {.fd = listener_}};
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, listener_, &event);
    std::array<epoll_event, 64> ready;
    while (true) {
      const int count = ::epoll_wait(epoll, ready.data(), ready.size(), -1);
      for (int i = 0; i < count; ++i) {
        if (ready[i].data.fd == listener_) {
          Accept(epoll);
        } else {
          Answer(ready[i].data.fd);
        }
      }
    }
  }

  std::vector<Canned> canned_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  pid_t child_ = 0;
};

// What several rounds on one server gave; the middle one of each figure counts.
class Rounds {
 public:
  void Add(const MixedLoad::Measured& measured, double cpu_seconds) {
    per_s_.push_back(measured.per_s());
    bytes_.push_back(measured.bytes / measured.requests());
    cpu_.push_back(cpu_seconds / measured.all_answers * 1e6);
    for (std::size_t i = 0; i < kParts.size(); ++i) {
      reads_[i].push_back(Percentile(measured.reads, kParts[i]));
      writes_[i].push_back(Percentile(measured.writes, kParts[i]));
    }
  }

  // What turns that do not count gave is forgotten.
  void Keep(const Turns& turns) {
    for (std::vector<double>* values : {&per_s_, &bytes_, &cpu_}) *values = turns.Counted(*values);
    for (std::size_t i = 0; i < kParts.size(); ++i) {
      reads_[i] = turns.Counted(reads_[i]);
      writes_[i] = turns.Counted(writes_[i]);
    }
  }

  double per_s() const { return Middle(per_s_); }
  const std::vector<double>& rates() const { return per_s_; }  // in their order
  double bytes() const { return Middle(bytes_); }
  double cpu_micros() const { return Middle(cpu_); }

  static constexpr std::array<double, 3> kParts = {0.5, 0.99, 0.999};
  double read(std::size_t part) const { return Middle(reads_[part]); }
  double write(std::size_t part) const { return Middle(writes_[part]); }

 private:
  std::vector<double> per_s_;
  std::vector<double> bytes_;
  std::vector<double> cpu_;
  std::array<std::vector<double>, kParts.size()> reads_;
  std::array<std::vector<double>, kParts.size()> writes_;
};

void RunRound(MixedLoad& load, std::uint16_t port, pid_t pid, Rounds& rounds) {
  const double before = pid == 0 ? 0 : CpuSeconds(pid);
  const MixedLoad::Measured measured = load.Run(port, kWarmUp, kMeasured);
  rounds.Add(measured, pid == 0 ? 0 : CpuSeconds(pid) - before);
}

void ReportLatencies(const std::string& what, const std::array<double, 3>& micros) {
  Report({what + ", p50", micros[0], "us", "", 0});
  Report({what + ", p99", micros[1], "us", "20 times p50", micros[0] * kTailMax});
  Report({what + ", p99.9", micros[2], "us", "", 0});
}

void ReportMixed(ServerProcess& server) {
  const std::vector<std::string> agents = RegisterAgents(server.port(), kAgents);
  MixedLoad load(agents);
  MixedLoad from_memory(agents);
  MixedLoad from_bare(agents);
  load.Run(server.port(), kMeasured, kMeasured);  // first until inboxes are as full as they get
  const std::vector<MemoryAnswer> answers = AnswersFrom(load);
  const MemoryServer memory(answers);
  const BareServer bare(answers);
  Rounds real;
  Rounds memory_rounds;
  Rounds bare_rounds;
  const Turns turns(kTurns, [&] {
    RunRound(load, server.port(), server.process().pid(), real);
    RunRound(from_memory, memory.port(), memory.pid(), memory_rounds);
    RunRound(from_bare, bare.port(), 0, bare_rounds);
  });
  const std::string name = "mixed, 100 agents";
  turns.ReportRates(name, real.rates(), "requests/s",
                    "the same answers from memory, our own server", memory_rounds.rates());
  turns.ReportRates(name, real.rates(), "requests/s", "the same from a bare epoll loop",
                    bare_rounds.rates());
  turns.ReportStolen(name);
  real.Keep(turns);
  memory_rounds.Keep(turns);
  Report({name + ", bytes of an answer", real.bytes(), "bytes", "those from memory",
          memory_rounds.bytes()});
  Report({name + ", processor time of the server", real.cpu_micros(), "us",
          "the same from memory, our own server", memory_rounds.cpu_micros()});
  ReportLatencies(name + ", reads", {real.read(0), real.read(1), real.read(2)});
  ReportLatencies(name + ", writes", {real.write(0), real.write(1), real.write(2)});
}

std::optional<ServerProcess> StartServer(const fs::path& directory) {
  fs::create_directories(directory);
  std::optional<ServerProcess> server(std::in_place, directory);
  if (server->ready()) return server;
  std::fprintf(stderr, "mixed_bench: %s", server->process().Stderr().c_str());
  std::exit(1);
}

void ReportGrowth(const fs::path& directory) {
  double alone = 0;
  for (const int agents : {1, 10, 100, 1000}) {
    auto server = StartServer(directory / std::to_string(agents));
    MixedLoad load(RegisterAgents(server->port(), agents));
    Rounds rounds;
    for (int i = 0; i < 3; ++i) RunRound(load, server->port(), server->process().pid(), rounds);
    server->Stop();
    if (agents == 1) alone = rounds.per_s();
    const std::string name = "mixed by agents: " + std::to_string(agents);
    Report({name, rounds.per_s(), "requests/s", "one agent", alone});
    Report({name + ", reads, p50", rounds.read(0), "us", "", 0});
    Report(
        {name + ", reads, p99", rounds.read(1), "us", "20 times p50", rounds.read(0) * kTailMax});
    Report({name + ", writes, p50", rounds.write(0), "us", "", 0});
    Report({name + ", writes, p99", rounds.write(1), "us", "20 times p50",
            rounds.write(0) * kTailMax});
    Report({name + ", processor time of the server", rounds.cpu_micros(), "us", "", 0});
  }
}

int Run(const fs::path& where) {
  std::string directory = where / "mixed_bench.XXXXXX";
  if (!IsOnDisk(where)) return 2;
  if (::mkdtemp(directory.data()) == nullptr) {
    std::perror(directory.c_str());
    return 2;
  }
  RaiseFileLimit();
  {
    auto server = StartServer(fs::path(directory) / "mixed");
    ReportMixed(*server);
    server->Stop();
  }
  ReportGrowth(directory);
  fs::remove_all(directory);
  return 0;
}

}  // namespace
}  // namespace interlock::bench

int main(int argc, char** argv) {
  return interlock::bench::Run(argc > 1 ? argv[1] : std::filesystem::current_path());
}
