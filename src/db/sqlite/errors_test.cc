#include "db/sqlite/errors.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <set>
#include <string>

namespace interlock::sqlite {
namespace {

// Written out by hand from SQLite's list of result codes, apart from the table under test.
struct Expected {
  int code;
  Errc errc;
};

constexpr Expected kEverything[] = {
    {SQLITE_ERROR, Errc::kInternal},
    {SQLITE_ERROR_MISSING_COLLSEQ, Errc::kInternal},
    {SQLITE_ERROR_RETRY, Errc::kInternal},
    {SQLITE_ERROR_SNAPSHOT, Errc::kInternal},
    {SQLITE_INTERNAL, Errc::kInternal},
    {SQLITE_PERM, Errc::kCantOpen},
    {SQLITE_ABORT, Errc::kInternal},
    {SQLITE_ABORT_ROLLBACK, Errc::kInternal},
    {SQLITE_BUSY, Errc::kBusy},
    {SQLITE_BUSY_RECOVERY, Errc::kBusy},
    {SQLITE_BUSY_SNAPSHOT, Errc::kBusy},
    {SQLITE_BUSY_TIMEOUT, Errc::kBusy},
    {SQLITE_LOCKED, Errc::kBusy},
    {SQLITE_LOCKED_SHAREDCACHE, Errc::kBusy},
    {SQLITE_LOCKED_VTAB, Errc::kBusy},
    {SQLITE_NOMEM, Errc::kOutOfMemory},
    {SQLITE_READONLY, Errc::kReadOnly},
    {SQLITE_READONLY_RECOVERY, Errc::kReadOnly},
    {SQLITE_READONLY_CANTLOCK, Errc::kReadOnly},
    {SQLITE_READONLY_ROLLBACK, Errc::kReadOnly},
    {SQLITE_READONLY_DBMOVED, Errc::kIo},
    {SQLITE_READONLY_CANTINIT, Errc::kReadOnly},
    {SQLITE_READONLY_DIRECTORY, Errc::kReadOnly},
    {SQLITE_INTERRUPT, Errc::kCancelled},
    {SQLITE_IOERR, Errc::kIo},
    {SQLITE_IOERR_READ, Errc::kIo},
    {SQLITE_IOERR_SHORT_READ, Errc::kIo},
    {SQLITE_IOERR_WRITE, Errc::kIo},
    {SQLITE_IOERR_FSYNC, Errc::kIo},
    {SQLITE_IOERR_DIR_FSYNC, Errc::kIo},
    {SQLITE_IOERR_TRUNCATE, Errc::kIo},
    {SQLITE_IOERR_FSTAT, Errc::kIo},
    {SQLITE_IOERR_UNLOCK, Errc::kIo},
    {SQLITE_IOERR_RDLOCK, Errc::kIo},
    {SQLITE_IOERR_DELETE, Errc::kIo},
    {SQLITE_IOERR_BLOCKED, Errc::kBusy},
    {SQLITE_IOERR_NOMEM, Errc::kOutOfMemory},
    {SQLITE_IOERR_ACCESS, Errc::kIo},
    {SQLITE_IOERR_CHECKRESERVEDLOCK, Errc::kIo},
    {SQLITE_IOERR_LOCK, Errc::kIo},
    {SQLITE_IOERR_CLOSE, Errc::kIo},
    {SQLITE_IOERR_DIR_CLOSE, Errc::kIo},
    {SQLITE_IOERR_SHMOPEN, Errc::kIo},
    {SQLITE_IOERR_SHMSIZE, Errc::kIo},
    {SQLITE_IOERR_SHMLOCK, Errc::kIo},
    {SQLITE_IOERR_SHMMAP, Errc::kIo},
    {SQLITE_IOERR_SEEK, Errc::kIo},
    {SQLITE_IOERR_DELETE_NOENT, Errc::kIo},
    {SQLITE_IOERR_MMAP, Errc::kIo},
    {SQLITE_IOERR_GETTEMPPATH, Errc::kIo},
    {SQLITE_IOERR_CONVPATH, Errc::kIo},
    {SQLITE_IOERR_VNODE, Errc::kIo},
    {SQLITE_IOERR_AUTH, Errc::kIo},
    {SQLITE_IOERR_BEGIN_ATOMIC, Errc::kIo},
    {SQLITE_IOERR_COMMIT_ATOMIC, Errc::kIo},
    {SQLITE_IOERR_ROLLBACK_ATOMIC, Errc::kIo},
    {SQLITE_IOERR_DATA, Errc::kIo},
    {SQLITE_IOERR_CORRUPTFS, Errc::kCorrupt},
    {SQLITE_CORRUPT, Errc::kCorrupt},
    {SQLITE_CORRUPT_VTAB, Errc::kCorrupt},
    {SQLITE_CORRUPT_SEQUENCE, Errc::kCorrupt},
    {SQLITE_CORRUPT_INDEX, Errc::kCorrupt},
    {SQLITE_NOTFOUND, Errc::kInternal},
    {SQLITE_FULL, Errc::kDiskFull},
    {SQLITE_CANTOPEN, Errc::kCantOpen},
    {SQLITE_CANTOPEN_NOTEMPDIR, Errc::kCantOpen},
    {SQLITE_CANTOPEN_ISDIR, Errc::kCantOpen},
    {SQLITE_CANTOPEN_FULLPATH, Errc::kCantOpen},
    {SQLITE_CANTOPEN_CONVPATH, Errc::kCantOpen},
    {SQLITE_CANTOPEN_DIRTYWAL, Errc::kCantOpen},
    {SQLITE_CANTOPEN_SYMLINK, Errc::kCantOpen},
    {SQLITE_PROTOCOL, Errc::kBusy},
    {SQLITE_EMPTY, Errc::kInternal},
    {SQLITE_SCHEMA, Errc::kBusy},
    {SQLITE_TOOBIG, Errc::kTooBig},
    {SQLITE_CONSTRAINT, Errc::kConstraint},
    {SQLITE_CONSTRAINT_CHECK, Errc::kConstraint},
    {SQLITE_CONSTRAINT_COMMITHOOK, Errc::kConstraint},
    {SQLITE_CONSTRAINT_FOREIGNKEY, Errc::kConstraint},
    {SQLITE_CONSTRAINT_FUNCTION, Errc::kConstraint},
    {SQLITE_CONSTRAINT_NOTNULL, Errc::kConstraint},
    {SQLITE_CONSTRAINT_PRIMARYKEY, Errc::kConstraint},
    {SQLITE_CONSTRAINT_TRIGGER, Errc::kConstraint},
    {SQLITE_CONSTRAINT_UNIQUE, Errc::kConstraint},
    {SQLITE_CONSTRAINT_VTAB, Errc::kConstraint},
    {SQLITE_CONSTRAINT_ROWID, Errc::kConstraint},
    {SQLITE_CONSTRAINT_PINNED, Errc::kConstraint},
    {SQLITE_CONSTRAINT_DATATYPE, Errc::kConstraint},
    {SQLITE_MISMATCH, Errc::kInternal},
    {SQLITE_NOLFS, Errc::kIo},
    {SQLITE_AUTH, Errc::kInternal},
    {SQLITE_AUTH_USER, Errc::kInternal},
    {SQLITE_FORMAT, Errc::kCorrupt},
    {SQLITE_RANGE, Errc::kInternal},
    {SQLITE_NOTADB, Errc::kNotADatabase},
    {SQLITE_NOTICE, Errc::kInternal},
    {SQLITE_NOTICE_RECOVER_WAL, Errc::kInternal},
    {SQLITE_NOTICE_RECOVER_ROLLBACK, Errc::kInternal},
    {SQLITE_WARNING, Errc::kInternal},
    {SQLITE_WARNING_AUTOINDEX, Errc::kInternal},
};

TEST(ErrorsTest, EveryCodeOfSqliteHasItsErrc) {
  for (const Expected& expected : kEverything) {
    EXPECT_EQ(ErrcOf(expected.code), expected.errc)
        << expected.code << " " << sqlite3_errstr(expected.code);
  }
}

TEST(ErrorsTest, EveryPrimaryCodeButMisuseHasARow) {
  std::set<int> rows;
  for (const CodeInfo& info : AllCodes()) rows.insert(info.code);
  for (int code = SQLITE_ERROR; code <= SQLITE_WARNING; ++code) {
    EXPECT_EQ(rows.contains(code), code != SQLITE_MISUSE) << code << " " << sqlite3_errstr(code);
  }
}

TEST(ErrorsTest, EveryRowIsExpectedByThisTest) {
  std::set<int> expected;
  for (const Expected& row : kEverything) expected.insert(row.code);
  for (const CodeInfo& info : AllCodes()) EXPECT_TRUE(expected.contains(info.code)) << info.code;
}

TEST(ErrorsTest, AnExtendedCodeOfALaterSqliteFallsBackToItsPrimaryCode) {
  EXPECT_EQ(ErrcOf(SQLITE_IOERR | (200 << 8)), Errc::kIo);
  EXPECT_EQ(ErrcOf(SQLITE_BUSY | (200 << 8)), Errc::kBusy);
  EXPECT_EQ(ErrcOf(99), Errc::kInternal);
}

TEST(ErrorsTest, MessagesSayWhatToDo) {
  const auto message = [](int code) { return ErrorFrom(code, nullptr, "opening").message(); };
  EXPECT_NE(message(SQLITE_FULL).find("free space"), std::string::npos);
  EXPECT_NE(message(SQLITE_READONLY).find("writable"), std::string::npos);
  EXPECT_NE(message(SQLITE_BUSY).find("try again"), std::string::npos);
  EXPECT_NE(message(SQLITE_NOTADB).find("check the path"), std::string::npos);
  EXPECT_NE(message(SQLITE_CANTOPEN).find("check that it exists"), std::string::npos);
  EXPECT_NE(message(SQLITE_CORRUPT).find("restore the newest backup"), std::string::npos);
  EXPECT_NE(message(SQLITE_IOERR_FSYNC).find("system log"), std::string::npos);
  EXPECT_EQ(message(SQLITE_FULL).find("opening: "), 0u);
}

TEST(ErrorsDeathTest, MisuseFailsACheck) {
  EXPECT_DEATH((void)ErrcOf(SQLITE_MISUSE), "misused");
  EXPECT_DEATH((void)ErrorFrom(SQLITE_MISUSE, nullptr, "x"), "misused");
}

TEST(ErrorsDeathTest, ASuccessIsNoError) {
  EXPECT_DEATH((void)ErrcOf(SQLITE_OK), "success");
  EXPECT_DEATH((void)ErrcOf(SQLITE_DONE), "success");
  EXPECT_DEATH((void)ErrcOf(SQLITE_OK_SYMLINK), "success");
}

}  // namespace
}  // namespace interlock::sqlite
