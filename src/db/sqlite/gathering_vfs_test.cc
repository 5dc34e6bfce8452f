#include "db/sqlite/gathering_vfs.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "db/sqlite/connection.h"
#include "db/sqlite/local_vfs.h"
#include "testing/temp_db.h"

namespace interlock::sqlite {
namespace {

using testing::TempDb;

// What SQLite writes goes through here.
int writes = 0;
bool disk_full = false;
sqlite3_syscall_ptr own_pwrite = nullptr;

ssize_t CountingWrite(int fd, const void* bytes, std::size_t size, off_t offset) {
  ++writes;
  if (disk_full) {
    errno = ENOSPC;
    return -1;
  }
  using Pwrite = ssize_t (*)(int, const void*, std::size_t, off_t);
  return reinterpret_cast<Pwrite>(own_pwrite)(fd, bytes, size, offset);
}

class GatheringVfsTest : public ::testing::Test {
 public:
  GatheringVfsTest() {
    temp_.Make("CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
    sqlite3_vfs* const own = sqlite3_vfs_find("unix");
    for (const char* name : {"pwrite", "pwrite64"}) {
      if (own_pwrite == nullptr) own_pwrite = own->xGetSystemCall(own, name);
      own->xSetSystemCall(own, name, reinterpret_cast<sqlite3_syscall_ptr>(CountingWrite));
    }
  }
  ~GatheringVfsTest() override {
    disk_full = false;
    sqlite3_vfs* const own = sqlite3_vfs_find("unix");
    for (const char* name : {"pwrite", "pwrite64"}) own->xSetSystemCall(own, name, nullptr);
  }

 protected:
  std::unique_ptr<Connection> Open(std::string vfs) const {
    OpenOptions options = temp_.options(Access::kReadWrite);
    options.vfs = std::move(vfs);
    options.upkeep = LogUpkeep::kByCallerAndClose;
    return Connection::Open(options).value();
  }

  // A hundred rows that fill a page each, from number `first` on.
  static void Insert(Connection& connection, int first) {
    const std::string page(3000, 'x');
    for (int i = first; i < first + 100; ++i) {
      ASSERT_TRUE(connection.Run("INSERT INTO t VALUES (?1, ?2)", i, page).ok());
    }
  }
  static std::int64_t Count(Connection& connection) {
    return connection.One("SELECT count(*) FROM t", [](const db::Row& row) { return row.Int(0); })
        .value()
        .value();
  }
  static std::string Integrity(Connection& connection) {
    return connection
        .One("PRAGMA integrity_check", [](const db::Row& row) { return row.String(0); })
        .value()
        .value();
  }
  static int WritesOfACommit(Connection& connection, int first) {
    EXPECT_TRUE(connection.BeginExclusive().ok());
    Insert(connection, first);
    writes = 0;
    EXPECT_TRUE(connection.Commit().ok());
    return writes;
  }

  TempDb temp_;
  GatheringVfs gathering_{LocalVfs()};
};

TEST_F(GatheringVfsTest, ACommitIsWrittenInFewPieces) {
  EXPECT_GT(WritesOfACommit(*Open(""), 0), 200) << "what it is without";
  EXPECT_LE(WritesOfACommit(*Open(gathering_.name()), 1000), 8);
}

TEST_F(GatheringVfsTest, ACommitIsInTheFileWhenItsCallReturns) {
  const auto writer = Open(gathering_.name());
  const auto reader = temp_.Open(Access::kReadOnly);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(writer->BeginExclusive().ok());
    ASSERT_TRUE(writer->Run("INSERT INTO t VALUES (?1, 'x')", i).ok());
    ASSERT_TRUE(writer->Commit().ok());
    ASSERT_EQ(Count(*reader), i + 1);
    if (i % 10 == 9) {
      ASSERT_TRUE(writer->TidyLog(0).ok());  // the log begins anew
    }
  }
}

TEST_F(GatheringVfsTest, PagesThatLeaveTheCacheBeforeTheCommitAreReadBack) {
  const auto writer = Open(gathering_.name());
  ASSERT_TRUE(writer->RunScript("PRAGMA cache_size=10").ok());
  ASSERT_TRUE(writer->BeginExclusive().ok());
  Insert(*writer, 0);
  EXPECT_EQ(Count(*writer), 100);
  writer->Rollback();
  EXPECT_EQ(Count(*writer), 0);
  ASSERT_TRUE(writer->BeginExclusive().ok());
  Insert(*writer, 500);
  ASSERT_TRUE(writer->Commit().ok());
  const auto reader = temp_.Open(Access::kReadOnly);
  EXPECT_EQ(Count(*reader), 100);
  EXPECT_EQ(Integrity(*reader), "ok");
}

// Another process commits to where the pages lay that were given up.
TEST_F(GatheringVfsTest, WhatWasRolledBackIsNotWrittenOverACommitOfAnother) {
  const auto writer = Open(gathering_.name());
  const auto other = Open("");
  ASSERT_TRUE(writer->RunScript("PRAGMA cache_size=10").ok());
  ASSERT_TRUE(writer->BeginExclusive().ok());
  Insert(*writer, 1000);
  writer->Rollback();
  WritesOfACommit(*other, 0);
  EXPECT_EQ(Count(*writer), 100);
  EXPECT_EQ(Integrity(*temp_.Open(Access::kReadOnly)), "ok");
}

TEST_F(GatheringVfsTest, ClosingWritesNothingThatWasNotCommitted) {
  auto writer = Open(gathering_.name());
  const auto other = Open("");
  EXPECT_EQ(Count(*other), 0);  // so that it is not the last one, which moves the log
  ASSERT_TRUE(writer->RunScript("PRAGMA cache_size=10").ok());
  ASSERT_TRUE(writer->BeginExclusive().ok());
  Insert(*writer, 1000);
  writes = 0;
  writer.reset();
  EXPECT_EQ(writes, 0);
}

// The log is written over itself, but cannot be moved, since somebody reads what was there before.
TEST_F(GatheringVfsTest, ALogWrittenAnewIsNotWrittenOverACommitOfAnother) {
  const auto other = Open("");
  WritesOfACommit(*other, 0);           // room in the log
  ASSERT_TRUE(other->TidyLog(0).ok());  // which begins anew
  ASSERT_TRUE(other->RunScript("DELETE FROM t WHERE a > 50").ok());
  const auto reader = temp_.Open(Access::kReadOnly);
  ASSERT_TRUE(reader->BeginSnapshot().ok());
  EXPECT_EQ(Count(*reader), 51);
  ASSERT_TRUE(other->TidyLog(0).ok());  // so that nothing is left to sync
  const auto writer = Open(gathering_.name());
  ASSERT_TRUE(other->RunScript("DELETE FROM t WHERE a > 40").ok());
  writer->DoubtLog();
  EXPECT_FALSE(writer->CheckpointWithoutWaiting().ok());
  WritesOfACommit(*other, 1000);  // up to there and beyond
  EXPECT_EQ(Count(*writer), 141);
  reader->Rollback();
  EXPECT_EQ(Integrity(*temp_.Open(Access::kReadOnly)), "ok");
}

TEST_F(GatheringVfsTest, WhatCannotBeWrittenFailsTheCommit) {
  {
    const auto writer = Open(gathering_.name());
    ASSERT_GT(WritesOfACommit(*writer, 0), 0);
    ASSERT_TRUE(writer->BeginExclusive().ok());
    Insert(*writer, 1000);
    disk_full = true;
    EXPECT_FALSE(writer->Commit().ok());
    disk_full = false;
  }
  EXPECT_EQ(Count(*temp_.Open(Access::kReadOnly)), 100);
}

// Pages that left the cache are believed to be in the log: a commit must not go on without them.
TEST_F(GatheringVfsTest, WhatCouldNotBeWrittenBeforeTheCommitFailsIt) {
  {
    const auto writer = Open(gathering_.name());
    ASSERT_GT(WritesOfACommit(*writer, 0), 0);
    ASSERT_TRUE(writer->RunScript("PRAGMA cache_size=10").ok());
    ASSERT_TRUE(writer->BeginExclusive().ok());
    Insert(*writer, 1000);
    disk_full = true;
    // Of what a statement that may fail half-way meets, SQLite undoes the statement alone.
    EXPECT_FALSE(writer->Run("INSERT INTO t SELECT a + 5000, b FROM t").ok());
    disk_full = false;
    EXPECT_TRUE(writer->in_transaction());
    EXPECT_FALSE(writer->Commit().ok());
  }
  const auto reader = temp_.Open(Access::kReadOnly);
  EXPECT_EQ(Count(*reader), 100);
  EXPECT_EQ(Integrity(*reader), "ok");
}

}  // namespace
}  // namespace interlock::sqlite
