// A migration on a disk that fails at each of its calls, and loses power at each of its steps: the
// file has the old version or the new one, whole, and what was reported is true.

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <string>

#include "base/check.h"
#include "db/backups.h"
#include "db/migrate.h"
#include "db/migrate_test_schema.h"
#include "db/sqlite/fault_vfs.h"
#include "testing/fake_clock.h"
#include "testing/seeded_random.h"
#include "testing/temp_db.h"

namespace interlock::db {
namespace {

using sqlite::DiskOp;
using sqlite::DiskOpName;
using sqlite::Effect;
using sqlite::FaultVfs;
using sqlite::Survival;

// One file at version 1 on a faulty disk.
class Scene {
 public:
  explicit Scene(std::uint64_t seed) : vfs_(seed) {
    IL_CHECK(Migrate(1).ok());
    const auto connection = Open().value();
    IL_CHECK(connection->Run("INSERT INTO a VALUES (7)").ok());
  }

  Result<std::unique_ptr<sqlite::Connection>> Open() const {
    sqlite::OpenOptions options = temp_.options();
    options.busy_timeout = std::chrono::milliseconds(0);
    options.vfs = vfs_.name();
    return sqlite::Connection::Open(options);
  }

  Result<MigrationOutcome> Migrate(int version) {
    IL_TRY(const auto connection, Open());
    return Migrator(TestSchemaUpTo(version), {.database = temp_.path()}, clock_).Run(*connection);
  }

  // Heals the disk and looks: 1 or 3, else a failure. Then migrates what is left.
  int VersionFound() {
    if (!disk().powered()) disk().PowerOn();
    disk().Heal();
    const auto connection = Open();
    if (!connection) {
      ADD_FAILURE() << connection.error();
      return -1;
    }
    const int version = (*connection)->SchemaVersion().value();
    EXPECT_TRUE(version == 1 || version == 3) << version;
    EXPECT_EQ(Text(**connection, "PRAGMA integrity_check"), "ok");
    EXPECT_EQ(Text(**connection, "SELECT group_concat(name) FROM sqlite_schema"),
              version == 1 ? "a" : "a,b");
    EXPECT_EQ(Text(**connection, "SELECT group_concat(x) FROM a"), "1,7");
    EXPECT_EQ(Text(**connection, "SELECT count(*) || '' FROM pragma_table_info('a')"),
              version == 1 ? "1" : "2");
    const auto again = Migrate(3);
    EXPECT_TRUE(again.ok()) << again.error();
    return version;
  }

  // Their names are on the machine's own file system.
  std::size_t BackupCount() const { return Backups(temp_.path(), 5).List().size(); }

  sqlite::FaultDisk& disk() { return vfs_.disk(); }
  const testing::TempDb& temp() const { return temp_; }

  static std::string Text(Connection& connection, const Sql& sql) {
    return connection.One(sql, [](const Row& row) { return row.String(0); }).value().value_or("");
  }

