#include "kernel/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <string>
#include <vector>

#include "db/backups.h"
#include "kernel/schema.h"
#include "testing/fake_clock.h"
#include "testing/raw_db.h"
#include "testing/temp_db.h"

namespace interlock::kernel {
namespace {

namespace fs = std::filesystem;
using testing::FakeClock;
using ::testing::HasSubstr;
using testing::TempDb;

constexpr db::Sql kPut =
    "INSERT INTO state (key, scope_id, payload, updated_at) VALUES (?1, '', '1', 1)";
constexpr db::Sql kCount = "SELECT count(*) FROM state";

std::string Remedy(const Error& error) {
  for (const auto& [key, value] : error.details()) {
    if (key == "do") return std::get<std::string>(value);
  }
  return {};
}

class DatabaseTest : public ::testing::Test {
 protected:
  Database::Options options() const { return {.path = temp_.path()}; }
  Result<Database> Open(Database::OpenMode access, const db::Schema& schema = KernelSchema()) {
    return Database::Open(options(), access, schema, clock_);
  }
  void Init() { ASSERT_TRUE(Database::Init(options(), KernelSchema(), clock_).ok()); }
  static std::int64_t Count(Database& database) {
    return database
        .Read([](db::Connection& connection) {
          return connection.One(kCount, [](const db::Row& row) { return row.Int(0); });
        })
        .value()
        .value();
  }

  TempDb temp_;
  FakeClock clock_;
};

TEST_F(DatabaseTest, AMissingFileIsNotMade) {
  for (const auto access : {Database::OpenMode::kRead, Database::OpenMode::kWrite}) {
    const auto database = Open(access);
    ASSERT_FALSE(database.ok());
    EXPECT_EQ(database.error().exit_code(), 2);
    EXPECT_EQ(Remedy(database.error()), "run 'ic init' to create one");
  }
  EXPECT_TRUE(fs::is_empty(temp_.directory()));
}

TEST_F(DatabaseTest, AFailedWriteLeavesNothing) {
  Init();
  Database database = Open(Database::OpenMode::kWrite).value();
  const Result<void> failed = database.Write([](Transaction& tx) -> Result<void> {
    IL_TRY_VOID(tx->Run(kPut, "a"));
    return Error(Errc::kConflict, "no");
  });
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(Count(database), 0);
}

TEST_F(DatabaseTest, NothingIsWrittenToAFileThatWasMovedAway) {
  Init();
  Database database = Open(Database::OpenMode::kWrite).value();
  fs::rename(temp_.path(), temp_.path().string() + ".old");
  const auto put = [](Transaction& tx) -> Result<void> {
    IL_TRY_VOID(tx->Run(kPut, "a"));
    return {};
  };
  for (const bool replaced : {false, true}) {
    if (replaced) Init();
    const Result<void> refused = database.Write(put);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), Errc::kCancelled);
    EXPECT_TRUE(database.HasMoved());
  }
}

TEST_F(DatabaseTest, AFailedAttemptIsUndoneAlone) {
  Init();
  Database database = Open(Database::OpenMode::kWrite).value();
  const Result<void> written = database.Write([](Transaction& tx) -> Result<void> {
    IL_TRY_VOID(tx->Run(kPut, "a"));
    const Result<void> attempt = tx.Attempt([&tx]() -> Result<void> {
      IL_TRY_VOID(tx->Run(kPut, "b"));
      return Error(Errc::kConflict, "no");
    });
    EXPECT_FALSE(attempt.ok());
    IL_TRY_VOID(tx.Attempt([&tx]() -> Result<void> {
      IL_TRY_VOID(tx->Run(kPut, "c"));
      return {};
    }));
    return {};
  });
  ASSERT_TRUE(written.ok()) << written.error();
  EXPECT_EQ(Count(database), 2);
}

