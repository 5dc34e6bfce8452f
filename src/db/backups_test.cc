#include "db/backups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "testing/temp_db.h"

namespace interlock::db {
namespace {

namespace fs = std::filesystem;

constexpr Timestamp kNow = {1'767'323'045'000'006};  // 2026-01-02T03:04:05.000006Z

Result<void> WriteFile(const fs::path& path) {
  std::ofstream(path) << "copy";
  return {};
}

std::vector<std::string> Names(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

TEST(BackupsTest, TheNameTellsVersionAndTimeAndIsNeverTakenTwice) {
  const testing::TempDir dir;
  const Backups backups(dir.path() / "a.db", 5);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(backups.Make(7, kNow, WriteFile).ok());
  EXPECT_EQ(Names(dir.path()),
            (std::vector<std::string>{"a.db.v7.20260102T030405.000006Z-2.backup",
                                      "a.db.v7.20260102T030405.000006Z-3.backup",
                                      "a.db.v7.20260102T030405.000006Z.backup"}));
  const std::vector<fs::path> list = backups.List();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].filename(), "a.db.v7.20260102T030405.000006Z.backup") << "the oldest first";
}

TEST(BackupsTest, KeepsTheNewestAcrossVersionsAndTouchesNoOtherFile) {
  const testing::TempDir dir;
  const std::vector<std::string> others = {
      "a.db",
      "a.db.backup",
      "a.db.v1.backup",
      "a.db.v1.20200101T000000.000000Z.backup.mine",
      "a.db.vx.20200101T000000.000000Z.backup",
      "a.db.v1.20200101T000000Z.backup",
      "b.db.v1.20200101T000000.000000Z.backup",
      "xa.db.v1.20200101T000000.000000Z.backup",
      "a.db.v1.20200101T000000.000000Z.backup.txt.partial",
  };
  for (const std::string& name : others) ASSERT_TRUE(WriteFile(dir.path() / name).ok());
  const Backups backups(dir.path() / "a.db", 5);
  Result<fs::path> made = fs::path();
  for (int i = 0; i < 12; ++i) {  // version 10 sorts after 9 by time, not by text
    made = backups.Make(i + 1, kNow + std::chrono::seconds(i), WriteFile);
    ASSERT_TRUE(made.ok());
    backups.Prune(*made);
  }
  const std::vector<fs::path> list = backups.List();
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(list[0].filename(), "a.db.v8.20260102T030412.000006Z.backup");
  EXPECT_EQ(list[4], *made);
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(dir.path() / name)) << name;
}

TEST(BackupsTest, TheOneJustMadeStaysEvenWhenTheClockWentBack) {
  const testing::TempDir dir;
  const Backups backups(dir.path() / "a.db", 2);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(backups.Make(1, kNow + std::chrono::hours(i), WriteFile).ok());
  }
  const fs::path made = backups.Make(1, kNow - std::chrono::hours(24), WriteFile).value();
  backups.Prune(made);
  const std::vector<fs::path> list = backups.List();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0], made);
}

TEST(BackupsTest, AFailedCopyLeavesNothing) {
  const testing::TempDir dir;
  const Backups backups(dir.path() / "a.db", 5);
  const auto made = backups.Make(1, kNow, [](const fs::path& path) -> Result<void> {
    std::ofstream(path) << "half";
    return Error(Errc::kDiskFull, "no space left");
  });
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), Errc::kDiskFull);
  EXPECT_NE(made.error().message().find("backup"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(BackupsTest, WhatAKilledProcessLeftHalfWrittenIsRemoved) {
  const testing::TempDir dir;
  const std::string left = "a.db.v1.20200101T000000.000000Z.backup.partial";
  ASSERT_TRUE(WriteFile(dir.path() / left).ok());
  ASSERT_TRUE(WriteFile(dir.path() / (left + "-journal")).ok());
  const Backups backups(dir.path() / "a.db", 5);
  EXPECT_TRUE(backups.List().empty()) << "a half one is no backup";
  const fs::path made = backups.Make(1, kNow, WriteFile).value();
  EXPECT_EQ(Names(dir.path()), std::vector<std::string>{made.filename().string()});
}

}  // namespace
}  // namespace interlock::db
