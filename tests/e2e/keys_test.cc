// Keys as an operator meets them: the first start, `intermute init`, SIGHUP, who is let in.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "auth/keys_file.h"
#include "e2e_test.h"
#include "testing/ws_client.h"

namespace interlock::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kFile = "intermute.keys.yaml";
constexpr const char* kGuarded = "/openapi.json";  // any route that is not /health

class KeysTest : public E2eTest {
 protected:
  std::string Text(const std::string& name = kFile) const {
    std::ostringstream text;
    text << std::ifstream(File(name)).rdbuf();
    return text.str();
  }
  // In one step, as a careful operator does.
  void Replace(const std::string& text) const {
    std::ofstream(File("new.yaml")) << text;
    ASSERT_EQ(::chmod(File("new.yaml").c_str(), 0600), 0);
    std::filesystem::rename(File("new.yaml"), File(kFile));
  }
  auth::Keyring Load(const std::string& name = kFile) const {
    auto loaded = auth::LoadKeys(File(name));
    EXPECT_TRUE(loaded.ok()) << loaded.error();
    return loaded.ok() ? loaded->keyring : auth::Keyring();
  }
  // The only key of the file.
  std::string OnlyKey() const {
    const std::string text = Text();
    const std::size_t begin = text.rfind("- ") + 2;
    return text.substr(begin, text.find('\n', begin) - begin);
  }
  // What "key: …" of init's output says.
  static std::string Printed(const std::string& out) {
    const std::size_t begin = out.find("\nkey: ") + 6;
    return out.substr(begin, out.find('\n', begin) - begin);
  }

  static int Status(HttpClient& client, const std::string& headers) {
    if (!client.Request("GET", kGuarded, "", headers)) return -1;
    const auto answer = client.Read();
    return answer ? answer->status : -1;
  }
  static int Status(const ServerProcess& server, const std::string& headers = "") {
    HttpClient client = server.Connect();
    return Status(client, headers);
  }
  static std::string Bearer(const std::string& key) {
    return "Authorization: Bearer " + key + "\r\n";
  }
  // Waits for what the log says of it.
  static bool Reload(ServerProcess& server, const std::string& says) {
    server.process().Signal(SIGHUP);
    return server.process().WaitForLog(says, ServerProcess::kPatience).has_value();
  }
};

// ---- The first start ----

