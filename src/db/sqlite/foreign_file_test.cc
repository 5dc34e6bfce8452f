#include "db/sqlite/foreign_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "testing/raw_db.h"
#include "testing/temp_db.h"

namespace interlock::sqlite {
namespace {

namespace fs = std::filesystem;
using Found = db::ForeignFile::Found;

constexpr db::Sql kAdd = "INSERT INTO note (text) VALUES (?1)";
constexpr db::Sql kCount = "SELECT COUNT(*) FROM note";
constexpr db::Sql kMode = "PRAGMA journal_mode";

class ForeignFileTest : public ::testing::Test {
 protected:
  fs::path Path() const { return directory_.path() / "its.db"; }
  // As another program makes it; in rollback mode.
  void Make() const { testing::RawDb(Path()).Run("CREATE TABLE note (text TEXT)"); }
  Result<void> Add() {
    return file_.Write([](db::Transaction& tx) -> Result<void> {
      IL_TRY_VOID(tx->Run(kAdd, "x"));
      return {};
    });
  }
  std::int64_t Count() const {
    const auto connection = Connection::Open({.path = Path(), .access = Access::kReadOnly}).value();
    return connection->One(kCount, [](const db::Row& row) { return row.Int(0); }).value().value();
  }

  testing::TempDir directory_;
  ForeignFile file_{[this]() -> Result<fs::path> { return Path(); },
                    {.busy_timeout = std::chrono::milliseconds(1)}};
};

TEST_F(ForeignFileTest, AMissingFileIsAnErrorAndIsNotMade) {
  EXPECT_FALSE(file_.Find().ok());
  EXPECT_FALSE(fs::exists(Path()));
  Make();
  EXPECT_EQ(file_.Find().value(), Found::kAnew);
  EXPECT_EQ(file_.Find().value(), Found::kStill);
}

TEST_F(ForeignFileTest, AnEmptyFileStaysEmptyAndAJournalModeStaysAsItIs) {
  std::ofstream(Path()).close();
  ASSERT_TRUE(file_.Find().ok());
  EXPECT_FALSE(Add().ok());
  EXPECT_EQ(fs::file_size(Path()), 0U);
  fs::remove(Path());
  Make();
  ASSERT_TRUE(file_.Find().ok());
  ASSERT_TRUE(Add().ok());
  const auto reader = Connection::Open({.path = Path(), .access = Access::kReadOnly}).value();
  EXPECT_EQ(reader->One(kMode, [](const db::Row& row) { return row.String(0); }).value(), "delete");
}

TEST_F(ForeignFileTest, AFileThatTookItsPlaceIsFoundAnew) {
  Make();
  ASSERT_TRUE(file_.Find().ok());
  ASSERT_TRUE(Add().ok());
  fs::rename(Path(), directory_.path() / "moved.db");
  EXPECT_FALSE(file_.Find().ok());
  Make();
  EXPECT_EQ(file_.Find().value(), Found::kAnew);
  ASSERT_TRUE(Add().ok());
  EXPECT_EQ(Count(), 1);
}

TEST_F(ForeignFileTest, AWriteThatFailsLeavesNothingAndTheNextOpensTheFileAgain) {
  Make();
  ASSERT_TRUE(file_.Find().ok());
  const auto failed = file_.Write([](db::Transaction& tx) -> Result<void> {
    IL_TRY_VOID(tx->Run(kAdd, "x"));
    return Error(Errc::kInternal, "on purpose");
  });
  EXPECT_EQ(failed.error().code(), Errc::kInternal);
  EXPECT_EQ(Count(), 0);
  EXPECT_EQ(file_.Find().value(), Found::kAnew);
  EXPECT_TRUE(Add().ok());
}

TEST_F(ForeignFileTest, ALockedFileIsBusyAndWorksAfterwards) {
  Make();
  ASSERT_TRUE(file_.Find().ok());
  {
    const testing::RawDb other(Path());
    other.Run("BEGIN IMMEDIATE");
    EXPECT_EQ(Add().error().code(), Errc::kBusy);
    other.Run("COMMIT");
  }
  ASSERT_TRUE(file_.Find().ok());
  EXPECT_TRUE(Add().ok());
}

TEST_F(ForeignFileTest, AFileThatMayNotBeWrittenIsRefused) {
  constexpr uid_t kNobody = 65'534;
  Make();
  ASSERT_EQ(::chmod(Path().c_str(), 0444), 0);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0555), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(10);
    const auto found = file_.Find();
    ::_exit(!found.ok() && found.error().code() == Errc::kReadOnly ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
}

TEST_F(ForeignFileTest, WhatIsNoDatabaseIsAnError) {
  std::ofstream(Path()) << std::string(8192, 'x');
  const auto found = file_.Find();
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), Errc::kNotADatabase);
}

}  // namespace
}  // namespace interlock::sqlite
