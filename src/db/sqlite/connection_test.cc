#include "db/sqlite/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"
#include "testing/raw_db.h"
#include "testing/temp_db.h"

namespace interlock::sqlite {
namespace {

namespace fs = std::filesystem;
using testing::TempDb;

constexpr db::Sql kInsert = "INSERT INTO t(a) VALUES (?1)";
constexpr db::Sql kSelect = "SELECT a FROM t ORDER BY rowid";
constexpr db::Sql kCount = "SELECT count(*) FROM t";

std::int64_t Int(db::Connection& connection, const db::Sql& sql) {
  return connection.One(sql, [](const db::Row& row) { return row.Int(0); }).value().value();
}

std::string Text(db::Connection& connection, const db::Sql& sql) {
  return connection.One(sql, [](const db::Row& row) { return row.String(0); }).value().value();
}

TEST(ConnectionTest, TellsWhenItsFileIsReplacedOrRemoved) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a)");
  const auto connection = temp.Open();
  EXPECT_FALSE(connection->HasMoved());
  std::ofstream(temp.directory() / "other.db") << "x";
  std::filesystem::rename(temp.directory() / "other.db", temp.path());
  EXPECT_TRUE(connection->HasMoved());
  std::filesystem::remove(temp.path());
  EXPECT_TRUE(connection->HasMoved());
}

TEST(ConnectionTest, OpensInWalModeWithForeignKeysAndTheAskedDurability) {
  const TempDb temp;
  OpenOptions options = temp.options();
  auto full = Connection::Open(options).value();
  EXPECT_EQ(Text(*full, "PRAGMA journal_mode"), "wal");
  EXPECT_EQ(Int(*full, "PRAGMA foreign_keys"), 1);
  EXPECT_EQ(Int(*full, "PRAGMA temp_store"), 2);  // memory
  EXPECT_EQ(Int(*full, "PRAGMA synchronous"), 2);
  EXPECT_EQ(Int(*full, "PRAGMA busy_timeout"), 250);
  options.durability = Durability::kFast;
  options.busy_timeout = std::chrono::milliseconds(7);
  auto fast = Connection::Open(options).value();
  EXPECT_EQ(Int(*fast, "PRAGMA synchronous"), 1);
  EXPECT_EQ(Int(*fast, "PRAGMA busy_timeout"), 7);
  EXPECT_FALSE(fs::exists(temp.path().string() + "-journal"));
}

TEST(ConnectionTest, EveryKindOfValueComesBackAsItWentIn) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a)");
  auto connection = temp.Open();
  const std::string nul("a\0b", 3);
  const std::vector<std::byte> bytes = {std::byte{0}, std::byte{255}};
  ASSERT_TRUE(connection->Run(kInsert, std::numeric_limits<std::int64_t>::min()).ok());
  ASSERT_TRUE(connection->Run(kInsert, 0.5).ok());
  ASSERT_TRUE(connection->Run(kInsert, nul).ok());
  ASSERT_TRUE(connection->Run(kInsert, std::string_view()).ok());
  ASSERT_TRUE(connection->Run(kInsert, db::Blob(bytes)).ok());
  ASSERT_TRUE(connection->Run(kInsert, db::Blob()).ok());
  ASSERT_TRUE(connection->Run(kInsert, db::Null()).ok());
  ASSERT_TRUE(connection->Run(kInsert, true).ok());
  ASSERT_TRUE(connection->Run(kInsert, std::optional<std::string>()).ok());
  ASSERT_TRUE(connection->Run(kInsert, std::optional<int>(3)).ok());

  int row_number = 0;
  const auto check = [&](const db::Row& row) {
    switch (row_number++) {
      case 0:
        EXPECT_EQ(row.Int(0), std::numeric_limits<std::int64_t>::min());
        break;
      case 1:
        EXPECT_EQ(row.Double(0), 0.5);
        break;
      case 2:
        EXPECT_EQ(row.Text(0), nul);
        break;
      case 3:
        EXPECT_FALSE(row.IsNull(0));
        EXPECT_EQ(row.Text(0), "");
        break;
      case 4:
        EXPECT_TRUE(std::ranges::equal(row.Bytes(0), bytes));
        break;
      case 5:
        EXPECT_FALSE(row.IsNull(0));
        EXPECT_TRUE(row.Bytes(0).empty());
        break;
      case 6:
        EXPECT_TRUE(row.IsNull(0));
        EXPECT_EQ(row.Int(0), 0);
        EXPECT_EQ(row.Double(0), 0);
        EXPECT_EQ(row.Text(0), "");
        EXPECT_TRUE(row.Bytes(0).empty());
        EXPECT_EQ(row.OptionalInt(0), std::nullopt);
        EXPECT_EQ(row.OptionalString(0), std::nullopt);
        break;
      case 7:
        EXPECT_TRUE(row.Bool(0));
        break;
      case 8:
        EXPECT_TRUE(row.IsNull(0));
        break;
      case 9:
        EXPECT_EQ(row.OptionalInt(0), 3);
        EXPECT_EQ(row.Double(0), 3.0);
        break;
      default:
        ADD_FAILURE() << "too many rows";
    }
  };
  ASSERT_TRUE(connection->ForEach(kSelect, check).ok());
  EXPECT_EQ(row_number, 10);
}