TEST_F(KeysTest, TheFirstStartMakesOnePrivateKeyAndSaysWhereItIs) {
  const auto server = Start();
  struct stat info{};
  ASSERT_EQ(::stat(File(kFile).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  const std::string key = OnlyKey();
  EXPECT_THAT(key, MatchesRegex("[A-Za-z0-9_-]{43}"));
  EXPECT_EQ(Load().Find(key), "dev");
  EXPECT_EQ(Load().key_count(), 1U);
  EXPECT_EQ(Status(*server), 200);
  EXPECT_EQ(Status(*server, Bearer(key)), 200);
  EXPECT_EQ(Status(*server, Bearer(key + "x")), 401);
  EXPECT_EQ(server->Stop(), 0);
  EXPECT_THAT(server->process().Stderr(), HasSubstr("created keys file"));
  EXPECT_THAT(server->process().Stderr(), HasSubstr(File(kFile).string()));
}

// Whatever the server says where no terminal is, it does not say a key.
TEST_F(KeysTest, NoKeyIsEverLoggedOrPrinted) {
  const auto server = Start({"--log-level=debug", "--log-format=json"});
  const std::string key = OnlyKey();
  EXPECT_EQ(Status(*server, Bearer(key)), 200);
  EXPECT_EQ(Status(*server, Bearer("mistyped-sesame")), 401);
  Replace("projects: {a: {keys: [open-sesame]}, b: {keys: [open-sesame]}}\n");
  EXPECT_TRUE(Reload(*server, "cannot reload"));
  Replace("projects: {a: {keys: [other-sesame]}}\n");
  EXPECT_TRUE(Reload(*server, "reloaded the keys"));
  EXPECT_EQ(server->Stop(), 0);
  for (const std::string& text : {server->process().Stderr(), server->process().Stdout()}) {
    EXPECT_THAT(text, AllOf(Not(HasSubstr(key)), Not(HasSubstr("sesame"))));
  }
}

// A terminal with our server in it; standard error goes to a file as ever.
class Window {
 public:
  Window() {
    EXPECT_EQ(::openpty(&outside_, &inside_, nullptr, nullptr, nullptr), 0);
    // A server that held the outside too would keep its own window open.
    ::fcntl(outside_, F_SETFD, FD_CLOEXEC);
    ::fcntl(inside_, F_SETFD, FD_CLOEXEC);
  }
  ~Window() {
    Close();
    ::close(inside_);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  int inside() const { return inside_; }
  void Close() {
    if (outside_ >= 0) ::close(outside_);
    outside_ = -1;
  }
  // What is on the screen once `text` is; as far as it came when that takes too long.
  std::string WaitFor(const std::string& text) {
    std::array<char, 4096> bytes{};
    while (screen_.find(text) == std::string::npos) {
      pollfd wait{.fd = outside_, .events = POLLIN, .revents = 0};
      const int patience = static_cast<int>(ServerProcess::kPatience.count());
      if (::poll(&wait, 1, patience) <= 0) break;
      const ssize_t size = ::read(outside_, bytes.data(), bytes.size());
      if (size <= 0) break;
      screen_.append(bytes.data(), static_cast<std::size_t>(size));
    }
    return screen_;
  }

 private:
  int outside_ = -1;
  int inside_ = -1;
  std::string screen_;
};

TEST_F(KeysTest, ANewKeyIsShownOnceOnTheTerminalAndNotInTheLog) {
  const std::vector<std::string> arguments = {ServerProcess::Program("intermute"), "serve",
                                              "--port=0", "--db=test.db"};
  std::string key;
  {
    Window window;
    ChildProcess server(
        {.arguments = arguments, .directory = Directory(), .stdout_fd = window.inside()});
    const std::string screen = window.WaitFor("listening on http://");
    key = OnlyKey();
    EXPECT_THAT(screen, HasSubstr("INTERMUTE_API_KEY=" + key));
    EXPECT_EQ(screen.find(key), screen.rfind(key)) << "once is enough";
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait(ServerProcess::kPatience), 0);
    EXPECT_THAT(server.Stderr(), AllOf(HasSubstr("stopped"), Not(HasSubstr(key))));
  }
  Window window;
  ChildProcess server(
      {.arguments = arguments, .directory = Directory(), .stdout_fd = window.inside()});
  EXPECT_THAT(window.WaitFor("listening on http://"), Not(HasSubstr(key)));
  // The window is closed: whoever would have pressed Ctrl-C is gone.
  window.Close();
  server.Signal(SIGHUP);
  EXPECT_EQ(server.Wait(ServerProcess::kPatience), 0);
  EXPECT_THAT(server.Stderr(), HasSubstr("SIGHUP"));
}

TEST_F(KeysTest, AFileThatIsThereIsNeverTouched) {
  for (const char* text : {"", "# mine\nprojects: {web: {keys: [alpha-sesame]}}\n"}) {
    Replace(text);
    EXPECT_EQ(Start()->Stop(), 0);
    EXPECT_EQ(Text(), text);
  }
}

TEST_F(KeysTest, AFileThatCannotBeReadStopsTheStart) {
  for (const char* text :
       {"projects: [", "projects: {a: {keys: [short-sesame]}, b: {keys: [short-sesame]}}\n",
        "projects: {a: short-sesame}\n"}) {
    Replace(text);
    const auto finished = RunServe({"--port=0", "--db=test.db"});
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_EQ(finished.out, "");
    EXPECT_THAT(finished.err,
                AllOf(HasSubstr(std::string(kFile) + ": line"), Not(HasSubstr("sesame"))));
  }
}

TEST_F(KeysTest, AFileThatCannotBeMadeIsOnlyAWarning) {
  const auto server = Start({"--keys-file=missing/keys.yaml"});
  EXPECT_EQ(Status(*server), 200);
  EXPECT_EQ(server->Stop(), 0);
  EXPECT_THAT(server->process().Stderr(), HasSubstr("WARN cannot make a keys file"));
}

TEST_F(KeysTest, TheEnvironmentNamesTheFileAndTheFlagGoesBefore) {
  ::setenv("INTERMUTE_KEYS_FILE", "  by-environment.yaml ", 1);
  EXPECT_EQ(Start()->Stop(), 0);
  EXPECT_EQ(Start({"--keys-file=by-flag.yaml"})->Stop(), 0);
  EXPECT_EQ(Run({"init", "--project=web"}).exit_code, 0);
  ::unsetenv("INTERMUTE_KEYS_FILE");
  EXPECT_EQ(Load("by-environment.yaml").key_count(), 2U);
  EXPECT_EQ(Load("by-flag.yaml").key_count(), 1U);
  EXPECT_FALSE(std::filesystem::exists(File(kFile)));
}

TEST_F(KeysTest, ServersThatStartAtOnceShareOneNewFile) {
  std::vector<std::unique_ptr<ChildProcess>> servers;
  servers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    servers.push_back(std::make_unique<ChildProcess>(
        ChildProcess::Options{.arguments = {ServerProcess::Program("intermute"), "serve",
                                            "--port=0", "--db=test" + std::to_string(i) + ".db"},
                              .directory = Directory()}));
  }
  int made = 0;
  for (const auto& server : servers) {
    EXPECT_TRUE(server->WaitForLine("listening on", ServerProcess::kPatience)) << server->Stderr();
    if (server->Stderr().find("created keys file") != std::string::npos) ++made;
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(Load().key_count(), 1U);
}

// ---- init ----

TEST_F(KeysTest, InitAddsAKeyThatTheServerTakes) {
  const auto first = Run({"init", "--project", " web "});
  const auto second = Run({"init", "--project=web", std::string("--keys-file=") + kFile});
  for (const auto& finished : {first, second}) {
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_EQ(finished.err, "");
    const std::string key = Printed(finished.out);
    EXPECT_THAT(finished.out, AllOf(StartsWith("project: web\n"), HasSubstr(File(kFile).string()),
                                    HasSubstr("export INTERMUTE_API_KEY=" + key),
                                    HasSubstr("Authorization: Bearer " + key),
                                    HasSubstr("INTERMUTE_KEYS_FILE=")));
    EXPECT_EQ(Load().Find(key), "web");
  }
  EXPECT_EQ(Load().key_count(), 2U);
  struct stat info{};
  ASSERT_EQ(::stat(File(kFile).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  const auto server = Start();
  EXPECT_EQ(Status(*server, Bearer(Printed(first.out))), 200);
  EXPECT_EQ(Status(*server, Bearer(Printed(second.out))), 200);
}

TEST_F(KeysTest, InitWithoutAProjectNamesItsHelp) {
  const std::vector<std::vector<std::string>> mistakes = {
      {"init"}, {"init", "--project", " "}, {"init", "--project=x", "--keys-file="}};
  for (const auto& mistake : mistakes) {
    const auto finished = Run(mistake);
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_EQ(finished.out, "");
    EXPECT_THAT(finished.err,
                AllOf(StartsWith("intermute: "), HasSubstr("\nTry: intermute init --help\n")));
  }
  EXPECT_FALSE(std::filesystem::exists(File(kFile)));
}

// ---- Reload ----

TEST_F(KeysTest, AReloadUnderLoadRefusesNobodyWhoseKeyStays) {
  Replace("projects: {dev: {keys: [stays-sesame, goes-sesame]}}\n");
  const auto server = Start();
  std::atomic<bool> done = false;
  std::atomic<int> answered = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> clients;
  clients.reserve(4);
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      HttpClient client = server->Connect();
      while (!done) {
        if (Status(client, Bearer("stays-sesame")) != 200) ++refused;
        ++answered;
      }
    });
  }
  for (int i = 1; i <= 10; ++i) {
    const std::string fresh = "fresh-sesame" + std::to_string(i);
    std::string text = "projects: {dev: {keys: [stays-sesame, " + fresh;
    for (int k = 0; k < i; ++k) text += ", filler-sesame" + std::to_string(k);
    Replace(text + "]}}\n");
    const int before = answered;
    ASSERT_TRUE(Reload(*server, "keys=" + std::to_string(i + 2) + " "));
    HttpClient client = server->Connect();
    EXPECT_EQ(Status(client, Bearer(fresh)), 200) << i;
    EXPECT_EQ(Status(client, Bearer("goes-sesame")), 401) << i;
    EXPECT_EQ(Status(client, Bearer("fresh-sesame" + std::to_string(i - 1))), 401) << i;
    while (answered == before) std::this_thread::yield();
  }
  done = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(refused, 0);
}

TEST_F(KeysTest, CommandsRefuseAProjectOtherThanThatOfTheKey) {
  Replace("projects: {pa: {keys: [alpha-sesame]}, pb: {keys: [beta-sesame]}}\n");
  const auto server = Start();
  HttpClient client = server->Connect();
  for (const char* project : {"pa", "pb"}) {
    ASSERT_TRUE(
        client.Request("POST", "/api/agents", R"({"project":")" + std::string(project) + "\"}"));
    ASSERT_EQ(client.Read()->status, 200);
  }
  ::setenv("INTERMUTE_API_KEY", "alpha-sesame", 1);
  ::setenv("INTERMUTE_URL", ("http://127.0.0.1:" + std::to_string(server->port())).c_str(), 1);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"status"}, {"who", "x"}, {"agents"}}) {
    std::vector<std::string> own = command;
    own.insert(own.end(), {"--project", "pa"});
    EXPECT_EQ(Run(own).exit_code, 0) << command[0];
    own.back() = "pb";
    const auto refused = Run(own);
    EXPECT_EQ(refused.exit_code, 1) << command[0];
    EXPECT_EQ(refused.out, "") << command[0];
    EXPECT_THAT(refused.err, HasSubstr("project_mismatch")) << command[0];
  }
  ::unsetenv("INTERMUTE_API_KEY");
  ::unsetenv("INTERMUTE_URL");
}

