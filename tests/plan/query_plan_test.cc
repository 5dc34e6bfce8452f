// Every statement of the tree is listed, and none reads the whole of a table that grows.

#include "plan/query_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "plan/folders.h"
#include "plan/sql_constants.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::FakeClock;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TempDb;
using ::testing::UnorderedElementsAreArray;

TEST(QueryPlanTest, NoStatementReadsTheWholeOfATableThatGrows) {
  ASSERT_FALSE(Folders().empty());
  for (const Folder& folder : Folders()) {
    const TempDb temp;
    const auto connection = temp.Open();
    FakeClock clock;
    const auto migrated =
        db::Migrator(folder.schema, {.database = temp.path()}, clock).Run(*connection);
    ASSERT_TRUE(migrated.ok()) << migrated.error();
    EXPECT_FALSE(folder.statements.empty()) << folder.name;
    for (const db::NamedSql& statement : folder.statements) {
      SCOPED_TRACE(std::string(folder.name) + ": " + std::string(statement.name));
      const auto plan = connection->QueryPlan(statement.sql);
      ASSERT_TRUE(plan.ok()) << plan.error();
      EXPECT_THAT(Complaints(statement.sql.text(), *plan, folder.fixed_tables), IsEmpty());
    }
  }
}

TEST(QueryPlanTest, EveryStatementInTheSourcesIsListedOnceInItsFolder) {
  const auto found = FindSqlInTree(SOURCE_DIR);
  ASSERT_FALSE(found.empty()) << "the sources are not where the build says";
  for (const auto& [name, sql] : found) {
    SCOPED_TRACE("src/" + name);
    const auto folder = std::ranges::find(Folders(), std::string_view(name), &Folder::name);
    ASSERT_NE(folder, Folders().end()) << "add the folder to tests/plan/folders.cc";
    EXPECT_THAT(sql.nameless, ElementsAreArray(folder->scripts))
        << "declare each as a db::Sql constant and list it";
    std::vector<std::string> listed;
    for (const db::NamedSql& statement : folder->statements) listed.emplace_back(statement.name);
    EXPECT_THAT(listed, UnorderedElementsAreArray(sql.constants)) << "see its Statements()";
  }
  for (const Folder& folder : Folders()) {
    EXPECT_TRUE(found.contains(std::string(folder.name))) << folder.name;
    for (const FixedTable& table : folder.fixed_tables) EXPECT_FALSE(table.reason.empty());
  }
}

// A schema in which everything goes wrong that can.
class BadStatementTest : public ::testing::Test {
 protected:
  BadStatementTest() {
    temp_.Make(
        "CREATE TABLE mail(id INTEGER PRIMARY KEY, agent TEXT, body TEXT);"
        "CREATE INDEX mail_by_agent ON mail(agent);"
        "CREATE TABLE seen(mail INTEGER, agent TEXT);"
        "CREATE TABLE config(id INTEGER PRIMARY KEY, value TEXT);");
    connection_ = temp_.Open();
  }

  std::vector<std::string> Judge(const db::Sql& sql) {
    static constexpr FixedTable kFixed[] = {{"config", "one row"}};
    return Complaints(sql.text(), connection_->QueryPlan(sql).value(), kFixed);
  }

  TempDb temp_;
  std::unique_ptr<sqlite::Connection> connection_;
};

TEST_F(BadStatementTest, AScanIsCaughtInEveryDisguise) {
  EXPECT_THAT(Judge("SELECT * FROM mail WHERE body = ?1"),
              ElementsAre(HasSubstr("reads a whole table: SCAN mail")));
  EXPECT_THAT(Judge("SELECT * FROM mail AS m WHERE m.body = ?1"), Not(IsEmpty()));
  EXPECT_THAT(Judge("SELECT count(*) FROM mail"), Not(IsEmpty())) << "of an index, still whole";
  EXPECT_THAT(Judge("SELECT agent FROM mail ORDER BY agent"), Not(IsEmpty()));
  EXPECT_THAT(Judge("UPDATE mail SET body = '' WHERE body = ?1"), Not(IsEmpty()));
  EXPECT_THAT(Judge("DELETE FROM mail WHERE body = ?1"), Not(IsEmpty()));
  EXPECT_THAT(Judge("DELETE FROM mail"), Not(IsEmpty()));
  EXPECT_THAT(Judge("WITH z AS (SELECT 1) DELETE FROM mail"), Not(IsEmpty()));
  EXPECT_THAT(Judge("/* all */ delete FROM mail"), Not(IsEmpty()));
  EXPECT_THAT(Judge("SELECT * FROM config WHERE id IN (SELECT mail FROM seen)"), Not(IsEmpty()));
  EXPECT_THAT(Judge("WITH r AS MATERIALIZED (SELECT * FROM seen) SELECT * FROM r"), Not(IsEmpty()));
  EXPECT_THAT(Judge("SELECT * FROM mail WHERE agent = ?1 OR body = ?2"), Not(IsEmpty()));
}

