#include "db/migrate.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "db/backups.h"
#include "db/migrate_test_schema.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::db {
namespace {

namespace fs = std::filesystem;
using sqlite::Access;
using testing::FakeClock;
using testing::TempDb;

constexpr auto& kSteps = kTestSteps;

Schema UpTo(int version) { return TestSchemaUpTo(version); }

std::string Bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::int64_t Int(Connection& connection, const Sql& sql) {
  return connection.One(sql, [](const Row& row) { return row.Int(0); }).value().value();
}

std::string Text(Connection& connection, const Sql& sql) {
  return connection.One(sql, [](const Row& row) { return row.String(0); }).value().value();
}

class MigrateTest : public ::testing::Test {
 protected:
  Result<MigrationOutcome> Migrate(const Schema& schema, Migratable& target) {
    clock_.Advance(std::chrono::seconds(1));
    return Migrator(schema, {.database = temp_.path()}, clock_).Run(target);
  }
  Result<MigrationOutcome> Migrate(const Schema& schema) {
    const auto connection = temp_.Open();
    return Migrate(schema, *connection);
  }
  std::vector<fs::path> Backed() const { return Backups(temp_.path(), 5).List(); }

  TempDb temp_;
  FakeClock clock_;
};

TEST_F(MigrateTest, ANewFileGetsAllStepsAndNoBackup) {
  const auto outcome = Migrate(UpTo(3));
  ASSERT_TRUE(outcome.ok()) << outcome.error();
  EXPECT_EQ(outcome->from, 0);
  EXPECT_EQ(outcome->to, 3);
  EXPECT_TRUE(outcome->backup.empty());
  EXPECT_TRUE(Backed().empty());
  const auto connection = temp_.Open(Access::kReadWrite);
  EXPECT_EQ(connection->SchemaVersion().value(), 3);
  EXPECT_FALSE(connection->IsForeign("us").value());
  EXPECT_EQ(Text(*connection, "SELECT y FROM a"), "new");
}

TEST_F(MigrateTest, ACurrentFileIsNeitherWrittenNorCopied) {
  ASSERT_TRUE(Migrate(UpTo(3)).ok());
  const std::string before = Bytes(temp_.path());
  const auto connection = temp_.Open();
  ASSERT_TRUE(connection->Checkpoint().ok());
  const auto outcome = Migrate(UpTo(3), *connection);
  ASSERT_TRUE(outcome.ok()) << outcome.error();
  EXPECT_EQ(outcome->from, 3);
  EXPECT_EQ(outcome->to, 3);
  EXPECT_FALSE(connection->in_transaction());
  EXPECT_EQ(Bytes(temp_.path().string() + "-wal"), "");
  EXPECT_TRUE(Bytes(temp_.path()) == before);
  EXPECT_TRUE(Backed().empty());
}

TEST_F(MigrateTest, OnlyTheMissingStepsRunAndTheBackupHoldsTheOldVersionWithItsLog) {
  ASSERT_TRUE(Migrate(UpTo(1)).ok());
  const auto connection = temp_.Open();
  ASSERT_TRUE(connection->Run("INSERT INTO a VALUES (41)").ok());
  ASSERT_GT(fs::file_size(temp_.path().string() + "-wal"), 0u) << "the row is in the log only";
  const auto outcome = Migrate(UpTo(3), *connection);
  ASSERT_TRUE(outcome.ok()) << outcome.error();
  EXPECT_EQ(outcome->from, 1);
  EXPECT_EQ(outcome->to, 3);
  EXPECT_EQ(Int(*connection, "SELECT max(x) FROM b"), 42);
  EXPECT_EQ(Backed(), std::vector<fs::path>{outcome->backup});
  EXPECT_EQ(outcome->backup.filename().string().find("test.db.v1.2026"), 0u);
  struct stat info{};
  ASSERT_EQ(::stat(outcome->backup.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_FALSE(fs::exists(outcome->backup.string() + "-journal"));

  sqlite::OpenOptions options;
  options.path = outcome->backup;
  const auto backup = sqlite::Connection::Open(options).value();
  EXPECT_EQ(backup->SchemaVersion().value(), 1);
  EXPECT_EQ(Int(*backup, "SELECT max(x) FROM a"), 41);
  EXPECT_EQ(Text(*backup, "PRAGMA integrity_check"), "ok");
  EXPECT_FALSE(backup->IsForeign("us").value()) << "it can take the file's place";
}

TEST_F(MigrateTest, ABackupPutInPlaceOfTheFileIsMigratedAgain) {
  ASSERT_TRUE(Migrate(UpTo(1)).ok());
  const fs::path backup = Migrate(UpTo(3)).value().backup;
  fs::copy_file(backup, temp_.path(), fs::copy_options::overwrite_existing);
  ASSERT_TRUE(Migrate(UpTo(1)).ok()) << "an old program runs on it";
  EXPECT_EQ(Migrate(UpTo(3)).value().from, 1);
}

// A step that looks, through a second connection, whether somebody can still commit.
class Interloper final : public Migratable {
 public:
  Interloper(sqlite::Connection& inner, std::unique_ptr<sqlite::Connection> other)
      : inner_(inner), other_(std::move(other)) {}
  Connection& connection() override { return inner_; }
  Result<void> BeginExclusive() override { return inner_.BeginExclusive(); }
  Result<void> Commit() override { return inner_.Commit(); }
  bool in_transaction() const override { return inner_.in_transaction(); }
  void Rollback() override { inner_.Rollback(); }
  Result<int> SchemaVersion() override { return inner_.SchemaVersion(); }
  Result<void> SetSchemaVersion(std::string_view program, int version) override {
    return inner_.SetSchemaVersion(program, version);
  }
  Result<void> RunScript(std::string_view script) override {
    Result<void> ran = inner_.RunScript(script);
    if (ends_transaction) inner_.Rollback();
    return ran;
  }
  Result<bool> IsForeign(std::string_view program) override { return inner_.IsForeign(program); }
  Result<void> BackUpTo(const fs::path& target) override {
    refused_before = TryToWrite();
    Result<void> done = inner_.BackUpTo(target);
    refused_after = TryToWrite();
    return done;
  }

  Errc refused_before = Errc::kInternal;
  Errc refused_after = Errc::kInternal;
  bool ends_transaction = false;  // after each step, as an engine may do by itself

 private:
  Errc TryToWrite() {
    const auto written = other_->Run("INSERT INTO a VALUES (99)");
    return written.ok() ? Errc::kInternal : written.error().code();
  }

  sqlite::Connection& inner_;
  std::unique_ptr<sqlite::Connection> other_;
};

TEST_F(MigrateTest, NobodyCanCommitBetweenTheBackupAndTheMigration) {
  ASSERT_TRUE(Migrate(UpTo(1)).ok());
  const auto connection = temp_.Open();
  sqlite::OpenOptions options = temp_.options(Access::kReadWrite);
  options.busy_timeout = std::chrono::milliseconds(0);
  Interloper interloper(*connection, sqlite::Connection::Open(options).value());
  ASSERT_TRUE(Migrate(UpTo(2), interloper).ok());
  EXPECT_EQ(interloper.refused_before, Errc::kBusy);
  EXPECT_EQ(interloper.refused_after, Errc::kBusy);
}

TEST_F(MigrateTest, TheLastFiveBackupsAreKept) {
  for (int round = 0; round < 8; ++round) {
    fs::remove(temp_.path());
    ASSERT_TRUE(Migrate(UpTo(1)).ok());
    const auto outcome = Migrate(UpTo(2));
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(Backed().size(), static_cast<std::size_t>(std::min(round + 1, 5)));
    EXPECT_EQ(Backed().back(), outcome->backup);
  }
}

TEST_F(MigrateTest, ANewerFileIsRefusedUntouchedWithWhatToDo) {
  ASSERT_TRUE(Migrate(UpTo(3)).ok());
  const std::string before = Bytes(temp_.path());
  const auto outcome = Migrate(UpTo(2));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code(), Errc::kSchemaTooNew);
  const std::string& message = outcome.error().message();
  for (const char* part : {"test.db", "version 3", "up to 2", "run the newer us", "backup"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  }
  EXPECT_TRUE(Bytes(temp_.path()) == before);
  EXPECT_TRUE(Backed().empty());
}

TEST_F(MigrateTest, AFileOfTheGoServerIsRefusedUntouchedWithTheRemedy) {
  temp_.Make(
      "CREATE TABLE events(cursor INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL,"
      " type TEXT NOT NULL, created_at TEXT NOT NULL);"
      "INSERT INTO events(id, type, created_at) VALUES('e', 't', '2026-01-02T03:04:05Z');");
  const std::string before = Bytes(temp_.path());
  const auto outcome = Migrate(UpTo(3));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code(), Errc::kForeignSchema);
  const std::string& message = outcome.error().message();
  for (const char* part : {"test.db", "another program", "move it away", "name another file"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  }
  EXPECT_TRUE(Bytes(temp_.path()) == before);
  EXPECT_TRUE(Backed().empty());
}

TEST_F(MigrateTest, TheFileOfOurOtherProgramIsForeign) {
  ASSERT_TRUE(Migrate(UpTo(1)).ok());
  const Schema other = {"them", UpTo(3).steps};
  EXPECT_EQ(Migrate(other).error().code(), Errc::kForeignSchema);
}

TEST_F(MigrateTest, AFailingStepUndoesEverythingAndTakesItsBackupAway) {
  ASSERT_TRUE(Migrate(UpTo(1)).ok());
  const std::array steps = {kSteps[0], kSteps[1],
                            MigrationStep{3, "CREATE TABLE c(x); INSERT INTO missing VALUES (1);"}};
  const auto connection = temp_.Open();
  const auto outcome = Migrate({"us", steps}, *connection);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().message().find("migrating to version 3"), std::string::npos);
  EXPECT_FALSE(connection->in_transaction());
  EXPECT_EQ(connection->SchemaVersion().value(), 1);
  EXPECT_EQ(Int(*connection, "SELECT count(*) FROM sqlite_schema"), 1);
  EXPECT_TRUE(Backed().empty());
  EXPECT_EQ(Migrate(UpTo(3), *connection).value().to, 3) << "mended, it goes on from there";
}

TEST_F(MigrateTest, AStepThatCommitsDoesNotCommitHalfAMigration) {
  ASSERT_TRUE(Migrate(UpTo(1)).ok());
  const std::array steps = {kSteps[0], kSteps[1],
                            MigrationStep{3, "CREATE TABLE c(x); /* now */ COMMIT;"}};
  const auto connection = temp_.Open();
  const auto outcome = Migrate({"us", steps}, *connection);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code(), Errc::kInternal);
  EXPECT_EQ(connection->SchemaVersion().value(), 1);
  EXPECT_EQ(Int(*connection, "SELECT count(*) FROM sqlite_schema"), 1);
  EXPECT_TRUE(Backed().empty());
}

TEST_F(MigrateTest, AMigrationWhoseTransactionEndedGoesNoFurther) {
  ASSERT_TRUE(Migrate(UpTo(1)).ok());
  const auto connection = temp_.Open();
  Interloper interloper(*connection, temp_.Open());
  interloper.ends_transaction = true;
  const auto outcome = Migrate(UpTo(3), interloper);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().message().find("to version 2 ended the transaction"), std::string::npos)
      << outcome.error();
  EXPECT_EQ(connection->SchemaVersion().value(), 1);
  EXPECT_EQ(Int(*connection, "SELECT count(*) FROM sqlite_schema"), 1);
  EXPECT_TRUE(Backed().empty());
}