 private:
  FaultVfs vfs_;
  testing::TempDb temp_;
  testing::FakeClock clock_;
};

class EachMigrationFaultTest : public ::testing::TestWithParam<DiskOp> {};

TEST_P(EachMigrationFaultTest, AFaultAtAnyCallLeavesOneWholeVersionAndAnHonestAnswer) {
  int failed = 0;
  int n = 1;
  for (bool fired = true; fired; ++n) {
    for (const Effect effect : {Effect::kNothing, Effect::kPart, Effect::kWhole}) {
      SCOPED_TRACE(std::string(DiskOpName(GetParam())) + " " + std::to_string(n));
      Scene scene(testing::TestSeed());
      scene.disk().Inject({.op = GetParam(), .nth = n, .effect = effect});
      const auto outcome = scene.Migrate(3);
      fired = scene.disk().fired() > 0;
      if (!fired) {
        EXPECT_TRUE(outcome.ok());
      }
      const bool unknown = !outcome.ok() && outcome.error().code() == Errc::kOutcomeUnknown;
      const std::size_t backups = scene.BackupCount();
      if (!outcome.ok()) {
        ++failed;
        EXPECT_EQ(backups, unknown ? 1u : 0u) << outcome.error();
      }
      const int version = scene.VersionFound();
      if (!unknown) {
        EXPECT_EQ(version, outcome.ok() ? 3 : 1);
      }
    }
  }
  EXPECT_GE(n, 3);
  if (GetParam() != DiskOp::kDelete && GetParam() != DiskOp::kTruncate) {
    EXPECT_GE(failed, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, EachMigrationFaultTest, ::testing::ValuesIn(sqlite::kDiskOps),
                         [](const auto& instance) {
                           std::string name = DiskOpName(instance.param);
                           std::erase(name, '-');
                           return name;
                         });

TEST(MigrateFaultTest, APowerCutAtAnyStepLeavesOneWholeVersion) {
  int old_versions = 0;
  for (const Survival survival : {Survival::kNothing, Survival::kSome, Survival::kAll}) {
    bool cut = true;
    for (std::int64_t n = 1; cut; ++n) {
      SCOPED_TRACE(n);
      Scene scene(testing::TestSeed() + static_cast<std::uint64_t>(n));
      scene.disk().CutPowerAtStep(n, survival);
      const auto outcome = scene.Migrate(3);
      cut = !scene.disk().powered();
      const int version = scene.VersionFound();
      if (outcome.ok()) {
        EXPECT_EQ(version, 3);
      }
      if (version == 1) ++old_versions;
    }
  }
  EXPECT_GE(old_versions, 10);
}

TEST(MigrateFaultTest, AFullDiskLeavesTheOldVersionAndTheMigrationWorksOnceThereIsSpace) {
  bool refused = true;
  int refusals = 0;
  for (std::int64_t space = 0; refused; space += 4000) {
    SCOPED_TRACE(space);
    Scene scene(testing::TestSeed());
    scene.disk().LimitSpace(space);
    const auto outcome = scene.Migrate(3);
    refused = !outcome.ok();
    if (refused) ++refusals;
    EXPECT_EQ(scene.VersionFound(), refused ? 1 : 3);
  }
  EXPECT_GE(refusals, 3);
}

TEST(MigrateFaultTest, ABackupThatWasReportedIsWholeAfterAPowerCut) {
  Scene scene(testing::TestSeed());
  const auto outcome = scene.Migrate(3);
  ASSERT_TRUE(outcome.ok());
  scene.disk().CutPower(Survival::kNothing);
  scene.disk().PowerOn();
  // On this disk it keeps the name it was written under.
  const auto content = scene.disk().Content(outcome->backup.string() + ".partial");
  ASSERT_TRUE(content.has_value());
  const testing::TempDb copy;
  std::ofstream(copy.path(), std::ios::binary) << *content;
  const auto connection = copy.Open();
  EXPECT_EQ(Scene::Text(*connection, "PRAGMA integrity_check"), "ok");
  EXPECT_EQ(connection->SchemaVersion().value(), 1);
  EXPECT_EQ(Scene::Text(*connection, "SELECT group_concat(x) FROM a"), "1,7");
  EXPECT_EQ(Scene::Text(*connection, "SELECT group_concat(name) FROM sqlite_schema"), "a");
}

// The sync in the middle of the COMMIT fails; the backup that was made before stays.
TEST(MigrateFaultTest, ACommitOfUnknownOutcomeSaysSoAndKeepsItsBackup) {
  int unknown = 0;
  bool fired = true;
  for (int n = 1; fired; ++n) {
    Scene scene(testing::TestSeed());
    scene.disk().Inject({.op = DiskOp::kSync, .nth = n});
    const auto outcome = scene.Migrate(3);
    fired = scene.disk().fired() > 0;
    if (outcome.ok() || outcome.error().code() != Errc::kOutcomeUnknown) continue;
    ++unknown;
    EXPECT_EQ(scene.BackupCount(), 1u);
  }
  EXPECT_GE(unknown, 1);
}

}  // namespace
}  // namespace interlock::db