TEST_F(KeysTest, AFailedReloadLeavesTheOldKeysInForce) {
  Replace(
      "default_policy: {allow_localhost_without_auth: false}\n"
      "projects: {dev: {keys: [alpha-sesame]}}\n");
  const auto server = Start();
  EXPECT_EQ(Status(*server), 401);
  EXPECT_EQ(Status(*server, Bearer("alpha-sesame")), 200);
  Replace("projects: {dev: {keys: [beta-sesame\n");
  ASSERT_TRUE(Reload(*server, "the old ones stay in force"));
  EXPECT_EQ(Status(*server), 401);
  EXPECT_EQ(Status(*server, Bearer("alpha-sesame")), 200);
  EXPECT_EQ(Status(*server, Bearer("beta-sesame")), 401);
  std::filesystem::remove(File(kFile));
  ASSERT_TRUE(Reload(*server, "No such file"));
  EXPECT_EQ(Status(*server), 401) << "a file that is gone opens no door";
  Replace("projects: {dev: {keys: [gamma-sesame, delta-sesame]}}\n");
  ASSERT_TRUE(Reload(*server, "keys=2"));
  EXPECT_EQ(Status(*server), 200);
  EXPECT_EQ(Status(*server, Bearer("alpha-sesame")), 401);
}

TEST_F(KeysTest, AReloadEndsTheWebSocketsOfAKeyThatIsGone) {
  Replace("projects: {dev: {keys: [stays-sesame, goes-sesame]}}\n");
  const auto server = Start();
  const auto open = [&](const std::string& headers) {
    return testing::WsClient(server->Connect(), "/ws/events?project=dev", headers);
  };
  testing::WsClient stays = open(Bearer("stays-sesame"));
  testing::WsClient goes = open(Bearer("goes-sesame"));
  ASSERT_TRUE(stays.open() && goes.open());
  Replace("projects: {dev: {keys: [stays-sesame]}}\n");
  ASSERT_TRUE(Reload(*server, "keys=1 "));
  EXPECT_EQ(goes.ReadClose(), 1008);
  EXPECT_THAT(goes.close_reason(), HasSubstr("key"));
  stays.SendClose(1000);
  EXPECT_EQ(stays.ReadClose(), 1000) << "it was open until then";
}