TEST(ConnectionTest, RunTellsHowManyRowsChanged) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a)");
  auto connection = temp.Open();
  EXPECT_EQ(connection->Run("INSERT INTO t(a) VALUES (1), (2), (3)").value(), 3);
  EXPECT_EQ(connection->Run(kSelect).value(), 0);
  EXPECT_EQ(connection->Run("UPDATE t SET a = 9 WHERE a < ?1", 3).value(), 2);
  EXPECT_EQ(connection->Run("UPDATE t SET a = 9 WHERE a = ?1", 77).value(), 0);
  EXPECT_EQ(connection->Run("CREATE TABLE u(a)").value(), 0);
  EXPECT_EQ(connection->Run("DELETE FROM t").value(), 3);
  const auto id = connection->One(
      "INSERT INTO t(a) VALUES (?1) RETURNING a + 1", [](const db::Row& row) { return row.Int(0); },
      41);
  EXPECT_EQ(id.value(), 42);
  EXPECT_EQ(connection->One(kSelect, [](const db::Row& row) { return row.Int(0); }).value(), 41);
}

TEST(ConnectionTest, ARowCallbackThatFailsOrThrowsLeavesTheStatementUsable) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2)");
  auto connection = temp.Open();
  int rows = 0;
  const auto failed = connection->ForEach(kSelect, [&](const db::Row&) -> Result<void> {
    ++rows;
    return Error(Errc::kConflict, "enough");
  });
  EXPECT_EQ(failed.error().code(), Errc::kConflict);
  EXPECT_EQ(rows, 1);
  EXPECT_THROW((void)connection
                   ->ForEach(kSelect, [](const db::Row&) { throw std::runtime_error("callback"); })
                   .ok(),
               std::runtime_error);
  EXPECT_EQ(Int(*connection, kCount), 2);
  // Neither attempt may hold a snapshot open: the log could never be emptied again.
  auto writer = temp.Open();
  ASSERT_TRUE(writer->Run(kInsert, 3).ok());
  EXPECT_TRUE(writer->Checkpoint().ok());
}

TEST(ConnectionTest, StatementsMayRunInsideOthersRows) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2)");
  auto connection = temp.Open();
  std::int64_t sum = 0;
  ASSERT_TRUE(
      connection
          ->ForEach(kSelect,
                    [&](const db::Row& row) { sum += row.Int(0) * Int(*connection, kCount); })
          .ok());
  EXPECT_EQ(sum, 6);
}

TEST(ConnectionTest, ConstraintsAndWrongSqlAreToldApart) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a TEXT PRIMARY KEY); CREATE TABLE u(a TEXT REFERENCES t(a))");
  auto connection = temp.Open();
  ASSERT_TRUE(connection->Run(kInsert, "x").ok());
  EXPECT_EQ(connection->Run(kInsert, "x").error().code(), Errc::kConstraint);
  EXPECT_EQ(connection->Run("INSERT INTO u VALUES ('y')").error().code(), Errc::kConstraint);
  const auto wrong = connection->Run("SELECT x FROM nowhere");
  EXPECT_EQ(wrong.error().code(), Errc::kInternal);
  EXPECT_NE(wrong.error().message().find("no such table: nowhere"), std::string::npos);
  // A double-quoted word is a name, never a string by accident.
  EXPECT_EQ(connection->Run("SELECT \"x\"").error().code(), Errc::kInternal);
}

TEST(ConnectionTest, AReadOnlyConnectionCannotWrite) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a)");
  auto writer = temp.Open();
  auto reader = temp.Open(Access::kReadOnly);
  EXPECT_EQ(reader->Run(kInsert, 1).error().code(), Errc::kReadOnly);
  EXPECT_EQ(reader->BeginExclusive().error().code(), Errc::kReadOnly);
  EXPECT_EQ(Int(*reader, "PRAGMA query_only"), 1);
  ASSERT_TRUE(writer->Run(kInsert, 1).ok());
  EXPECT_EQ(Int(*reader, kCount), 1);
}

