#include "db/sqlite/log_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utime.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/clock.h"
#include "testing/temp_db.h"

namespace interlock::sqlite {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::size_t kFrame = 24 + 4096;

class LogCheckTest : public ::testing::Test {
 protected:
  LogCheckTest() {
    temp_.Make("CREATE TABLE t (x TEXT);");
    Insert(3);
  }

  std::unique_ptr<Connection> Open() const {
    OpenOptions options = temp_.options();
    options.upkeep = LogUpkeep::kByCaller;  // keeps the log when it is closed, as a kill would
    return Connection::Open(options).value();
  }
  void Insert(int rows) const {
    const auto connection = Open();
    for (int i = 0; i < rows; ++i) {
      ASSERT_TRUE(connection->RunScript("INSERT INTO t VALUES (hex(randomblob(9)));").ok());
    }
  }
  fs::path log() const { return temp_.path().string() + "-wal"; }
  fs::path index() const { return temp_.path().string() + "-shm"; }
  std::string Verdict() {
    const auto result = CheckLog(temp_.path(), clock_.Now());
    if (result.ok()) return "sound";
    EXPECT_EQ(result.error().code(), Errc::kCorrupt);
    EXPECT_EQ(result.error().details().size(), 1);
    return result.error().message();
  }
  void Overwrite(std::size_t offset, const std::string& text) const {
    std::fstream file(log(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file << text;
  }

  std::string Bytes(std::size_t offset) const {
    std::ifstream file(log(), std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    return std::string(1, static_cast<char>(file.get()));
  }

  testing::TempDb temp_;
  SystemClock clock_;
};

TEST_F(LogCheckTest, ALogThatAProcessLeftIsSound) {
  ASSERT_GT(fs::file_size(log()), 3 * kFrame);
  EXPECT_EQ(Verdict(), "sound");
  Insert(1);
  EXPECT_EQ(Verdict(), "sound");
}

TEST_F(LogCheckTest, NoDatabaseAndNoLogAreSound) {
  temp_.Open().reset();  // moves the log into the file, and removes it
  ASSERT_FALSE(fs::exists(log()));
  EXPECT_EQ(Verdict(), "sound");
  EXPECT_TRUE(CheckLog("/nonexistent/x.db", clock_.Now()).ok());
}

TEST_F(LogCheckTest, ALogThatWasMovedAndBegunAnewIsSound) {
  ASSERT_TRUE(Open()->Checkpoint().ok());
  EXPECT_EQ(fs::file_size(log()), 0);
  EXPECT_EQ(Verdict(), "sound");
  Insert(1);
  EXPECT_EQ(Verdict(), "sound");
}

TEST_F(LogCheckTest, AnUnfinishedCommitAtTheEndIsSound) {
  std::ofstream(log(), std::ios::app | std::ios::binary) << std::string(kFrame + 100, 'x');
  EXPECT_EQ(Verdict(), "sound");
}

TEST_F(LogCheckTest, AnotherBeginningIsDamage) {
  for (const std::string text : {"garbage\n", "x"}) {
    Overwrite(0, text);
    EXPECT_THAT(Verdict(), HasSubstr("damaged at its beginning"));
  }
}

TEST_F(LogCheckTest, EveryByteOfTheHeaderCounts) {
  std::ifstream file(log(), std::ios::binary);
  std::string header(32, '\0');
  file.read(header.data(), 32);
  for (std::size_t i = 0; i < header.size(); ++i) {
    std::string changed = header;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    Overwrite(0, changed);
    EXPECT_NE(Verdict(), "sound") << "byte " << i;
  }
  Overwrite(0, header);
  EXPECT_EQ(Verdict(), "sound");
}

// A header that somebody made up, with the right sums.
TEST_F(LogCheckTest, APageSizeThatNoLogHasIsDamage) {
  for (const std::uint32_t page_size : {0U, 3U, 256U, 4095U, 131072U, 0x80000000U}) {
    std::string header;
    std::array<std::uint32_t, 2> sums = {};
    const auto put = [&header](std::uint32_t word) {
      for (const int shift : {24, 16, 8, 0}) header += static_cast<char>(word >> shift & 0xFFU);
    };
    const std::array<std::uint32_t, 6> words = {0x377f0683, 3'007'000, page_size, 0, 1, 2};
    for (std::size_t i = 0; i < words.size(); i += 2) {
      sums[0] += words.at(i) + sums[1];
      sums[1] += words.at(i + 1) + sums[0];
      put(words.at(i));
      put(words.at(i + 1));
    }
    put(sums[0]);
    put(sums[1]);
    Overwrite(0, header);
    EXPECT_THAT(Verdict(), HasSubstr("damaged at its beginning")) << page_size;
  }
}

TEST_F(LogCheckTest, ALogThatWasReplacedByAFewBytesIsDamage) {
  std::ofstream(log()) << "garbage\n";
  EXPECT_THAT(Verdict(), HasSubstr("damaged at its beginning"));
}

TEST_F(LogCheckTest, AnEndThatIsMissingIsDamage) {
  const std::size_t size = fs::file_size(log());
  for (const std::size_t left : {size - 1, size - kFrame, std::size_t{100}, std::size_t{32}}) {
    fs::resize_file(log(), left);
    EXPECT_THAT(Verdict(), HasSubstr("lost its end")) << left;
  }
}

TEST_F(LogCheckTest, ALogThatWasEmptiedOrRemovedIsDamage) {
  fs::resize_file(log(), 0);
  EXPECT_THAT(Verdict(), HasSubstr("lost its end"));
  fs::remove(log());
  EXPECT_THAT(Verdict(), HasSubstr("lost its end"));
}

TEST_F(LogCheckTest, AnotherLastCommitIsDamage) {
  Overwrite(fs::file_size(log()) - kFrame + 16, "xxxx");
  EXPECT_THAT(Verdict(), HasSubstr("lost its end"));
}

TEST_F(LogCheckTest, AnIndexFromBeforeTheMachineStartedIsNotBelieved) {
  fs::resize_file(log(), 100);
  const utimbuf long_ago = {.actime = 1'000'000'000, .modtime = 1'000'000'000};
  ASSERT_EQ(::utime(index().c_str(), &long_ago), 0);
  EXPECT_EQ(Verdict(), "sound");
}

TEST_F(LogCheckTest, AnyByteInTheMiddleIsDamage) {
  Insert(33);  // they are read and summed up some at a time
  const std::size_t size = fs::file_size(log());
  for (std::size_t offset = 40; offset + kFrame < size; offset += kFrame / 3) {
    const std::string before = Bytes(offset);
    Overwrite(offset, before == "x" ? "y" : "x");
    EXPECT_THAT(Verdict(), HasSubstr("lost its end")) << offset;
    Overwrite(offset, before);
  }
  EXPECT_EQ(Verdict(), "sound");
}

TEST_F(LogCheckTest, WithoutAnIndexCommitsBehindADamagedOneTell) {
  fs::remove(index());
  EXPECT_EQ(Verdict(), "sound");
  Overwrite(fs::file_size(log()) - kFrame / 2, "x");
  EXPECT_EQ(Verdict(), "sound") << "a power cut in the last commit looks like that";
  Overwrite(fs::file_size(log()) - 3 * kFrame + 100, "x");
  EXPECT_THAT(Verdict(), HasSubstr("damaged"));
}

// Who is killed when its commit is in the log, and not yet in the index, leaves it there. The next
// one writes over it from its beginning, and may be shorter.
TEST_F(LogCheckTest, WhatSeveralKilledWritersLeftBehindTheEndIsNoDamage) {
  const auto read = [this] {
    std::ifstream file(log(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const auto put = [this](const std::string& bytes) {
    std::ofstream(log(), std::ios::binary) << bytes;
    fs::remove(index());
  };
  // The log after one commit of so many pages on top of it.
  const auto with_commit = [&](const std::string& before, int pages) {
    put(before);
    std::string script = "BEGIN;";
    for (int i = 0; i < pages; ++i) script += "INSERT INTO t VALUES (hex(randomblob(2000)));";
    EXPECT_TRUE(Open()->RunScript(script + "COMMIT").ok());
    return read();
  };
  std::string kept = read();
  std::string all;
  for (const int pages : {40, 20, 10, 5}) {
    const std::string killed = with_commit(kept, pages);
    kept = with_commit(kept, 1);
    all = all.empty() ? killed : all.replace(0, killed.size(), killed);
  }
  all.replace(0, kept.size(), kept);
  ASSERT_GT(all.size(), kept.size() + 10 * kFrame);
  put(all);
  EXPECT_EQ(Verdict(), "sound");
  const auto rows =
      Open()->One("SELECT COUNT(*) FROM t", [](const db::Row& row) { return row.Int(0); });
  EXPECT_EQ(rows.value(), 3 + 4);
}

TEST_F(LogCheckTest, WithoutAnIndexAnEndThatIsMissingCannotBeSeen) {
  fs::remove(index());
  fs::resize_file(log(), 100);
  EXPECT_EQ(Verdict(), "sound");
  Overwrite(0, "garbage");
  EXPECT_THAT(Verdict(), HasSubstr("damaged at its beginning"));
}

}  // namespace
}  // namespace interlock::sqlite
