#include "client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "ask.h"
#include "http/socket.h"
#include "inbox.h"
#include "json/value.h"
#include "json/write.h"
#include "testing/temp_db.h"

namespace interlock::app {
namespace {

using http::Endpoint;
using http::ParseEndpoint;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(EndpointTest, IsWhatTheServerPrints) {
  EXPECT_EQ(*ParseEndpoint("http://127.0.0.1:7338"),
            (Endpoint{.host = "127.0.0.1", .port = "7338"}));
  EXPECT_EQ(*ParseEndpoint("http://[::1]:1/"), (Endpoint{.host = "::1", .port = "1"}));
  EXPECT_EQ(*ParseEndpoint("http://box.lan"), (Endpoint{.host = "box.lan", .port = "80"}));
  const Endpoint socket = {.kind = Endpoint::Kind::kUnix, .path = "/run/i.sock"};
  EXPECT_EQ(*ParseEndpoint("unix:/run/i.sock"), socket);
  EXPECT_EQ(*ParseEndpoint("unix:///run/i.sock"), socket);
}

TEST(EndpointTest, RefusesTheRestWithItsReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "neither"},
      {"127.0.0.1:7338", "neither"},
      {"https://h:1", "TLS"},
      {"http://", "no host"},
      {"http://:80", "no host"},
      {"http://h:", "port"},
      {"http://h:65536", "port"},
      {"http://h:8x", "port"},
      {"http://[::1", "not closed"},
      {"http://[::1]7", "']'"},
      {"http://u@h:1", "more than"},
      {"http://h:1/api", "more than"},
      {"unix:", "no socket"},
  };
  for (const auto& [url, reason] : cases) {
    const auto parsed = ParseEndpoint(url);
    ASSERT_FALSE(parsed.ok()) << url;
    EXPECT_EQ(parsed.error().code(), Errc::kUsage);
    EXPECT_THAT(parsed.error().message(), AllOf(HasSubstr(reason), HasSubstr("unix:/PATH"))) << url;
  }
}

TEST(EndpointTest, AQueryCarriesAnyText) {
  EXPECT_EQ(http::EncodeQuery({{"project", "a b/ü"}, {"x", "1&y=2%"}}),
            "project=a%20b%2F%C3%BC&x=1%26y%3D2%25");
  EXPECT_EQ(http::EncodeQuery({}), "");
}