TEST_F(BadStatementTest, AScanUnderAHarmlessNameIsCaught) {
  EXPECT_THAT(Judge("SELECT * FROM mail AS config WHERE body = ?1"), Not(IsEmpty()));
  EXPECT_THAT(Judge("SELECT * FROM mail config WHERE body = ?1"), Not(IsEmpty()));
  EXPECT_THAT(Judge("SELECT * FROM mail/**/config WHERE body = ?1"), Not(IsEmpty()));
  EXPECT_THAT(Judge("SELECT * FROM mail AS \"config\" WHERE body = ?1"), Not(IsEmpty()));
  EXPECT_THAT(Judge("SELECT * FROM mail \"config\" WHERE body = ?1"), Not(IsEmpty()));
  EXPECT_THAT(Judge("SELECT * FROM \"mail\" [config] WHERE body = ?1"), Not(IsEmpty()));
  EXPECT_THAT(Judge("SELECT * FROM mail `config` WHERE body = ?1"), Not(IsEmpty()));
  EXPECT_THAT(Judge("SELECT * FROM mail 'config' WHERE body = ?1"), Not(IsEmpty()));
  EXPECT_THAT(Judge("SELECT * FROM mail \"config of all\" WHERE body = ?1"), Not(IsEmpty()));
  EXPECT_THAT(Judge("SELECT * FROM mail CONSTANT WHERE body = ?1"), Not(IsEmpty()));
  EXPECT_THAT(Judge("SELECT * FROM mail \"CONSTANT ROW\" WHERE body = ?1"), Not(IsEmpty()));
  EXPECT_THAT(Judge("SELECT body FROM config, mail config WHERE body = ?1"), Not(IsEmpty()));
  EXPECT_THAT(Judge("WITH z AS MATERIALIZED (SELECT 1 AS id) "
                    "SELECT * FROM z WHERE id IN (SELECT body FROM mail z)"),
              Not(IsEmpty()));
}

TEST_F(BadStatementTest, AnIndexBuiltAtEveryRunIsCaught) {
  EXPECT_THAT(Judge("SELECT * FROM config LEFT JOIN seen ON seen.agent = config.value"),
              ::testing::Contains(HasSubstr("builds an index at every run")));
}

TEST_F(BadStatementTest, WhatUsesAnIndexOrAFixedTableIsLetThrough) {
  EXPECT_THAT(Judge("SELECT * FROM mail WHERE agent = ?1 ORDER BY id"), IsEmpty());
  EXPECT_THAT(Judge("SELECT * FROM mail WHERE id > ?1 ORDER BY id LIMIT 10"), IsEmpty());
  EXPECT_THAT(Judge("SELECT * FROM config"), IsEmpty());
  EXPECT_THAT(Judge("SELECT config.value FROM mail JOIN config WHERE mail.id = ?1"), IsEmpty());
  EXPECT_THAT(Judge("UPDATE config SET value = ?1"), IsEmpty());
  EXPECT_THAT(Judge("DELETE FROM config WHERE value = ?1"), IsEmpty());
  EXPECT_THAT(Judge("SELECT 1"), IsEmpty());
  EXPECT_THAT(Judge("INSERT INTO mail(agent, body) VALUES (?1, ?2) RETURNING id"), IsEmpty());
  EXPECT_THAT(Judge("WITH c AS MATERIALIZED (SELECT * FROM config) SELECT * FROM c"), IsEmpty());
  EXPECT_THAT(Judge("DELETE FROM mail WHERE id = ?1"), IsEmpty());
}

TEST(SqlConstantsTest, FindsConstants) {
  const SqlInSource found = FindSql(R"cc(
    // constexpr db::Sql kInAComment = "SELECT 1";
    /* "SELECT 2" */
    constexpr db::Sql kOne = "SELECT 1";  // not "SELECT 1 or 2"
    inline constexpr Sql kTwo{"SELECT 2"};
    static constexpr db::Sql lower("SELECT 3");
    constexpr db::Sql kLong =
        "INSERT INTO mail (agent) "
        "SELECT agent FROM seen WHERE mail = ?1";
    constexpr db::Sql kRaw = R"(
        DELETE FROM mail WHERE id = ?1)";
    Result<void> Execute(const db::Sql& sql, db::Sql by_value);
    constexpr db::NamedSql kStatements[] = {IL_SQL(kOne)};
    connection.Run(kOne);
    constexpr int kMany = 1'000;
    Method method{"DELETE"};
    Say("Update the server.", "with care", '"', "SELECTED");
  )cc");
  EXPECT_THAT(found.constants, ElementsAre("kOne", "kTwo", "lower", "kLong", "kRaw"));
  EXPECT_THAT(found.nameless, IsEmpty());
}

TEST(SqlConstantsTest, FindsWhatHasNoName) {
  for (const char* source : {
           R"(constexpr db::Sql kMany[] = {"SELECT 1"};)",
           R"(tx->Run("DELETE FROM mail");)",
           R"cc(connection.ForEach(R"(SELECT * FROM mail)", fn);)cc",
           R"(auto x = connection.One(db::Sql{"SELECT 4"}, fn);)",
           R"(connection.Run("reindex");)",
           R"(RunOnce(tx, "DELETE FROM mail");)",
           R"(RunOnce(tx, "  delete from mail");)",
           R"(Count(connection, kOne, "SELECT count(*) FROM mail");)",
           R"(constexpr const char* kText = "UPDATE mail SET body = ''";)",
           R"(return Helper{"VACUUM"};)",
           R"(Run(k ? "SELECT 1" : kOne);)",
       }) {
    const SqlInSource found = FindSql(source);
    EXPECT_THAT(found.constants, IsEmpty()) << source;
    EXPECT_EQ(found.nameless.size(), 1u) << source;
  }
}

}  // namespace
}  // namespace interlock::plan
