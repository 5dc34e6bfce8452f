#include "db/sqlite/library.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstring>
#include <map>
#include <random>
#include <string>

#include "db/sqlite/local_vfs.h"
#include "testing/temp_db.h"

namespace interlock::sqlite {
namespace {

constexpr int kCreate = 2;
constexpr int kExtraBytes = 256;

TEST(LibraryTest, IsSetUpBeforeItsFirstUse) {
  LocalVfs();  // what every connection asks for first
  ASSERT_TRUE(SetUpLibrary());
  ASSERT_EQ(sqlite3_shutdown(), SQLITE_OK);  // SQLite tells its settings only while it is at rest
  sqlite3_pcache_methods2 installed = {};
  ASSERT_EQ(sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &installed), SQLITE_OK);
  EXPECT_EQ(installed.xFetch, PageCache().xFetch);
  EXPECT_EQ(installed.xRekey, PageCache().xRekey);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(":memory:", &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_memory_used(), 0);  // not counted
  sqlite3_close(db);
}

// Of each size that a file may have.
class PageCacheTest : public ::testing::TestWithParam<int> {
 public:
  void SetUp() override {
    ASSERT_TRUE(SetUpLibrary());
    ASSERT_EQ(sqlite3_initialize(), SQLITE_OK);
    cache_ = PageCache().xCreate(GetParam(), kExtraBytes, 1);
    PageCache().xCachesize(cache_, 100);
  }
  void TearDown() override {
    if (cache_ != nullptr) PageCache().xDestroy(cache_);
  }

 protected:
  sqlite3_pcache_page* Put(unsigned number, const std::string& text) {
    sqlite3_pcache_page* const page = PageCache().xFetch(cache_, number, kCreate);
    std::memcpy(page->pBuf, text.c_str(), text.size() + 1);
    return page;
  }
  const char* Get(unsigned number) {
    sqlite3_pcache_page* const page = PageCache().xFetch(cache_, number, 0);
    return page == nullptr ? "none" : static_cast<const char*>(page->pBuf);
  }

  const unsigned exchange_ = 0x40000000U / static_cast<unsigned>(GetParam()) + 1;
  sqlite3_pcache* cache_ = nullptr;
};

TEST_P(PageCacheTest, ExchangesTwoPages) {
  sqlite3_pcache_page* const three = Put(3, "three");
  sqlite3_pcache_page* const five = Put(5, "five");
  PageCache().xRekey(cache_, three, 3, exchange_);
  EXPECT_STREQ(Get(3), "none");
  EXPECT_STREQ(Get(exchange_), "three");
  PageCache().xRekey(cache_, five, 5, 3);
  PageCache().xRekey(cache_, three, exchange_, 5);
  EXPECT_STREQ(Get(3), "five");
  EXPECT_STREQ(Get(5), "three");
  EXPECT_STREQ(Get(exchange_), "none");
  EXPECT_EQ(PageCache().xPagecount(cache_), 2);
}

TEST_P(PageCacheTest, APageThatIsExchangedIsNotBehindTheEnd) {
  PageCache().xRekey(cache_, Put(3, "three"), 3, exchange_);
  PageCache().xTruncate(cache_, 10);
  EXPECT_STREQ(Get(exchange_), "three");
}

TEST_P(PageCacheTest, ForgetsThePagesBehindTheEnd) {
  for (unsigned number : {1U, 9U, 10U, 11U, exchange_ - 1, exchange_ + 1}) {
    Put(number, std::to_string(number));
  }
  PageCache().xTruncate(cache_, 10);
  EXPECT_EQ(PageCache().xPagecount(cache_), 2);
  EXPECT_STREQ(Get(1), "1");
  EXPECT_STREQ(Get(9), "9");
  for (unsigned number : {10U, 11U, exchange_ - 1, exchange_ + 1}) {
    EXPECT_STREQ(Get(number), "none") << number;
  }
}

// The number of the pending byte in a file of one size is that of a page in a file of another.
TEST_P(PageCacheTest, NumbersOfOtherSizesArePagesLikeAnyOther) {
  for (int other = 512; other <= 65536; other *= 2) {
    if (other == GetParam()) continue;
    const unsigned number = 0x40000000U / static_cast<unsigned>(other) + 1;
    sqlite3_pcache_page* const page = Put(7, "seven");
    PageCache().xRekey(cache_, page, 7, number);
    EXPECT_STREQ(Get(number), "seven") << number;
    PageCache().xTruncate(cache_, number);
    EXPECT_STREQ(Get(number), "none") << number;
  }
}

// Rows of all lengths at random places, so that pages are exchanged in nearly every transaction.
TEST_P(PageCacheTest, TreesThatAreBalancedStayWhole) {
  std::string text;  // the first column of the last row
  const testing::TempDir directory;
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((directory.path() / "trees.db").c_str(), &db), SQLITE_OK);
  const auto run = [&](const std::string& sql) {
    const auto keep = [](void* into, int, char** values, char**) {
      *static_cast<std::string*>(into) = values[0];
      return 0;
    };
    ASSERT_EQ(sqlite3_exec(db, sql.c_str(), keep, &text, nullptr), SQLITE_OK) << sql;
  };
  run("PRAGMA page_size=" + std::to_string(GetParam()));
  run("PRAGMA journal_mode=WAL");
  run("PRAGMA synchronous=OFF; PRAGMA cache_size=20");
  run("CREATE TABLE t(a TEXT PRIMARY KEY, b INTEGER) WITHOUT ROWID; CREATE INDEX i ON t(b, a)");
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  std::map<std::string, int> rows;
  for (int transaction = 0; transaction < 60; ++transaction) {
    run("BEGIN");
    for (int i = 0; i < 40; ++i) {
      const std::string key = std::to_string(random() % 2'000);
      const std::string whole = key + std::string(std::stoul(key) * 7919 % 300, 'x');
      if (random() % 4 == 0) {
        rows.erase(whole);
        run("DELETE FROM t WHERE a = '" + whole + "'");
      } else {
        rows[whole] = static_cast<int>(random() % 1'000);
        run("REPLACE INTO t VALUES ('" + whole + "', " + std::to_string(rows[whole]) + ")");
      }
    }
    run("COMMIT");
  }
  run("PRAGMA integrity_check");
  EXPECT_EQ(text, "ok");
  std::string expected;
  for (const auto& [key, value] : rows) expected += key + "=" + std::to_string(value) + ";";
  run("SELECT group_concat(a || '=' || b || ';', '') FROM (SELECT a, b FROM t ORDER BY a)");
  EXPECT_EQ(text, expected);
  sqlite3_close(db);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PageCacheTest,
                         ::testing::Values(512, 1024, 2048, 4096, 8192, 16384, 32768, 65536));

}  // namespace
}  // namespace interlock::sqlite
