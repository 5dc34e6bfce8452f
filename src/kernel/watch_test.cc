#include "kernel/watch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/clock.h"
#include "testing/raw_db.h"
#include "testing/temp_db.h"

namespace interlock::kernel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using enum DatabaseWatch::WaitResult;

class WatchTest : public ::testing::Test {
 protected:
  WatchTest() {
    temp_.Make("CREATE TABLE t (x INTEGER);");
    connection_ = temp_.Open();
  }

  void Append(const std::string& name) const {
    std::ofstream(temp_.directory() / name, std::ios::app) << "x";
  }
  void Insert() const {
    const auto result = connection_->RunScript("INSERT INTO t VALUES (1);");
    ASSERT_TRUE(result.ok()) << result.error();
  }

  testing::TempDb temp_;
  std::unique_ptr<sqlite::Connection> connection_;
};

TEST_F(WatchTest, SeesACommitByAnotherConnection) {
  DatabaseWatch watch(temp_.path());
  EXPECT_EQ(watch.Wait(Duration::zero()), kTimeout);
  Insert();
  EXPECT_EQ(watch.Wait(seconds(30)), kWrite);
  EXPECT_EQ(watch.Wait(Duration::zero()), kTimeout) << "told once";
}

TEST_F(WatchTest, SeesALogThatIsMadeAnew) {
  connection_.reset();
  ASSERT_FALSE(std::filesystem::exists(temp_.path().string() + "-wal"));
  DatabaseWatch watch(temp_.path());
  connection_ = temp_.Open();
  Insert();
  EXPECT_EQ(watch.Wait(seconds(30)), kWrite);
}

TEST_F(WatchTest, SeesAFileThatIsReplacedOrRemovedAndADirectoryThatGoes) {
  DatabaseWatch watch(temp_.path());
  Append("other.db");
  EXPECT_EQ(watch.Wait(seconds(30)), kOther);
  std::filesystem::rename(temp_.directory() / "other.db", temp_.path());
  EXPECT_EQ(watch.Wait(seconds(30)), kWrite);
  std::filesystem::remove(temp_.path());
  EXPECT_EQ(watch.Wait(seconds(30)), kWrite);
  const std::filesystem::path inner = temp_.directory() / "inner";
  std::filesystem::create_directory(inner);
  DatabaseWatch of_inner(inner / "x.db");
  std::filesystem::rename(inner, temp_.directory() / "moved");
  EXPECT_EQ(of_inner.Wait(seconds(30)), kWrite);
  std::filesystem::remove(temp_.directory() / "moved");
  EXPECT_EQ(of_inner.Wait(seconds(30)), kWrite);
}

TEST_F(WatchTest, WhatHappensToOtherFilesIsNoWrite) {
  DatabaseWatch watch(temp_.path());
  Append("test.db-shm");
  Append("other.db");
  Append("test.db-wal2");
  EXPECT_EQ(watch.Wait(seconds(30)), kOther);
  Insert();
  EXPECT_EQ(watch.Wait(seconds(30)), kWrite);
}

TEST_F(WatchTest, WithNothingToWatchTheTimeRunsOut) {
  DatabaseWatch watch("/nonexistent/directory/x.db");
  EXPECT_EQ(watch.Wait(milliseconds(1)), kTimeout);
}

TEST(LookPlanTest, LooksSoonAfterAWriteAndThenLessAndLess) {
  PollBackoff plan;
  EXPECT_EQ(plan.next(), milliseconds(1)) << "something may be on its way already";
  int looks = 0;
  for (Duration sum = {}; sum < seconds(10); sum += plan.next()) {
    plan.After(kTimeout);
    ++looks;
  }
  EXPECT_EQ(plan.next(), seconds(1));
  EXPECT_LE(looks, 20);
  plan.After(kOther);
  EXPECT_EQ(plan.next(), seconds(1));
  plan.After(kWrite);
  EXPECT_EQ(plan.next(), milliseconds(1));
  plan.After(kOther);
  EXPECT_EQ(plan.next(), milliseconds(1)) << "the write may still become visible";
  plan.After(kTimeout);
  EXPECT_EQ(plan.next(), milliseconds(2));
}

TEST_F(WatchTest, LookUntilLooksOnceWhenThereIsNoTime) {
  SystemClock clock;
  int looks = 0;
  EXPECT_FALSE(PollUntil(temp_.path(), clock, Duration::zero(), [&]() -> Result<bool> {
                 ++looks;
                 return false;
               }).value());
  EXPECT_EQ(looks, 1);
}

TEST_F(WatchTest, LookUntilEndsWithTheLookThatFindsOrFails) {
  SystemClock clock;
  int looks = 0;
  EXPECT_TRUE(PollUntil(temp_.path(), clock, Duration::max(), [&]() -> Result<bool> {
                return ++looks == 3;
              }).value());
  EXPECT_EQ(looks, 3);
  EXPECT_FALSE(PollUntil(temp_.path(), clock, Duration::max(), []() -> Result<bool> {
                 return Error(Errc::kIo, "the disk is gone");
               }).ok());
}

TEST_F(WatchTest, LookUntilLooksAgainAfterAWrite) {
  SystemClock clock;
  // Until the looks come every second, then a write: the next look must come long before.
  int looks = 0;
  Duration last = clock.Monotonic();
  Duration pause = {};
  EXPECT_TRUE(PollUntil(temp_.path(), clock, seconds(60), [&]() -> Result<bool> {
                pause = clock.Monotonic() - last;
                last = clock.Monotonic();
                if (++looks == 11) Insert();
                return looks == 12;
              }).value());
  EXPECT_LT(pause, milliseconds(800)) << "without the write it is a second";
}

}  // namespace
}  // namespace interlock::kernel
