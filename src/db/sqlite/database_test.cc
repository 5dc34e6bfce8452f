#include "db/sqlite/database.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "db/wait.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::sqlite {
namespace {

namespace fs = std::filesystem;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRowsPerWriter = 60;
#else
constexpr int kRowsPerWriter = 250;
#endif

class DatabaseTest : public ::testing::Test {
 protected:
  DatabaseOptions options() const {
    DatabaseOptions options;
    options.path = temp_.path();
    return options;
  }

  std::unique_ptr<Database> Open() { return Database::Open(options(), clock_).value(); }

  static Result<void> Ping(db::Database& database) {
    return db::ReadAndWait(database, [](db::Connection& connection) -> Result<void> {
      IL_TRY_VOID(connection.Run("SELECT 1"));
      return {};
    });
  }

  static std::int64_t Count(db::Database& database) {
    std::int64_t count = -1;
    const auto read = db::ReadAndWait(database, [&](db::Connection& connection) -> Result<void> {
      IL_TRY(const auto found, connection.One("SELECT count(*) FROM t",
                                              [](const db::Row& row) { return row.Int(0); }));
      count = found.value();
      return {};
    });
    EXPECT_TRUE(read.ok());
    return count;
  }

  static db::Database::WriteFn Insert(std::int64_t value) {
    return [value](db::Transaction& tx) -> Result<void> {
      IL_TRY_VOID(tx->Run("INSERT INTO t(a) VALUES (?1)", value));
      return {};
    };
  }

  bool Exists(const char* suffix) const { return fs::exists(temp_.path().string() + suffix); }

  testing::TempDb temp_;
  SystemClock clock_;
};

TEST_F(DatabaseTest, OpensAFileThatDoesNotExistYetReadersIncluded) {
  auto database = Open();
  EXPECT_TRUE(Ping(*database).ok());
  ASSERT_TRUE(db::WriteAndWait(*database, [](db::Transaction& tx) -> Result<void> {
                IL_TRY_VOID(tx->Run("CREATE TABLE t(a)"));
                return {};
              }).ok());
  ASSERT_TRUE(db::WriteAndWait(*database, Insert(1)).ok());
  EXPECT_EQ(Count(*database), 1);  // what a write was told is seen by the next read
  std::optional<std::string> mode;
  ASSERT_TRUE(db::ReadAndWait(*database, [&](db::Connection& connection) -> Result<void> {
                IL_TRY(mode, connection.One("PRAGMA journal_mode",
                                            [](const db::Row& row) { return row.String(0); }));
                return {};
              }).ok());
  EXPECT_EQ(mode, "wal");
  EXPECT_TRUE(Exists("-wal"));
  EXPECT_FALSE(Exists("-journal"));
}

TEST_F(DatabaseTest, CloseLeavesOneFileWithEverythingInItAndThenPingFails) {
  temp_.Make("CREATE TABLE t(a)");
  auto database = Open();
  std::atomic<int> told = 0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(database
                    ->Write(Insert(i),
                            [&](const Result<void>& result) {
                              EXPECT_TRUE(result.ok());
                              ++told;
                            })
                    .ok());
  }
  EXPECT_TRUE(Ping(*database).ok());
  ASSERT_TRUE(database->Close().ok());
  EXPECT_EQ(told, 100);
  EXPECT_EQ(Ping(*database).error().code(), Errc::kUnavailable);
  EXPECT_EQ(db::WriteAndWait(*database, Insert(1)).error().code(), Errc::kUnavailable);
  EXPECT_FALSE(Exists("-wal"));
  EXPECT_FALSE(Exists("-shm"));
  EXPECT_TRUE(database->Close().ok());
  EXPECT_EQ(Count(*Open()), 100);
}

