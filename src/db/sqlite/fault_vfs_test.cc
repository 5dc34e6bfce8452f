// The tool itself: every fault fires and is seen, nothing else goes wrong, and a power cut takes
// what was not synced. SQLite is used raw, so that nothing of ours stands between.

#include "db/sqlite/fault_vfs.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "db/sqlite/fault_disk_state.h"
#include "testing/seeded_random.h"

namespace interlock::sqlite {
namespace {

constexpr const char* kPath = "/disk/test.db";

// A raw handle; closes itself.
class Raw {
 public:
  explicit Raw(const std::string& vfs, const std::string& path = kPath) {
    open_code_ = sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                 vfs.empty() ? nullptr : vfs.c_str());
    sqlite3_extended_result_codes(db_, 1);
  }
  ~Raw() { sqlite3_close_v2(db_); }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  int open_code() const { return open_code_; }
  int Run(const std::string& sql) {
    return sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  }
  // All values of all rows, separated by '|'; "error N" when it fails.
  std::string Text(const std::string& sql) {
    std::string text;
    const int code = sqlite3_exec(
        db_, sql.c_str(),
        [](void* into, int columns, char** values, char**) {
          for (int i = 0; i < columns; ++i) {
            *static_cast<std::string*>(into) += values[i] == nullptr ? "NULL" : values[i];
            *static_cast<std::string*>(into) += '|';
          }
          return 0;
        },
        &text, nullptr);
    return code == SQLITE_OK ? text : "error " + std::to_string(code);
  }
  void Wal(const char* synchronous = "FULL") {
    ASSERT_EQ(Text("PRAGMA journal_mode=WAL"), "wal|");
    ASSERT_EQ(Run(std::string("PRAGMA synchronous=") + synchronous), SQLITE_OK);
  }