TEST(ConnectionTest, ASnapshotSeesOneStateUntilItEnds) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a)");
  auto writer = temp.Open();
  auto reader = temp.Open(Access::kReadOnly);
  ASSERT_TRUE(reader->BeginSnapshot().ok());
  EXPECT_EQ(Int(*reader, kCount), 0);
  ASSERT_TRUE(writer->Run(kInsert, 1).ok());
  EXPECT_EQ(Int(*reader, kCount), 0);
  ASSERT_TRUE(reader->Commit().ok());
  EXPECT_EQ(Int(*reader, kCount), 1);
}

TEST(ConnectionTest, ASavepointUndoesItsPartOnly) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a)");
  auto connection = temp.Open();
  ASSERT_TRUE(connection->BeginExclusive().ok());
  ASSERT_TRUE(connection->Run(kInsert, 1).ok());
  ASSERT_TRUE(connection->Savepoint().ok());
  ASSERT_TRUE(connection->Run(kInsert, 2).ok());
  ASSERT_TRUE(connection->RollbackToSavepoint().ok());
  ASSERT_TRUE(connection->ReleaseSavepoint().ok());
  ASSERT_TRUE(connection->Commit().ok());
  EXPECT_EQ(Int(*connection, kCount), 1);
  EXPECT_FALSE(connection->in_transaction());
  connection->Rollback();  // nothing open: nothing happens
}

TEST(ConnectionTest, ASecondWriterHearsBusyAfterItsTimeout) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a)");
  auto first = temp.Open();
  OpenOptions options = temp.options();
  options.busy_timeout = std::chrono::milliseconds(1);
  auto second = Connection::Open(options).value();  // opening does not need the lock
  ASSERT_TRUE(first->BeginExclusive().ok());
  const Result<void> begun = second->BeginExclusive();
  ASSERT_FALSE(begun.ok());
  EXPECT_EQ(begun.error().code(), Errc::kBusy);
  EXPECT_NE(begun.error().message().find(temp.path().string()), std::string::npos);
  auto late = Connection::Open(options);  // nor does opening a file that is being written
  EXPECT_TRUE(late.ok());
  first->Rollback();
  EXPECT_TRUE(second->BeginExclusive().ok());
  second->Rollback();
}

TEST(ConnectionTest, ADeferredConstraintFailsTheCommitAndLeavesTheTransactionOpen) {
  const TempDb temp;
  temp.Make(
      "CREATE TABLE t(a PRIMARY KEY); CREATE TABLE u(a REFERENCES t(a) DEFERRABLE INITIALLY "
      "DEFERRED)");
  auto connection = temp.Open();
  ASSERT_TRUE(connection->BeginExclusive().ok());
  ASSERT_TRUE(connection->Run("INSERT INTO u VALUES (1)").ok());
  EXPECT_EQ(connection->Commit().error().code(), Errc::kConstraint);
  EXPECT_TRUE(connection->in_transaction());
  connection->Rollback();
  EXPECT_FALSE(connection->in_transaction());
}

// In rollback mode the lock also keeps openers out. Each of their tries must not wait by itself.
TEST(ConnectionTest, OpeningALockedFileGivesUpInTime) {
  const TempDb temp;
  const testing::RawDb holder(temp.path());
  holder.Run("CREATE TABLE t(a); BEGIN EXCLUSIVE");
  OpenOptions options = temp.options();
  ASSERT_EQ(options.busy_timeout, std::chrono::milliseconds(250));
  SystemClock clock;
  const Duration start = clock.Monotonic();
  const auto opened = Connection::Open(options);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), Errc::kBusy);
  EXPECT_LT(clock.Monotonic() - start, std::chrono::seconds(30));
}

TEST(ConnectionTest, WhatIsNoDatabaseIsNamedAndLeftAlone) {
  const TempDb temp;
  const std::string content(5000, 'x');
  std::ofstream(temp.path()) << content;
  const auto opened = Connection::Open(temp.options());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), Errc::kNotADatabase);
  EXPECT_NE(opened.error().message().find(temp.path().string()), std::string::npos);
  std::ifstream file(temp.path());
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), content);
}

