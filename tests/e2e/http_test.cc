// What the server says over the wire, case by case, on one running program.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "e2e_test.h"

namespace interlock::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class HttpTest : public E2eTest {
 public:
  ~HttpTest() override { EXPECT_EQ(server_->Stop(), 0) << server_->process().Stderr(); }

 protected:
  HttpTest()
      : server_(Start({"--socket", "s.sock", "--header-timeout=300ms", "--idle-timeout=600ms",
                       "--body-timeout=300ms"})) {}

  HttpClient Connect() const { return server_->Connect(); }

  const std::unique_ptr<ServerProcess> server_;
};

constexpr const char* kHealthy =
    "\\{\"status\":\"ok\",\"circuit_breaker\":\"closed\",\"circuit_breaker_read\":\"closed\","
    "\"circuit_breaker_write\":\"closed\",\"version\":\"[0-9.]+\","
    "\"started_at\":\"[0-9T:.-]+Z\",\"log_id\":\"[0-9a-f]+\"\\}\n";

constexpr std::size_t kKib = 1024;

struct Case {
  std::string method;
  std::string target;
  std::string headers;
  std::string body;
  int status;
  std::string error;  // of the JSON body; "" for a success
};

TEST_F(HttpTest, EveryRequestHasItsStatusAndJsonBody) {
  const std::string big(kKib * 1024, 'x');
  const std::vector<Case> cases = {
      {"GET", "/health", "", "", 200, ""},
      {"GET", "/health?x=1", "", "", 200, ""},
      {"GET", "http://localhost/health", "", "", 200, ""},
      {"GET", "/health", "Authorization: Bearer wrong-sesame\r\nOrigin: http://evil\r\n", "", 200,
       ""},
      {"GET", "/health", "", "a body that nobody asked for", 200, ""},
      {"POST", "/health", "", "", 405, "method_not_allowed"},
      {"PUT", "/health", "", "{}", 405, "method_not_allowed"},
      {"DELETE", "/health", "", "", 405, "method_not_allowed"},
      {"OPTIONS", "/health", "", "", 405, "method_not_allowed"},
      {"BREW", "/health", "", "", 405, "method_not_allowed"},
      {"get", "/health", "", "", 405, "method_not_allowed"},
      {"GET", "/", "", "", 404, "not_found"},
      {"GET", "/Health", "", "", 404, "not_found"},
      {"GET", "/health/", "", "", 404, "not_found"},
      {"GET", "/api/nothing", "", "", 404, "not_found"},
      {"POST", "/nowhere", "", "{}", 404, "not_found"},
      {"POST", "/nowhere", "", big, 404, "not_found"},
      {"GET", "/%zz", "", "", 400, "invalid_request"},
      {"GET", "/%00", "", "", 400, "invalid_request"},
      {"GET", "*", "", "", 400, "invalid_request"},
      {"POST", "/nowhere", "", big + "x", 413, "payload_too_large"},
      {"POST", "/health", "", big + "x", 413, "payload_too_large"},
      {"GET", "/health", "Content-Length: 1048577\r\n", "", 413, "payload_too_large"},
      {"GET", "/health", "Content-Length: 99999999999999999\r\n", "", 413, "payload_too_large"},
      {"GET", "/health", "Host: again\r\n", "", 400, "invalid_request"},
      {"GET", "/health", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "", 400,
       "invalid_request"},
      {"GET", "/health", "Content-Length: 1\r\nContent-Length: 2\r\n", "", 400, "invalid_request"},
      {"GET", "/health", "X: " + std::string(16 * kKib, 'x') + "\r\n", "", 431, "header_too_large"},
      {"GET", "/" + std::string(17 * kKib, 'x'), "", "", 431, "header_too_large"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.method + " " + c.target.substr(0, 60) + " " + c.headers.substr(0, 60));
    HttpClient client = Connect();
    client.Request(c.method, c.target, c.body, c.headers);
    const auto answer = client.Read();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, c.status);
    EXPECT_EQ(answer->Header("Content-Type"), "application/json");
    EXPECT_EQ(answer->Header("Allow"), c.status == 405 ? "GET, HEAD" : "");
    if (c.error.empty()) {
      EXPECT_THAT(answer->body, MatchesRegex(kHealthy));
    } else {
      EXPECT_THAT(answer->body, MatchesRegex("\\{\"error\":\"" + c.error + "\",\"message\":\"" +
                                             "[A-Z/].*[.;].*\"\\}\n"));
    }
    // Where the next request begins is known only after an orderly one.
    const bool orderly = c.status == 200 || c.status == 404 || c.status == 405 ||
                         (c.status == 400 && c.headers.empty());
    EXPECT_EQ(answer->Header("Connection"), orderly ? "" : "close");
    if (orderly) {
      EXPECT_EQ(client.Get("/health")->status, 200);
    } else {
      EXPECT_TRUE(client.ClosedByServer());
    }
  }
}

