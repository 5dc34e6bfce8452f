#include "store/meta.h"

#include <gtest/gtest.h>

#include <memory>

#include "db/migrate.h"
#include "store/schema.h"
#include "testing/fake_clock.h"
#include "testing/temp_db.h"

namespace interlock::store {
namespace {

class MetaTest : public ::testing::Test {
 protected:
  MetaTest() : connection_(temp_.Open()) {
    testing::FakeClock clock;
    EXPECT_TRUE(
        db::Migrator(ServerSchema(), {.database = temp_.path()}, clock).Run(*connection_).ok());
  }

  Result<Instance> Ensure(std::string_view id, Timestamp now) {
    IL_TRY_VOID(connection_->BeginExclusive());
    db::Transaction tx(*connection_);
    Result<Instance> instance = EnsureInstance(tx, id, now);
    IL_TRY_VOID(connection_->Commit());
    return instance;
  }

  testing::TempDb temp_;
  std::unique_ptr<sqlite::Connection> connection_;
};

TEST_F(MetaTest, TheFirstInstanceStays) {
  EXPECT_EQ(FindInstance(*connection_).value(), std::nullopt);
  const Instance first = {"one", {1'767'323'045'000'006}};
  EXPECT_EQ(Ensure(first.id, first.created_at).value(), first);
  EXPECT_EQ(Ensure("two", {5}).value(), first);
  EXPECT_EQ(FindInstance(*temp_.Open()).value(), first);
}

TEST_F(MetaTest, ATimeThatIsNoneIsReportedAsCorrupt) {
  ASSERT_TRUE(Ensure("one", {1}).ok());
  for (const char* script : {"UPDATE meta SET value = '12x' WHERE key = 'created_at'",
                             "UPDATE meta SET value = '' WHERE key = 'created_at'"}) {
    ASSERT_TRUE(connection_->RunScript(script).ok());
    const auto found = FindInstance(*connection_);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code(), Errc::kCorrupt);
  }
}

TEST_F(MetaTest, EveryDatabaseHasALogIdOfItsOwn) {
  const std::string id = ReadLogId(*connection_).value();
  EXPECT_EQ(id.size(), 32U);
  EXPECT_EQ(ReadLogId(*temp_.Open()).value(), id);
  testing::TempDb other;
  const auto connection = other.Open();
  testing::FakeClock clock;
  ASSERT_TRUE(
      db::Migrator(ServerSchema(), {.database = other.path()}, clock).Run(*connection).ok());
  EXPECT_NE(ReadLogId(*connection).value(), id);
}

TEST_F(MetaTest, FileOfAnOlderVersionGetsALogIdWhenItIsMigrated) {
  testing::TempDb old;
  const auto connection = old.Open();
  testing::FakeClock clock;
  db::Schema before = ServerSchema();
  before.steps = before.steps.first(8);
  ASSERT_TRUE(db::Migrator(before, {.database = old.path()}, clock).Run(*connection).ok());
  EXPECT_EQ(ReadLogId(*connection).error().code(), Errc::kCorrupt);
  ASSERT_TRUE(db::Migrator(ServerSchema(), {.database = old.path()}, clock).Run(*connection).ok());
  EXPECT_EQ(ReadLogId(*connection).value().size(), 32U);
}

}  // namespace
}  // namespace interlock::store
