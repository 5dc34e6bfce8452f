#include "http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/routes.h"
#include "api/server_fixture.h"
#include "base/log.h"
#include "base/time_text.h"
#include "service/await.h"
#include "testing/http_client.h"
#include "testing/temp_db.h"

namespace interlock::http {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::HttpAnswer;
using testing::HttpClient;

// Hands out a body that no socket buffer swallows, to clients that do not read it.
boost::asio::awaitable<Result<Response>> Huge(api::App& /*app*/, api::Request& /*request*/) {
  Response response;
  response.body.assign(std::size_t{64} * 1024 * 1024, 'x');
  co_return response;
}
boost::asio::awaitable<Result<Response>> RefuseAtLength(api::App& /*app*/,
                                                        api::Request& /*request*/) {
  Response response;
  response.status = 409;
  response.body.assign(std::size_t{800} * 1024, 'x');
  co_return response;
}
boost::asio::awaitable<Result<Response>> EchoBody(api::App& /*app*/, api::Request& request) {
  Response response;
  response.body = std::move(request.sent.body);
  co_return response;
}

constexpr std::array kTestRoutes = {
    api::Route{Method::kPost, "/echo", EchoBody, "The body comes back.", api::Access::kAnyone},
    api::Route{Method::kPost, "/refuse", RefuseAtLength, "Refuses at length.",
               api::Access::kAnyone},
    api::Route{Method::kGet, "/huge", Huge, "More than a socket holds.", api::Access::kAnyone},
};

// Also on a Unix socket; /health waits for the database.
class ServerTest : public api::RunningServerTest {
 public:
  ~ServerTest() override { Stop(); }

 protected:
  ServerTest() {
    for (const api::Route& route : api::Routes()) routes_.push_back(route);
    for (const api::Route& route : kTestRoutes) routes_.push_back(route);
    limits_.linger_timeout = milliseconds(200);
  }

  void Start() {
    std::vector<ListeningSocket> sockets;
    sockets.push_back(ListenUnix(SocketPath()).value());
    RunningServerTest::Start(routes_, std::move(sockets));
  }
  // One client at a time is told why it is refused.
  void StartWithRefusalsThatLinger(std::size_t places) {
    limits_.connections_max = places;
    limits_.refusals_max = 1;
    limits_.linger_timeout = milliseconds(60'000);
    limits_.drain_timeout = milliseconds(50);
    Start();
  }
  HttpClient Connect() const { return HttpClient::Tcp(port_); }
  std::string SocketPath() const { return directory_.path() / "s.sock"; }
  // Blocks until a handler waits for the database.
  void AwaitHeld(std::size_t count) {
    while (database_.held() < count) std::this_thread::yield();
  }

  testing::TempDir directory_;
  std::vector<api::Route> routes_;
};

TEST_F(ServerTest, ServesTcpAndUnixSocketAlike) {
  Start();
  const auto tcp = Connect().Get("/health");
  const auto local = HttpClient::Unix(SocketPath()).Get("/health");
  ASSERT_TRUE(tcp && local);
  EXPECT_EQ(tcp->status, 200);
  EXPECT_EQ(tcp->body, local->body);
  const auto date = ParseRfc1123(tcp->Header("Date"));
  ASSERT_TRUE(date.ok()) << tcp->Header("Date");
  EXPECT_LT(clock_.Now() - *date, std::chrono::seconds(60));
}

TEST_F(ServerTest, ConnectionsStayOpenAndPipelinedAnswersKeepTheirOrder) {
  Start();
  HttpClient client = Connect();
  std::string burst;
  constexpr int kRequests = 300;
  for (int i = 0; i < kRequests; ++i) {
    const std::string body = std::to_string(i);
    burst += "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
             "\r\n\r\n" + body;
  }
  ASSERT_TRUE(client.Send(burst));
  for (int i = 0; i < kRequests; ++i) {
    const auto answer = client.Read();
    ASSERT_TRUE(answer) << i;
    EXPECT_EQ(answer->body, std::to_string(i));
  }
}

TEST_F(ServerTest, AnswersOfOneConnectionDoNotOvertakeASlowOne) {
  database_.Hold();
  Start();
  HttpClient client = Connect();
  client.Request("GET", "/health");
  client.Request("POST", "/echo", "second");
  AwaitHeld(1);
  HttpClient other = Connect();
  other.Request("POST", "/echo", "other");
  EXPECT_EQ(other.Read()->body, "other");  // another connection is not held up
  database_.Answer({});
  EXPECT_THAT(client.Read()->body, HasSubstr("\"ok\""));
  EXPECT_EQ(client.Read()->body, "second");
}

TEST_F(ServerTest, ConnectionsAboveTheLimitAreToldAndOthersServedAgainWhenOneLeaves) {
  limits_.connections_max = 2;
  Start();
  HttpClient first = Connect();
  {
    HttpClient second = Connect();
    EXPECT_EQ(first.Get("/health")->status, 200);
    EXPECT_EQ(second.Get("/health")->status, 200);
    HttpClient third = Connect();
    const auto refused = third.Read();  // without having asked anything
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 503);
    EXPECT_NE(refused->Header("Retry-After"), "");
    EXPECT_THAT(refused->body, HasSubstr("\"error\":\"unavailable\""));
    EXPECT_TRUE(third.ClosedByServer());
    EXPECT_EQ(first.Get("/health")->status, 200);
  }
  EXPECT_TRUE(AwaitConnections(1));
  EXPECT_EQ(Connect().Get("/health")->status, 200);
}

TEST_F(ServerTest, ARefusedClientThatSendsMuchStillReadsWhy) {
  limits_.connections_max = 1;
  Start();
  HttpClient first = Connect();
  EXPECT_EQ(first.Get("/health")->status, 200);
  HttpClient second = Connect();
  EXPECT_TRUE(second.Request("POST", "/echo", std::string(3'000'000, 'x')));
  const auto refused = second.Read();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 503);
}

