#include "kernel/lift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <sstream>
#include <string>
#include <utility>

#include "db/backups.h"
#include "kernel/database.h"
#include "kernel/schema.h"
#include "testing/db_dump.h"
#include "testing/fake_clock.h"
#include "testing/old_ic_file.h"
#include "testing/raw_db.h"
#include "testing/temp_db.h"

namespace interlock::kernel {
namespace {

using testing::FakeClock;
using ::testing::HasSubstr;
using testing::TempDb;

// The first file that the older program made.
constexpr char kVersion1[] =
    "PRAGMA journal_mode=WAL;"
    "CREATE TABLE state (key TEXT NOT NULL, scope_id TEXT NOT NULL, payload TEXT NOT NULL,"
    "  updated_at INTEGER NOT NULL, expires_at INTEGER, PRIMARY KEY (key, scope_id));"
    "CREATE TABLE sentinels (name TEXT NOT NULL, scope_id TEXT NOT NULL,"
    "  last_fired INTEGER NOT NULL, PRIMARY KEY (name, scope_id));"
    "INSERT INTO state VALUES ('dispatch', 's', '{\"a\":1}', 5, NULL);"
    "INSERT INTO sentinels VALUES ('stop', 's', 7);"
    "PRAGMA user_version=1";

// Its last one, as far as our tables go: some columns we have it lacks, some tables we do not know.
constexpr char kVersion39[] =
    "CREATE TABLE runs (id TEXT PRIMARY KEY, project_dir TEXT NOT NULL, goal TEXT NOT NULL,"
    "  status TEXT NOT NULL DEFAULT 'active', phase TEXT NOT NULL DEFAULT 'brainstorm',"
    "  complexity INTEGER NOT NULL DEFAULT 3, force_full INTEGER NOT NULL DEFAULT 0,"
    "  auto_advance INTEGER NOT NULL DEFAULT 1, created_at INTEGER NOT NULL,"
    "  updated_at INTEGER NOT NULL, completed_at INTEGER, scope_id TEXT, metadata TEXT,"
    "  phases TEXT, token_budget INTEGER, budget_warn_pct INTEGER DEFAULT 80,"
    "  parent_run_id TEXT, max_dispatches INTEGER DEFAULT 0, budget_enforce INTEGER DEFAULT 0,"
    "  max_agents INTEGER DEFAULT 0, gate_rules TEXT, goal_id TEXT);"
    "CREATE TABLE phase_events (id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  run_id TEXT NOT NULL REFERENCES runs (id), from_phase TEXT NOT NULL, to_phase TEXT NOT NULL,"
    "  event_type TEXT NOT NULL, gate_result TEXT, gate_tier TEXT, reason TEXT,"
    "  created_at INTEGER NOT NULL);"
    "CREATE TABLE lanes (id TEXT PRIMARY KEY, name TEXT UNIQUE);"
    "INSERT INTO runs (id, project_dir, goal, created_at, updated_at)"
    "  VALUES ('abcdefgh', '/p', 'g', 1, 2);"
    "INSERT INTO lanes VALUES ('l', 'fast');"
    "PRAGMA user_version=39";

std::string Text(sqlite::Connection& connection, const db::Sql& sql) {
  return connection.One(sql, [](const db::Row& row) { return row.String(0); }).value().value();
}

std::string Shape(sqlite::Connection& connection) {
  std::string all;
  const auto ran = connection.ForEach(
      "SELECT m.name || '.' || t.name FROM sqlite_schema m, pragma_table_info(m.name) t"
      " WHERE m.type = 'table' AND m.name NOT IN ('lanes', 'sqlite_sequence')"
      " ORDER BY m.name, t.name",
      [&all](const db::Row& row) { all += row.String(0) + '\n'; });
  EXPECT_TRUE(ran.ok());
  return all;
}

class LiftTest : public ::testing::Test {
 protected:
  Result<db::MigrationOutcome> Init(const TempDb& temp) {
    return Database::Init({.path = temp.path()}, KernelSchema(), clock_);
  }
  FakeClock clock_;
};

TEST_F(LiftTest, FilesOfTheFirstAndOfTheLastVersionGetWhatANewOneHas) {
  const TempDb fresh;
  ASSERT_TRUE(Init(fresh).ok());
  const std::string wanted = Shape(*fresh.Open());
  for (const std::string& script :
       {std::string(kVersion1), std::string(kVersion1) + ';' + kVersion39}) {
    const TempDb temp;
    testing::RawDb(temp.path()).Run(script);
    const auto outcome = Init(temp);
    ASSERT_TRUE(outcome.ok()) << outcome.error();
    EXPECT_EQ(outcome->to, 100);
    const auto connection = temp.Open();
    EXPECT_EQ(Shape(*connection), wanted);
    EXPECT_EQ(connection->SchemaVersion().value(), 100);
    EXPECT_EQ(Text(*connection, "SELECT payload || version FROM state"), "{\"a\":1}1");
    EXPECT_EQ(Text(*connection,
                   "SELECT last_fired || coalesce(interval_s, ' unknown')"
                   " FROM sentinels"),
              "7 unknown");
    EXPECT_EQ(Text(*connection, "PRAGMA journal_mode"), "wal");
    EXPECT_EQ(db::Backups(temp.path(), 5).List().size(), 1U);
    EXPECT_FALSE(Init(temp).value().backup.has_filename()) << "a second init changes nothing";
  }
}

// Every table of the older program, also those that `ic` does not know.
TEST_F(LiftTest, EveryVersionIsTakenOverWithEveryRow) {
  const TempDb fresh;
  ASSERT_TRUE(Init(fresh).ok());
  const std::string wanted = Shape(*fresh.Open());
  for (int version = 1; version <= testing::kOldIcNewest; ++version) {
    SCOPED_TRACE(version);
    const TempDb temp;
    testing::MakeOldIcFile(temp.path(), version);
    const auto before = testing::DbDump::Of(temp.path());
    const auto outcome = Init(temp);
    ASSERT_TRUE(outcome.ok()) << outcome.error();
    EXPECT_EQ(outcome->from, version);
    EXPECT_EQ(outcome->to, 100);
    EXPECT_EQ(testing::DbDump::Missing(before, testing::DbDump::Of(temp.path())), "");
    EXPECT_EQ(testing::DbDump::Of(outcome->backup), before);
    const auto connection = temp.Open();
    EXPECT_EQ(Text(*connection, "PRAGMA integrity_check"), "ok");
    std::istringstream columns(wanted);
    const std::string has = Shape(*connection);
    for (std::string column; std::getline(columns, column);) EXPECT_THAT(has, HasSubstr(column));
  }
}

TEST_F(LiftTest, ItsBackupHoldsWhatWasOnlyInTheLog) {
  const TempDb temp;
  {
    const testing::RawDb old(temp.path());
    old.KeepLogOnClose();
    old.Run(kVersion1);
  }
  const auto outcome = Init(temp).value();
  ASSERT_FALSE(outcome.backup.empty());
  sqlite::OpenOptions options;
  options.path = outcome.backup;
  options.access = sqlite::Access::kReadOnly;
  const auto copy = sqlite::Connection::Open(options).value();
  EXPECT_EQ(copy->SchemaVersion().value(), 1);
  EXPECT_EQ(Text(*copy, "SELECT payload FROM state"), "{\"a\":1}");
}

TEST_F(LiftTest, StrangersWhoCountVersionsTooAreLeftAlone) {
  for (const char* script :
       {"CREATE TABLE state (key, value); PRAGMA user_version=5",
        "CREATE TABLE other (x); PRAGMA user_version=39",
        "CREATE TABLE state (key, scope_id, payload, updated_at); PRAGMA application_id=77;"
        "PRAGMA user_version=3"}) {
    const TempDb temp;
    testing::RawDb(temp.path()).Run(script);
    const auto outcome = Init(temp);
    ASSERT_FALSE(outcome.ok()) << script;
    EXPECT_EQ(outcome.error().code(), Errc::kForeignSchema);
    EXPECT_TRUE(db::Backups(temp.path(), 5).List().empty());
  }
}

// What a process sees that has read the version of a file just before another one lifted it.
std::function<void()> lift_meanwhile;
Result<bool> RecogniseTooLate(db::Migratable& file) {
  if (lift_meanwhile) std::exchange(lift_meanwhile, nullptr)();
  return KernelSchema().predecessor->recognise(file);
}

TEST_F(LiftTest, AFileThatAnotherProcessLiftsMeanwhileIsNoStrangers) {
  db::Schema late = KernelSchema();
  late.predecessor->recognise = RecogniseTooLate;
  const TempDb temp;
  testing::RawDb(temp.path()).Run(kVersion1);
  lift_meanwhile = [&] { ASSERT_TRUE(Init(temp).ok()); };
  const auto outcome = Database::Init({.path = temp.path()}, late, clock_);
  ASSERT_EQ(lift_meanwhile, nullptr);
  ASSERT_TRUE(outcome.ok()) << outcome.error();
  EXPECT_EQ(outcome->from, 100);
  EXPECT_EQ(db::Backups(temp.path(), 5).List().size(), 1U) << "the other one's";
}

}  // namespace
}  // namespace interlock::kernel