TEST_F(DatabaseTest, WritersAndASweeperTogetherNeverHearBusy) {
  temp_.Make("CREATE TABLE t(a)");
  auto database = Open();
  constexpr int kWriters = 8;
  std::atomic<int> left = kWriters;
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  threads.reserve(9);
  for (int writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < kRowsPerWriter; ++i) {
        if (!db::WriteAndWait(*database, Insert(writer * kRowsPerWriter + i)).ok()) ++failed;
      }
      --left;
    });
  }
  threads.emplace_back([&] {
    const auto sweep = [](db::Transaction& tx) -> Result<void> {
      IL_TRY_VOID(tx->Run("DELETE FROM t WHERE a % 2 = 0"));
      return {};
    };
    do {
      if (!db::WriteAndWait(*database, sweep).ok()) ++failed;
      if (!Ping(*database).ok()) ++failed;
      EXPECT_FALSE(Exists("-journal"));
    } while (left > 0);
    if (!db::WriteAndWait(*database, sweep).ok()) ++failed;
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(Count(*database), kWriters * kRowsPerWriter / 2);
}

TEST_F(DatabaseTest, TicketsOfReadsAndWritesAreToldApart) {
  temp_.Make("CREATE TABLE t(a)");
  testing::FakeClock fake;
  DatabaseOptions by_hand = options();
  by_hand.drive = Drive::kByHand;
  auto database = Database::Open(by_hand, fake).value();
  std::string told;
  const auto done = [&told](char name) {
    return [&told, name](const Result<void>& result) {
      told += name;
      told += result.ok() ? "+" : "-";
    };
  };
  const auto nothing = [](auto&) -> Result<void> { return {}; };
  const auto r1 = database->Read(nothing, done('r')).value();
  const auto w1 = database->Write(Insert(1), done('w')).value();
  const auto r2 = database->Read(nothing, done('R')).value();
  const auto w2 = database->Write(Insert(2), done('W')).value();
  EXPECT_TRUE(database->Cancel(r1));
  EXPECT_TRUE(database->Cancel(w2));
  EXPECT_FALSE(database->Cancel(0));
  EXPECT_EQ(told, "r-W-");
  EXPECT_TRUE(database->StepReader());
  EXPECT_FALSE(database->StepReader());
  EXPECT_TRUE(database->StepWriter());
  EXPECT_FALSE(database->StepWriter());
  EXPECT_EQ(told, "r-W-R+w+");
  EXPECT_FALSE(database->Cancel(r2));
  EXPECT_FALSE(database->Cancel(w1));
  EXPECT_EQ(database->writer_stats().cancelled, 1u);
  EXPECT_EQ(database->reader_stats().cancelled, 1u);
  EXPECT_TRUE(database->Close().ok());
}

TEST_F(DatabaseTest, CloseRacingRequestsAnswersEachAcceptedOneOnce) {
  temp_.Make("CREATE TABLE t(a)");
  auto database = Open();
  std::atomic<int> accepted = 0;
  std::atomic<int> told = 0;
  std::vector<std::thread> threads;
  threads.reserve(9);
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 200; ++i) {
        if (thread < 2 && i == 100) {
          EXPECT_TRUE(database->Close().ok());
        }
        const auto done = [&](const Result<void>& result) {
          EXPECT_TRUE(result.ok() || result.error().code() == Errc::kCancelled);
          ++told;
        };
        const auto ticket = thread % 2 == 0 ? database->Write(Insert(i), done)
                                            : database->Read(
                                                  [](db::Connection& c) -> Result<void> {
                                                    IL_TRY_VOID(c.Run("SELECT count(*) FROM t"));
                                                    return {};
                                                  },
                                                  done);
        if (ticket.ok()) {
          ++accepted;
          if (i % 7 == 0) database->Cancel(*ticket);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(told, accepted);
  EXPECT_FALSE(Exists("-wal"));
}

TEST_F(DatabaseTest, FileThatWasReplacedIsNeitherReadNorWrittenUntilItIsBack) {
  temp_.Make("CREATE TABLE t(a)");
  auto database = Open();
  ASSERT_TRUE(db::WriteAndWait(*database, Insert(1)).ok());
  testing::TempDb other;
  other.Make("CREATE TABLE t(a)");
  const auto aside = temp_.directory() / "aside.db";
  fs::rename(temp_.path(), aside);
  for (const bool replaced : {false, true}) {
    if (replaced) fs::copy_file(other.path(), temp_.path());
    for (int i = 0; i < 8; ++i) {  // every reader
      const Result<void> read = Ping(*database);
      ASSERT_FALSE(read.ok());
      EXPECT_EQ(read.error().code(), Errc::kUnavailable);
      EXPECT_EQ(read.error().slug(), "cannot_open");
    }
    EXPECT_FALSE(database->in_place());
    EXPECT_EQ(db::WriteAndWait(*database, Insert(2)).error().slug(), "cannot_open");
  }
  fs::rename(aside, temp_.path());
  EXPECT_EQ(Count(*database), 1);
  EXPECT_TRUE(database->in_place());
  EXPECT_TRUE(db::WriteAndWait(*database, Insert(2)).ok());
}

TEST_F(DatabaseTest, RefusedWriteReportsThatTheFileIsGone) {
  temp_.Make("CREATE TABLE t(a)");
  auto database = Open();
  EXPECT_TRUE(database->in_place());
  const auto aside = temp_.directory() / "aside.db";
  fs::rename(temp_.path(), aside);
  EXPECT_EQ(db::WriteAndWait(*database, Insert(1)).error().slug(), "cannot_open");
  EXPECT_FALSE(database->in_place());
  fs::rename(aside, temp_.path());
  EXPECT_TRUE(db::WriteAndWait(*database, Insert(1)).ok());
  EXPECT_TRUE(database->in_place());
}

TEST_F(DatabaseTest, ConnectionsThatAreOpenedAnewTakeNoOtherFile) {
  temp_.Make("CREATE TABLE t(a)");
  auto database = Open();
  ASSERT_TRUE(db::WriteAndWait(*database, Insert(1)).ok());
  const auto spoil_all = [&database] {
    const auto fail = [](auto&) -> Result<void> { return Error(Errc::kIo, "spoilt"); };
    for (int i = 0; i < 8; ++i) EXPECT_FALSE(db::ReadAndWait(*database, fail).ok());
    EXPECT_FALSE(db::WriteAndWait(*database, fail).ok());
  };
  testing::TempDb other;
  other.Make("CREATE TABLE t(a)");
  spoil_all();
  fs::rename(temp_.path(), temp_.directory() / "aside.db");
  fs::copy_file(other.path(), temp_.path());
  const auto written = fs::last_write_time(temp_.path());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Ping(*database).error().slug(), "cannot_open");
  EXPECT_EQ(db::WriteAndWait(*database, Insert(2)).error().slug(), "cannot_open");
  EXPECT_EQ(fs::last_write_time(temp_.path()), written);
  fs::rename(temp_.directory() / "aside.db", temp_.path());
  EXPECT_EQ(Count(*database), 1);
}

TEST_F(DatabaseTest, RemovedLogIsRefusedAndItsContentIsSavedByClosing) {
  temp_.Make("CREATE TABLE t(a)");
  auto database = Open();
  ASSERT_TRUE(db::WriteAndWait(*database, Insert(1)).ok());
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(Ping(*database).ok());
  ASSERT_TRUE(fs::remove(temp_.path().string() + "-wal"));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Ping(*database).error().slug(), "cannot_open");
  EXPECT_EQ(db::WriteAndWait(*database, Insert(2)).error().slug(), "cannot_open");
  EXPECT_TRUE(database->Close().ok());
  EXPECT_EQ(Count(*Open()), 1);
}

TEST_F(DatabaseTest, AFileThatCannotBeOpenedIsAnErrorNotACrash) {
  DatabaseOptions bad = options();
  bad.path = temp_.directory();
  EXPECT_EQ(Database::Open(bad, clock_).error().code(), Errc::kCantOpen);
}

// Limits do not bind the superuser, so this runs in a child that is nobody.
TEST_F(DatabaseTest, WithoutThreadsOpeningFailsWithAnError) {
  fs::permissions(temp_.directory(), fs::perms{0777});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr uid_t kNobody = 65'534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(10);
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_NPROC, &none) != 0) ::_exit(11);
    const auto opened = Database::Open(options(), clock_);
    if (opened.ok()) ::_exit(12);
    ::_exit(opened.error().code() == Errc::kUnavailable ? 0 : 13);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace interlock::sqlite