TEST(ConnectionTest, ScriptsRunWholeAndNameTheStatementThatFails) {
  const TempDb temp;
  auto connection = temp.Open();
  ASSERT_TRUE(connection
                  ->RunScript("-- a schema\nCREATE TABLE t(a);\n\n/* and */ CREATE INDEX i ON t(a);"
                              "\nINSERT INTO t VALUES ('a;b'); -- the end\n")
                  .ok());
  EXPECT_EQ(Text(*connection, kSelect), "a;b");
  const Result<void> failed =
      connection->RunScript("INSERT INTO t VALUES (1);\n INSERT INTO missing VALUES (2);");
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message().find("INSERT INTO missing"), std::string::npos);
  EXPECT_TRUE(connection->RunScript("").ok());
  EXPECT_TRUE(connection->RunScript(" -- nothing").ok());
}

TEST(ConnectionTest, AScriptInsideATransactionCannotEndIt) {
  const TempDb temp;
  auto connection = temp.Open();
  ASSERT_TRUE(connection->BeginExclusive().ok());
  for (const char* script :
       {"CREATE TABLE t(a); COMMIT;", "/* x */ END", "-- x\nROLLBACK", "SAVEPOINT s", "BEGIN"}) {
    const Result<void> refused = connection->RunScript(script);
    ASSERT_FALSE(refused.ok()) << script;
    EXPECT_EQ(refused.error().code(), Errc::kInternal);
    EXPECT_TRUE(connection->in_transaction()) << script;
  }
  EXPECT_TRUE(connection->RunScript("CREATE TABLE u(released_at, a)").ok());
  connection->Rollback();
  EXPECT_EQ(Int(*connection, "SELECT count(*) FROM sqlite_schema"), 0);
  EXPECT_TRUE(connection->RunScript("BEGIN; CREATE TABLE t(a); COMMIT").ok()) << "its own may";
}

TEST(ConnectionTest, TheSchemaVersionIsPartOfTheTransaction) {
  const TempDb temp;
  auto connection = temp.Open();
  EXPECT_EQ(connection->SchemaVersion().value(), 0);
  ASSERT_TRUE(connection->BeginExclusive().ok());
  ASSERT_TRUE(connection->SetSchemaVersion("us", 7).ok());
  EXPECT_EQ(connection->SchemaVersion().value(), 7);
  connection->Rollback();
  EXPECT_EQ(connection->SchemaVersion().value(), 0);
  ASSERT_TRUE(connection->SetSchemaVersion("us", 8).ok());
  EXPECT_EQ(temp.Open()->SchemaVersion().value(), 8);
}

TEST(ConnectionTest, AFileWithTablesButNotOurMarkIsForeign) {
  const TempDb temp;
  auto connection = temp.Open();
  EXPECT_FALSE(connection->IsForeign("us").value());
  ASSERT_TRUE(connection->RunScript("CREATE TABLE sqlitex(a)").ok());  // like ours, not SQLite's
  EXPECT_TRUE(connection->IsForeign("us").value());
  ASSERT_TRUE(connection->SetSchemaVersion("us", 1).ok());
  EXPECT_FALSE(connection->IsForeign("us").value());
  EXPECT_TRUE(connection->IsForeign("them").value());
  ASSERT_TRUE(connection->SetSchemaVersion("us", 0).ok());
  EXPECT_TRUE(connection->IsForeign("us").value()) << "ours always have a version";
}

TEST(ConnectionTest, AStrangerThatCountsVersionsTooIsForeign) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a); PRAGMA user_version=1");
  EXPECT_TRUE(temp.Open()->IsForeign("us").value());
  const TempDb empty;
  empty.Make("PRAGMA user_version=1");
  EXPECT_TRUE(empty.Open()->IsForeign("us").value());
}

TEST(ConnectionTest, AQueryPlanIsToldWithoutRunningTheStatement) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a); CREATE INDEX by_a ON t(a)");
  auto connection = temp.Open();
  EXPECT_EQ(connection->QueryPlan("DELETE FROM t WHERE a = ?1").value(),
            std::vector<std::string>{"SEARCH t USING INDEX by_a (a=?)"});
  EXPECT_EQ(connection->QueryPlan("SELECT rowid FROM t").value(),
            std::vector<std::string>{"SCAN t"});
  EXPECT_FALSE(connection->QueryPlan("SELECT * FROM missing").ok());
}