TEST_F(HttpTest, HeadAnswersAsGetDoesWithoutTheBody) {
  HttpClient client = Connect();
  for (const char* target : {"/health", "/openapi.json", "/api/agents?project=p", "/api/specs",
                             "/api/specs/none?project=p", "/nothing", "//health"}) {
    SCOPED_TRACE(target);
    const auto get = client.Get(target);
    ASSERT_TRUE(get);
    client.Request("HEAD", target);
    const auto head = client.Read(HttpClient::Body::kNone);
    ASSERT_TRUE(head);
    EXPECT_EQ(head->status, get->status);
    EXPECT_EQ(head->body, "");
    for (const char* field : {"Content-Type", "Content-Length", "Location", "Connection"}) {
      EXPECT_EQ(head->Header(field), get->Header(field)) << field;
    }
  }
  for (const auto& [target, allow] :
       {std::pair("/api/messages", "POST"), std::pair("/ws/events?project=p", "GET")}) {
    client.Request("HEAD", target);
    const auto refused = client.Read(HttpClient::Body::kNone);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 405) << target;
    EXPECT_EQ(refused->Header("Allow"), allow);
  }
  EXPECT_EQ(client.Get("/health")->status, 200);  // the next answer begins where it should
}

TEST_F(HttpTest, EveryAnswerHasARequestId) {
  HttpClient client = Connect();
  const auto id_of = [&](std::string_view method, std::string_view target, std::string_view sent) {
    const std::string field = sent.empty() ? "" : fmt::format("X-Request-Id: {}\r\n", sent);
    client.Request(method, target, "", field);
    return client.Read().value_or(HttpAnswer{}).Header("X-Request-Id");
  };
  const std::string longest(128, 'x');
  for (const char* target : {"/health", "/nothing", "//health", "/api/messages"}) {
    SCOPED_TRACE(target);
    EXPECT_EQ(id_of("GET", target, "trace-1.a:b"), "trace-1.a:b");
    EXPECT_EQ(id_of("GET", target, longest), longest);
    const std::string made = id_of("GET", target, "");
    EXPECT_THAT(made, MatchesRegex("[0-9a-z]{15}"));
    EXPECT_THAT(id_of("GET", target, longest + "x"), MatchesRegex("[0-9a-z]{15}"));
    EXPECT_THAT(id_of("GET", target, "a b"), MatchesRegex("[0-9a-z]{15}"));
    EXPECT_NE(id_of("GET", target, ""), made);
  }
  client.Send("no HTTP\r\n\r\n");
  EXPECT_THAT(client.Read().value_or(HttpAnswer{}).Header("X-Request-Id"),
              MatchesRegex("[0-9a-z]{15}"));
  HttpClient socket = Connect();
  socket.Request("GET", "/ws/events?project=p", "",
                 "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nX-Request-Id: socket-1\r\n");
  const auto upgraded = socket.Read(HttpClient::Body::kNone);
  ASSERT_TRUE(upgraded);
  EXPECT_EQ(upgraded->status, 101);
  EXPECT_EQ(upgraded->Header("X-Request-Id"), "socket-1");
}

class DebugLogTest : public E2eTest {};

TEST_F(DebugLogTest, TheLogNamesARequestByItsId) {
  const std::unique_ptr<ServerProcess> server = Start({"--log-level=debug"});
  HttpClient client = server->Connect();
  client.Request("GET", "/health", "", "X-Request-Id: find-me\r\n");
  ASSERT_TRUE(client.Read());
  EXPECT_EQ(server->Stop(), 0);
  EXPECT_THAT(
      server->process().Stderr(),
      HasSubstr("answered a request request_id=find-me method=GET path=/health status=200"));
}

TEST_F(HttpTest, UncleanPathsMove) {
  HttpClient client = Connect();
  for (const char* target : {"//health?a=b", "/./health?a=b", "/x/../health?a=b",
                             "/x/%2e%2e/health?a=b", "/%2fhealth?a=b"}) {
    const auto answer = client.Get(target);
    ASSERT_TRUE(answer) << target;
    EXPECT_EQ(answer->status, 301) << target;
    EXPECT_EQ(answer->Header("Location"), "/health?a=b") << target;
    EXPECT_EQ(answer->body, "") << target;
  }
}

