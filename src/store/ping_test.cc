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

TEST_F(PingTest, AnswersWhetherOrNotThereIsAnInstance) {
  EXPECT_TRUE(Ping(*connection_).ok());
  ASSERT_TRUE(connection_->RunScript("INSERT INTO meta VALUES ('instance_id', 'x')").ok());
  EXPECT_TRUE(Ping(*connection_).ok());
}

TEST_F(PingTest, FailsOnAFileThatWasOverwrittenBeforeTheFirstPing) {
  Overwrite();
  const auto pinged = Ping(*connection_);
  ASSERT_FALSE(pinged.ok());
  EXPECT_TRUE(IsInfrastructure(pinged.error().code())) << pinged.error();
}

TEST_F(PingTest, FailsOnAFileThatWasOverwrittenOnceTheNextCommitIsThere) {
  ASSERT_TRUE(Ping(*connection_).ok());
  const auto other = temp_.Open();
  ASSERT_TRUE(other->RunScript("CREATE TABLE later (x)").ok());  // now the log has its pages
  ASSERT_TRUE(Ping(*connection_).ok());
  Overwrite();
  ASSERT_TRUE(other->RunScript("INSERT INTO later VALUES (1)").ok());
  const auto pinged = Ping(*connection_);
  ASSERT_FALSE(pinged.ok());
  EXPECT_EQ(pinged.error().code(), Errc::kCorrupt) << pinged.error();
}

TEST_F(PingTest, FailsOnAFileThatWasCutShortHoweverOftenItAnsweredBefore) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Ping(*connection_).ok());
  std::filesystem::resize_file(temp_.path(), 0);
  for (int i = 0; i < 3; ++i) {
    const auto pinged = Ping(*connection_);
    ASSERT_FALSE(pinged.ok());
    EXPECT_EQ(pinged.error().code(), Errc::kCorrupt) << pinged.error();
  }
}

TEST_F(PingTest, FailsWithoutItsTable) {
  ASSERT_TRUE(connection_->RunScript("DROP TABLE meta").ok());
  EXPECT_FALSE(Ping(*connection_).ok());
}

}  // namespace
}  // namespace interlock::store
