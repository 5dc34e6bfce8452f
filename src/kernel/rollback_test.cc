#include "kernel/rollback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "db/backups.h"
#include "kernel/schema.h"
#include "testing/fake_clock.h"
#include "testing/raw_db.h"
#include "testing/temp_db.h"

namespace interlock::kernel {
namespace {

namespace fs = std::filesystem;
using testing::FakeClock;
using testing::TempDb;

constexpr char kOld[] =
    "CREATE TABLE state (key TEXT NOT NULL, scope_id TEXT NOT NULL, payload TEXT NOT NULL,"
    "  updated_at INTEGER NOT NULL, PRIMARY KEY (key, scope_id));"
    "INSERT INTO state VALUES ('k', 's', 'old', 5); PRAGMA user_version=12";

class RollbackTest : public ::testing::Test {
 protected:
  RollbackTest() {
    testing::RawDb(temp_.path()).Run(kOld);
    backup_ = Database::Init(options(), KernelSchema(), clock_).value().backup;
    clock_.Advance(std::chrono::seconds(1));
    testing::RawDb(temp_.path()).Run("UPDATE state SET payload = 'new'");
  }
  Database::Options options() const {
    return {.path = temp_.path(), .busy_timeout = std::chrono::milliseconds(300)};
  }
  static std::string Payload(const fs::path& path) {
    sqlite::OpenOptions wanted;
    wanted.path = path;
    wanted.journal = sqlite::Journal::kAsFound;
    const auto connection = sqlite::Connection::Open(wanted).value();
    return connection
        ->One("SELECT payload FROM state", [](const db::Row& row) { return row.String(0); })
        .value()
        .value();
  }

  TempDb temp_;
  FakeClock clock_;
  fs::path backup_;
};

TEST_F(RollbackTest, TheOldContentAndVersionComeBackAndTheNewAreKept) {
  const RestorePlan plan = PlanRestore(options(), clock_).value();
  EXPECT_EQ(plan.backup, backup_);
  EXPECT_EQ(plan.version, 12);
  EXPECT_EQ(plan.replaced, 100);
  const fs::path kept = RestoreBackup(options(), plan, clock_).value();
  EXPECT_EQ(Payload(temp_.path()), "old");
  EXPECT_EQ(PlanRestoreFrom(options(), temp_.path(), clock_).value().version, 12);
  EXPECT_FALSE(fs::exists(backup_.string() + "-wal")) << "looking at a backup leaves nothing";
  EXPECT_EQ(Payload(kept), "new");
  // Taken over once more, it can go back once more, and what was kept is no candidate.
  clock_.Advance(std::chrono::seconds(1));
  ASSERT_TRUE(Database::Init(options(), KernelSchema(), clock_).ok());
  EXPECT_EQ(PlanRestore(options(), clock_).value().version, 12);
}

TEST_F(RollbackTest, SomebodyWhoHasItOpenSeesTheOldContentAtOnce) {
  sqlite::OpenOptions wanted;
  wanted.path = temp_.path();
  const auto other = sqlite::Connection::Open(wanted).value();
  const db::Sql payload = "SELECT payload FROM state";
  const auto read = [&] {
    return other->One(payload, [](const db::Row& row) { return row.String(0); }).value().value();
  };
  EXPECT_EQ(read(), "new");
  ASSERT_TRUE(RestoreBackup(options(), PlanRestore(options(), clock_).value(), clock_).ok());
  EXPECT_EQ(read(), "old");
}

TEST_F(RollbackTest, ADamagedFileGivesWayToTheBackup) {
  std::ofstream(temp_.path(), std::ios::binary) << std::string(9000, 'x');
  std::ofstream(temp_.path().string() + "-wal", std::ios::binary) << "rubbish";
  const RestorePlan plan = PlanRestore(options(), clock_).value();
  EXPECT_FALSE(plan.replaced.has_value());
  const fs::path kept = RestoreBackup(options(), plan, clock_).value();
  EXPECT_EQ(Payload(temp_.path()), "old");
  EXPECT_EQ(fs::file_size(kept), 9000U);
  EXPECT_TRUE(fs::exists(kept.string() + "-wal"));
}

TEST_F(RollbackTest, AStrangersFileIsNoBackup) {
  const TempDb other;
  testing::RawDb(other.path()).Run("CREATE TABLE theirs (x); PRAGMA user_version=3");
  const auto plan = PlanRestoreFrom(options(), other.path(), clock_);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code(), Errc::kForeignSchema);
}

TEST_F(RollbackTest, WithoutABackupNothingHappens) {
  fs::remove(backup_);
  const auto plan = PlanRestore(options(), clock_);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().exit_code(), 1);
}

TEST_F(RollbackTest, AWriterInTheWayIsWaitedForAndThenReported) {
  const RestorePlan plan = PlanRestore(options(), clock_).value();
  sqlite::OpenOptions wanted;
  wanted.path = temp_.path();
  const auto writer = sqlite::Connection::Open(wanted).value();
  ASSERT_TRUE(writer->BeginExclusive().ok());
  const auto refused = RestoreBackup(options(), plan, clock_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kBusy);
  writer->Rollback();
  EXPECT_EQ(Payload(temp_.path()), "new");
}

}  // namespace
}  // namespace interlock::kernel