 private:
  sqlite3* db_ = nullptr;
  int open_code_ = 0;
};

// A WAL database with a table and `rows` acknowledged rows.
void Fill(FaultVfs& vfs, int rows, const char* synchronous = "FULL") {
  Raw db(vfs.name());
  db.Wal(synchronous);
  ASSERT_EQ(db.Run("CREATE TABLE t(k INTEGER PRIMARY KEY, v TEXT)"), SQLITE_OK);
  for (int i = 1; i <= rows; ++i) {
    ASSERT_EQ(db.Run("INSERT INTO t VALUES(" + std::to_string(i) + ", hex(zeroblob(300)))"),
              SQLITE_OK);
  }
}

// One random statement of a workload that splits pages, rolls back and checkpoints.
std::string RandomStatement(std::mt19937_64& random) {
  const std::string key = std::to_string(random() % 200);
  switch (random() % 8) {
    case 0:
      return "DELETE FROM t WHERE k = " + key;
    case 1:
      return "BEGIN; UPDATE t SET v = v || 'x' WHERE k < " + key + "; ROLLBACK";
    case 2:
      return "SAVEPOINT s; DELETE FROM t; ROLLBACK TO s; RELEASE s";
    case 3:
      return "PRAGMA wal_checkpoint(" + std::string(random() % 2 == 0 ? "PASSIVE" : "TRUNCATE") +
             ")";
    default:
      return "INSERT OR REPLACE INTO t VALUES(" + key + ", hex(zeroblob(" +
             std::to_string(random() % 3000) + ")))";
  }
}

TEST(FaultVfsTest, WithoutFaultsTheFileEqualsTheOneOfTheSystemVfsByteForByte) {
  const std::uint64_t seed = testing::TestSeed();
  SCOPED_TRACE(seed);
  std::string pattern = ::testing::TempDir() + "fault_vfs_XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::string real_path = pattern + "/test.db";
  FaultVfs vfs(seed);
  {
    Raw real("", real_path);
    Raw fake(vfs.name());
    for (Raw* db : {&real, &fake}) {
      db->Wal();
      ASSERT_EQ(db->Run("CREATE TABLE t(k INTEGER PRIMARY KEY, v TEXT);"
                        "CREATE INDEX by_v ON t(substr(v, 1, 9), k)"),
                SQLITE_OK);
    }
    std::mt19937_64 random(seed);
    for (int i = 0; i < 400; ++i) {
      const std::string sql = RandomStatement(random);
      ASSERT_EQ(real.Text(sql), fake.Text(sql)) << sql;
    }
    ASSERT_EQ(real.Text("SELECT * FROM t"), fake.Text("SELECT * FROM t"));
  }
  std::ifstream file(real_path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_GT(bytes.size(), 4096u);
  EXPECT_TRUE(vfs.disk().Content(kPath) == bytes);
  EXPECT_EQ(vfs.disk().names(), std::vector<std::string>{kPath}) << "the log was removed";
  EXPECT_EQ(vfs.disk().fired(), 0);
  std::filesystem::remove_all(pattern);
}

TEST(FaultVfsTest, RollbackJournalAndSpillingTemporaryFilesWorkToo) {
  FaultVfs vfs(testing::TestSeed());
  Raw db(vfs.name());
  ASSERT_EQ(db.Run("PRAGMA cache_size=5; PRAGMA temp_store=FILE;"
                   "CREATE TABLE t(k INTEGER PRIMARY KEY, v TEXT)"),
            SQLITE_OK);
  ASSERT_EQ(db.Run("BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 900)"
                   " INSERT INTO t SELECT i, hex(randomblob(400)) FROM n; COMMIT"),
            SQLITE_OK);
  EXPECT_EQ(db.Text("SELECT count(*) FROM (SELECT v FROM t ORDER BY v)"), "900|");
  EXPECT_EQ(db.Run("BEGIN; DELETE FROM t; ROLLBACK"), SQLITE_OK);
  EXPECT_EQ(db.Text("SELECT count(*) FROM t; PRAGMA integrity_check"), "900|ok|");
}

TEST(FaultVfsTest, LocksKeepTwoConnectionsApart) {
  FaultVfs vfs(testing::TestSeed());
  Fill(vfs, 1);
  Raw one(vfs.name());
  Raw two(vfs.name());
  ASSERT_EQ(one.Run("BEGIN IMMEDIATE; INSERT INTO t VALUES(2, 'two')"), SQLITE_OK);
  EXPECT_EQ(two.Run("BEGIN IMMEDIATE"), SQLITE_BUSY);
  EXPECT_EQ(two.Text("SELECT count(*) FROM t"), "1|") << "a reader sees the snapshot";
  ASSERT_EQ(one.Run("COMMIT"), SQLITE_OK);
  EXPECT_EQ(two.Text("SELECT count(*) FROM t"), "2|");
  // The same without a log.
  Raw three(vfs.name(), "/disk/other.db");
  Raw four(vfs.name(), "/disk/other.db");
  ASSERT_EQ(three.Run("CREATE TABLE t(x)"), SQLITE_OK);
  ASSERT_EQ(three.Run("BEGIN EXCLUSIVE"), SQLITE_OK);
  EXPECT_EQ(four.Text("SELECT * FROM t"), "error " + std::to_string(SQLITE_BUSY));
  ASSERT_EQ(three.Run("COMMIT"), SQLITE_OK);
  EXPECT_EQ(four.Text("SELECT count(*) FROM t"), "0|");
}

TEST(FaultVfsTest, AFileMadeOnTheMachineItselfCountsAsThereAndEmpty) {
  const std::string path = ::testing::TempDir() + "fault_vfs_made_by_hand.db";
  const auto open = [&path](FaultVfs& vfs) {
    sqlite3* db = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, vfs.name().c_str());
    sqlite3_close(db);
    return code;
  };
  FaultVfs vfs(testing::TestSeed());
  std::filesystem::remove(path);
  EXPECT_EQ(open(vfs), SQLITE_CANTOPEN);
  std::ofstream(path).close();
  EXPECT_EQ(open(vfs), SQLITE_OK);
  EXPECT_EQ(vfs.disk().Content(path), "");
  std::filesystem::remove(path);
}

TEST(FaultVfsTest, ThreadsOnOneDiskLoseNoRow) {
  FaultVfs vfs(testing::TestSeed());
  Fill(vfs, 0);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&vfs, t] {
      Raw db(vfs.name());
      EXPECT_EQ(db.Run("PRAGMA busy_timeout=60000"), SQLITE_OK);
      for (int i = 0; i < 25; ++i) {
        EXPECT_EQ(db.Run("INSERT INTO t VALUES(" + std::to_string(t * 1000 + i) + ", 'x')"),
                  SQLITE_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Raw db(vfs.name());
  EXPECT_EQ(db.Text("SELECT count(*) FROM t; PRAGMA integrity_check"), "100|ok|");
}

struct FaultCase {
  DiskOp op;
  int code;      // to inject; 0 = the usual one
  int expected;  // primary code that SQLite reports, when it reports one
};

class EachFaultTest : public ::testing::TestWithParam<FaultCase> {};

// Opens a filled file, writes to it, checkpoints, closes: together they make every kind of call.
int UseFile(FaultVfs& vfs) {
  Raw db(vfs.name());
  if (db.open_code() != SQLITE_OK) return db.open_code();
  for (const char* sql : {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "SELECT * FROM t",
                          "INSERT INTO t(v) VALUES('new')", "PRAGMA wal_checkpoint(TRUNCATE)"}) {
    if (const int code = db.Run(sql); code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

TEST_P(EachFaultTest, FiresAtEveryNthCallAndIsReportedOrHarmless) {
  const FaultCase& c = GetParam();
  int reported = 0;
  int n = 1;
  for (bool fired = true; fired; ++n) {
    ASSERT_LT(n, 1000);
    for (const Effect effect : {Effect::kNothing, Effect::kPart, Effect::kWhole}) {
      FaultVfs vfs(testing::TestSeed());
      Fill(vfs, 3);
      vfs.disk().Inject({.op = c.op, .nth = n, .code = c.code, .effect = effect});
      const int code = UseFile(vfs);
      fired = vfs.disk().fired() == 1;
      if (!fired) {
        EXPECT_EQ(code, SQLITE_OK);
      } else if (code != SQLITE_OK) {
        ++reported;
        EXPECT_EQ(code & 0xff, c.expected) << DiskOpName(c.op) << ' ' << n;
      }
      vfs.disk().Heal();
      Raw db(vfs.name());
      EXPECT_EQ(db.Text("PRAGMA integrity_check"), "ok|");
      const std::string rows = db.Text("SELECT count(*) FROM t");
      EXPECT_TRUE(rows == "4|" || (code != SQLITE_OK && rows == "3|")) << rows;
    }
  }
  EXPECT_GE(n, 3) << "the workload makes such calls";
  if (c.op != DiskOp::kDelete) {  // the log's removal at close has nobody to report to
    EXPECT_GE(reported, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, EachFaultTest,
    ::testing::Values(
        FaultCase{DiskOp::kOpen, 0, SQLITE_CANTOPEN}, FaultCase{DiskOp::kRead, 0, SQLITE_IOERR},
        FaultCase{DiskOp::kRead, SQLITE_IOERR_DATA, SQLITE_IOERR},
        FaultCase{DiskOp::kWrite, 0, SQLITE_IOERR},
        FaultCase{DiskOp::kWrite, SQLITE_FULL, SQLITE_FULL},
        FaultCase{DiskOp::kTruncate, 0, SQLITE_IOERR}, FaultCase{DiskOp::kSync, 0, SQLITE_IOERR},
        FaultCase{DiskOp::kDelete, 0, SQLITE_IOERR}, FaultCase{DiskOp::kLock, 0, SQLITE_BUSY},
        FaultCase{DiskOp::kLock, SQLITE_IOERR_LOCK, SQLITE_IOERR},
        FaultCase{DiskOp::kShmMap, 0, SQLITE_IOERR}, FaultCase{DiskOp::kShmLock, 0, SQLITE_BUSY},
        FaultCase{DiskOp::kShmLock, SQLITE_IOERR_SHMLOCK, SQLITE_IOERR}),
    [](const auto& instance) {
      std::string name = DiskOpName(instance.param.op);
      std::erase(name, '-');
      return name + std::to_string(instance.param.code);
    });

TEST(FaultVfsTest, AFullDiskRefusesAndWorksAgainOnceThereIsSpace) {
  FaultVfs vfs(testing::TestSeed());
  Fill(vfs, 1);
  Raw db(vfs.name());
  db.Wal();
  vfs.disk().LimitSpace(5000);  // one page of the log, but not two
  EXPECT_EQ(db.Run("INSERT INTO t VALUES(2, hex(zeroblob(9000)))"), SQLITE_FULL);
  EXPECT_GE(vfs.disk().fired(), 1);
  EXPECT_EQ(db.Text("SELECT count(*) FROM t"), "1|");
  vfs.disk().LimitSpace(std::nullopt);
  EXPECT_EQ(db.Run("INSERT INTO t VALUES(2, hex(zeroblob(9000)))"), SQLITE_OK);
  EXPECT_EQ(db.Text("SELECT count(*) FROM t; PRAGMA integrity_check"), "2|ok|");
}

TEST(FaultVfsTest, APowerCutKeepsWhatWasAcknowledgedWithFullSync) {
  for (const Survival survival : {Survival::kNothing, Survival::kSome, Survival::kAll}) {
    FaultVfs vfs(testing::TestSeed());
    Raw db(vfs.name());
    db.Wal();
    ASSERT_EQ(db.Run("CREATE TABLE t(k)"), SQLITE_OK);
    for (int i = 0; i < 20; ++i) ASSERT_EQ(db.Run("INSERT INTO t VALUES(1)"), SQLITE_OK);
    ASSERT_EQ(db.Run("BEGIN; INSERT INTO t VALUES(2)"), SQLITE_OK);
    vfs.disk().CutPower(survival);
    vfs.disk().PowerOn();
    Raw after(vfs.name());
    EXPECT_EQ(after.Text("SELECT count(*), max(k) FROM t; PRAGMA integrity_check"), "20|1|ok|");
  }
}

// The canary: if this loses nothing, the tool could not see a loss and all else proves nothing.
TEST(FaultVfsTest, APowerCutLosesAcknowledgedWritesWithoutSync) {
  FaultVfs vfs(testing::TestSeed());
  Fill(vfs, 1);
  Raw db(vfs.name());
  db.Wal("OFF");
  for (int i = 2; i <= 20; ++i) {
    ASSERT_EQ(db.Run("INSERT INTO t VALUES(" + std::to_string(i) + ", 'acknowledged')"), SQLITE_OK);
  }
  vfs.disk().CutPower(Survival::kNothing);
  vfs.disk().PowerOn();
  Raw after(vfs.name());
  EXPECT_EQ(after.Text("SELECT count(*) FROM t"), "1|");
}

// Canary of the torn cut: without syncs some seed leaves a database that is broken or half there.
TEST(FaultVfsTest, ATornPowerCutBreaksADatabaseThatDoesNotSync) {
  int broken = 0;
  for (std::uint64_t seed = testing::TestSeed(); seed < testing::TestSeed() + 20; ++seed) {
    FaultVfs vfs(seed);
    Fill(vfs, 20);
    {
      Raw db(vfs.name());
      ASSERT_EQ(db.Run("PRAGMA synchronous=OFF; UPDATE t SET v = v || 'x';"
                       "PRAGMA wal_checkpoint(TRUNCATE); UPDATE t SET v = v || v;"
                       "PRAGMA wal_checkpoint(TRUNCATE)"),
                SQLITE_OK);
      vfs.disk().CutPower(Survival::kSome);
    }
    vfs.disk().PowerOn();
    Raw after(vfs.name());
    const bool whole = after.Text("PRAGMA integrity_check") == "ok|" &&
                       after.Text("SELECT count(DISTINCT v) FROM t") == "1|";
    if (!whole) ++broken;
  }
  EXPECT_GE(broken, 5);
}

TEST(FaultVfsTest, EveryCallOfAHandleFromBeforeAPowerCutFails) {
  FaultVfs vfs(testing::TestSeed());
  Fill(vfs, 2);
  Raw old(vfs.name());
  ASSERT_EQ(old.Text("SELECT count(*) FROM t"), "2|");
  vfs.disk().CutPower(Survival::kAll);
  Raw dark(vfs.name());
  EXPECT_EQ(dark.open_code(), SQLITE_CANTOPEN);
  vfs.disk().PowerOn();
  Raw fresh(vfs.name());
  ASSERT_EQ(fresh.Run("INSERT INTO t(v) VALUES('x')"), SQLITE_OK);
  EXPECT_NE(old.Run("INSERT INTO t(v) VALUES('y')"), SQLITE_OK);
  EXPECT_NE(old.Run("BEGIN IMMEDIATE"), SQLITE_OK);
  EXPECT_NE(old.Run("SELECT * FROM t"), SQLITE_OK);
  EXPECT_EQ(fresh.Text("SELECT count(*) FROM t; PRAGMA integrity_check"), "3|ok|");
}

TEST(FaultVfsTest, ASyncThatFailedIsNotMadeGoodByTheNextOne) {
  FaultDisk disk(testing::TestSeed());
  const std::string text = "0123456789";
  const auto bytes = std::as_bytes(std::span(text));
  const FaultDisk::OpenMode mode = {.writable = true, .create = true, .syncs_directory = true};
  {
    const auto file = disk.Open("/a", mode).file;
    ASSERT_EQ(disk.Write(*file, bytes, 0), SQLITE_OK);
    ASSERT_EQ(disk.Sync(*file), SQLITE_OK);
    ASSERT_EQ(disk.Write(*file, bytes, 4096), SQLITE_OK);
    disk.Inject({.op = DiskOp::kSync});
    ASSERT_EQ(disk.Sync(*file), SQLITE_IOERR_FSYNC);
    ASSERT_EQ(disk.Sync(*file), SQLITE_OK);
    disk.CutPower(Survival::kNothing);
  }
  disk.PowerOn();
  EXPECT_EQ(disk.Content("/a"), text + std::string(4096, '\0'));
  {
    const auto file = disk.Open("/a", mode).file;
    ASSERT_EQ(disk.Write(*file, bytes, 4096), SQLITE_OK);
    disk.Inject({.op = DiskOp::kSync});
    ASSERT_EQ(disk.Sync(*file), SQLITE_IOERR_FSYNC);
    ASSERT_EQ(disk.Write(*file, bytes.first(1), 4096), SQLITE_OK) << "the page is dirty again";
    ASSERT_EQ(disk.Sync(*file), SQLITE_OK);
    disk.CutPower(Survival::kNothing);
  }
  disk.PowerOn();
  EXPECT_EQ(disk.Content("/a"), text + std::string(4086, '\0') + text);
}

TEST(FaultVfsTest, AFileWhoseDirectoryWasNotSyncedIsGoneOrBackAfterAPowerCut) {
  FaultDisk disk(testing::TestSeed());
  const auto write = [&](const std::string& name, bool log) {
    const auto file =
        disk.Open(name, {.writable = true, .create = true, .syncs_directory = log}).file;
    ASSERT_EQ(disk.Write(*file, std::as_bytes(std::span("x", 1)), 0), SQLITE_OK);
    ASSERT_EQ(disk.Sync(*file), SQLITE_OK);
    disk.Close(*file);
  };
  write("/d/kept", true);
  write("/d/lost", false);
  ASSERT_EQ(disk.Delete("/d/kept", FaultDisk::SyncDirectory::kNo), SQLITE_OK);
  disk.CutPower(Survival::kNothing);
  disk.PowerOn();
  EXPECT_EQ(disk.names(), std::vector<std::string>{"/d/kept"});
  write("/d/other", false);
  ASSERT_EQ(disk.Delete("/d/kept", FaultDisk::SyncDirectory::kYes), SQLITE_OK);
  disk.CutPower(Survival::kNothing);
  EXPECT_EQ(disk.names(), std::vector<std::string>{"/d/other"});
}

TEST(FaultVfsTest, ALogThatWasMadeByAnotherHandleIsKeptOnceItIsSyncedToo) {
  FaultDisk disk(testing::TestSeed());
  const FaultDisk::OpenMode mode = {.writable = true, .create = true, .syncs_directory = true};
  const auto first = disk.Open("/d/log", mode).file;
  disk.Inject({.op = DiskOp::kSync});
  ASSERT_EQ(disk.Sync(*first), SQLITE_IOERR_FSYNC);
  disk.Close(*first);
  const auto second = disk.Open("/d/log", mode).file;
  ASSERT_EQ(disk.Sync(*second), SQLITE_OK);
  disk.CutPower(Survival::kNothing);
  EXPECT_EQ(disk.names(), std::vector<std::string>{"/d/log"});
}

TEST(FaultVfsTest, EqualSeedsReplayATornCutExactly) {
  const auto run = [](std::uint64_t seed) {
    FaultDisk disk(seed);
    const auto file =
        disk.Open("/a", {.writable = true, .create = true, .syncs_directory = true}).file;
    EXPECT_EQ(disk.Sync(*file), SQLITE_OK);
    const std::string text(std::size_t{512} * 64, 'x');
    EXPECT_EQ(disk.Write(*file, std::as_bytes(std::span(text)), 100), SQLITE_OK);
    disk.CutPower(Survival::kSome);
    return disk.Content("/a").value_or("none");
  };
  EXPECT_EQ(run(testing::TestSeed()), run(testing::TestSeed()));
  EXPECT_NE(run(testing::TestSeed()), run(testing::TestSeed() + 1));
  const std::string torn = run(testing::TestSeed());
  EXPECT_NE(torn.find('x'), std::string::npos);
  EXPECT_NE(torn.find('\0', 100), std::string::npos);
}

TEST(FaultVfsTest, APowerCutAtEveryStepOfSqliteItselfLosesNothingAcknowledged) {
  std::int64_t n = 1;
  for (bool cut = true; cut; ++n) {
    FaultVfs vfs(testing::TestSeed() + static_cast<std::uint64_t>(n));
    vfs.disk().CutPowerAtStep(n, Survival::kSome);
    int acknowledged = -1;  // -1: not even the table
    {
      Raw db(vfs.name());
      db.Run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=3");
      if (db.Run("CREATE TABLE t(v)") == SQLITE_OK) acknowledged = 0;
      for (int i = 0; i < 6 && acknowledged == i; ++i) {
        if (db.Run("INSERT INTO t VALUES(hex(zeroblob(3000)))") == SQLITE_OK) ++acknowledged;
      }
    }
    cut = !vfs.disk().powered();
    if (cut) vfs.disk().PowerOn();
    vfs.disk().Heal();
    Raw db(vfs.name());
    EXPECT_EQ(db.Text("PRAGMA integrity_check"), "ok|") << n;
    if (acknowledged >= 0) {
      EXPECT_GE(std::atoi(db.Text("SELECT count(*) FROM t").c_str()), acknowledged) << n;
    }
  }
  EXPECT_GT(n, 30);
}

}  // namespace
}  // namespace interlock::sqlite