// Each process finds the log anew, and must not take what the one before it moved for unmoved.
TEST_F(DatabaseTest, TheLogDoesNotGrowFromProcessToProcess) {
  Init();
  for (int i = 0; i < 400; ++i) {
    Database database = Open(Database::OpenMode::kWrite).value();
    const std::string key = std::to_string(i);
    ASSERT_TRUE(database.Write([&key](Transaction& tx) { return tx->Run(kPut, key); }).ok());
    database.CheckpointIfLarge();
  }
  EXPECT_LT(fs::file_size(temp_.path().string() + "-wal"), std::size_t{300} * 4120);
}

TEST_F(DatabaseTest, FilesThatAreNotOursAreRefusedUntouched) {
  struct Case {
    const char* script;
    const char* message;
    const char* remedy;
  };
  const std::array cases = {
      Case{"PRAGMA user_version=9999", "newer", "upgrade"},
      Case{"PRAGMA user_version=101", "newer", "upgrade"},
      Case{"CREATE TABLE theirs (x); PRAGMA user_version=100", "another program", "--db"},
      Case{"CREATE TABLE theirs (x)", "another program", "--db"},
      Case{"CREATE TABLE state (x); PRAGMA user_version=7", "another program", "--db"},
      Case{"CREATE TABLE state (key, scope_id, payload, updated_at); PRAGMA user_version=7",
           "older", "ic init"},
      Case{"CREATE TABLE state (key, scope_id, payload, updated_at); PRAGMA user_version=40",
           "newer than 39", "upgrade"},
      Case{"CREATE TABLE theirs (x); PRAGMA user_version=40", "another program", "--db"},
      Case{"CREATE TABLE state (key, scope_id, payload, updated_at); PRAGMA user_version=-5",
           "version -5", "migrate rollback"},
      Case{"CREATE TABLE x (x); DROP TABLE x", "not migrated", "ic init"},
  };
  for (const Case& one : cases) {
    const TempDb temp;
    testing::RawDb(temp.path()).Run(one.script);
    for (const auto access : {Database::OpenMode::kRead, Database::OpenMode::kWrite}) {
      const auto database = Database::Open({.path = temp.path()}, access, KernelSchema(), clock_);
      ASSERT_FALSE(database.ok()) << one.script;
      EXPECT_EQ(database.error().exit_code(), 2);
      EXPECT_THAT(database.error().message(), HasSubstr(one.message)) << one.script;
      EXPECT_THAT(Remedy(database.error()), HasSubstr(one.remedy)) << one.script;
    }
    if (one.remedy != std::string_view("ic init")) {  // which says the same, then
      const auto init = Database::Init({.path = temp.path()}, KernelSchema(), clock_);
      ASSERT_FALSE(init.ok()) << one.script;
      EXPECT_THAT(init.error().message(), HasSubstr(one.message)) << one.script;
      EXPECT_THAT(Remedy(init.error()), HasSubstr(one.remedy)) << one.script;
    }
    EXPECT_TRUE(db::Backups(temp.path(), 5).List().empty());
  }
}

// SQLite itself would delete the log.
TEST_F(DatabaseTest, TheLogOfAFileThatBecameEmptyOrIsGoneIsNotLost) {
  Init();
  {
    Database database = Open(Database::OpenMode::kWrite).value();
    ASSERT_TRUE(database.Write([](Transaction& tx) { return tx->Run(kPut, "a"); }).ok());
  }
  const fs::path log = temp_.path().string() + "-wal";
  const auto size = fs::file_size(log);
  ASSERT_GT(size, 0U);
  const auto refused = [&](const auto& result, const char* what) {
    ASSERT_FALSE(result.ok()) << what;
    EXPECT_EQ(result.error().code(), Errc::kCorrupt) << what;
    EXPECT_THAT(result.error().message(), HasSubstr("-wal")) << what;
    EXPECT_THAT(Remedy(result.error()), HasSubstr("-wal and")) << what;
    EXPECT_EQ(fs::file_size(log), size) << what;
  };
  fs::resize_file(temp_.path(), 0);
  refused(Open(Database::OpenMode::kRead), "read");
  refused(Open(Database::OpenMode::kWrite), "write");
  refused(Database::OpenUnmigrated(options(), KernelSchema(), clock_), "health");
  refused(Database::ReadVersion(options(), clock_), "version");
  refused(Database::Init(options(), KernelSchema(), clock_), "init");
  fs::remove(temp_.path());
  refused(Database::Init(options(), KernelSchema(), clock_), "init without the file");
  fs::remove(log);
  fs::remove(temp_.path().string() + "-shm");
  Init();
}

