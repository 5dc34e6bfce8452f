#include "serve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <string>

#include "db/sqlite/connection.h"
#include "testing/captured_log.h"
#include "testing/raw_db.h"
#include "testing/recorded_writes.h"
#include "testing/temp_db.h"

namespace interlock::app {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class MigrateDatabaseTest : public ::testing::Test {
 protected:
  Result<void> Migrate() {
    ServeOptions options;
    options.database = temp_.path();
    return MigrateDatabase(options, clock_, log_);
  }

  // Every file of the directory with its bytes, but not the index of a log: that holds no data.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(temp_.directory())) {
      const std::string name = entry.path().filename();
      std::ifstream file(entry.path(), std::ios::binary);
      if (!name.ends_with("-shm")) all[name] = {std::istreambuf_iterator<char>(file), {}};
    }
    return all;
  }

  testing::TempDb temp_;
  SystemClock clock_;
  testing::CapturedLog captured_;
  Logger log_{clock_, captured_};
};

TEST_F(MigrateDatabaseTest, MakesAFileInWalModeAndFindsItCurrentAfterwards) {
  ASSERT_TRUE(Migrate().ok());
  const auto before = Files();
  EXPECT_EQ(before.size(), 1U);
  EXPECT_EQ(before.at("test.db").substr(18, 2), "\x02\x02") << "the header's mark of WAL mode";
  ASSERT_TRUE(Migrate().ok());
  EXPECT_TRUE(Files() == before);
}

TEST_F(MigrateDatabaseTest, ANewDatabaseIsLoggedAsCreatedAndACurrentOneNotAtAll) {
  ASSERT_TRUE(Migrate().ok());
  EXPECT_THAT(captured_.text(), HasSubstr(" INFO created the database version="));
  EXPECT_THAT(captured_.text(), Not(HasSubstr("migrated")));
  const std::string before = captured_.text();
  ASSERT_TRUE(Migrate().ok());
  EXPECT_EQ(captured_.text(), before);
}

TEST_F(MigrateDatabaseTest, AStrangersFileInRollbackModeKeepsEveryByte) {
  testing::RawDb(temp_.path()).Run("CREATE TABLE t(a); INSERT INTO t VALUES (1)");
  const auto before = Files();
  const auto refused = Migrate();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kForeignSchema);
  EXPECT_TRUE(Files() == before);
}

TEST_F(MigrateDatabaseTest, AStrangersLogStaysWhereItIs) {
  {
    const testing::RawDb stranger(temp_.path());
    stranger.Run("PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES (1)");
    stranger.KeepLogOnClose();
  }
  const auto before = Files();
  ASSERT_GT(before.at("test.db-wal").size(), 0U);
  EXPECT_EQ(Migrate().error().code(), Errc::kForeignSchema);
  EXPECT_TRUE(Files() == before);
}

TEST_F(MigrateDatabaseTest, AStrangersCleanFileInWalModeKeepsEveryByteAndGetsNoCompany) {
  testing::RawDb(temp_.path()).Run("PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
  const auto before = Files();
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(Migrate().error().code(), Errc::kForeignSchema);
  EXPECT_TRUE(Files() == before);
}

TEST_F(MigrateDatabaseTest, OurOwnFileInRollbackModeIsPutBackIntoWalMode) {
  ASSERT_TRUE(Migrate().ok());
  testing::RawDb(temp_.path()).Run("PRAGMA journal_mode=DELETE");
  EXPECT_EQ(Files().at("test.db").substr(18, 2), "\x01\x01");
  ASSERT_TRUE(Migrate().ok());
  EXPECT_EQ(Files().at("test.db").substr(18, 2), "\x02\x02");
}

// An earlier server whose sync failed: no later sync would bring those pages to the disk.
TEST_F(MigrateDatabaseTest, ALogThatWasLeftIsWrittenOverItselfBeforeItIsMoved) {
  ASSERT_TRUE(Migrate().ok());
  {
    const testing::RawDb earlier(temp_.path());
    earlier.Run("DELETE FROM meta");
    earlier.KeepLogOnClose();
  }
  const std::size_t log_bytes = Files().at("test.db-wal").size();
  ASSERT_GT(log_bytes, 0U);
  const testing::RecordedWrites recorded;
  ASSERT_TRUE(Migrate().ok());
  const auto& files = recorded.files();
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].name, "test.db-wal");
  EXPECT_EQ(files[0].bytes, log_bytes);
  EXPECT_EQ(files[1].name, "test.db");
  EXPECT_EQ(Files().size(), 1U);
}

// Somebody reads it, so that it cannot be moved: closing does not try either.
TEST_F(MigrateDatabaseTest, ALogThatCannotBeSettledIsLeftToTheWriter) {
  ASSERT_TRUE(Migrate().ok());
  const auto reader = temp_.Open(sqlite::Access::kReadOnly);
  ASSERT_TRUE(reader->BeginSnapshot().ok());
  ASSERT_TRUE(reader->SchemaVersion().ok());
  {
    const testing::RawDb earlier(temp_.path());
    earlier.Run("DELETE FROM meta");
    earlier.KeepLogOnClose();
  }
  const auto before = Files();
  ASSERT_NE(before.at("test.db-wal"), "");
  ASSERT_TRUE(Migrate().ok());
  EXPECT_TRUE(Files() == before);
  reader->Rollback();
  ASSERT_TRUE(Migrate().ok());
  EXPECT_EQ(Files().at("test.db-wal"), "") << "which the reader has open";
}

TEST_F(MigrateDatabaseTest, AToolThatHoldsTheWriteLockIsWaitedFor) {
  const auto tool = temp_.Open();
  ASSERT_TRUE(tool->BeginExclusive().ok());
  auto migrated = std::async(std::launch::async, [this] { return Migrate().ok(); });
  // Longer than a request would wait for the lock.
  EXPECT_EQ(migrated.wait_for(std::chrono::milliseconds(600)), std::future_status::timeout);
  tool->Rollback();
  EXPECT_TRUE(migrated.get());
}

}  // namespace
}  // namespace interlock::app
