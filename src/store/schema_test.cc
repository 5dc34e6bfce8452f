#include "store/schema.h"

#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>

#include "testing/fake_clock.h"
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
constexpr std::array<std::uint64_t, 1> kChecksums = {
    0x6b14d467c0c1c60f,
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

// They would end or escape the one transaction that a migration is.
TEST(SchemaTest, NoStepControlsTransactionsOrTheConnection) {
  for (const db::MigrationStep& step : ServerSchema().steps) {
    std::string upper;
    for (const char c : step.script) {
      upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    for (const char* word : {"COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA", "ATTACH",
                             "VACUUM", "BEGIN IMMEDIATE", "BEGIN TRANSACTION", "BEGIN;"}) {
      EXPECT_EQ(upper.find(word), std::string::npos) << step.version << ": " << word;
    }
  }
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

// What is in git, what the tests ran on and what is in the program are the same text.
TEST(SchemaTest, TheFirstStepHoldsItsFile) {
  EXPECT_NE(ServerSchema().steps[0].script.find("CREATE TABLE meta ("), std::string_view::npos);
  EXPECT_NE(ServerSchema().steps[0].script.find("STRICT, WITHOUT ROWID;"), std::string_view::npos);
}

}  // namespace
}  // namespace interlock::store
