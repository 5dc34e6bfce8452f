#include "db/sqlite/local_vfs.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "db/sqlite/connection.h"
#include "testing/temp_db.h"

namespace interlock::sqlite {
namespace {

using testing::TempDb;

// How often SQLite opened a directory, which it does only to sync it.
int directories_opened = 0;
sqlite3_syscall_ptr own_open = nullptr;

int CountingOpen(const char* name, int* fd) {
  ++directories_opened;
  return reinterpret_cast<int (*)(const char*, int*)>(own_open)(name, fd);
}

class LocalVfsTest : public ::testing::Test {
 public:
  LocalVfsTest() {
    EXPECT_STREQ(LocalVfs(), "interlock");
    sqlite3_vfs* const own = sqlite3_vfs_find("unix");
    own_open = own->xGetSystemCall(own, "openDirectory");
    own->xSetSystemCall(own, "openDirectory", reinterpret_cast<sqlite3_syscall_ptr>(CountingOpen));
  }
  ~LocalVfsTest() override {
    sqlite3_vfs* const own = sqlite3_vfs_find("unix");
    own->xSetSystemCall(own, "openDirectory", nullptr);
  }

 protected:
  // As a process of `ic` does: one connection, one write, the log stays.
  int DirectoriesSyncedByAWrite() const {
    OpenOptions options = temp_.options();
    options.upkeep = LogUpkeep::kByCaller;
    const auto connection = Connection::Open(options).value();
    directories_opened = 0;
    EXPECT_TRUE(connection->BeginExclusive().ok());
    EXPECT_TRUE(connection->Run("INSERT INTO t VALUES (1)").ok());
    EXPECT_TRUE(connection->Commit().ok());
    return directories_opened;
  }

  TempDb temp_;
};

TEST_F(LocalVfsTest, OnlyALogThatIsNewOrEmptySyncsItsDirectory) {
  temp_.Make("CREATE TABLE t(a)");  // and takes the log away
  EXPECT_EQ(DirectoriesSyncedByAWrite(), 1) << "a new log";
  EXPECT_EQ(DirectoriesSyncedByAWrite(), 0) << "it holds something";
  {
    OpenOptions options = temp_.options();
    options.upkeep = LogUpkeep::kByCaller;
    ASSERT_TRUE(Connection::Open(options).value()->Checkpoint().ok());
  }
  EXPECT_EQ(DirectoriesSyncedByAWrite(), 1) << "an empty log";
}

}  // namespace
}  // namespace interlock::sqlite