TEST_F(ServerTest, BeyondTheRefusalsConnectionsAreClosedWithoutAWord) {
  StartWithRefusalsThatLinger(1);
  HttpClient first = Connect();
  EXPECT_EQ(first.Get("/health")->status, 200);
  HttpClient second = Connect();
  EXPECT_EQ(second.Read()->status, 503);  // and lingers
  HttpClient third = Connect();
  EXPECT_TRUE(third.ClosedByServer());
  EXPECT_EQ(first.Get("/health")->status, 200);
}

TEST_F(ServerTest, RefusedOnesThatLingerKeepNobodyFromTheSlowestPlace) {
  StartWithRefusalsThatLinger(2);
  HttpClient first = Connect();
  EXPECT_EQ(first.Get("/health")->status, 200);
  std::optional<HttpClient> second(Connect());
  EXPECT_EQ(second->Get("/health")->status, 200);
  HttpClient refused = Connect();
  EXPECT_EQ(refused.Read()->status, 503);  // and lingers
  second.reset();
  ASSERT_TRUE(AwaitConnections(1));
  HttpClient silent = Connect();
  ASSERT_TRUE(AwaitConnections(2));
  HttpClient newcomer = Connect();
  const auto answer = newcomer.Get("/health");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_TRUE(silent.ClosedByServer());
}

