#include "db/sqlite/json_valid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "db/sqlite/connection.h"
#include "testing/raw_db.h"
#include "testing/temp_db.h"

namespace interlock::sqlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawDb;
using testing::TempDb;

constexpr char kChecked[] = "CREATE TABLE t (a CHECK (a IS NULL OR json_valid(a)))";
constexpr db::Sql kInsert = "INSERT INTO t (a) VALUES (?1)";

std::optional<std::int64_t> Int(db::Connection& connection, const db::Sql& sql) {
  return connection.One(sql, [](const db::Row& row) { return row.Int(0); }).value();
}

TEST(JsonValidTest, AFileWithSuchACheckIsReadAndTheCheckHolds) {
  const TempDb temp;
  RawDb(temp.path()).Run(std::string(kChecked) + "; INSERT INTO t VALUES ('{\"a\":1}'), (NULL)");
  const auto connection = temp.Open();
  EXPECT_EQ(Int(*connection, "SELECT count(*) FROM t"), 2);
  EXPECT_TRUE(connection->Run(kInsert, "[1]").ok());
  EXPECT_TRUE(connection->Run(kInsert, db::Null()).ok());
  const auto refused = connection->Run(kInsert, "{oops");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kConstraint);
  EXPECT_TRUE(connection->RunScript("ALTER TABLE t ADD COLUMN b INTEGER NOT NULL DEFAULT 3").ok());
  EXPECT_EQ(Int(*connection, "SELECT count(*) FROM t WHERE b = 3"), 4);
}

TEST(JsonValidTest, AReaderReadsItAndTheCheckOfTheWholeFileCallsIt) {
  const TempDb temp;
  RawDb(temp.path())
      .Run(std::string(kChecked) +
           "; INSERT INTO t VALUES ('{}');"
           "PRAGMA ignore_check_constraints=1;"
           "INSERT INTO t VALUES ('{oops')");
  EXPECT_EQ(Int(*temp.Open(Access::kReadOnly), "SELECT count(*) FROM t"), 2);
  const auto connection = temp.Open();
  const auto found =
      connection->One("PRAGMA quick_check", [](const db::Row& row) { return row.String(0); });
  ASSERT_TRUE(found.ok()) << found.error();
  EXPECT_EQ(**found, "CHECK constraint failed in t");
}

TEST(JsonValidTest, ItsAnswersAreThoseOfSQLite) {
  const TempDb temp;
  RawDb(temp.path())
      .Run(
          "CREATE TABLE t (a, own);"
          "INSERT INTO t (a) VALUES (NULL), ('{}'), (' [1, 2.5, \"x\", null] '), (''), ('{oops'), "
          "(7),"
          "  (CAST(x'22ff22' AS TEXT)), (replace(hex(zeroblob(300)), '0', '[')),"
          "  (replace(hex(zeroblob(300)), '0', '[') || replace(hex(zeroblob(300)), '0', ']'));"
          "UPDATE t SET own = json_valid(a)");
  const auto connection = temp.Open();
  EXPECT_EQ(Int(*connection, "SELECT count(*) FROM t WHERE json_valid(a) IS own"), 9);
  EXPECT_EQ(Int(*connection, "SELECT count(*) FROM t WHERE own = 1"), 5);
}

// Other functions that a file's definitions call are not run; the file is not damaged.
TEST(JsonValidTest, OtherFunctionsOfAFileAreRefusedWithTheReason) {
  const TempDb temp;
  RawDb(temp.path()).Run("CREATE TABLE t (a CHECK (json_type(a) = 'object'))");
  const auto connection = Connection::Open(temp.options());
  if (connection.ok()) GTEST_SKIP() << "this SQLite marks each of its JSON functions as innocuous";
  EXPECT_EQ(connection.error().code(), Errc::kForeignSchema);
  EXPECT_THAT(connection.error().message(),
              AllOf(HasSubstr("malformed database schema (t) - unsafe use of json_type()"),
                    HasSubstr("not damaged"), Not(HasSubstr("the database is damaged"))));
}

// A newer SQLite may have written it, or it is damaged: which of them is not known.
TEST(JsonValidTest, ADefinitionThatCannotBeReadIsNotCalledDamageForSure) {
  const TempDb temp;
  RawDb(temp.path())
      .Run(
          "CREATE TABLE t (a); PRAGMA writable_schema=ON;"
          "UPDATE sqlite_schema SET sql = 'CREATE TABLE t (a) FROM_THE_FUTURE'");
  const auto connection = Connection::Open(temp.options());
  ASSERT_FALSE(connection.ok());
  EXPECT_EQ(connection.error().code(), Errc::kCorrupt);
  EXPECT_THAT(connection.error().message(),
              AllOf(HasSubstr("a newer SQLite wrote it, or the file is damaged"),
                    HasSubstr("FROM_THE_FUTURE"), Not(HasSubstr("the database is damaged"))));
}

TEST(JsonValidTest, ATriggerThatCallsSuchAFunctionIsRefusedWhenItFires) {
  const TempDb temp;
  RawDb(temp.path())
      .Run(
          "CREATE TABLE t (a); CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT rtreedepth(1); END");
  const auto connection = temp.Open();
  const auto inserted = connection->Run(kInsert, 1);
  ASSERT_FALSE(inserted.ok());
  EXPECT_EQ(inserted.error().code(), Errc::kForeignSchema);
  EXPECT_THAT(inserted.error().message(), HasSubstr("unsafe use of rtreedepth()"));
}

}  // namespace
}  // namespace interlock::sqlite
