// The program as an operator meets it: starting, refusing to start, signals, what it leaves behind.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "e2e_test.h"
#include "json/parse.h"
#include "json/value.h"

namespace interlock::e2e {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ProcessTest : public E2eTest {
 protected:
  static std::string Pid(ServerProcess& server) {
    return "intermute (pid " + std::to_string(server.process().pid()) + ")";
  }
  bool LeftOver(const std::string& suffix) const {
    return std::filesystem::exists(File("test.db" + suffix));
  }
  // A figure of /proc/<pid>/status in KiB.
  static long StatusKib(pid_t pid, const std::string& key) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/status");
    std::string line;
    while (std::getline(file, line)) {
      if (line.starts_with(key + ":")) return std::stol(line.substr(key.size() + 1));
    }
    return -1;
  }
};

TEST_F(ProcessTest, HelpAndVersionArePrintedOnStdout) {
  const auto bare = Run({});
  EXPECT_EQ(bare.exit_code, 0);
  EXPECT_THAT(bare.out, AllOf(HasSubstr("serve"), HasSubstr("Examples:")));
  EXPECT_EQ(Run({"--help"}).out, bare.out);
  const auto version = Run({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, ::testing::MatchesRegex("intermute [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  const auto serve = Run({"serve", "--help"});
  EXPECT_EQ(serve.exit_code, 0);
  for (const char* flag : {"--host", "--port", "--db", "--socket", "--durability", "--log-format",
                           "--log-level", "--allow-network-fs", "--max-connections", "--keys-file",
                           "--require-agent-token", "--insecure"}) {
    EXPECT_THAT(serve.out, HasSubstr(flag));
  }
}

TEST_F(ProcessTest, WrongCommandLinesSayWhatIsWrongAndExitWith1) {
  const struct {
    std::vector<std::string> arguments;
    std::string says;
  } kCases[] = {
      {{"frobnicate"}, "frobnicate"},
      {{"serve", "--frobnicate"}, "--frobnicate"},
      {{"serve", "--port", "70000"}, "--port"},
      {{"serve", "--port=x"}, "--port"},
      {{"serve", "--durability", "some"}, "'some' is none of full|fast"},
      {{"serve", "--log-format=xml"}, "'xml' is none of text|json"},
      {{"serve", "--idle-timeout", "5"}, "--idle-timeout"},
      {{"serve", "--idle-timeout", "-5s"}, "--idle-timeout"},
      {{"serve", "--max-connections=0"}, "--max-connections"},
      {{"serve", "--db"}, "--db"},
      {{"serve", "--port", "70000"}, "70000 is no port; name one from 0 to 65535"},
      {{"serve", "--port=-1"}, "-1 is no port"},
      {{"serve", "--port", "99999999999999999999"}, "is no port"},
      {{"serve", "--port="}, "--port"},
      {{"serve", "--db", ""}, "--db: name a file"},
      {{"serve", "--host", ""}, "--host: name an address"},
  };
  for (const auto& c : kCases) {
    const auto finished = Run(c.arguments);
    EXPECT_EQ(finished.exit_code, 1) << c.says;
    EXPECT_EQ(finished.out, "") << c.says;
    EXPECT_THAT(finished.err, AllOf(StartsWith("intermute: "), HasSubstr(c.says),
                                    HasSubstr("\nTry: intermute ")));
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 2) << finished.err;
  }
  EXPECT_THAT(Run({"frobnicate"}).err, EndsWith("\nTry: intermute --help\n"));
  EXPECT_THAT(Run({"serve", "--port=x"}).err, EndsWith("\nTry: intermute serve --help\n"));
  EXPECT_THAT(Run({"who", "two\nlines", "\x1b[2J"}).err,
              AllOf(Not(HasSubstr("\x1b")), EndsWith("\nTry: intermute who --help\n")));
}

TEST_F(ProcessTest, AnAddressThatCannotBeUsedLeavesNoFiles) {
  for (const char* host : {"999.1.1.1", "203.0.113.1"}) {
    const auto finished = RunServe({"--port=0", "--host", host, "--db=sub/i.db"});
    EXPECT_EQ(finished.exit_code, 1) << host;
    EXPECT_THAT(finished.err, HasSubstr(host));
    EXPECT_FALSE(std::filesystem::exists(File("sub"))) << host;
    EXPECT_FALSE(std::filesystem::exists(File("intermute.keys.yaml"))) << host;
  }
}

TEST_F(ProcessTest, SignalsStopItInOrderAndLeaveOneFile) {
  for (const int number : {SIGTERM, SIGINT}) {
    for (const char* durability : {"full", "fast"}) {
      const auto server = Start({"--socket=s.sock", std::string("--durability=") + durability});
      EXPECT_EQ(server->Connect().Get("/health")->status, 200);
      server->process().Signal(number);
      EXPECT_EQ(server->process().Wait(ServerProcess::kPatience), 0);
      EXPECT_TRUE(LeftOver(""));
      EXPECT_FALSE(LeftOver("-wal"));
      EXPECT_FALSE(LeftOver("-shm"));
      EXPECT_FALSE(LeftOver("-journal"));
      EXPECT_FALSE(std::filesystem::exists(File("s.sock")));
      EXPECT_THAT(server->process().Stderr(), HasSubstr(number == SIGTERM ? "SIGTERM" : "SIGINT"));
    }
  }
}

TEST_F(ProcessTest, StoppingDoesNotWaitForIdleConnections) {
  const auto server = Start({"--drain-timeout=1h", "--header-timeout=1h", "--idle-timeout=1h"});
  std::vector<HttpClient> idle;
  for (int i = 0; i < 20; ++i) {
    idle.push_back(server->Connect());
    EXPECT_EQ(idle.back().Get("/health")->status, 200);
  }
  HttpClient silent = server->Connect();
  EXPECT_EQ(server->Stop(), 0);
  EXPECT_TRUE(idle.front().ClosedByServer());
}

TEST_F(ProcessTest, ARequestUnderWayIsFinishedBeforeItStops) {
  const auto server = Start();
  HttpClient client = server->Connect();
  client.Send(
      "POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.Read()->status, 100);  // it waits for the body now
  server->process().Signal(SIGTERM);
  while (server->Connect().connected()) {
  }
  client.Send("{}");
  const auto answer = client.Read();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 405);
  EXPECT_TRUE(client.ClosedByServer());
  client.FinishSending();
  EXPECT_EQ(server->process().Wait(ServerProcess::kPatience), 0);
}

TEST_F(ProcessTest, APeerThatNeverFinishesDelaysTheStopByTheDrainTimeOnly) {
  const auto server = Start({"--drain-timeout=100ms", "--body-timeout=1h"});
  HttpClient client = server->Connect();
  client.Send(
      "POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.Read()->status, 100);
  EXPECT_EQ(server->Stop(), 0);
  EXPECT_FALSE(LeftOver("-wal"));
  EXPECT_TRUE(client.ClosedByServer());
}

TEST_F(ProcessTest, ASecondSignalEndsItAtOnce) {
  for (const int number : {SIGTERM, SIGINT}) {
    const auto server = Start({"--drain-timeout=1h", "--body-timeout=1h"});
    HttpClient client = server->Connect();
    client.Send(
        "POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_EQ(client.Read()->status, 100);
    server->process().Signal(SIGTERM);
    while (server->Connect().connected()) {  // it has begun to stop, and would take an hour
    }
    EXPECT_EQ(server->process().Wait(std::chrono::milliseconds(0)), std::nullopt);
    server->process().Signal(number);
    EXPECT_EQ(server->process().Wait(ServerProcess::kPatience), 128 + number);
  }
}

TEST_F(ProcessTest, KilledItStartsAgainOnTheSameFilesAndPort) {
  std::string port = "0";
  for (int i = 0; i < 3; ++i) {
    const auto server = Start({"--socket=s.sock", "--port=" + port});
    port = std::to_string(server->port());
    EXPECT_EQ(server->Connect().Get("/health")->status, 200);
    EXPECT_EQ(HttpClient::Unix(File("s.sock")).Get("/health")->status, 200);
    server->process().Signal(SIGKILL);
    EXPECT_EQ(server->process().Wait(ServerProcess::kPatience), 128 + SIGKILL);
    EXPECT_TRUE(std::filesystem::exists(File("s.sock")));
  }
  EXPECT_EQ(Start({"--socket=s.sock"})->Stop(), 0);
  EXPECT_FALSE(LeftOver("-wal"));
}

TEST_F(ProcessTest, ASecondServerIsToldWhoHoldsPortDatabaseAndSocket) {
  const auto server = Start({"--socket=s.sock"});
  const auto port = RunServe({"--db=other.db", "--port", std::to_string(server->port())});
  EXPECT_EQ(port.exit_code, 1);
  EXPECT_THAT(port.err, AllOf(HasSubstr("port " + std::to_string(server->port())),
                              HasSubstr(Pid(*server)), HasSubstr("--port")));
  const auto database = RunServe({"--db=test.db", "--port=0"});
  EXPECT_EQ(database.exit_code, 1);
  EXPECT_THAT(database.err,
              AllOf(HasSubstr("test.db is in use by " + Pid(*server)), HasSubstr("--db")));
  const auto socket = RunServe({"--db=other.db", "--port=0", "--socket=s.sock"});
  EXPECT_EQ(socket.exit_code, 1);
  EXPECT_THAT(socket.err, AllOf(HasSubstr("s.sock"), HasSubstr(Pid(*server))));
  for (const auto& one : {port, database, socket}) EXPECT_EQ(one.out, "");
  EXPECT_EQ(HttpClient::Unix(File("s.sock")).Get("/health")->status, 200);
  EXPECT_EQ(server->Stop(), 0);
}

TEST_F(ProcessTest, AFailedStartLeavesNoSocketAndNoLogFile) {
  const auto server = Start();
  const auto failed =
      RunServe({"--db=other.db", "--socket=o.sock", "--port", std::to_string(server->port())});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(File("o.sock")));
  EXPECT_FALSE(std::filesystem::exists(File("other.db-wal")));
}

TEST_F(ProcessTest, AFileInThePlaceOfTheSocketIsKept) {
  std::ofstream(File("s.sock")) << "precious";
  const auto failed = RunServe({"--db=test.db", "--port=0", "--socket=s.sock"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.err, HasSubstr("not a socket"));
  EXPECT_EQ(std::filesystem::file_size(File("s.sock")), 8U);
}

TEST_F(ProcessTest, OnlyOneMissingDirectoryOfTheDatabaseIsCreated) {
  const auto refused = RunServe({"--db=deep/er/test.db", "--port=0"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("intermute: the directory " + File("deep").string()),
                                 HasSubstr("deep/er/test.db")));
  EXPECT_FALSE(std::filesystem::exists(File("deep")));
}

TEST_F(ProcessTest, TheSocketHasMode0660AndANewDirectoryIs0700) {
  const auto server = Start({"--socket=s.sock", "--db=deep/test.db"});
  struct stat info{};
  ASSERT_EQ(::stat(File("s.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0660U);
  ASSERT_EQ(::stat(File("deep").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700U);
  ASSERT_EQ(::stat(File("deep/test.db").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  EXPECT_EQ(server->Stop(), 0);
}

TEST_F(ProcessTest, ABrokenOrForeignDatabaseIsRefusedWithARemedy) {
  std::ofstream(File("broken.db")) << std::string(5000, 'x');
  const auto broken = RunServe({"--db=broken.db", "--port=0"});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.err, HasSubstr("broken.db"));
  EXPECT_EQ(std::filesystem::file_size(File("broken.db")), 5000U);
  const auto directory = RunServe({"--db=.", "--port=0"});
  EXPECT_EQ(directory.exit_code, 1);
  const auto nowhere = RunServe({"--db=/proc/nowhere/test.db", "--port=0"});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("/proc/nowhere"));
}

TEST_F(ProcessTest, HealthIs503WhenTheFileIsDamagedUnderIt) {
  for (const bool cut_short : {false, true}) {
    SCOPED_TRACE(cut_short ? "cut short" : "overwritten");
    const auto server = Start({"--retain-days=0"});  // no sweep, so that no reader has read yet
    if (cut_short) {
      EXPECT_EQ(server->Connect().Get("/health")->status, 200);
      std::filesystem::resize_file(File("test.db"), 0);
    } else {
      const auto size = std::filesystem::file_size(File("test.db"));
      std::fstream(File("test.db"), std::ios::in | std::ios::out) << std::string(size, 'x');
    }
    for (int i = 0; i < 8; ++i) {  // whichever reader gets it
      const auto answer = server->Connect().Get("/health");
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->status, 503);
      EXPECT_THAT(answer->body,
                  AllOf(HasSubstr(R"("status":"degraded")"), HasSubstr(R"("error":")"),
                        HasSubstr("The database does not answer")));
    }
    server->process().Signal(SIGKILL);
    EXPECT_EQ(server->process().Wait(ServerProcess::kPatience), 128 + SIGKILL);
    std::filesystem::remove(File("test.db"));
  }
}

TEST_F(ProcessTest, ConnectionsAboveTheLimitAreRefusedWithRetryAfter) {
  const auto server = Start({"--max-connections=3"});
  std::vector<HttpClient> served;
  for (int i = 0; i < 3; ++i) {
    served.push_back(server->Connect());
    EXPECT_EQ(served.back().Get("/health")->status, 200);
  }
  for (int i = 0; i < 10; ++i) {
    HttpClient refused = server->Connect();
    refused.Request("GET", "/health");
    const auto answer = refused.Read();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 503);
    EXPECT_EQ(answer->Header("Retry-After"), "1");
    EXPECT_THAT(answer->body, HasSubstr("\"error\":\"unavailable\""));
  }
  for (HttpClient& client : served) EXPECT_EQ(client.Get("/health")->status, 200);
  EXPECT_EQ(server->Stop(), 0);
}

TEST_F(ProcessTest, TheSoftLimitOfOpenFilesIsLifted) {
  // Run under a low soft limit, it must still hold more connections than that.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const auto server = Start();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<HttpClient> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(server->Connect());
    ASSERT_EQ(clients.back().Get("/health")->status, 200) << i;
  }
  EXPECT_EQ(server->Stop(), 0);
}

TEST_F(ProcessTest, NothingIsWrittenToADatabaseThatIsNoLongerInItsPlace) {
  const auto server = Start();
  HttpClient client = server->Connect();
  const auto send = [&client] {
    client.Request("POST", "/api/messages", R"({"project":"p","from":"a","to":["b"],"body":"x"})");
    return client.Read().value();
  };
  EXPECT_EQ(send().status, 200);
  std::filesystem::rename(File("test.db"), File("moved.db"));
  for (const bool replaced : {false, true}) {
    if (replaced) std::ofstream(File("test.db")) << "another file";
    const auto refused = send();
    EXPECT_EQ(refused.status, 503);
    EXPECT_THAT(refused.body, HasSubstr("cannot_open"));
  }
  std::filesystem::rename(File("moved.db"), File("test.db"));
  EXPECT_EQ(send().status, 200);
  EXPECT_EQ(server->Stop(), 0);
  EXPECT_THAT(server->process().Stderr(), HasSubstr("was moved away, removed or replaced"));
}

// The next file that is opened would get the number of standard error.
TEST_F(ProcessTest, WithStandardErrorClosedNoOtherFileTakesTheLog) {
  const auto server = Start({}, {"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>&-"});
  ASSERT_TRUE(server->ready());
  EXPECT_EQ(server->Connect().Get("/health")->status, 200);
  const std::string error = "/proc/" + std::to_string(server->process().pid()) + "/fd/2";
  EXPECT_EQ(std::filesystem::read_symlink(error), "/dev/null");
  EXPECT_EQ(server->Stop(), 0);
}

TEST_F(ProcessTest, AHardLimitOfOpenFilesBoundsTheConnectionsAndEachIsAnsweredOrClosed) {
  const auto server = Start({}, {"/usr/bin/prlimit", "--nofile=64:64"});
  std::vector<HttpClient> clients;
  int served = 0;
  for (int i = 0; i < 80; ++i) {
    clients.push_back(server->Connect());
    HttpClient& client = clients.back();
    client.Request("GET", "/health");
    const auto answer = client.Read();
    if (answer && answer->status == 200) {
      ++served;
    } else if (answer) {
      EXPECT_EQ(answer->status, 503);
    } else {
      EXPECT_TRUE(client.ClosedByServer()) << i;
    }
  }
  EXPECT_GE(served, 10);
  EXPECT_LT(served, 64);
  EXPECT_EQ(clients.front().Get("/health")->status, 200);
  EXPECT_EQ(server->Stop(), 0);
  const std::string log = server->process().Stderr();
  EXPECT_THAT(log, HasSubstr("allows fewer connections"));
  EXPECT_THAT(log, Not(HasSubstr("accepting connections fails")));
}

TEST_F(ProcessTest, TooFewOpenFilesAreOneClearLineAndExitWith1) {
  for (const int files : {10, 12, 16, 18, 19, 20, 21, 24, 28, 32, 36, 40}) {
    const auto ended = testing::RunProgram(
        {"/usr/bin/prlimit", fmt::format("--nofile={0}:{0}", files),
         ServerProcess::Program("intermute"), "serve", "--db=few.db", "--port=0"},
        Directory());
    EXPECT_EQ(ended.exit_code, 1) << files;
    EXPECT_EQ(ended.out, "") << files;
    EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << files << ended.err;
    EXPECT_THAT(ended.err,
                StartsWith(fmt::format("intermute: the limit of open files is {}", files)));
    EXPECT_FALSE(std::filesystem::exists(File("few.db"))) << files;
  }
}

TEST_F(ProcessTest, RunningOutOfOpenFilesEndsNoServer) {
  const auto server = Start();
  HttpClient before = server->Connect();
  ASSERT_EQ(before.Get("/health")->status, 200);
  const pid_t pid = server->process().pid();
  rlimit enough{};
  ASSERT_EQ(::prlimit(pid, RLIMIT_NOFILE, nullptr, &enough), 0);
  const rlimit none{.rlim_cur = 8, .rlim_max = enough.rlim_max};  // more are open already
  ASSERT_EQ(::prlimit(pid, RLIMIT_NOFILE, &none, nullptr), 0);
  std::vector<HttpClient> waiting;
  for (int i = 0; i < 5; ++i) {
    waiting.push_back(server->Connect());  // the kernel takes it, the server cannot
    waiting.back().Request("GET", "/health");
  }
  EXPECT_EQ(before.Get("/health")->status, 200);
  EXPECT_EQ(before.Get("/metrics")->status, 200);
  ASSERT_EQ(::prlimit(pid, RLIMIT_NOFILE, &enough, nullptr), 0);
  for (HttpClient& client : waiting) {
    const auto answer = client.Read();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
  }
  EXPECT_EQ(server->Stop(), 0);
}

TEST_F(ProcessTest, ASignalBeforeItIsReadyEndsItAtOnce) {
  for (const int number : {SIGTERM, SIGINT}) {
    // Another that starts on the same socket makes this one wait.
    const int other = ::open(File("s.sock.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(::flock(other, LOCK_EX), 0);
    ChildProcess child({.arguments = {ServerProcess::Program("intermute"), "serve", "--port=0",
                                      "--db=test.db", "--socket=s.sock"},
                        .directory = Directory()});
    const auto end = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    while (child.Stderr().find("starting") == std::string::npos) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
    }
    child.Signal(number);
    EXPECT_EQ(child.Wait(ServerProcess::kPatience), 128 + number);
    EXPECT_THAT(child.Stderr(), HasSubstr("intermute: stopped by a signal before it was ready\n"));
    EXPECT_EQ(child.Stdout(), "");
    ::close(other);
  }
  EXPECT_EQ(Start({"--socket=s.sock"})->Stop(), 0);
}

TEST_F(ProcessTest, LogLinesAreTextOrJsonOnStderr) {
  const auto text = Start();
  EXPECT_EQ(text->Stop(), 0);
  EXPECT_THAT(text->process().Stderr(), HasSubstr(" INFO listening "));
  const auto json = Start({"--log-format", "json"});
  EXPECT_EQ(json->Stop(), 0);
  std::istringstream lines(json->process().Stderr());
  std::string line;
  int count = 0;
  while (std::getline(lines, line)) {
    EXPECT_THAT(line, StartsWith("{\"time\":\""));
    const auto parsed = json::Parse(line);
    EXPECT_TRUE(parsed.ok()) << line;
    ++count;
  }
  EXPECT_GE(count, 3);
  const auto quiet = Start({"--log-level=error"});
  EXPECT_EQ(quiet->Stop(), 0);
  EXPECT_EQ(quiet->process().Stderr(), "");
}

TEST_F(ProcessTest, IdleMemoryIsSmall) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr long kLimitKib = 512L * 1024;  // a sanitizer's shadow is not ours to judge
#else
  constexpr long kLimitKib = 30L * 1024;
#endif
  const auto server = Start();
  EXPECT_EQ(server->Connect().Get("/health")->status, 200);
  const long rss = StatusKib(server->process().pid(), "VmRSS");
  EXPECT_GT(rss, 0);
  EXPECT_LT(rss, kLimitKib);
  EXPECT_EQ(server->Stop(), 0);
}

TEST_F(ProcessTest, IcAnswersVersionHelpAndMistakes) {
  const auto version = Run({"version"}, "ic");
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, AllOf(StartsWith("ic "), HasSubstr("\ntarget: linux/")));
  EXPECT_EQ(Run({"version", "--json"}, "ic").exit_code, 0);
  const auto bare = Run({}, "ic");
  EXPECT_EQ(bare.exit_code, 0);
  EXPECT_THAT(bare.out, StartsWith("usage: ic"));
  EXPECT_EQ(Run({"--help"}, "ic").out, bare.out);
  const auto unknown = Run({"verison"}, "ic");
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'ic version'?"));
}

TEST_F(ProcessTest, IcTreatsAReaderThatLeftAsSuccess) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);  // gone before the first byte
  ChildProcess piped({.arguments = {ServerProcess::Program("ic"), "help"},
                      .directory = Directory(),
                      .stdout_fd = ends[1]});
  EXPECT_EQ(piped.Wait(ServerProcess::kPatience), 0) << piped.Stderr();
  EXPECT_EQ(piped.Stderr(), "");
  ::close(ends[1]);
  const auto full = testing::RunProgram(
      {"/bin/bash", "-c", ServerProcess::Program("ic") + " help > /dev/full"}, Directory());
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_NE(full.err, "");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(ProcessTest, IcNeedsNoLibrary) {
  const auto linked =
      testing::RunProgram({"/usr/bin/ldd", ServerProcess::Program("ic")}, Directory());
  EXPECT_THAT(linked.out + linked.err, HasSubstr("not a dynamic executable"));
}
#endif

// ---- Files and sockets that somebody else prepared ----

class PlantedTest : public E2eTest {
 protected:
  // A server beside what was planted: it must not start, and say why.
  void ExpectRefused(const std::vector<std::string>& flags, const std::string& says) {
    std::vector<std::string> all = {"--port=0", "--db=test.db"};
    all.insert(all.end(), flags.begin(), flags.end());
    const auto finished = RunServe(all);
    EXPECT_EQ(finished.exit_code, 1) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(says));
  }
  void PlantLink(const std::string& name) const {
    std::filesystem::create_symlink("precious", File(name));
  }
  std::string Precious() const {
    std::string text;
    std::ifstream(File("precious")) >> text;
    return text;
  }
  void SetUp() override { std::ofstream(File("precious")) << "untouched"; }
  void TearDown() override { EXPECT_EQ(Precious(), "untouched"); }
};

TEST_F(PlantedTest, LinksInThePlaceOfItsFilesAreNeverFollowed) {
  const struct {
    const char* planted;
    std::vector<std::string> flags;
    const char* says;
  } cases[] = {
      {"test.db", {}, "symbolic link"},
      {"test.db.lock", {}, "test.db.lock"},
      {"test.db-wal", {}, "test.db"},
      {"test.db-shm", {}, "test.db"},
      {"s.sock", {"--socket=s.sock"}, "not a socket"},
      {"s.sock.lock", {"--socket=s.sock"}, "s.sock.lock"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.planted);
    EXPECT_EQ(Start({"--socket=s.sock"})->Stop(), 0);
    std::filesystem::remove(File(c.planted));
    PlantLink(c.planted);
    ExpectRefused(c.flags, c.says);
    EXPECT_TRUE(std::filesystem::is_symlink(File(c.planted))) << "and it is left where it was";
    EXPECT_EQ(Precious(), "untouched");
    std::filesystem::remove(File(c.planted));
  }
}

TEST_F(PlantedTest, ALinkedDirectoryAndAHardLinkAreRefused) {
  std::filesystem::create_directory(File("real"));
  std::filesystem::create_directory_symlink("real", File("linked"));
  ExpectRefused({"--db=linked/test.db"}, "symbolic link");
  EXPECT_TRUE(std::filesystem::is_empty(File("real")));
  EXPECT_EQ(Start()->Stop(), 0);
  std::filesystem::create_hard_link(File("test.db"), File("other-name.db"));
  ExpectRefused({}, "hard links");
}

// Clients look for the socket in /var/run, which is a link to /run: so where a directory leads to
// is its owner's word, and only what stands in the place of the socket itself is not believed.
TEST_F(PlantedTest, ASocketMayLieBelowALinkedDirectory) {
  std::filesystem::create_directory(File("real"));
  std::filesystem::create_directory_symlink("real", File("linked"));
  const auto server = Start({"--socket=linked/s.sock"});
  EXPECT_TRUE(std::filesystem::is_socket(File("real/s.sock")));
  const auto answer = HttpClient::Unix(File("linked/s.sock")).Get("/health");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(server->Stop(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(File("real")));
  std::filesystem::create_symlink("../precious", File("real/s.sock"));
  ExpectRefused({"--socket=linked/s.sock"}, "not a socket");
}

// A dead socket of somebody else, in a directory where only its owner may remove it.
TEST_F(PlantedTest, ASocketLeftByAnotherUserIsNotTakenOver) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::filesystem::create_directory(File("shared"));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, File("shared/s.sock").c_str());
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ::close(fd);
  ASSERT_EQ(::chmod(File("shared/s.sock").c_str(), 0666), 0);  // that it is dead can be seen
  // Root may remove everything: then the server runs as nobody, from where nobody may go, and the
  // socket is root's.
  std::vector<std::string> command;
  std::filesystem::copy_file(ServerProcess::Program("intermute"), File("copy"));
  if (::geteuid() == 0) {
    command = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
    ASSERT_EQ(::chmod(File("shared").c_str(), 01777), 0);
    ASSERT_EQ(::chmod(Directory().c_str(), 0777), 0);
  } else {
    ASSERT_EQ(::chmod(File("shared").c_str(), 0500), 0);
  }
  for (const std::string& word :
       {File("copy").string(), std::string("serve"), std::string("--port=0"),
        std::string("--db=mine.db"), std::string("--socket=shared/s.sock")}) {
    command.push_back(word);
  }
  const auto finished = testing::RunProgram(command, Directory());
  ::chmod(File("shared").c_str(), 0700);
  std::filesystem::remove(File("copy"));
  EXPECT_EQ(finished.exit_code, 1) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("s.sock"));
  EXPECT_TRUE(std::filesystem::is_socket(File("shared/s.sock")));
}

TEST_F(PlantedTest, LooseModesAreToldInTheLog) {
  EXPECT_EQ(Start()->Stop(), 0);
  ASSERT_EQ(::chmod(File("test.db").c_str(), 0644), 0);
  std::filesystem::create_directory(File("open"));
  ASSERT_EQ(::chmod(File("open").c_str(), 0777), 0);
  const auto loose = Start({"--socket=open/s.sock"});
  EXPECT_EQ(loose->Stop(), 0);
  EXPECT_THAT(loose->process().Stderr(),
              AllOf(HasSubstr("WARN other users may read or write the database"),
                    HasSubstr("WARN other users may replace the socket")));
  ASSERT_EQ(::chmod(File("test.db").c_str(), 0600), 0);
  ASSERT_EQ(::chmod(File("open").c_str(), 01777), 0);
  const auto tight = Start({"--socket=open/s.sock"});
  EXPECT_EQ(tight->Stop(), 0);
  EXPECT_THAT(tight->process().Stderr(), Not(HasSubstr("other users")));
}

}  // namespace
}  // namespace interlock::e2e
