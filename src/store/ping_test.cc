#include "store/ping.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "store/schema.h"
#include "testing/temp_db.h"

namespace interlock::store {
namespace {

// A migrated file, its log folded in and gone as when a server starts, and one connection to it.
class PingTest : public ::testing::Test {
 protected:
  PingTest() {
    for (const db::MigrationStep& step : ServerSchema().steps) temp_.Make(step.script);
    connection_ = temp_.Open();
  }

  // A ping in a snapshot of its own, as every read of the server runs.
  Result<std::string> PingOnce() {
    IL_TRY_VOID(connection_->BeginSnapshot());
    Result<std::string> pinged = Ping(*connection_);
    connection_->Rollback();
    return pinged;
  }
  // Every byte of the file becomes another; its size stays.
  void Overwrite() const {
    const auto size = std::filesystem::file_size(temp_.path());
    std::fstream file(temp_.path(), std::ios::in | std::ios::out | std::ios::binary);
    file << std::string(size, '\x5a');
    ASSERT_TRUE(file.flush().good());
  }

  testing::TempDb temp_;
  std::unique_ptr<sqlite::Connection> connection_;
};

TEST_F(PingTest, AnswersWhetherOrNotThereIsALogId) {
  EXPECT_TRUE(PingOnce().ok());
  ASSERT_TRUE(connection_->RunScript("DELETE FROM meta WHERE key = 'log_id'").ok());
  EXPECT_EQ(PingOnce().value(), "");
}

TEST_F(PingTest, FailsOnAFileThatWasOverwrittenBeforeTheFirstPing) {
  Overwrite();
  const auto pinged = PingOnce();
  ASSERT_FALSE(pinged.ok());
  EXPECT_TRUE(IsInfrastructure(pinged.error().code())) << pinged.error();
}

TEST_F(PingTest, FailsOnAFileThatWasOverwrittenHoweverOftenItAnsweredBefore) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(PingOnce().ok());
  Overwrite();
  EXPECT_FALSE(PingOnce().ok());
}

TEST_F(PingTest, ReturnsTheLogIdOfTheDatabaseThatTheFileHoldsNow) {
  const std::string first = PingOnce().value();
  EXPECT_NE(first, "");
  EXPECT_EQ(PingOnce().value(), first);
  testing::TempDb other;
  for (const db::MigrationStep& step : ServerSchema().steps) other.Make(step.script);
  std::ofstream(temp_.path(), std::ios::binary | std::ios::in)
      << std::ifstream(other.path(), std::ios::binary).rdbuf();
  const auto pinged = PingOnce();
  ASSERT_TRUE(pinged.ok()) << pinged.error();
  EXPECT_NE(*pinged, first);
}

TEST_F(PingTest, FailsOnAFileThatWasCutShortHoweverOftenItAnsweredBefore) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(PingOnce().ok());
  std::filesystem::resize_file(temp_.path(), 0);
  for (int i = 0; i < 3; ++i) {
    const auto pinged = PingOnce();
    ASSERT_FALSE(pinged.ok());
    EXPECT_EQ(pinged.error().code(), Errc::kCorrupt) << pinged.error();
  }
}

TEST_F(PingTest, FailsWithoutItsTable) {
  ASSERT_TRUE(connection_->RunScript("DROP TABLE meta").ok());
  EXPECT_EQ(PingOnce().error().code(), Errc::kCorrupt);
}

}  // namespace
}  // namespace interlock::store