constexpr char kStepA[] =
    "CREATE TABLE IF NOT EXISTS state (key TEXT, scope_id TEXT, payload TEXT,"
    "updated_at INTEGER)";
constexpr std::array kAdding = {db::MigrationStep{1, kStepA},
                                db::MigrationStep{2, "ALTER TABLE state ADD COLUMN more TEXT"}};
constexpr std::array kBreaking = {
    db::MigrationStep{1, kStepA},
    db::MigrationStep{2, "ALTER TABLE state RENAME COLUMN payload TO content",
                      db::Change::kBreaking},
    db::MigrationStep{3, "ALTER TABLE state ADD COLUMN more TEXT"}};

TEST_F(DatabaseTest, AStepThatOnlyAddsIsTakenByAnyCommandWithABackup) {
  ASSERT_TRUE(Database::Init(options(), {"ic", std::span(kAdding).first(1)}, clock_).ok());
  const db::Schema schema{"ic", kAdding};
  EXPECT_FALSE(Database::OpenUnmigrated(options(), schema, clock_).ok());
  EXPECT_TRUE(db::Backups(temp_.path(), 5).List().empty());
  Database database = Open(Database::OpenMode::kRead, schema).value();
  EXPECT_EQ(database.sqlite().SchemaVersion().value(), 2);
  EXPECT_EQ(db::Backups(temp_.path(), 5).List().size(), 1U);
}

TEST_F(DatabaseTest, AStepThatBreaksIsTakenByInitOnly) {
  ASSERT_TRUE(Database::Init(options(), {"ic", std::span(kBreaking).first(1)}, clock_).ok());
  const db::Schema schema{"ic", kBreaking};
  const auto refused = Open(Database::OpenMode::kWrite, schema);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(Remedy(refused.error()), HasSubstr("ic init"));
  ASSERT_TRUE(Database::Init(options(), schema, clock_).ok());
  EXPECT_TRUE(Open(Database::OpenMode::kWrite, schema).ok());
}

TEST_F(DatabaseTest, TheLogIsMovedIntoTheFileOnlyWhenItIsLongAndOnlyByTidy) {
  Init();
  const auto write = [](Database& database, int count) {
    const std::string payload(3000, 'x');
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(database
                      .Write([&](Transaction& tx) -> Result<void> {
                        IL_TRY_VOID(tx->Run("UPDATE state SET payload = ?1", payload));
                        IL_TRY_VOID(
                            tx->Run("INSERT OR REPLACE INTO state (key, scope_id, payload,"
                                    " updated_at) VALUES (?1, '', ?2, 1)",
                                    i % 8, payload));
                        return {};
                      })
                      .ok());
    }
  };
  const auto size = [this] { return fs::file_size(temp_.path()); };
  const auto before = size();
  {
    Database database = Open(Database::OpenMode::kWrite).value();
    write(database, 5);
    database.CheckpointIfLarge();
    EXPECT_EQ(size(), before);
    write(database, 100);
  }
  EXPECT_EQ(size(), before) << "closing left the log alone";
  Database database = Open(Database::OpenMode::kWrite).value();
  write(database, 1);
  database.CheckpointIfLarge();
  EXPECT_GT(size(), before);
}

}  // namespace
}  // namespace interlock::kernel
