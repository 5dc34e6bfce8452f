// Files of the program that `ic` replaces, taken over by the real `ic` and used afterwards.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cli/ic_process.h"
#include "db/backups.h"
#include "testing/db_dump.h"
#include "testing/old_ic_file.h"
#include "testing/random.h"
#include "testing/raw_db.h"
#include "testing/seeded_random.h"

namespace interlock {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::DbDump;
using testing::Finished;
using ::testing::HasSubstr;
using testing::IcCall;
using testing::IcPlace;
using testing::kOldIcNewest;
using ::testing::Not;

void MakeOldFile(const IcPlace& place, int version) {
  fs::create_directory(place.path() / ".clavain");
  testing::MakeOldIcFile(place.database(), version);
}

// One version of each shape: the first, the first with runs, and those with and without checks.
class TakeoverTest : public ::testing::TestWithParam<int> {};

TEST_P(TakeoverTest, EveryCommandGoesOnWithWhatWasThere) {
  const IcPlace place;
  MakeOldFile(place, GetParam());
  const auto ok = [&](std::vector<std::string> words) {
    const Finished run =
        place.Run({.arguments = std::move(words),
                   .environment = {"INTERCORE_LOCK_DIR=" + (place.path() / "locks").string()}});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  };
  EXPECT_THAT(place.Ic({"state", "get", "dispatch", "s1"}).err, HasSubstr("run 'ic init'"));
  EXPECT_THAT(ok({"init"}), HasSubstr("(schema v100)"));
  EXPECT_EQ(ok({"health"}), "ok\n");
  EXPECT_EQ(ok({"state", "get", "dispatch", "s1"}), "{\"phase\":\"plan\"}\n");
  ok({"state", "set", "dispatch", "s1", "2"});
  EXPECT_EQ(ok({"state", "incr", "dispatch", "s1"}), "3\n");
  place.Sql("UPDATE sentinels SET last_fired = last_fired - 86400");
  EXPECT_EQ(ok({"sentinel", "prune", "--older-than=1h"}), "0 pruned\n");
  EXPECT_EQ(place.Ic({"sentinel", "check", "once", "s1", "--interval=0"}).out, "throttled\n");
  EXPECT_EQ(ok({"sentinel", "check", "another", "s1", "--interval=0"}), "allowed\n");
  ok({"lock", "acquire", "l", "s1", "--owner=me"});
  ok({"lock", "release", "l", "s1", "--owner=me"});
  if (GetParam() >= 3) {
    EXPECT_THAT(ok({"run", "list"}), HasSubstr("run00001"));
    EXPECT_THAT(ok({"run", "status", "run00001"}), HasSubstr("ship it"));
    EXPECT_THAT(ok({"run", "events", "run00001"}), HasSubstr("from_phase"));
    EXPECT_THAT(ok({"run", "cancel", "run00001"}), HasSubstr("cancelled"));
  }
  ok({"run", "create", "--goal=next", "--project=/q"});
  EXPECT_EQ(ok({"health", "--full"}), "ok\n");
}

TEST_P(TakeoverTest, ARollbackBringsTheOldFileBack) {
  const IcPlace place;
  MakeOldFile(place, GetParam());
  const auto before = DbDump::Of(place.database());
  place.Init();
  place.Ic({"state", "set", "new", "s1", "1"});
  const Finished back = place.Ic({"migrate", "rollback", "--yes"});
  EXPECT_EQ(back.exit_code, 0) << back.err;
  EXPECT_EQ(DbDump::Of(place.database()), before);
  place.Init();
  EXPECT_EQ(DbDump::Missing(before, DbDump::Of(place.database())), "");
}

INSTANTIATE_TEST_SUITE_P(Versions, TakeoverTest, ::testing::Values(1, 3, 20, 31, 35, kOldIcNewest),
                         ::testing::PrintToStringParamName());

TEST(TakeoverCrowdTest, OfManyAtOnceOneTakesItOverAndAllSucceed) {
  const IcPlace place;
  MakeOldFile(place, kOldIcNewest);
  const auto before = DbDump::Of(place.database());
  for (const Finished& init : place.RunAtOnce(20, [](std::size_t) { return IcCall{{"init"}}; })) {
    EXPECT_EQ(init.exit_code, 0) << init.err;
  }
  EXPECT_EQ(db::Backups(place.database(), 5).List().size(), 1U);
  EXPECT_EQ(DbDump::Missing(before, DbDump::Of(place.database())), "");
}

// Either all of the old file is there or all of the new one, and the next call goes on from there.
TEST(TakeoverCrashTest, AKillLeavesTheOldFileOrTheNewOne) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 12; ++round) {
    const IcPlace place;
    MakeOldFile(place, kOldIcNewest);
    const auto before = DbDump::Of(place.database());
    const auto init = place.Start({.arguments = {"init"}});
    std::this_thread::sleep_for(std::chrono::microseconds(testing::Below(rng, 40'000)));
    init->Signal(SIGKILL);
    init->Finish();
    const std::int64_t version = place.Int("PRAGMA user_version");
    EXPECT_TRUE(version == kOldIcNewest || version == 100) << version;
    const auto found = DbDump::Of(place.database());
    EXPECT_EQ(version == 100 ? DbDump::Missing(before, found) : DbDump::Missing(found, before), "");
    place.Init();
    EXPECT_EQ(place.Int("PRAGMA user_version"), 100);
    EXPECT_EQ(DbDump::Missing(before, DbDump::Of(place.database())), "");
    EXPECT_EQ(place.Ic({"sentinel", "check", "once", "s1", "--interval=0"}).out, "throttled\n");
  }
}

// Nothing is said of damage, and the file stays as it is.
TEST(TakeoverRefusalTest, AFileThatCallsWhatIsNotRunIsRefusedWithTheReason) {
  const IcPlace place;
  fs::create_directory(place.path() / ".clavain");
  testing::RawDb(place.database())
      .Run(
          "CREATE TABLE other (x); INSERT INTO other VALUES (1); PRAGMA writable_schema=ON;"
          "INSERT INTO sqlite_schema VALUES ('table', 'state', 'state', 0,"
          "  'CREATE VIRTUAL TABLE state USING elsewhere (key, scope_id, payload, updated_at)');"
          "PRAGMA user_version=39");
  const auto before = fs::last_write_time(place.database());
  const Finished init = place.Ic({"init"});
  EXPECT_EQ(init.exit_code, 2);
  EXPECT_THAT(init.err, AllOf(HasSubstr("no such module: elsewhere"), HasSubstr("not damaged"),
                              HasSubstr("move this one away"), Not(HasSubstr("is damaged"))));
  EXPECT_EQ(fs::last_write_time(place.database()), before);
  EXPECT_TRUE(db::Backups(place.database(), 5).List().empty());
}

}  // namespace
}  // namespace interlock