TEST_F(KeysTest, AReloadAskedForDuringTheStartIsDoneOnceTheServerRuns) {
  Replace("projects: {dev: {keys: [alpha-sesame]}}\n");
  // Another that starts on the same socket makes this one wait.
  const int other = ::open(File("s.sock.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  ChildProcess server({.arguments = {ServerProcess::Program("intermute"), "serve", "--port=0",
                                     "--db=test.db", "--socket=s.sock"},
                       .directory = Directory()});
  ASSERT_TRUE(server.WaitForLog(" loaded the keys", ServerProcess::kPatience)) << server.Stderr();
  Replace("projects: {dev: {keys: [beta-sesame, gamma-sesame]}}\n");
  server.Signal(SIGHUP);
  ::close(other);
  EXPECT_TRUE(server.WaitForLine("listening on http://", ServerProcess::kPatience));
  EXPECT_TRUE(server.WaitForLog("reloaded the keys", ServerProcess::kPatience));
  HttpClient client = HttpClient::Unix(File("s.sock"));
  EXPECT_EQ(Status(client, Bearer("beta-sesame")), 200);
  EXPECT_EQ(Status(client, Bearer("alpha-sesame")), 401);
}

// ---- Who is let in ----

TEST_F(KeysTest, ListeningBeyondLoopbackNeedsAKeyOrInsecure) {
  Replace("projects: {}\n");
  const auto refused = RunServe({"--host=0.0.0.0", "--port=0", "--db=test.db"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, AllOf(HasSubstr("intermute init --project"), HasSubstr("--insecure")));
  const auto insecure = Start({"--host=0.0.0.0", "--insecure"});
  EXPECT_EQ(Status(*insecure, "X-Forwarded-For: 203.0.113.9\r\n"), 200);
  EXPECT_THAT(insecure->process().Stderr(), HasSubstr("WARN everybody"));
  EXPECT_EQ(insecure->Stop(), 0);
  Replace("projects: {dev: {keys: [alpha-sesame]}}\n");
  const auto keyed = Start({"--host=0.0.0.0"});
  EXPECT_EQ(Status(*keyed, "X-Forwarded-For: 203.0.113.9\r\n"), 401);
  EXPECT_EQ(Status(*keyed, "X-Forwarded-For: 203.0.113.9\r\n" + Bearer("alpha-sesame")), 200);
}

TEST_F(KeysTest, TheUnixSocketNeedsNoKey) {
  const auto server = Start({"--socket=s.sock"});
  HttpClient client = HttpClient::Unix(File("s.sock"));
  EXPECT_EQ(Status(client, ""), 200);
  EXPECT_EQ(Status(client, Bearer("wrong-sesame")), 401);
  EXPECT_EQ(Status(client, "Origin: http://evil.example\r\n"), 403);
}

TEST_F(KeysTest, NoWebPageGetsInWithoutAKey) {
  const auto server = Start();
  const std::string port = std::to_string(server->port());
  HttpClient client = server->Connect();
  EXPECT_EQ(Status(client, "Origin: null\r\n"), 403);
  const auto ask = [&](const std::string& host, const std::string& origin) {
    client.Send(std::string("GET ") + kGuarded + " HTTP/1.1\r\nHost: " + host + "\r\n" +
                (origin.empty() ? "" : "Origin: " + origin + "\r\n") + "\r\n");
    const auto answer = client.Read();
    if (!answer) return std::string("no answer");
    const std::string status = std::to_string(answer->status);
    return answer->status == 200 ? status : status + " " + answer->body;
  };
  EXPECT_EQ(ask("localhost:" + port, "http://localhost:" + port), "200");
  EXPECT_EQ(ask("127.0.0.1:" + port, ""), "200");
  EXPECT_EQ(ask("[::1]:" + port, ""), "200");
  EXPECT_THAT(ask("localhost:" + port, "http://localhost:1"),
              StartsWith("403 {\"error\":\"forbidden_origin\",\"message\":"));
  EXPECT_THAT(ask("evil.example:" + port, "http://evil.example:" + port),
              StartsWith("403 {\"error\":\"forbidden_origin\",\"message\":"));
  EXPECT_THAT(ask("evil.example:" + port, ""), StartsWith("403 "));
}

}  // namespace
}  // namespace interlock::e2e
