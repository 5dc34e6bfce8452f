#include "http_load.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/check.h"
#include "report.h"
#include "testing/http_client.h"

namespace interlock::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kThreads = 2;
constexpr int kConnectionsPerThread = 16;
constexpr std::chrono::milliseconds kWarmUp{300};
constexpr std::chrono::milliseconds kMeasured{2'000};

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "http_load: %s\n", what);
  std::exit(1);
}

// Asks over and over on a few connections until `end`; returns the answers counted after `begin`.
// Every answer of a run has the same length, so it is learnt once and then only counted.
std::uint64_t Load(std::uint16_t port, const std::string& request, std::size_t answer_bytes,
                   Clock::time_point begin, Clock::time_point end) {
  struct Peer {
    testing::HttpClient client;
    std::size_t received = 0;
  };
  std::vector<Peer> peers;
  std::vector<pollfd> waits;
  for (int i = 0; i < kConnectionsPerThread; ++i) {
    peers.push_back({testing::HttpClient::Tcp(port)});
    if (!peers.back().client.Send(request)) Fail("the server does not take a request");
    waits.push_back({peers.back().client.fd(), POLLIN, 0});
  }
  std::array<char, 16384> buffer;
  std::uint64_t answers = 0;
  for (Clock::time_point now = Clock::now(); now < end; now = Clock::now()) {
    if (::poll(waits.data(), waits.size(), 100) <= 0) continue;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (waits[i].revents == 0) continue;
      const ssize_t size = ::recv(waits[i].fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (size <= 0) Fail("the server closed a connection");
      peers[i].received += static_cast<std::size_t>(size);
      if (peers[i].received < answer_bytes) continue;
      peers[i].received = 0;
      if (now >= begin) ++answers;
      if (!peers[i].client.Send(request)) Fail("the server closed a connection");
    }
  }
  return answers;
}

// The least that can answer HTTP: a request ends with an empty line, the answer is a constant. Runs
// in a process of its own, as the server does, until it is killed.
[[noreturn]] void ServeFromMemory(int listener, const std::string& answer) {
  const int epoll = ::epoll_create1(0);
  epoll_event event{.events = EPOLLIN, .data = {.fd = listener}};
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  std::array<epoll_event, 64> ready;
  std::array<char, 16384> buffer;
  while (true) {
    const int count = ::epoll_wait(epoll, ready.data(), ready.size(), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = ready[i].data.fd;
      if (fd == listener) {
        const int on = 1;
        event.data.fd = ::accept(listener, nullptr, nullptr);
        ::setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        ::epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
        continue;
      }
      const ssize_t size = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (size <= 0) {
        ::close(fd);
      } else if (std::string_view(buffer.data(), size).ends_with("\r\n\r\n")) {
        ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
      }
    }
  }
}

// True: `received` is a whole answer, by its Content-Length.
bool IsWhole(std::string_view received) {
  constexpr std::string_view kField = "\r\nContent-Length: ";
  const std::size_t head = received.find("\r\n\r\n");
  if (head == std::string_view::npos) return false;
  if (!received.starts_with("HTTP/1.1 200 ")) Fail(std::string(received).c_str());
  const std::size_t field = received.find(kField);
  std::size_t length = 0;
  if (field < head) {
    const char* const digits = received.data() + field + kField.size();
    std::from_chars(digits, received.data() + head, length);
  }
  return received.size() >= head + 4 + length;
}

}  // namespace

double SecondsFor(std::uint16_t port, int connections, std::span<const std::string> requests) {
  struct Peer {
    testing::HttpClient client;
    std::string received = {};
  };
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<Peer> peers;
  peers.reserve(static_cast<std::size_t>(connections));
  for (int i = 0; i < connections; ++i) {
    peers.push_back({testing::HttpClient::Tcp(port)});
    epoll_event event{.events = EPOLLIN, .data = {.u64 = static_cast<std::uint64_t>(i)}};
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, peers.back().client.fd(), &event);
  }
  const auto ask = [](const Peer& peer, const std::string& text) {
    const ssize_t sent = ::send(peer.client.fd(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(text.size())) Fail("the server does not take a request");
  };
  const Clock::time_point begin = Clock::now();
  auto next = requests.begin();
  for (const Peer& peer : peers) {
    if (next != requests.end()) ask(peer, *next++);
  }
  std::array<epoll_event, 64> ready;
  std::array<char, 16384> buffer;
  for (std::size_t answered = 0; answered < requests.size();) {
    const int events = ::epoll_wait(epoll, ready.data(), ready.size(), 10'000);
    if (events <= 0) Fail("the server does not answer");
    for (int i = 0; i < events; ++i) {
      Peer& peer = peers[ready[i].data.u64];
      const ssize_t size = ::recv(peer.client.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (size <= 0) Fail("the server closed a connection");
      peer.received.append(buffer.data(), static_cast<std::size_t>(size));
      if (!IsWhole(peer.received)) continue;
      peer.received.clear();
      ++answered;
      if (next != requests.end()) ask(peer, *next++);
    }
  }
  const double took = Seconds(Clock::now() - begin);
  ::close(epoll);
  return took;
}

double AnswersPerSecond(std::uint16_t port, const std::string& request, std::size_t answer_bytes) {
  const Clock::time_point begin = Clock::now() + kWarmUp;
  const Clock::time_point end = begin + kMeasured;
  std::vector<std::uint64_t> counts(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { counts[i] = Load(port, request, answer_bytes, begin, end); });
  }
  std::uint64_t total = 0;
  for (int i = 0; i < kThreads; ++i) {
    threads[i].join();
    total += counts[i];
  }
  return static_cast<double>(total) / Seconds(kMeasured);
}

double AnswersPerSecond(std::uint16_t port, const std::string& request) {
  return AnswersPerSecond(port, request, AnswerBytes(port, request));
}

std::string GetRequest(const std::string& target) {
  return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

std::size_t AnswerBytes(std::uint16_t port, const std::string& request) {
  testing::HttpClient client = testing::HttpClient::Tcp(port);
  client.Send(request);
  client.FinishSending();
  std::size_t total = 0;
  std::array<char, 16384> buffer;
  ssize_t size = 0;
  while ((size = ::recv(client.fd(), buffer.data(), buffer.size(), 0)) > 0) {
    total += static_cast<std::size_t>(size);
  }
  return total;
}

double MemoryAnswersPerSecond(const std::string& request, std::size_t answer_bytes) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  IL_CHECK(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  IL_CHECK(::listen(listener, 128) == 0);
  socklen_t length = sizeof(address);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  const pid_t child = ::fork();
  if (child == 0) ServeFromMemory(listener, std::string(answer_bytes, 'x'));
  const double rate = AnswersPerSecond(ntohs(address.sin_port), request, answer_bytes);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(listener);
  return rate;
}

void ReportRate(const std::string& name, std::uint16_t port, const std::string& target) {
  const std::string request = GetRequest(target);
  const std::size_t answer_bytes = AnswerBytes(port, request);
  const double limit = MemoryAnswersPerSecond(request, answer_bytes);
  const double rate = AnswersPerSecond(port, request, answer_bytes);
  Report({name, rate, "answers/s", "the same bytes from memory, bare epoll loop", limit});
}

}  // namespace interlock::bench