TEST(ConnectionTest, ABackupHoldsTheLogAlsoWhileTheWriteLockIsHeld) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a)");
  auto connection = temp.Open();
  ASSERT_TRUE(connection->Run(kInsert, 1).ok());  // in the log only: no checkpoint yet
  ASSERT_TRUE(connection->BeginExclusive().ok());
  ASSERT_TRUE(connection->Run(kInsert, 2).ok());  // not committed, so not in the copy
  const fs::path copy = temp.directory() / "copy.db";
  ASSERT_TRUE(connection->BackUpTo(copy).ok());
  EXPECT_TRUE(connection->in_transaction());
  connection->Rollback();
  OpenOptions options;
  options.path = copy;
  auto restored = Connection::Open(options).value();
  EXPECT_EQ(Int(*restored, kCount), 1);
  EXPECT_EQ(Text(*restored, "PRAGMA integrity_check"), "ok");
  EXPECT_EQ(connection->BackUpTo(copy).error().code(), Errc::kAlreadyExists);
  EXPECT_EQ(Int(*restored, kCount), 1);
  EXPECT_FALSE(connection->BackUpTo(temp.directory() / "no" / "copy.db").ok());
}

TEST(ConnectionTest, TheLastConnectionToCloseLeavesOneFile) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a)");
  {
    auto connection = temp.Open();
    ASSERT_TRUE(connection->Run(kInsert, 1).ok());
    EXPECT_GT(fs::file_size(temp.path().string() + "-wal"), 0u);
    ASSERT_TRUE(connection->Checkpoint().ok());
    EXPECT_EQ(fs::file_size(temp.path().string() + "-wal"), 0u);
  }
  EXPECT_FALSE(fs::exists(temp.path().string() + "-wal"));
  EXPECT_FALSE(fs::exists(temp.path().string() + "-shm"));
}

// SQLite lets a column hold anything, and others may write to a file of ours.
TEST(ConnectionTest, AColumnOfAnotherTypeIsCorruptAndNoCrash) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a); INSERT INTO t VALUES ('text')");
  const auto connection = temp.Open();
  const auto read = [&](const db::Sql& sql, auto fn) {
    const auto result = connection->ForEach(sql, fn);
    return result.ok() ? std::string("ok") : result.error().message();
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(read(kSelect, [](const db::Row& row) { (void)row.Int(0); }),
              HasSubstr("not an integer"));
  EXPECT_THAT(read(kSelect, [](const db::Row& row) { (void)row.Double(0); }),
              HasSubstr("not a number"));
  EXPECT_THAT(read(kSelect, [](const db::Row& row) { (void)row.Bytes(0); }),
              HasSubstr("not a blob"));
  EXPECT_THAT(read("SELECT 1.5", [](const db::Row& row) { (void)row.Int(0); }),
              HasSubstr("not an integer"));
  EXPECT_THAT(read("SELECT x'00'", [](const db::Row& row) { (void)row.Text(0); }),
              HasSubstr("not text"));
  EXPECT_EQ(read(kSelect, [](const db::Row& row) { (void)row.Text(0); }), "ok") << "it goes on";
}

TEST(ConnectionDeathTest, OurOwnMistakesFailChecks) {
  const TempDb temp;
  temp.Make("CREATE TABLE t(a); INSERT INTO t VALUES ('text')");
  auto c = temp.Open();
  const auto read = [&](auto fn) { (void)c->ForEach(kSelect, fn).ok(); };
  EXPECT_DEATH(read([](const db::Row& row) { (void)row.Text(1); }), "no such column");
  EXPECT_DEATH(read([](const db::Row& row) { (void)row.Text(-1); }), "no such column");
  EXPECT_DEATH((void)c->Run(kInsert).ok(), "number of parameters");
  EXPECT_DEATH((void)c->Run(kInsert, 1, 2).ok(), "number of parameters");
  EXPECT_DEATH((void)c->Run("SELECT 1; SELECT 2").ok(), "more than one statement");
  EXPECT_DEATH((void)c->Run("  ").ok(), "no statement");
  EXPECT_DEATH(read([&](const db::Row&) { (void)c->Run(kSelect).ok(); }), "own row callback");
  EXPECT_DEATH((void)c->Run("BEGIN IMMEDIATE").ok(), "BEGIN IMMEDIATE");
  EXPECT_DEATH((void)c->Run(" commit").ok(), "commit");
  EXPECT_DEATH((void)c->Run("ROLLBACK TO one").ok(), "ROLLBACK TO one");
  EXPECT_DEATH((void)c->Run("/* x */ COMMIT").ok(), "COMMIT");
  EXPECT_DEATH((void)c->Run("-- x\n END").ok(), "END");
  EXPECT_DEATH((void)c->Run("; savepoint two").ok(), "savepoint two");
}

}  // namespace
}  // namespace interlock::sqlite
