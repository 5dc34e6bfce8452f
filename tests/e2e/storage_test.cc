// A disk or database file that fails under a running server, as clients see it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "e2e_test.h"

namespace interlock::e2e {
namespace {

using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::HasSubstr;

class FailingStorageTest : public E2eTest {
 protected:
  static HttpAnswer Send(HttpClient& client) {
    client.Request("POST", "/api/messages", R"({"project":"p","from":"a","to":["b"],"body":"x"})");
    return client.Read().value_or(HttpAnswer{});
  }
  static HttpAnswer Get(HttpClient& client, const std::string& target) {
    return client.Get(target).value_or(HttpAnswer{});
  }

  // Writes fail and reads go on while the disk is full; within five seconds of its having space
  // again, writes go on too.
  static void CheckFullDisk(ServerProcess& server, const std::function<void()>& fill,
                            const std::function<void()>& free) {
    HttpClient client = server.Connect();
    ASSERT_EQ(Send(client).status, 200);
    fill();
    HttpAnswer last = Send(client);
    for (int i = 0; i < 200 && last.body.find("circuit_open") == std::string::npos; ++i) {
      if (last.status != 200) {
        EXPECT_EQ(last.status, 503) << last.body;
        EXPECT_THAT(last.body, HasSubstr("disk_full"));
      }
      EXPECT_EQ(Get(client, "/api/inbox/b?project=p").status, 200);
      last = Send(client);
    }
    EXPECT_THAT(last.body, HasSubstr(R"("error":"circuit_open")"));
    EXPECT_THAT(last.body, HasSubstr("writes of storage keep failing"));
    EXPECT_EQ(Get(client, "/api/inbox/b?project=p").status, 200);
    EXPECT_EQ(Get(client, "/api/agents?project=p").status, 200);
    const HttpAnswer health = Get(client, "/health");
    EXPECT_EQ(health.status, 200);
    EXPECT_THAT(health.body, HasSubstr(R"({"status":"degraded","circuit_breaker":"open",)"
                                       R"("circuit_breaker_read":"closed",)"
                                       R"("circuit_breaker_write":"open",)"));
    const HttpAnswer status = Get(client, "/api/status");
    EXPECT_THAT(status.body, HasSubstr(R"("circuit_breaker":"open",)"
                                       R"("circuit_breaker_read":"closed",)"
                                       R"("circuit_breaker_write":"open")"));
    const HttpAnswer metrics = Get(client, "/metrics");
    EXPECT_THAT(metrics.body, HasSubstr("\nintermute_circuit_breaker_state 1\n"));
    EXPECT_THAT(metrics.body, HasSubstr("\nintermute_circuit_breaker_read_state 0\n"));
    EXPECT_THAT(metrics.body, HasSubstr("\nintermute_circuit_breaker_write_state 1\n"));

    free();
    const auto since = steady_clock::now();
    const auto until = since + std::chrono::seconds(5);
    while (Send(client).status != 200 && steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_LT(steady_clock::now(), until);
    EXPECT_EQ(Send(client).status, 200);
    EXPECT_THAT(Get(client, "/health").body,
                HasSubstr(R"({"status":"ok","circuit_breaker":"closed")"));
  }
};

TEST_F(FailingStorageTest, LimitOfFileSizesIsAFullDiskAndEndsNoServer) {
  const auto server = Start();
  const pid_t pid = server->process().pid();
  rlimit before{};
  ASSERT_EQ(::prlimit(pid, RLIMIT_FSIZE, nullptr, &before), 0);
  const rlimit small{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  CheckFullDisk(
      *server, [&] { ASSERT_EQ(::prlimit(pid, RLIMIT_FSIZE, &small, nullptr), 0); },
      [&] { ASSERT_EQ(::prlimit(pid, RLIMIT_FSIZE, &before, nullptr), 0); });
  EXPECT_EQ(server->Stop(), 0) << server->process().Stderr();
}

TEST_F(FailingStorageTest, WritesFailAndReadsGoOnWhileTheDiskIsFull) {
  std::filesystem::create_directory(File("disk"));
  const int can_mount = std::system(
      "unshare --user --map-root-user --mount mount -t tmpfs tmpfs /mnt >/dev/null 2>&1");
  if (can_mount != 0) GTEST_SKIP() << "this system lets nobody mount a small disk";
  const std::string mount = "mount -t tmpfs -o size=2m tmpfs \"$PWD/disk\" && exec \"$0\" \"$@\"";
  const auto server = std::make_unique<ServerProcess>(
      Directory(), std::vector<std::string>{"--db=disk/test.db"},
      std::vector<std::string>{"/usr/bin/unshare", "--user", "--map-root-user", "--mount",
                               "/bin/sh", "-c", mount});
  ASSERT_TRUE(server->ready()) << server->process().Stderr();
  // The disk as the server sees it.
  const std::string filler = "/proc/" + std::to_string(server->process().pid()) + "/root" +
                             std::filesystem::canonical(Directory()).string() + "/disk/filler";
  const auto fill = [&filler] {
    std::ofstream file(filler, std::ios::binary);
    const std::string block(1024, 'x');
    while (file.write(block.data(), std::ssize(block)).flush()) {
    }
  };
  CheckFullDisk(*server, fill, [&filler] { std::filesystem::remove(filler); });
  EXPECT_EQ(server->Stop(), 0) << server->process().Stderr();
}

// One answer of a read, a write and /health each, while the file is not in its place.
class MovedFileTest : public FailingStorageTest {
 protected:
  // `why` is for the log and /health; it names the file.
  static void CheckRefused(ServerProcess& server, HttpClient& client, const std::string& why) {
    constexpr const char* kTold = "or its log, was moved away, removed or replaced";
    for (int i = 0; i < 8; ++i) {  // more often than a breaker waits, and on every reader
      for (const char* read : {"/api/inbox/b?project=p", "/api/inbox/b?project=p&since_cursor=1",
                               "/api/agents?project=p", "/api/events", "/api/status"}) {
        const HttpAnswer answer = Get(client, read);
        EXPECT_EQ(answer.status, 503) << read;
        EXPECT_THAT(answer.body, HasSubstr(kTold)) << read;
        EXPECT_EQ(answer.Header("Retry-After"), "") << "waiting alone does not cure it";
      }
      const HttpAnswer written = Send(client);
      EXPECT_EQ(written.status, 503);
      EXPECT_THAT(written.body, HasSubstr(kTold));
    }
    const HttpAnswer health = Get(client, "/health");
    EXPECT_EQ(health.status, 503);
    EXPECT_EQ(health.Header("Retry-After"), "");
    EXPECT_THAT(health.body, AllOf(HasSubstr(R"({"status":"degraded",)"), HasSubstr(why)));
    EXPECT_THAT(server.process().Stderr(), HasSubstr(why));
  }
  static void CheckRefusedAfterPing(ServerProcess& server, HttpClient& client,
                                    const std::string& why) {
    EXPECT_EQ(Get(client, "/health").status, 503) << "at the next ping";
    CheckRefused(server, client, why);
  }
  // A file of another server, other.db.
  void MakeOther() {
    const auto other = Start({"--db=other.db"});
    HttpClient client = other->Connect();
    ASSERT_EQ(Send(client).status, 200);
    EXPECT_EQ(other->Stop(), 0);
  }
  // A server whose readers, and the marks of its inboxes, have all been used.
  std::unique_ptr<ServerProcess> StartUsed() {
    auto server = Start();
    HttpClient client = server->Connect();
    EXPECT_EQ(Send(client).status, 200);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(Get(client, "/health").status, 200);
      EXPECT_EQ(Get(client, "/api/inbox/b?project=p&since_cursor=1").status, 200);
    }
    return server;
  }
};

TEST_F(MovedFileTest, RemovedDatabaseAnswersNothing) {
  const auto server = StartUsed();
  HttpClient client = server->Connect();
  std::filesystem::remove(File("test.db"));
  CheckRefusedAfterPing(*server, client, "was moved away, removed or replaced");
  EXPECT_FALSE(std::filesystem::exists(File("test.db"))) << "nothing is made in its place";
  EXPECT_EQ(server->Stop(), 0);
}

TEST_F(MovedFileTest, RefusedWriteStopsAnswersFromMemory) {
  const auto server = StartUsed();
  HttpClient client = server->Connect();
  std::filesystem::remove(File("test.db"));
  EXPECT_EQ(Send(client).status, 503);
  EXPECT_EQ(Get(client, "/api/inbox/b?project=p&since_cursor=1").status, 503);
  EXPECT_EQ(server->Stop(), 0);
}

TEST_F(MovedFileTest, ManyRefusedRequestsWriteFewLogLines) {
  const auto server = StartUsed();
  HttpClient client = server->Connect();
  std::filesystem::remove(File("test.db"));
  for (int i = 0; i < 200; ++i) EXPECT_EQ(Send(client).status, 503);
  EXPECT_EQ(server->Stop(), 0);
  const std::string log = server->process().Stderr();
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = log.find(" ERROR a handler failed", at)) != std::string::npos;
       ++at) {
    ++lines;
  }
  EXPECT_GE(lines, 1U);
  EXPECT_LE(lines, 100U) << "20 lines in each window of 10 seconds";
  EXPECT_THAT(log, HasSubstr("ERROR more lines of this kind are not shown"));
}

TEST_F(MovedFileTest, DatabaseOverwrittenInPlaceIsFoundByThePing) {
  MakeOther();
  {
    EXPECT_EQ(Start()->Stop(), 0);
  }  // the next start finds its schema in the file, not in the log
  const auto server = StartUsed();
  HttpClient client = server->Connect();
  std::ofstream(File("test.db"), std::ios::binary | std::ios::in)
      << std::ifstream(File("other.db"), std::ios::binary).rdbuf();
  CheckRefusedAfterPing(*server, client, "holds another database");
  server->Stop();
}

TEST_F(MovedFileTest, ReplacedDatabaseIsNeitherReadNorWritten) {
  MakeOther();
  const auto server = StartUsed();
  HttpClient client = server->Connect();
  const auto size = std::filesystem::file_size(File("other.db"));
  std::filesystem::rename(File("other.db"), File("test.db"));
  CheckRefusedAfterPing(*server, client, "was moved away, removed or replaced");
  EXPECT_EQ(server->Stop(), 0);
  EXPECT_EQ(std::filesystem::file_size(File("test.db")), size);
}

TEST_F(MovedFileTest, DatabaseThatIsPutBackIsServedAgain) {
  const auto server = StartUsed();
  HttpClient client = server->Connect();
  std::filesystem::rename(File("test.db"), File("moved.db"));
  CheckRefused(*server, client, "was moved away, removed or replaced");
  std::filesystem::rename(File("moved.db"), File("test.db"));
  EXPECT_EQ(Get(client, "/health").status, 200);
  EXPECT_EQ(Send(client).status, 200);
  EXPECT_EQ(Get(client, "/api/inbox/b?project=p").status, 200);
  EXPECT_EQ(server->Stop(), 0);
}

// Acknowledged writes are in the removed log only, until the stopping server moves it to the file.
TEST_F(MovedFileTest, RemovedLogAnswersNothingAndIsSavedByAStop) {
  {
    const auto server = StartUsed();
    HttpClient client = server->Connect();
    ASSERT_TRUE(std::filesystem::remove(File("test.db-wal")));
    CheckRefusedAfterPing(*server, client, "test.db-wal, was removed or replaced");
    EXPECT_EQ(server->Stop(), 0);
  }
  const auto server = Start();
  HttpClient client = server->Connect();
  EXPECT_THAT(Get(client, "/api/inbox/b?project=p").body, HasSubstr(R"("body":"x")"));
  EXPECT_EQ(Send(client).status, 200);
  EXPECT_EQ(server->Stop(), 0);
}

// Only other programs that open the file would miss it.
TEST_F(MovedFileTest, RemovedSharedMemoryChangesNothing) {
  const auto server = StartUsed();
  HttpClient client = server->Connect();
  ASSERT_TRUE(std::filesystem::remove(File("test.db-shm")));
  EXPECT_EQ(Get(client, "/health").status, 200);
  EXPECT_EQ(Send(client).status, 200);
  EXPECT_EQ(Get(client, "/api/inbox/b?project=p").status, 200);
  EXPECT_EQ(server->Stop(), 0);
}

}  // namespace
}  // namespace interlock::e2e