TEST_F(ServerTest, ARefusalThatIsAbortedIsNoMistakeOfOurs) {
  limits_.connections_max = 1;
  limits_.linger_timeout = milliseconds(60'000);
  limits_.linger_bytes_max = std::size_t{1} << 40;  // out of reach
  limits_.drain_timeout = milliseconds(50);
  Start();
  HttpClient first = Connect();
  EXPECT_EQ(first.Get("/health")->status, 200);
  HttpClient second = Connect();
  EXPECT_EQ(second.Read()->status, 503);
  // It always has bytes at hand, so it is cancelled between two reads.
  std::thread flood([&] {
    const std::string burst(std::size_t{64} * 1024, 'x');
    while (second.Send(burst)) {
    }
  });
  EXPECT_EQ(Stop(), Server::Drained::kSomeAborted);
  flood.join();
  EXPECT_EQ(captured_.text(), "");
}

TEST_F(ServerTest, WithoutDescriptorsItTriesAgainAndSaysSoOnce) {
  Start();
  // A thread of the server that allocates for the first time opens a file for a moment.
  ASSERT_EQ(Connect().Get("/health")->status, 200);
  ASSERT_TRUE(AwaitConnections(0));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(0);
  ::close(next);
  const rlimit low{.rlim_cur = static_cast<rlim_t>(next) + 1, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  HttpClient client = Connect();  // takes the last one
  const Duration end = clock_.Monotonic() + milliseconds(400);
  while (clock_.Monotonic() < end) std::this_thread::yield();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(client.connected());
  const auto answer = client.Get("/health");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  Stop();
  const std::string log = captured_.text();
  const std::size_t first = log.find("accepting connections fails");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(log.find("accepting connections fails", first + 1), std::string::npos) << log;
  EXPECT_TRUE(captured_.Contains("accepting connections again"));
}

TEST_F(ServerTest, ASilentFreshConnectionIsClosedAfterTheHeaderTimeout) {
  limits_.header_timeout = milliseconds(50);
  Start();
  HttpClient client = Connect();
  EXPECT_TRUE(client.ClosedByServer());
}

TEST_F(ServerTest, AHeaderThatTricklesInIs408WhateverItsPace) {
  limits_.header_timeout = milliseconds(100);
  limits_.header_bytes_max = std::size_t{1} << 30;  // out of reach
  Start();
  HttpClient client = Connect();
  client.Send("GET /health HTTP/1.1\r\nHost: a\r\n");
  // A byte now and then does not buy more time; the loop ends when the server hangs up.
  std::thread drip([fd = client.fd()] {
    while (::send(fd, "x", 1, MSG_NOSIGNAL) == 1) std::this_thread::yield();
  });
  const auto answer = client.Read();
  client.FinishSending();
  drip.join();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 408);
}

TEST_F(ServerTest, AnUnfinishedHeaderIs408) {
  limits_.header_timeout = milliseconds(50);
  Start();
  HttpClient client = Connect();
  client.Send("GET /health HTTP/1.1\r\nHo");
  const auto answer = client.Read();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 408);
  EXPECT_EQ(answer->Header("Connection"), "close");
  EXPECT_THAT(answer->body, HasSubstr("\"error\":\"request_timeout\""));
  EXPECT_TRUE(client.ClosedByServer());
}

TEST_F(ServerTest, AnUnfinishedBodyIs408) {
  limits_.body_timeout = milliseconds(50);
  Start();
  HttpClient client = Connect();
  client.Send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(client.Read()->status, 408);
  EXPECT_TRUE(client.ClosedByServer());
}

TEST_F(ServerTest, AnIdleConnectionIsClosedOnlyAfterTheIdleTimeout) {
  limits_.header_timeout = milliseconds(30);
  limits_.idle_timeout = milliseconds(300);
  Start();
  HttpClient client = Connect();
  EXPECT_EQ(client.Get("/health")->status, 200);
  const Duration begin = clock_.Monotonic();
  EXPECT_TRUE(client.ClosedByServer());
  EXPECT_GE(clock_.Monotonic() - begin, milliseconds(250));  // not the header's 30 ms
}

TEST_F(ServerTest, ABlankLineAfterABodyStartsNoRequest) {
  limits_.header_timeout = milliseconds(300);
  limits_.idle_timeout = milliseconds(1000);
  Start();
  for (const std::string_view blank : {"\r\n", "\r\n\r\n"}) {
    HttpClient together = Connect();
    together.Request("POST", "/echo", "a");
    together.Send(blank);
    HttpClient later = Connect();
    later.Request("POST", "/echo", "b");
    EXPECT_EQ(together.Read()->body, "a");
    EXPECT_EQ(later.Read()->body, "b");
    later.Send(blank);
    const Duration begin = clock_.Monotonic();
    EXPECT_TRUE(later.ClosedByServer());  // without a 408
    EXPECT_GE(clock_.Monotonic() - begin, milliseconds(500));
    EXPECT_TRUE(together.ClosedByServer());
  }
}

