// Real processes: fifty that migrate one file at once, and ones killed in the middle.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "db/backups.h"
#include "db/migrate.h"
#include "db/migrate_test_schema.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::db {
namespace {

using testing::TempDb;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kCrowd = 20;  // a sanitizer's start alone takes half a second
#else
constexpr int kCrowd = 50;
#endif

// A migrate_process; it begins when Release() closes its standard input.
class Process {
 public:
  Process(const std::string& path, const std::string& version, const std::string& point) {
    int in[2];
    int out[2];
    IL_CHECK(::pipe2(in, O_CLOEXEC) == 0 && ::pipe2(out, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::vector<std::string> words = {MIGRATE_PROCESS, path, version, point};
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    IL_CHECK(::posix_spawn(&pid_, MIGRATE_PROCESS, &actions, nullptr, arguments.data(), environ) ==
             0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    in_ = in[1];
    out_ = out[0];
  }
  ~Process() {
    Release();
    ::close(out_);
    if (pid_ > 0) Kill();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Release() {
    if (in_ >= 0) ::close(std::exchange(in_, -1));
  }
  // The first line that it prints.
  std::string Line() const {
    std::string line;
    for (char c = 0; ::read(out_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  int Wait() {
    int status = 0;
    IL_CHECK(::waitpid(std::exchange(pid_, -1), &status, 0) > 0);
    return status;
  }
  void Kill() {
    ::kill(pid_, SIGKILL);
    Wait();
  }

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
};

void MigrateHere(const TempDb& temp, int version) {
  testing::FakeClock clock;
  const auto connection = temp.Open();
  const auto outcome =
      Migrator(TestSchemaUpTo(version), {.database = temp.path()}, clock).Run(*connection);
  ASSERT_TRUE(outcome.ok()) << outcome.error();
}

std::int64_t Int(Connection& connection, const Sql& sql) {
  return connection.One(sql, [](const Row& row) { return row.Int(0); }).value().value();
}

struct Crowd {
  int applied = 0;
  int found_done = 0;
  int backups = 0;
};

Crowd RunCrowd(const TempDb& temp) {
  std::vector<std::unique_ptr<Process>> processes;
  processes.reserve(kCrowd);
  for (int i = 0; i < kCrowd; ++i) {
    processes.push_back(std::make_unique<Process>(temp.path(), "3", ""));
  }
  for (const auto& process : processes) process->Release();
  Crowd crowd;
  for (const auto& process : processes) {
    const std::string line = process->Line();
    EXPECT_EQ(process->Wait(), 0) << line;
    if (line == "3 3 ") {
      ++crowd.found_done;
    } else if (line.starts_with("0 3 ") || line.starts_with("1 3 ")) {
      ++crowd.applied;
      if (line.size() > 4) ++crowd.backups;
    } else {
      ADD_FAILURE() << line;
    }
  }
  return crowd;
}

TEST(MigrateCrowdTest, OfFiftyProcessesOneMigratesWithOneBackupAndAllSucceed) {
  const TempDb temp;
  MigrateHere(temp, 1);
  const Crowd crowd = RunCrowd(temp);
  EXPECT_EQ(crowd.applied, 1);
  EXPECT_EQ(crowd.found_done, kCrowd - 1);
  EXPECT_EQ(crowd.backups, 1);
  EXPECT_EQ(Backups(temp.path(), 5).List().size(), 1u);
  const auto connection = temp.Open();
  EXPECT_EQ(connection->SchemaVersion().value(), 3);
  EXPECT_EQ(Int(*connection, "SELECT count(*) FROM b"), 1) << "the step ran once";
}

TEST(MigrateCrowdTest, FiftyProcessesOnNoFileMakeItOnceWithoutABackup) {
  const TempDb temp;
  const Crowd crowd = RunCrowd(temp);
  EXPECT_EQ(crowd.applied, 1);
  EXPECT_EQ(crowd.found_done, kCrowd - 1);
  EXPECT_EQ(crowd.backups, 0);
  EXPECT_EQ(Int(*temp.Open(), "SELECT count(*) FROM a"), 1);
}

TEST(MigrateCrowdTest, KilledAnywhereItLeavesTheOldVersionOrTheNewOneWhole) {
  for (const std::string point : {"begin", "backup", "script", "version", "commit"}) {
    SCOPED_TRACE(point);
    const TempDb temp;
    MigrateHere(temp, 1);
    Process process(temp.path(), "3", point);
    process.Release();
    ASSERT_EQ(process.Line(), "at");
    process.Kill();
    {
      const auto connection = temp.Open();
      const int expected = point == "commit" ? 3 : 1;
      EXPECT_EQ(connection->SchemaVersion().value(), expected);
      EXPECT_EQ(Int(*connection, "SELECT count(*) FROM sqlite_schema"), expected == 3 ? 2 : 1);
      EXPECT_EQ(Int(*connection, "SELECT count(*) FROM a"), 1);
    }
    for (const auto& backup : Backups(temp.path(), 5).List()) {
      sqlite::OpenOptions options;
      options.path = backup;
      EXPECT_EQ(sqlite::Connection::Open(options).value()->SchemaVersion().value(), 1);
    }
    Process next(temp.path(), "3", "");
    next.Release();
    EXPECT_TRUE(next.Line().starts_with(point == "commit" ? "3 3" : "1 3"));
    EXPECT_EQ(next.Wait(), 0);
    for (const auto& entry : std::filesystem::directory_iterator(temp.directory())) {
      EXPECT_EQ(entry.path().string().find(".partial"), std::string::npos) << entry.path();
    }
  }
}

}  // namespace
}  // namespace interlock::db
