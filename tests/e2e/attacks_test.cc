// The table of attacks on what the server reads: what is sent, and what must hold. Attacks on each
// route are in escape_test.cc, those on its files in process_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "e2e_test.h"
#include "testing/random.h"
#include "testing/ws_client.h"

namespace interlock::e2e {
namespace {

using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing::WsClient;

constexpr std::size_t kKib = 1024;
constexpr std::chrono::milliseconds kSoon{testing::kSlowBuild ? 5'000 : 1'000};

std::string Repeat(std::string_view text, std::size_t times) {
  std::string repeated;
  repeated.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) repeated += text;
  return repeated;
}

// Resident memory of a process in KiB.
long ResidentKib(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
  }
  return -1;
}

class AttackTest : public E2eTest {
 protected:
  void Begin(std::vector<std::string> flags = {}) { server_ = Start(std::move(flags)); }

  HttpAnswer Ask(std::string_view method, std::string_view target, std::string_view body = "",
                 std::string_view headers = "") const {
    HttpClient client = server_->Connect();
    client.Request(method, target, body, headers);
    return client.Read().value_or(HttpAnswer{});
  }
  void ExpectHealthy() const { EXPECT_EQ(Ask("GET", "/health").status, 200); }

  std::unique_ptr<ServerProcess> server_;
};

// ---- Requests that two readers could understand differently, and bombs ----

struct Bytes {
  const char* attack;
  std::string sent;
  int status;
};

const std::string kGet = "GET /health HTTP/1.1\r\nHost: localhost\r\n";
const std::string kPost = "POST /api/broadcast HTTP/1.1\r\nHost: localhost\r\n";