TEST_F(HttpTest, GarbageIs400AndTheServerLives) {
  for (const std::string& bytes :
       {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15),
        std::string("GET /health\r\n\r\n"), std::string("GET /health HTTP/3.0\r\n\r\n"),
        std::string("GET /health HTTP/1.1\r\n\r\n"), std::string("\0\0\0\0\r\n\r\n", 8),
        std::string("GET /health HTTP/1.1\r\nHost: a\r\nbroken\r\n\r\n")}) {
    HttpClient client = Connect();
    client.Send(bytes);
    const auto answer = client.Read();
    ASSERT_TRUE(answer) << bytes;
    EXPECT_EQ(answer->status, 400) << bytes;
    EXPECT_THAT(answer->body, HasSubstr("\"error\":\"invalid_request\"")) << bytes;
    EXPECT_TRUE(client.ClosedByServer());
  }
  EXPECT_EQ(Connect().Get("/health")->status, 200);
}

TEST_F(HttpTest, ChunkedBodiesAreBoundedBeforeTheRouteIsLookedAt) {
  const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  for (const int chunks : {16, 17}) {
    HttpClient client = Connect();
    client.Send("POST /nowhere HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < chunks; ++i) client.Send(chunk);
    client.Send("0\r\n\r\n");
    const auto answer = client.Read();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, chunks == 16 ? 404 : 413);
  }
}

TEST_F(HttpTest, ABodyFarAboveTheLimitStillGetsItsAnswer) {
  HttpClient client = Connect();
  // A connection closed at once would be reset under the client's hands while it sends.
  EXPECT_TRUE(client.Request("POST", "/nowhere", std::string(3 * kKib * 1024, 'x')));
  const auto answer = client.Read();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 413);
  EXPECT_TRUE(client.ClosedByServer());
}

TEST_F(HttpTest, PipelinedRequestsAreAnsweredInOrder) {
  HttpClient client = Connect();
  const std::string one = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string two = "POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";
  const std::string three = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
  std::string burst;
  for (int i = 0; i < 100; ++i) burst.append(one).append(two).append(three);
  ASSERT_TRUE(client.Send(burst));
  for (int i = 0; i < 100; ++i) {
    for (const int status : {200, 405, 404}) {
      const auto answer = client.Read();
      ASSERT_TRUE(answer) << i;
      ASSERT_EQ(answer->status, status) << i;
    }
  }
}

TEST_F(HttpTest, OldClientsAreServedToo) {
  HttpClient plain = Connect();
  plain.Send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(plain.Read()->status, 200);
  EXPECT_TRUE(plain.ClosedByServer());
  HttpClient keeping = Connect();
  for (int i = 0; i < 2; ++i) {
    keeping.Send("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    const auto answer = keeping.Read();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->Header("Connection"), "keep-alive");
  }
  HttpClient closing = Connect();
  closing.Request("GET", "/health", "", "Connection: close\r\n");
  EXPECT_EQ(closing.Read()->Header("Connection"), "close");
  EXPECT_TRUE(closing.ClosedByServer());
}

TEST_F(HttpTest, ContinueComesBeforeTheBody) {
  HttpClient client = Connect();
  client.Send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.Read()->status, 100);
  client.Send("{}");
  EXPECT_EQ(client.Read()->status, 404);
}

TEST_F(HttpTest, SlowPeersAreLetGo) {
  HttpClient silent = Connect();
  HttpClient header = Connect();
  header.Send("GET /health HTTP/1.1\r\nHo");
  HttpClient body = Connect();
  body.Send("POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  HttpClient idle = Connect();
  EXPECT_EQ(idle.Get("/health")->status, 200);
  EXPECT_TRUE(silent.ClosedByServer());
  EXPECT_EQ(header.Read()->status, 408);
  EXPECT_EQ(body.Read()->status, 408);
  EXPECT_TRUE(idle.ClosedByServer());
  EXPECT_EQ(Connect().Get("/health")->status, 200);
}

TEST_F(HttpTest, HalfClosedAndVanishedPeersHarmNobody) {
  HttpClient half = Connect();
  half.Request("GET", "/health");
  half.FinishSending();
  EXPECT_EQ(half.Read()->status, 200);
  EXPECT_TRUE(half.ClosedByServer());
  for (int i = 0; i < 50; ++i) {
    HttpClient client = Connect();
    client.Send("POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    client.Reset();
  }
  EXPECT_EQ(Connect().Get("/health")->status, 200);
}

TEST_F(HttpTest, TheUnixSocketServesTheSame) {
  HttpClient client = HttpClient::Unix(File("s.sock"));
  ASSERT_TRUE(client.connected());
  EXPECT_THAT(client.Get("/health")->body, MatchesRegex(kHealthy));
  EXPECT_EQ(client.Get("/x")->status, 404);
}

}  // namespace
}  // namespace interlock::e2e