// A deferred constraint fails the COMMIT itself, and leaves the transaction open.
TEST_F(MigrateTest, ACommitThatSurelyFailedIsNoUnknownOutcomeAndTakesItsBackupAway) {
  ASSERT_TRUE(Migrate(UpTo(1)).ok());
  const std::array steps = {
      kSteps[0], MigrationStep{2,
                               "CREATE TABLE p(x PRIMARY KEY);"
                               "CREATE TABLE c(x REFERENCES p(x) DEFERRABLE INITIALLY DEFERRED);"
                               "INSERT INTO c VALUES (1);"}};
  const auto outcome = Migrate({"us", steps});
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code(), Errc::kConstraint);
  EXPECT_EQ(temp_.Open()->SchemaVersion().value(), 1);
  EXPECT_TRUE(Backed().empty());
}

TEST_F(MigrateTest, WithoutABackupNothingIsChanged) {
  ASSERT_TRUE(Migrate(UpTo(1)).ok());
  const auto connection = temp_.Open();
  // The next backup's name is known to the microsecond, so something can be in its way.
  const Timestamp next = clock_.Now() + std::chrono::seconds(1);
  const fs::path name = Backups(temp_.path(), 5)
                            .Make(1, next,
                                  [](const fs::path& path) -> Result<void> {
                                    std::ofstream(path) << "x";
                                    return {};
                                  })
                            .value();
  fs::path in_the_way = name;
  in_the_way.replace_extension();  // without ".backup"
  fs::create_directories(fs::path(in_the_way.string() + "-2.backup.partial") / "x");
  const auto outcome = Migrate(UpTo(2), *connection);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().message().find("backup"), std::string::npos) << outcome.error();
  EXPECT_EQ(connection->SchemaVersion().value(), 1);
  EXPECT_EQ(Int(*connection, "SELECT count(*) FROM sqlite_schema"), 1);
}

TEST_F(MigrateTest, AHeldLockIsReportedAsBusy) {
  const auto holder = temp_.Open();
  ASSERT_TRUE(holder->BeginExclusive().ok());
  sqlite::OpenOptions options = temp_.options();
  options.busy_timeout = std::chrono::milliseconds(0);
  const auto connection = sqlite::Connection::Open(options).value();
  EXPECT_EQ(Migrate(UpTo(1), *connection).error().code(), Errc::kBusy);
  holder->Rollback();
  EXPECT_TRUE(Migrate(UpTo(1), *connection).ok());
}

TEST_F(MigrateTest, AGapInTheStepsIsOurBug) {
  const std::array steps = {kSteps[0], kSteps[2]};
  EXPECT_DEATH(Migrator({"us", steps}, {.database = temp_.path()}, clock_), "check failed");
}

}  // namespace
}  // namespace interlock::db