TEST_F(ServerTest, AClientThatDoesNotReadItsAnswerIsDropped) {
  limits_.write_timeout = milliseconds(50);
  Start();
  HttpClient client = Connect();
  EXPECT_TRUE(AwaitConnections(1));
  client.Request("GET", "/huge");
  EXPECT_TRUE(AwaitConnections(0));
}

TEST_F(ServerTest, ClientsThatDoNotReadTakeOnlySoMuchMemory) {
  limits_.unsent_bytes_max = std::size_t{64} * 1024 * 1025;  // one of Huge, and little more
  Start();
  {
    HttpClient stalled = Connect();
    EXPECT_TRUE(stalled.Send("GET /huge HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    std::array<char, 1> first;
    ASSERT_EQ(::recv(stalled.fd(), first.data(), first.size(), MSG_PEEK), 1);
    const auto refused = Connect().Get("/huge");
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 503);
    EXPECT_THAT(refused->body, HasSubstr("max_bytes"));
    HttpClient other = Connect();
    ASSERT_TRUE(other.Request("POST", "/echo", "small"));
    EXPECT_EQ(other.Read()->body, "small");
    const std::string large(std::size_t{800} * 1024, 'x');
    ASSERT_TRUE(other.Request("POST", "/echo", large));
    EXPECT_EQ(other.Read()->body.size(), large.size()) << "what was done is told";
    ASSERT_TRUE(other.Request("POST", "/refuse", "{}"));
    EXPECT_EQ(other.Read()->status, 503) << "what was refused need not be";
  }
  EXPECT_TRUE(AwaitConnections(0));
  const auto served = Connect().Get("/huge");
  ASSERT_TRUE(served);
  EXPECT_EQ(served->status, 200) << "there is room again";
}

// The deadline passes while the server has bytes at hand, so that there is nothing to cancel.
TEST_F(ServerTest, AClientThatStopsReadingInTheMiddleIsDropped) {
  limits_.write_timeout = milliseconds(5);
  Start();
  for (int i = 0; i < 8; ++i) {
    HttpClient client = Connect();
    EXPECT_TRUE(AwaitConnections(1));
    client.Request("GET", "/huge");
    const Duration end = clock_.Monotonic() + limits_.write_timeout * 3 / 2;
    std::vector<char> some(std::size_t{1024} * 1024);  // faster than the server writes
    while (clock_.Monotonic() < end && ::recv(client.fd(), some.data(), some.size(), 0) > 0) {
    }
    ASSERT_TRUE(AwaitConnections(0)) << i;
  }
}

TEST_F(ServerTest, ABurstAtTheEndOfTheLingerTimeDoesNotKeepTheConnection) {
  limits_.linger_timeout = milliseconds(50);
  limits_.linger_bytes_max = std::size_t{1} << 40;  // out of reach
  Start();
  const std::string burst(std::size_t{64} * 1024, 'x');
  for (int i = 0; i < 4; ++i) {
    HttpClient client = Connect();
    client.Send("no request\r\n\r\n");
    ASSERT_EQ(client.Read()->status, 400);
    const Duration end = clock_.Monotonic() + limits_.linger_timeout * 3 / 2;
    while (clock_.Monotonic() < end && client.Send(burst)) {
    }
    ASSERT_TRUE(AwaitConnections(0)) << i;  // though the client is silent now, and still there
  }
}

TEST_F(ServerTest, AClientThatResetsInTheMiddleHarmsNobody) {
  database_.Hold();
  Start();
  HttpClient waiting = Connect();
  waiting.Request("GET", "/health");
  HttpClient sending = Connect();
  sending.Send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  AwaitHeld(1);
  waiting.Reset();
  sending.Reset();
  database_.Succeed();
  database_.Answer({});
  EXPECT_EQ(Connect().Get("/health")->status, 200);
  EXPECT_TRUE(AwaitConnections(0));
}

TEST_F(ServerTest, AClientThatFinishedSendingStillGetsItsAnswers) {
  Start();
  HttpClient client = Connect();
  client.Request("POST", "/echo", "one");
  client.Request("POST", "/echo", "two");
  client.FinishSending();
  EXPECT_EQ(client.Read()->body, "one");
  EXPECT_EQ(client.Read()->body, "two");
  EXPECT_TRUE(client.ClosedByServer());
}

TEST_F(ServerTest, ContinueIsSentBeforeTheBodyAndNeverBeforeARefusal) {
  limits_.body_bytes_max = 100;
  Start();
  HttpClient client = Connect();
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.Read()->status, 100);
  client.Send("hi");
  EXPECT_EQ(client.Read()->body, "hi");
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.Read()->status, 413);
}