// Takes one connection, reads one request and answers with the bytes it was given.
class Peer {
 public:
  Peer(http::ListeningSocket socket, std::string answer)
      : socket_(std::move(socket)),
        thread_([this, answer = std::move(answer)] { Serve(answer); }) {}
  ~Peer() {
    if (thread_.joinable()) thread_.join();
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& url() const { return socket_.url; }
  // What it was asked, when it is done.
  const std::string& Asked() {
    thread_.join();
    return asked_;
  }

 private:
  void Serve(const std::string& answer) {
    pollfd wait = {.fd = socket_.fd.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&wait, 1, 20'000), 1);
    const int fd = ::accept(socket_.fd.get(), nullptr, nullptr);
    char piece[4096];
    while (!asked_.ends_with("\r\n\r\n") && !asked_.ends_with("}")) {
      const auto got = ::read(fd, piece, sizeof piece);
      if (got <= 0) break;
      asked_.append(piece, static_cast<std::size_t>(got));
    }
    EXPECT_EQ(::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(answer.size()));
    if (answer.empty()) (void)::read(fd, piece, sizeof piece);  // says nothing until the peer ends
    ::close(fd);
  }

  const http::ListeningSocket socket_;
  std::string asked_;
  std::thread thread_;
};

std::string Text(std::string_view status, std::string_view body) {
  return "HTTP/1.1 " + std::string(status) + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}

TEST(ClientTest, AsksWithQueryAndKeyAndReadsTheAnswer) {
  Peer peer(*http::ListenTcp("127.0.0.1", 0), Text("200 OK", "{\"agents\":[1]}\n"));
  const auto client = Client::For({.url = peer.url(), .api_key = Secret("s3cret")});
  const auto answer = client->Get("/api/agents", {{"project", "a b"}});
  ASSERT_TRUE(answer.ok()) << answer.error();
  EXPECT_EQ(json::Write(*answer), R"({"agents":[1]})");
  EXPECT_THAT(peer.Asked(),
              AllOf(StartsWith("GET /api/agents?project=a%20b HTTP/1.1\r\nHost: 127.0.0.1:"),
                    HasSubstr("Authorization: Bearer s3cret\r\n")));
}

TEST(ClientTest, AnAnswerThatIsNoneOfOursIsNotTakenForEmpty) {
  for (const char* strange : {"{}", "[]", "null", R"({"version":7,"time":"now"})"}) {
    Peer peer(*http::ListenTcp("127.0.0.1", 0), Text("200 OK", strange));
    AskOptions options;
    options.server.url = peer.url();
    const Done done = Ask(options, {});
    EXPECT_EQ(done.exit_code, 2) << strange;
    EXPECT_THAT(done.text, HasSubstr("something else than an intermute server")) << strange;
  }
}

TEST(ClientTest, SpeaksOverAUnixSocketWithoutAKey) {
  const testing::TempDir directory;
  Peer peer(*http::ListenUnix(directory.path() / "i.sock"), Text("200 OK", ""));
  const auto client = Client::For({.url = peer.url()});
  const auto answer = client->Post("/api/x", {}, "{}");
  ASSERT_TRUE(answer.ok()) << answer.error();
  EXPECT_TRUE(answer->is_null());
  EXPECT_THAT(peer.Asked(), AllOf(StartsWith("POST /api/x HTTP/1.1\r\nHost: localhost\r\n"),
                                  HasSubstr("Content-Length: 2\r\n"), EndsWith("\r\n\r\n{}"),
                                  Not(HasSubstr("Authorization"))));
}

TEST(ClientTest, SaysWhatToDoWhenNobodyListens) {
  std::string url;
  {
    const auto socket = http::ListenTcp("127.0.0.1", 0);
    url = socket->url;
  }
  for (const std::string& address : {url, std::string("unix:/nowhere/i.sock")}) {
    const auto answer = Client::For({.url = address})->Get("/health", {});
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code(), Errc::kUnavailable);
    EXPECT_THAT(answer.error().message(),
                AllOf(StartsWith("no server at " + address + " (no connection: "),
                      HasSubstr("intermute serve"), HasSubstr("INTERMUTE_URL")));
  }
}

TEST(ClientTest, PassesOnWhatTheServerRefused) {
  Peer peer(*http::ListenTcp("127.0.0.1", 0),
            Text("404 Not Found", R"({"error":"no_such","message":"Ask for another."})"));
  const auto answer = Client::For({.url = peer.url()})->Get("/x", {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Errc::kNotFound);
  EXPECT_EQ(answer.error().slug(), "no_such");
  EXPECT_EQ(answer.error().message(), peer.url() + " answered 404 no_such: Ask for another.");
}

TEST(ClientTest, KnowsThatSomethingElseListens) {
  for (const std::string& bytes :
       {std::string("SSH-2.0-x\r\n\r\n"), Text("200 OK", "<html>"),
        std::string("HTTP/1.1 200 OK\r\n"), Text("404 Not Found", "<html>no such page</html>"),
        Text("502 Bad Gateway", "{}")}) {
    Peer peer(*http::ListenTcp("127.0.0.1", 0), bytes);
    const auto answer = Client::For({.url = peer.url()})->Get("/x", {});
    ASSERT_FALSE(answer.ok()) << bytes;
    EXPECT_EQ(answer.error().code(), Errc::kUnavailable);
    EXPECT_THAT(
        answer.error().message(),
        AllOf(StartsWith("something else than an intermute server answers at " + peer.url()),
              HasSubstr("INTERMUTE_URL")));
  }
}

TEST(ClientTest, A401NamesTheVariableOfTheKey) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "it needs a key; set INTERMUTE_API_KEY"},
      {"s3cret", "it does not know the key in INTERMUTE_API_KEY"}};
  for (const auto& [key, says] : cases) {
    Peer peer(*http::ListenTcp("127.0.0.1", 0),
              Text("401 Unauthorized", R"({"error":"unauthorized","message":"Send a field."})"));
    const auto answer = Client::For({.url = peer.url(), .api_key = Secret(key)})->Get("/x", {});
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code(), Errc::kUnauthorized);
    EXPECT_THAT(answer.error().message(), AllOf(HasSubstr(says), Not(HasSubstr("s3cret"))));
  }
}

TEST(ClientTest, AServerThatHangsIsNotCalledAbsent) {
  Peer peer(*http::ListenTcp("127.0.0.1", 0), "");
  const auto answer =
      Client::For({.url = peer.url()}, std::chrono::milliseconds(30))->Get("/x", {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Errc::kUnavailable);
  EXPECT_THAT(answer.error().message(),
              AllOf(StartsWith("the server at " + peer.url() + " hangs (no answer within 30 ms)"),
                    HasSubstr("restart"), HasSubstr("INTERMUTE_URL")));
}

TEST(ClientTest, WithoutAServerEveryCommandEndsWith2) {
  const testing::TempDir directory;
  const ServerAddress server = {.url = "unix:" + (directory.path() / "none.sock").string()};
  const auto never = [](std::string_view /*text*/) { return false; };
  InboxOptions inbox;
  inbox.server = server;
  EXPECT_EQ(Inbox(inbox, never).exit_code, 2);
  for (const auto question :
       {AskOptions::Question::kStatus, AskOptions::Question::kAgents, AskOptions::Question::kWho}) {
    AskOptions ask;
    ask.question = question;
    ask.server = server;
    ask.project = "web";
    ask.path = "x";
    EXPECT_EQ(Ask(ask, {}).exit_code, 2);
  }
}

TEST(ClientTest, AnInboxThatIsNotOursIsNotTakenForEmpty) {
  Peer peer(*http::ListenTcp("127.0.0.1", 0), Text("200 OK", R"({"pokes":7})"));
  InboxOptions inbox;
  inbox.server.url = peer.url();
  const Done done = Inbox(inbox, [](std::string_view /*text*/) { return true; });
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_THAT(done.text, HasSubstr("something else than an intermute server"));
}

TEST(ClientTest, GivesUpOnAServerThatSaysNothing) {
  Peer peer(*http::ListenTcp("127.0.0.1", 0), "");
  const auto answer = http::Exchange(*ParseEndpoint(peer.url()), {.method = "GET", .target = "/"},
                                     {.patience = std::chrono::milliseconds(30)});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().message(), "no answer within 30 ms");
}

}  // namespace
}  // namespace interlock::app
