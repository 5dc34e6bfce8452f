#include "store/schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "domain/text.h"
#include "testing/db_dump.h"
#include "testing/fake_clock.h"
#include "testing/fill_tables.h"
#include "testing/temp_db.h"

namespace interlock::store {
namespace {

// FNV-1a. Against mistakes, not against an enemy.
std::uint64_t Checksum(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// One line per released step, never changed: files out there have run that very text. A new step
// adds a line; a step that must be mended is mended by another step.
constexpr std::array<std::uint64_t, 11> kChecksums = {
    0x6b14d467c0c1c60f, 0x412126725dea5d16, 0xb24596651e7639ca, 0x2e01707a80d0cb99,
    0x95fd591e1f306b13, 0x5db752c2ae05df49, 0x0394a92d9c615b01, 0x6587eef9bb61ce1d,
    0x464c86fcac4d1ebb, 0x92f6f67068836e80, 0x395a6e3c538975fd,
};

TEST(SchemaTest, TheTextOfAStepNeverChanges) {
  const auto steps = ServerSchema().steps;
  ASSERT_EQ(steps.size(), kChecksums.size()) << "a new step needs its line above";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].version, static_cast<int>(i) + 1);
    EXPECT_EQ(Checksum(steps[i].script), kChecksums[i])
        << "step " << i + 1 << " has another text; 0x" << std::hex << Checksum(steps[i].script);
  }
}

// The words of a script in capitals, but for comments.
std::vector<std::string> Words(std::string_view script) {
  std::vector<std::string> words;
  bool inside = false;
  for (std::size_t i = 0; i < script.size(); ++i) {
    if (script.substr(i, 2) == "--") i = std::min(script.find('\n', i), script.size() - 1);
    if (script.substr(i, 2) == "/*") i = std::min(script.find("*/", i + 2), script.size() - 2) + 1;
    const auto c = static_cast<unsigned char>(script[i]);
    const bool letter = std::isalnum(c) != 0 || c == '_';
    if (letter && !inside) words.emplace_back();
    if (letter) words.back() += static_cast<char>(std::toupper(c));
    inside = letter;
  }
  return words;
}

// What ends or escapes the one transaction that a migration is; "" when nothing does. BEGIN and END
// also enclose the body of a trigger.
std::string Forbidden(std::string_view script) {
  const std::vector<std::string> words = Words(script);
  const bool trigger = std::ranges::find(words, "TRIGGER") != words.end();
  for (const std::string& word : words) {
    for (const char* no : {"COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA", "ATTACH",
                           "DETACH", "VACUUM", "TRANSACTION", "IMMEDIATE", "EXCLUSIVE"}) {
      if (word == no) return word;
    }
    if (!trigger && (word == "BEGIN" || word == "END")) return word;
  }
  return "";
}

TEST(SchemaTest, NoStepControlsTransactionsOrTheConnection) {
  for (const db::MigrationStep& step : ServerSchema().steps) {
    EXPECT_EQ(Forbidden(step.script), "") << step.version;
  }
}

TEST(SchemaTest, ForbiddenWordsAreFoundWholeAndInAnyCase) {
  EXPECT_EQ(Forbidden("CREATE TABLE t(released_at, committed, begin_at) -- COMMIT\n;"), "");
  EXPECT_EQ(Forbidden("/* PRAGMA */ CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END;"), "");
  EXPECT_EQ(Forbidden("begin exclusive; SELECT 1"), "BEGIN");
  EXPECT_EQ(Forbidden("SELECT 1; End"), "END");
  EXPECT_EQ(Forbidden("SELECT 1;/**/Release s"), "RELEASE");
  EXPECT_EQ(Forbidden("CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END; COMMIT"), "COMMIT");
}

TEST(SchemaTest, MigratesANewFileAndIsThenCurrent) {
  const testing::TempDb temp;
  const auto connection = temp.Open();
  testing::FakeClock clock;
  db::Migrator migrator(ServerSchema(), {.database = temp.path()}, clock);
  EXPECT_EQ(migrator.Run(*connection).value().from, 0);
  const auto again = migrator.Run(*connection);
  EXPECT_EQ(again.value().from, ServerSchema().steps.back().version);
}

// A database at version 10, before names of projects were trimmed.
class ProjectNamesTest : public ::testing::Test {
 protected:
  ProjectNamesTest() { RunSteps(1, 10); }

  void RunSteps(int first, int last) const {
    for (const db::MigrationStep& step : ServerSchema().steps) {
      if (step.version >= first && step.version <= last) temp_.Make(step.script);
    }
  }
  // One row in every table that has a column `project`.
  void FillEveryTable(const std::string& project) const {
    testing::FillTables(temp_.path(), "project",
                        [&](const std::string& table, const std::string& column) -> std::string {
                          if (column == "project") return "'" + project + "'";
                          if (table != "plans" || column != "body") return "";
                          return R"('{"id":"x","project":")" + project + R"(","n":1.50}')";
                        });
  }
  testing::DbDump::Rows Rows() const { return testing::DbDump::Of(temp_.path()); }

  testing::TempDb temp_;
};

TEST_F(ProjectNamesTest, RowsOfAnUntrimmedProjectMoveToTheNameThatClientsReach) {
  FillEveryTable(" web/ ");
  const testing::DbDump::Rows before = Rows();
  RunSteps(11, 11);
  testing::DbDump::Rows expected;
  for (std::string row : before) {
    for (std::size_t at = 0; (at = row.find(" web/ ")) != std::string::npos;) {
      row.replace(at, 6, "web");
    }
    expected.insert(std::move(row));
  }
  EXPECT_EQ(Rows(), expected);
}

TEST_F(ProjectNamesTest, SpellingsThatBothHaveRowsStayApart) {
  temp_.Make(
      "INSERT INTO fences VALUES ('p', 1), ('p/', 2), ('q/', 3), (' q', 4), ('/', 5), ('a/b', 6)");
  const testing::DbDump::Rows before = Rows();
  RunSteps(11, 11);
  EXPECT_EQ(Rows(), before);
}

TEST_F(ProjectNamesTest, NewNamesAreThoseOfTheRule) {
  const std::string_view names[] = {"a//", "\t\n\v\f\rb ", "c / /", " // ", "  ", "d\u00a0/"};
  std::multiset<std::string> expected;
  for (const std::string_view name : names) {
    temp_.Make("INSERT INTO fences VALUES ('" + std::string(name) + "', 1)");
    expected.insert("fences project='" + std::string(domain::ProjectName(name)) + "' last='1' ");
  }
  RunSteps(11, 11);
  std::multiset<std::string> found;
  for (const std::string& row : Rows()) {
    if (row.starts_with("fences ")) found.insert(row);
  }
  EXPECT_EQ(found, expected);
}

// What is in git, what the tests ran on and what is in the program are the same text.
TEST(SchemaTest, TheFirstStepHoldsItsFile) {
  EXPECT_NE(ServerSchema().steps[0].script.find("CREATE TABLE meta ("), std::string_view::npos);
  EXPECT_NE(ServerSchema().steps[0].script.find("STRICT, WITHOUT ROWID;"), std::string_view::npos);
}

}  // namespace
}  // namespace interlock::store