TEST_F(ServerTest, StoppingFinishesTheRequestUnderWayAndClosesIdleConnections) {
  database_.Hold();
  Start();
  HttpClient idle = Connect();
  EXPECT_EQ(
      [&] {
        idle.Request("POST", "/echo", "x");
        return idle.Read()->body;
      }(),
      "x");
  HttpClient busy = Connect();
  busy.Request("GET", "/health");
  AwaitHeld(1);
  auto stopped = std::async(std::launch::async, [&] { return Stop(); });
  EXPECT_TRUE(idle.ClosedByServer());
  EXPECT_FALSE(std::filesystem::exists(SocketPath()));
  EXPECT_FALSE(Connect().connected());
  database_.Answer({});
  const auto answer = busy.Read();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->Header("Connection"), "close");
  busy.FinishSending();
  EXPECT_EQ(stopped.get(), Server::Drained::kAll);
}

TEST_F(ServerTest, StoppingDoesNotWaitForAHeaderThatIsNotWhole) {
  limits_.drain_timeout = milliseconds(3'000);
  limits_.header_timeout = milliseconds(60'000);
  Start();
  const std::string whole = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
  std::vector<HttpClient> clients;
  for (const char* half : {"", "\r", "G", "GET /health HTTP/1.1\r\nHost: a\r\n"}) {
    HttpClient& client = clients.emplace_back(Connect());
    client.Send(whole + half);
    ASSERT_EQ(client.Read()->body, "x");  // so the half one has arrived as well
  }
  EXPECT_EQ(Stop(), Server::Drained::kAll);
  for (HttpClient& client : clients) EXPECT_TRUE(client.ClosedByServer());
}

TEST_F(ServerTest, StoppingWaitsForTheBodyOfARequest) {
  Start();
  HttpClient idle = Connect();
  HttpClient sending = Connect();
  sending.Send(
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_EQ(sending.Read()->status, 100);
  auto stopped = std::async(std::launch::async, [&] { return Stop(); });
  EXPECT_TRUE(idle.ClosedByServer());
  sending.Send("body");
  const auto answer = sending.Read();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "body");
  sending.FinishSending();
  EXPECT_EQ(stopped.get(), Server::Drained::kAll);
}

TEST_F(ServerTest, ARequestThatOutlastsTheDrainIsAbortedAndTheServerStillStops) {
  limits_.drain_timeout = milliseconds(50);
  database_.Hold();
  Start();
  HttpClient busy = Connect();
  busy.Request("GET", "/health");
  HttpClient half = Connect();
  half.Send("GET /hea");
  AwaitHeld(1);
  EXPECT_TRUE(AwaitConnections(2));
  database_.StartHeld();  // it cannot be taken back: closing the database ends it
  EXPECT_EQ(Stop(), Server::Drained::kSomeAborted);
  EXPECT_FALSE(busy.Read());
}

}  // namespace
}  // namespace interlock::http
