// Reservations as hooks see them that only ask `ic`: in its file, through all that may happen to
// it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "e2e_test.h"
#include "json/parse.h"
#include "json/value.h"
#include "testing/locks_table.h"
#include "testing/raw_db.h"

namespace interlock::e2e {
namespace {

namespace fs = std::filesystem;

constexpr db::Sql kActive =
    "SELECT group_concat(owner || ' ' || scope || ' ' || pattern, ', ') FROM ("
    "SELECT * FROM coordination_locks WHERE released_at IS NULL AND fence IS NULL ORDER BY id)";

class IntercoreTest : public E2eTest {
 protected:
  fs::path Path() const { return File(".clavain/intercore.db"); }
  void MakeFile() const {
    fs::create_directories(Path().parent_path());
    testing::RawDb(Path()).Run(testing::kLocksTable);
  }
  // Until the rows that hold something are these; nothing else says when they are there.
  void AwaitActive(const std::string& rows) const {
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    std::string found = "(no file)";
    do {
      found = Active();
      if (found == rows) return;
      std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < deadline);
    FAIL() << "expected: " << rows << "\nfound:    " << found;
  }
  // The id of a new reservation.
  static std::string Reserve(ServerProcess& server, const std::string& agent,
                             const std::string& pattern) {
    HttpClient client = server.Connect();
    client.Request("POST", "/api/reservations",
                   R"({"project":"web","agent_id":")" + agent + R"(","path_pattern":")" + pattern +
                       R"(","exclusive":true})");
    const HttpAnswer answer = client.Read().value_or(HttpAnswer{});
    EXPECT_EQ(answer.status, 201) << answer.body;
    const auto value = json::Parse(answer.body);
    return value.ok() ? std::string(json::View(value->at("id").get_string())) : "";
  }
  static void Release(ServerProcess& server, const std::string& agent, const std::string& id) {
    HttpClient client = server.Connect();
    client.Request("DELETE", "/api/reservations/" + id, "", "X-Agent-ID: " + agent + "\r\n");
    EXPECT_EQ(client.Read().value_or(HttpAnswer{}).status, 200);
  }
  static std::vector<std::string> Quickly(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--durability", "fast"});
    return flags;
  }

 private:
  std::string Active() const {
    const auto file =
        sqlite::Connection::Open({.path = Path(), .access = sqlite::Access::kReadOnly});
    if (!file.ok()) return "(no file)";
    const auto rows = (*file)->One(kActive, [](const db::Row& row) { return row.String(0); });
    return rows.ok() ? rows->value_or("") : rows.error().message();
  }
};

TEST_F(IntercoreTest, ItsFileFollowsThroughAKillAndAnAbsence) {
  MakeFile();
  auto server = Start(Quickly({"--coordination-dual-write"}));
  const std::string id = Reserve(*server, "a", "src/**");
  AwaitActive("a web src/**");
  server->process().Signal(SIGKILL);
  ASSERT_EQ(server->process().Wait(ServerProcess::kPatience), 128 + SIGKILL);
  server = Start(Quickly({"--coordination-dual-write"}));
  Reserve(*server, "b", "docs/x");
  AwaitActive("a web src/**, b web docs/x");
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(Path().string() + suffix);
  Release(*server, "a", id);
  EXPECT_TRUE(server->process().WaitForLog("cannot mirror reservations", ServerProcess::kPatience));
  MakeFile();
  AwaitActive("b web docs/x");
  EXPECT_EQ(server->Stop(), 0);
  EXPECT_FALSE(fs::exists(File("test.db-wal")));
}

TEST_F(IntercoreTest, AServerWithoutTheFileServesAndSaysOnceThatItIsMissing) {
  const auto server = Start(Quickly({"--intercore-db", Path().string()}));
  Reserve(*server, "a", "src/**");
  EXPECT_TRUE(server->process().WaitForLog("cannot mirror reservations", ServerProcess::kPatience));
  Reserve(*server, "a", "docs/**");
  EXPECT_EQ(server->Stop(), 0);
  EXPECT_FALSE(fs::exists(Path()));
  const std::string log = server->process().Stderr();
  EXPECT_EQ(log.find("cannot mirror"), log.rfind("cannot mirror")) << log;
}

TEST_F(IntercoreTest, AStoppedServerHasWrittenEverything) {
  MakeFile();
  const auto server = Start(Quickly({"--intercore-db=" + Path().string()}));
  std::string rows;
  for (int i = 0; i < 50; ++i) {
    const std::string pattern = "f" + std::to_string(i);
    Reserve(*server, "a", pattern);
    rows += (rows.empty() ? "" : ", ") + ("a web " + pattern);
  }
  EXPECT_EQ(server->Stop(), 0);
  AwaitActive(rows);
}

}  // namespace
}  // namespace interlock::e2e