std::vector<Bytes> HostileRequests() {
  const std::string chunked = kPost + "Transfer-Encoding: chunked\r\n";
  const std::string zero(1, '\0');
  return {
      {"length and chunks",
       kPost + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"chunks and length", chunked + "Content-Length: 4\r\n\r\n0\r\n\r\n", 400},
      {"two lengths", kPost + "Content-Length: 0\r\nContent-Length: 44\r\n\r\n", 400},
      {"a list of lengths", kPost + "Content-Length: 0, 44\r\n\r\n", 400},
      {"a length with a sign", kPost + "Content-Length: +0\r\n\r\n", 400},
      {"a negative length", kPost + "Content-Length: -1\r\n\r\n", 400},
      {"a hexadecimal length", kPost + "Content-Length: 0x2c\r\n\r\n", 400},
      {"a length beyond 64 bits", kPost + "Content-Length: 18446744073709551616\r\n\r\n", 400},
      {"a coding twice",
       kPost + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", 400},
      {"two codings", kPost + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
      {"a coding that is nearly one", kPost + "Transfer-Encoding: xchunked\r\n\r\n", 400},
      {"a coding behind a tab", kPost + "Transfer-Encoding:\tchunked\r\nContent-Length: 0\r\n\r\n",
       400},
      {"chunks in HTTP/1.0",
       "POST /api/broadcast HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"a blank before the colon", kPost + "Content-Length : 44\r\n\r\n", 400},
      {"a folded line", kPost + "X-Fold: a\r\n Content-Length: 44\r\n\r\n", 400},
      {"a folded coding", kPost + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400},
      {"a NUL in a value", kGet + "X: a" + zero + "b\r\n\r\n", 400},
      {"a NUL in a name", kGet + "X" + zero + ": a\r\n\r\n", 400},
      {"a NUL in the target", "GET /health" + zero + " HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"bare line feeds", "GET /health HTTP/1.1\nHost: localhost\n\n\r\n\r\n", 400},
      {"a bare line feed in a value", kGet + "X: a\nContent-Length: 44\r\n\r\n", 400},
      {"a bare carriage return", kGet + "X: a\rContent-Length: 44\r\n\r\n", 400},
      {"no name", kGet + ": a\r\n\r\n", 400},
      {"two hosts", kGet + "Host: evil.example\r\n\r\n", 400},
      {"no host", "GET /health HTTP/1.1\r\n\r\n", 400},
      {"another version", "GET /health HTTP/1.2\r\nHost: a\r\n\r\n", 400},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
      {"blanks before the target", "GET  /health HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"a blank in the target", "GET /health x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"a chunk of no number", chunked + "\r\nxyz\r\n\r\n0\r\n\r\n", 400},
      {"a negative chunk", chunked + "\r\n-1\r\nx\r\n0\r\n\r\n", 400},
      {"a chunk beyond 64 bits", chunked + "\r\n10000000000000000\r\nx\r\n0\r\n\r\n", 400},
      {"a chunk that is longer than it says", chunked + "\r\n1\r\nxyz\r\n0\r\n\r\n", 400},
      {"a chunk without an end", chunked + "\r\n1\r\nx0\r\n\r\n\r\n", 400},
      {"a long method", Repeat("A", 17 * kKib) + " / HTTP/1.1\r\n\r\n", 431},
      {"a long target", "GET /" + Repeat("a", 17 * kKib) + " HTTP/1.1\r\n\r\n", 431},
      {"a long value", kGet + "X: " + Repeat("a", 17 * kKib) + "\r\n\r\n", 431},
      {"a long name", kGet + Repeat("a", 17 * kKib) + ": x\r\n\r\n", 431},
      {"many fields", kGet + Repeat("a:b\r\n", 4 * kKib) + "\r\n", 431},
      {"a long line of a chunk", chunked + "\r\n1;" + Repeat("a", 200 * kKib) + "\r\nx\r\n", 431},
      {"many fields after the chunks", chunked + "\r\n0\r\n" + Repeat("a:b\r\n", 50 * kKib), 431},
      {"a body of a gigabyte", kPost + "Content-Length: 1073741824\r\n\r\n", 413},
      {"a chunk of a gigabyte", chunked + "\r\n40000000\r\n", 413},
      {"many small chunks", chunked + "\r\n" + Repeat("1\r\nx\r\n", 1024 * kKib + 1), 413},
  };
}

// Each is answered once, and then the connection ends: the request that rides behind it is no
// request.
TEST_F(AttackTest, NoHostileRequestCarriesAnotherOneInside) {
  Begin({"--body-timeout=20s", "--header-timeout=20s"});
  for (const Bytes& c : HostileRequests()) {
    HttpClient client = server_->Connect();
    client.Send(c.sent + "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.FinishSending();
    std::string heard;
    while (const auto more = client.ReadBytes()) heard += *more;
    EXPECT_THAT(heard, StartsWith("HTTP/1.1 " + std::to_string(c.status) + " ")) << c.attack;
    EXPECT_EQ(heard.find("\nHTTP/1.1 "), std::string::npos) << c.attack << "\n" << heard;
    EXPECT_THAT(heard, Not(HasSubstr("smuggled"))) << c.attack;
  }
  ExpectHealthy();
  EXPECT_EQ(server_->Stop(), 0);
}

// What was sent after the chunks must not pass for a header that was checked.
TEST_F(AttackTest, ATrailerIsNoCredential) {
  std::ofstream(File("keys.yaml")) << "projects: {p: {keys: [key-in-a-trailer]}}\n";
  Begin({"--keys-file=keys.yaml"});
  HttpClient client = server_->Connect();
  client.Send(
      "POST /api/specs HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 203.0.113.9\r\n"
      "Transfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n"
      "2\r\n{}\r\n0\r\nAuthorization: Bearer key-in-a-trailer\r\n\r\n");
  EXPECT_EQ(client.Read().value_or(HttpAnswer{}).status, 401);
}

// ---- JSON ----

struct Body {
  const char* attack;
  std::string sent;
  int status;
};

std::string Message(const std::string& more) {
  return R"({"project":"p","from":"a","to":["b"],)" + more + "}";
}

std::vector<Body> HostileBodies() {
  const std::size_t most = 1000 * kKib;
  std::string keys;
  for (int i = 0; i < 20'000; ++i) keys += ",\"k" + std::to_string(i) + "\":1";
  return {
      {"a million brackets", Repeat("[", most), 400},
      {"objects in each other", Repeat(R"({"a":)", most / 5), 400},
      {"arrays in a member", Message("\"x\":" + Repeat("[", most / 2) + Repeat("]", most / 2 - 99)),
       400},
      {"many members", Message("\"x\":1" + keys), 400},
      {"many elements", Message("\"x\":[" + Repeat("1,", most / 2 - 99) + "1]"), 400},
      {"one member many times", Message(R"("a":1)" + Repeat(R"(,"a":1)", 100'000)), 400},
      {"a key of a megabyte", Message("\"" + Repeat("k", most) + "\":1"), 400},
      {"a number beyond all", Message(R"("x":1e400)"), 400},
      {"the same below zero", Message(R"("x":-1e400)"), 400},
      {"an exponent of a megabyte", Message("\"x\":1e" + Repeat("9", most)), 400},
      {"a whole number of a megabyte", Message("\"x\":" + Repeat("9", most)), 400},
      {"a fraction of a megabyte", Message("\"x\":0." + Repeat("9", most)), 200},
      {"a number near nothing", Message(R"("x":1e-99999)"), 200},
      {"not a number", Message(R"("x":NaN)"), 400},
      {"a lone surrogate", Message(R"("body":"\ud800")"), 400},
      {"bytes that are no UTF-8", Message("\"body\":\"\xC0\xAF\""), 400},
      {"an overlong NUL", Message("\"body\":\"\xC0\x80\""), 400},
      {"a raw NUL", Message("\"body\":\"" + std::string(1, '\0') + "\""), 400},
      {"a NUL in an id", Message(R"("id":"a\u0000b")"), 400},
      {"a NUL in a project", R"({"from":"a","to":["b"],"project":"p\u0000q"})", 400},
      {"a mark of the order of bytes", "\xEF\xBB\xBF" + Message(R"("x":1)"), 400},
      {"a megabyte of escapes", Message("\"body\":\"" + Repeat(R"(\u0041)", most / 6 - 99) + "\""),
       200},
      {"a list of nulls", R"({"project":"p","from":"a","to":[null]})", 400},
      {"many addresses",
       R"({"project":"p","from":"a","to":["b")" + Repeat(R"(,"c")", 100'001) + "]}", 400},
      {"a member named __proto__", Message(R"("__proto__":{"from":"x"})"), 200},
  };
}

TEST_F(AttackTest, JsonBombsCostLittleAndBreakNothing) {
  Begin({"--durability=fast"});
  const pid_t pid = server_->process().pid();
  ExpectHealthy();
  const long before = ResidentKib(pid);
  for (const Body& c : HostileBodies()) {
    const auto began = steady_clock::now();
    const HttpAnswer answer = Ask("POST", "/api/messages", c.sent);
    EXPECT_EQ(answer.status, c.status) << c.attack << "\n" << answer.body.substr(0, 300);
    EXPECT_LT(steady_clock::now() - began, kSoon) << c.attack;
    EXPECT_LT(answer.body.size(), 2 * kKib) << c.attack << ": an answer as long as the attack";
  }
  if (!testing::kSlowBuild) {
    EXPECT_LT(ResidentKib(pid) - before, 64L * 1024);
  }
  // Of two the last one counts, for the check of the project as for everything else.
  EXPECT_THAT(Ask("POST", "/api/specs",
                  R"({"project":"seen","title":"t","PROJECT":"x","project":"last","id":"i"})")
                  .body,
              AllOf(HasSubstr(R"("project":"last")"), Not(HasSubstr("seen"))));
  ExpectHealthy();
}

// ---- WebSocket ----

std::string Head(std::uint8_t first, std::uint8_t second, std::string_view rest = "") {
  std::string head;
  head += static_cast<char>(first);
  head += static_cast<char>(second);
  return head.append(rest);
}

TEST_F(AttackTest, NoPageAndNoStrangerHijacksAWebSocket) {
  std::ofstream(File("keys.yaml")) << "projects: {p: {keys: [key-of-the-socket]}}\n";
  Begin({"--keys-file=keys.yaml"});
  const std::string here = "127.0.0.1:" + std::to_string(server_->port());
  const std::string away = "X-Forwarded-For: 203.0.113.9\r\n";
  const std::string key = "Authorization: Bearer key-of-the-socket\r\n";
  const struct {
    const char* attack;
    std::string target;
    std::string host;
    std::string headers;
    int status;
  } cases[] = {
      {"a foreign page", "", here, "Origin: http://evil.example\r\n", 403},
      {"a foreign page that has the key", "", here, key + "Origin: http://evil.example\r\n", 403},
      {"a sandboxed frame", "", here, "Origin: null\r\n", 403},
      {"a page of another port", "", here, "Origin: http://127.0.0.1:1\r\n", 403},
      {"a bent name", "", "evil.example", "Origin: http://evil.example\r\n", 403},
      {"a bent name without an origin", "", "evil.example", "", 403},
      {"the key in the query", "&key=key-of-the-socket&access_token=key-of-the-socket", here, away,
       401},
      {"the key as a protocol", "", here, away + "Sec-WebSocket-Protocol: key-of-the-socket\r\n",
       401},
      {"the key as a cookie", "", here, away + "Cookie: key=key-of-the-socket\r\n", 401},
      {"another project", "&project=q", here, key, 403},
      {"another agent", "", here, key + "X-Agent-ID: b\r\n", 403},
      {"its owner", "", here, key, 101},
  };
  for (const auto& c : cases) {
    HttpClient client = server_->Connect();
    client.Send("GET /ws/agents/a?since_cursor=0" + c.target + " HTTP/1.1\r\nHost: " + c.host +
                "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
                c.headers + "\r\n");
    const auto answer = client.Read();
    ASSERT_TRUE(answer) << c.attack;
    EXPECT_EQ(answer->status, c.status) << c.attack << "\n" << answer->body;
  }
}

TEST_F(AttackTest, HostileFramesEndTheirOwnConnectionOnly) {
  Begin();
  const auto frame = [](WsClient::Opcode opcode, std::string_view payload,
                        WsClient::FrameStyle style = {}) {
    return WsClient::FrameBytes(opcode, payload, style);
  };
  const std::string open_text = frame(WsClient::kText, "{", {.final = false});
  const struct {
    const char* attack;
    std::string sent;
    int code;
  } cases[] = {
      {"a length of 2^63 - 1", Head(0x81, 0xFF, "\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFFmask"), 1009},
      {"a length beyond 63 bits", Head(0x81, 0xFF, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFmask"), 1009},
      {"a long message", frame(WsClient::kText, std::string(33 * kKib, ' ')), 1009},
      {"a long message in pieces",
       open_text +
           Repeat(frame(WsClient::kContinuation, std::string(kKib, ' '), {.final = false}), 33),
       1009},
      {"a message without a mask", frame(WsClient::kText, "{}", {.masked = false}), 1002},
      {"a piece of nothing", frame(WsClient::kContinuation, "{}"), 1002},
      {"a message within a message", open_text + frame(WsClient::kText, "{}"), 1002},
      {"a ping in pieces", frame(WsClient::kPing, "x", {.final = false}), 1002},
      {"a long ping", frame(WsClient::kPing, std::string(126, 'x')), 1002},
      {"bits that mean nothing", frame(WsClient::kText, "{}", {.reserved = 4}), 1002},
      {"a frame of an unknown kind", Head(0x83, 0x80, "mask"), 1002},
      {"half a closing code", frame(WsClient::kClose, "x"), 1002},
      {"text that is no UTF-8", frame(WsClient::kText, "\xC0\xAF"), 1007},
      {"nested JSON", frame(WsClient::kText, Repeat("[", 30 * kKib)), 1007},
      {"a binary message", frame(WsClient::kBinary, "{}"), 1003},
  };
  WsClient witness(server_->Connect(), "/ws/events?project=p");
  for (const auto& c : cases) {
    WsClient client(server_->Connect(), "/ws/events?project=p");
    ASSERT_TRUE(client.open());
    client.SendBytes(c.sent);
    EXPECT_EQ(client.ReadClose(), c.code) << c.attack;
  }
  EXPECT_EQ(Ask("POST", "/api/specs", R"({"project":"p","title":"t"})").status, 201);
  EXPECT_THAT(witness.ReadText().value_or(""), HasSubstr("spec.created"));
}

// Pongs that nobody reads must not pile up in the server.
TEST_F(AttackTest, AFloodOfPingsIsBounded) {
  Begin();
  const long before = ResidentKib(server_->process().pid());
  WsClient client(server_->Connect(), "/ws/events?project=p");
  ASSERT_TRUE(client.open());
  const std::string pings =
      Repeat(WsClient::FrameBytes(WsClient::kPing, std::string(125, 'x')), 1000);
  for (int i = 0; i < 100; ++i) {
    // What does not fit is not sent: a server that reads no more is what we hope for.
    if (::send(client.http().fd(), pings.data(), pings.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
      break;
    }
  }
  ExpectHealthy();
  if (!testing::kSlowBuild) {
    EXPECT_LT(ResidentKib(server_->process().pid()) - before, 16L * 1024);
  }
}

// Answers that many ask for at once, and that are read late.
TEST_F(AttackTest, TheMemoryOfLargeAnswersIsGivenBack) {
  Begin();
  const int messages = testing::kSlowBuild ? 4 : 20;  // sanitizers do not measure
  const std::string body(900'000, 'x');
  for (int i = 0; i < messages; ++i) {
    const std::string message = R"({"project":"p","from":"a","to":["b"],"body":")" + body + "\"}";
    ASSERT_EQ(Ask("POST", "/api/messages", message).status, 200);
  }
  const long before = ResidentKib(server_->process().pid());
  std::vector<HttpClient> readers;
  for (int i = 0; i < (testing::kSlowBuild ? 2 : 8); ++i) {
    readers.push_back(server_->Connect());
    readers.back().StopRecording();
    readers.back().Request("GET", "/api/inbox/b?project=p&limit=100", "", "");
  }
  for (HttpClient& reader : readers) {
    const auto answer = reader.Read();
    ASSERT_TRUE(answer && answer->status == 200);
    ASSERT_GT(answer->body.size(), messages * body.size() / 2);
  }
  ExpectHealthy();
  if (!testing::kSlowBuild) {
    EXPECT_LT(ResidentKib(server_->process().pid()) - before, 48L * 1024);
  }
}

// What came with the handshake is not kept as long as somebody follows.
TEST_F(AttackTest, ABodyWithAHandshakeDoesNotStayInMemory) {
  Begin();
  const std::string body(1'000'000, 'x');
  const std::string request =
      WsClient::Handshake("/ws/events?project=p", "Content-Length: 1000000\r\n") + body;
  const long before = ResidentKib(server_->process().pid());
  std::vector<HttpClient> followers;
  for (int i = 0; i < 60; ++i) {
    followers.push_back(server_->Connect());
    ASSERT_TRUE(followers.back().Send(request));
    std::array<char, 12> status;
    ASSERT_EQ(::recv(followers.back().fd(), status.data(), status.size(), MSG_WAITALL), 12);
    ASSERT_EQ(std::string_view(status.data(), status.size()), "HTTP/1.1 101");
  }
  ExpectHealthy();
  if (!testing::kSlowBuild) {
    EXPECT_LT(ResidentKib(server_->process().pid()) - before, 24L * 1024);
  }
}

// ---- Slow loris ----

// Sockets that send as little as keeps them alive. Plain descriptors, so that a thousand cost
// little.
class Loris {
 public:
  enum class Way : std::uint8_t { kSilent, kHeader, kBody, kIdle, kDeaf };

  Loris(std::uint16_t port, Way way) : way_(way), client_(HttpClient::Tcp(port)) {
    client_.StopRecording();
    static const std::string kOpenApi = "GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n";
    switch (way) {
      case Way::kSilent:
        break;
      case Way::kHeader:
        client_.Send("GET /health HTTP/1.1\r\nX: ");
        break;
      case Way::kBody:
        client_.Send("POST /api/specs HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n");
        break;
      case Way::kIdle:
        client_.Send(kGet + "\r\n");
        break;
      case Way::kDeaf: {
        const int small = 4096;
        ::setsockopt(client_.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
        client_.Send(Repeat(kOpenApi, 100));  // and reads nothing
        break;
      }
    }
  }

  bool connected() const { return client_.connected(); }

  // One more byte of what never ends.
  void Dribble() {
    if (way_ != Way::kHeader && way_ != Way::kBody) return;
    ::send(client_.fd(), "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

 private:
  const Way way_;
  HttpClient client_;
};

// Honest clients that ask all the time; what they met.
class Honest {
 public:
  explicit Honest(std::uint16_t port) : thread_([this, port] { Run(port); }) {}
  ~Honest() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  Honest(const Honest&) = delete;
  Honest& operator=(const Honest&) = delete;

  void Stop() {
    stop_ = true;
    thread_.join();
  }
  int served() const { return served_; }
  int refused() const { return refused_; }
  std::chrono::nanoseconds slowest() const { return slowest_; }

 private:
  void Run(std::uint16_t port) {
    while (!stop_) {
      HttpClient client = HttpClient::Tcp(port);  // a newcomer, who needs a place
      client.StopRecording();
      for (int i = 0; i < 10 && !stop_; ++i) {
        const auto began = steady_clock::now();
        client.Request("POST", "/api/specs", R"({"project":"p","title":"t"})");
        const auto answer = client.Read();
        slowest_ = std::max<std::chrono::nanoseconds>(slowest_, steady_clock::now() - began);
        ++(answer && answer->status == 201 ? served_ : refused_);
      }
    }
  }

  std::atomic<bool> stop_ = false;
  int served_ = 0;  // the thread's until it is joined
  int refused_ = 0;
  std::chrono::nanoseconds slowest_{0};
  std::thread thread_;
};

class LorisTest : public AttackTest {
 protected:
  LorisTest() {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }

  // As many of each way, kept alive as well as they can until the server has let all of them go;
  // false when that takes longer than `limit`. Before that all of them were connected at once.
  bool Besiege(int each, std::chrono::milliseconds limit) {
    std::vector<std::unique_ptr<Loris>> crowd;
    using enum Loris::Way;
    for (int i = 0; i < each; ++i) {
      for (const Loris::Way way : {kSilent, kHeader, kBody, kIdle}) {
        crowd.push_back(std::make_unique<Loris>(server_->port(), way));
      }
      if (i % 10 == 0) crowd.push_back(std::make_unique<Loris>(server_->port(), kDeaf));
    }
    const auto connected =
        std::ranges::count_if(crowd, [](const auto& loris) { return loris->connected(); });
    EXPECT_EQ(connected, std::ssize(crowd));
    int most = 0;
    const auto end = steady_clock::now() + limit;
    bool all_gone = false;
    while (!all_gone && steady_clock::now() < end) {
      for (const auto& loris : crowd) loris->Dribble();
      const int open = OpenConnections();
      most = std::max(most, open);
      all_gone = open <= kHonest + 1;  // theirs, and that of the question
      if (!all_gone) ::poll(nullptr, 0, 20);
    }
    if (!testing::kSlowBuild) {  // there the first are let go before the last have come
      EXPECT_GE(most, std::ssize(crowd));
    }
    return all_gone;
  }

  // A deaf one cannot see that it was let go: the end stands behind what it does not read.
  int OpenConnections() const {
    constexpr std::string_view kName = "\nintermute_connections_open ";
    const HttpAnswer answer = Ask("GET", "/metrics");
    const std::size_t at = answer.body.find(kName);
    return at == std::string::npos ? 1 << 20 : std::stoi(answer.body.substr(at + kName.size()));
  }

  // Honest clients that ask while `each` of each way besiege the server.
  void ExpectServedMeanwhile(int each) {
    std::vector<std::unique_ptr<Honest>> honest;
    honest.reserve(kHonest);
    for (int i = 0; i < kHonest; ++i) honest.push_back(std::make_unique<Honest>(server_->port()));
    EXPECT_TRUE(Besiege(each, 10 * kSoon)) << OpenConnections();
    for (const auto& one : honest) {
      one->Stop();
      EXPECT_GT(one->served(), testing::kSlowBuild ? 10 : 100);
      EXPECT_EQ(one->refused(), 0);
      EXPECT_LT(one->slowest(), kSoon);
    }
    EXPECT_EQ(server_->Stop(), 0);
  }

  static constexpr int kHonest = 3;
};

const std::vector<std::string> kShortTimes = {"--header-timeout=2s", "--body-timeout=2s",
                                              "--idle-timeout=2s",   "--write-timeout=2s",
                                              "--durability=fast",   "--log-level=error"};

TEST_F(LorisTest, AThousandSlowSocketsAreLetGoInTimeWhileOthersAreServed) {
  Begin(kShortTimes);
  ExpectServedMeanwhile(245);
}

// Of those that have sent no whole request the oldest gives its place to a newcomer.
TEST_F(LorisTest, MoreSlowSocketsThanThereAreConnectionsKeepNobodyOut) {
  Begin({"--max-connections=64", "--durability=fast", "--log-level=error", "--header-timeout=1h",
         "--body-timeout=1h", "--drain-timeout=100ms"});
  std::vector<std::unique_ptr<Loris>> crowd;
  using enum Loris::Way;
  for (int i = 0; i < 100; ++i) {
    for (const Loris::Way way : {kSilent, kHeader, kBody}) {
      crowd.push_back(std::make_unique<Loris>(server_->port(), way));
    }
  }
  const auto status_for_newcomer = [this] {
    HttpClient client = server_->Connect();
    return client.Get("/health").value_or(HttpAnswer{}).status;
  };
  // They came faster than others could be let go, so at first a newcomer may be refused.
  const auto end = steady_clock::now() + kSoon;
  while (status_for_newcomer() != 200 && steady_clock::now() < end) ::poll(nullptr, 0, 5);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(status_for_newcomer(), 200) << i;
  const auto later = steady_clock::now() + kSoon;  // the last to give its place may still be there
  while (OpenConnections() > 64 && steady_clock::now() < later) ::poll(nullptr, 0, 5);
  EXPECT_LE(OpenConnections(), 64);
  EXPECT_EQ(server_->Stop(), 0);
}

// ---- Paths and patterns ----

// What is held exclusively is held however the path is spelled, or the spelling is refused.
TEST_F(AttackTest, NoSpellingOfAPathSlipsPastAnExclusiveReservation) {
  Begin({"--durability=fast"});
  const auto reserve = [&](const std::string& agent, const std::string& pattern,
                           const std::string& more = "") {
    return Ask("POST", "/api/reservations",
               R"({"project":"p","agent_id":")" + agent + R"(","exclusive":true,"path_pattern":")" +
                   pattern + "\"" + more + "}");
  };
  ASSERT_EQ(reserve("holder", "src/**").status, 201);
  const struct {
    std::string pattern;
    int status;
  } cases[] = {
      {"src/a", 409},
      {"./src/a", 409},
      {"src//a", 409},
      {".//src/./a", 409},
      {"src/", 409},
      {"**", 409},
      {"*/a", 409},
      {"s?c/a", 409},
      {"[s]rc/a", 409},
      {"{src,x}/a", 409},
      {"\\\\src/a", 400},
      {"s[q-s]c/a", 409},
      {"src/\\u0061", 409},
      {"src/**/**/a", 409},
      {"**/../src/a", 400},
      {"x/../src/a", 400},
      {"../src/a", 400},
      {"src/..", 400},
      {"/src/a", 400},
      {"//src/a", 400},
      {"src/a\\u0000", 400},
      {"", 400},
      {" ", 400},
      {" src/a", 400},
      {"src\\\\\\\\a", 400},
      {".", 400},
      {"[z-a]rc/a", 400},
      {"[src/a", 400},
      {"src/a\xFF", 400},
      {"\xC0\xAF", 400},
      {"src\\\\/a", 400},
      {"SRC/a", 201},
      {"src", 409},
      {"s\xCC\xA7rc/a", 201},
      {std::string(5000, 'a'), 400},
  };
  for (const auto& c : cases) {
    const HttpAnswer answer = reserve("thief", c.pattern);
    EXPECT_EQ(answer.status, c.status) << c.pattern << "\n" << answer.body;
  }
  for (const char* path : {"src/a", "./src/a", "src//a"}) {
    EXPECT_EQ(reserve("thief", path, R"(,"literal":true)").status, 409) << path;
  }
  for (const char* path : {"../src/a", "/src/a", "x/../src/a"}) {
    EXPECT_EQ(reserve("thief", path, R"(,"literal":true)").status, 400) << path;
  }
}

TEST_F(AttackTest, PatternBombsCostLittle) {
  Begin({"--durability=fast"});
  const std::vector<std::string> bombs = {
      Repeat("**/", 1000) + "a",
      Repeat("**/", 31) + "a",
      Repeat("*a", 2000),
      Repeat("*a", 31),
      Repeat("{a,b}", 6),
      Repeat("{a,b}", 800),
      Repeat("{", 2000),
      Repeat("[a-z]", 800),
      "[" + Repeat("a-b", 1300) + "]",
      Repeat("?", 4000),
      Repeat("a/", 2000) + "**",
      Repeat("*", 4000),
      Repeat("{*a*,*b*}/", 6) + "**",
      Repeat("[!a]*", 31),
      Repeat("(a+)+", 500),
  };
  for (const std::string& bomb : bombs) {
    for (const std::string& other : {bomb, bomb + "b", "x" + bomb}) {
      const auto began = steady_clock::now();
      const HttpAnswer answer =
          Ask("POST", "/api/reservations",
              R"({"project":"p","agent_id":")" + std::to_string(other.size()) +
                  R"(","exclusive":true,"path_pattern":")" + other + "\"}");
      EXPECT_TRUE(answer.status == 201 || answer.status == 400 || answer.status == 409)
          << answer.status << " " << other.substr(0, 60) << "\n"
          << answer.body;
      EXPECT_LT(steady_clock::now() - began, kSoon) << other.substr(0, 60);
    }
  }
  EXPECT_EQ(Ask("GET", "/api/reservations/check?project=p&pattern=" + Repeat("**%2F", 2000)).status,
            400);
  EXPECT_EQ(Ask("GET", "/api/reservations/check?project=p&pattern=%FF").status, 400);
  EXPECT_EQ(Ask("GET", "/api/reservations/check?project=p&pattern=a%00b").status, 400);
}

// Through a proxy on this machine a request comes from elsewhere, whatever its socket says.
TEST_F(AttackTest, WhoComesFromElsewhereThroughAProxyNamesNoPane) {
  std::ofstream(File("keys.yaml")) << "projects: {p: {keys: [key-behind-a-proxy]}}\n";
  Begin({"--keys-file=keys.yaml"});
  const std::string key = "Authorization: Bearer key-behind-a-proxy\r\n";
  const std::string away = key + "X-Forwarded-For: 203.0.113.9\r\n";
  const HttpAnswer agent = Ask("POST", "/api/agents", R"({"project":"p"})", away);
  const auto part = [&](const std::string& name) {
    const std::size_t begin = agent.body.find("\"" + name + "\":\"") + name.size() + 4;
    return agent.body.substr(begin, agent.body.find('"', begin) - begin);
  };
  const std::string body = R"({"project":"p","window_uuid":"w","tmux_target":"work:0.0",)"
                           R"("agent_id":")" +
                           part("agent_id") + R"(","registration_token":")" + part("token") + "\"}";
  EXPECT_EQ(Ask("POST", "/api/windows", body, away).status, 403);
  EXPECT_EQ(Ask("POST", "/api/windows", body, key).status, 200);
}

}  // namespace
}  // namespace interlock::e2e
