#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/ic_process.h"

// `ic state wait`: sleeps until the value is there.
namespace interlock {
namespace {

using std::chrono::milliseconds;
using testing::Finished;
using ::testing::HasSubstr;
using testing::IcPlace;
using testing::IcProcess;

class StateWaitTest : public ::testing::Test {
 protected:
  void SetUp() override { place_.Init(); }

  std::unique_ptr<IcProcess> Wait(const std::vector<std::string>& flags = {}) const {
    std::vector<std::string> call = {"state", "wait", "key", "s", "--timeout=60s"};
    call.insert(call.end(), flags.begin(), flags.end());
    return place_.Start({call});
  }
  void Set(const std::string& payload) const {
    EXPECT_EQ(place_.Ic({"state", "set", "key", "s", payload}).exit_code, 0);
  }

  IcPlace place_;
};

// How often a process gave up the processor by itself: it goes up with every sleep.
int SleepsOf(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    if (word != "voluntary_ctxt_switches:") continue;
    int sleeps = 0;
    status >> sleeps;
    return sleeps;
  }
  return -1;
}

TEST_F(StateWaitTest, WhatIsThereIsPrintedAtOnce) {
  Set("{\"a\": 1}");
  EXPECT_EQ(Wait()->Finish().out, "{\"a\": 1}\n");
  const Finished json = Wait({"--json"})->Finish();
  EXPECT_EQ(json.exit_code, 0);
  EXPECT_THAT(json.out, HasSubstr("\"version\":1,"));
  EXPECT_THAT(json.out, HasSubstr("\"payload\":{\"a\":1}}\n"));
}

TEST_F(StateWaitTest, AWriteEndsTheWait) {
  const auto wait = Wait();
  EXPECT_FALSE(wait->EndsWithin(milliseconds(100)));
  EXPECT_EQ(place_.Ic({"state", "set", "key", "other", "1"}).exit_code, 0);
  EXPECT_EQ(place_.Ic({"state", "set", "other", "s", "1"}).exit_code, 0);
  EXPECT_FALSE(wait->EndsWithin(milliseconds(100))) << "that was another key, another scope";
  Set("7");
  const Finished run = wait->Finish();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "7\n");
}

TEST_F(StateWaitTest, SinceVersionWaitsForALaterOne) {
  Set("1");
  Set("2");
  const auto wait = Wait({"--since-version=2"});
  EXPECT_FALSE(wait->EndsWithin(milliseconds(100)));
  Set("3");
  EXPECT_EQ(wait->Finish().out, "3\n");
  EXPECT_EQ(Wait({"--since-version=2"})->Finish().out, "3\n");
}

TEST_F(StateWaitTest, TheDeadlineIsExitCode1WithoutAWord) {
  for (const std::string limit : {"0", "1ms", "120ms"}) {
    const Finished run = place_.Ic({"state", "wait", "key", "s", "--timeout=" + limit});
    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_EQ(run.out + run.err, "");
  }
}

TEST_F(StateWaitTest, AValueThatExpiredIsNotWaitedOut) {
  Set("1");
  place_.Sql("UPDATE state SET expires_at = 1");
  const auto wait = Wait();
  EXPECT_FALSE(wait->EndsWithin(milliseconds(100)));
  Set("2");
  EXPECT_EQ(wait->Finish().out, "2\n");
}

bool HasInotify(pid_t pid) {
  return std::ranges::count(testing::OpenFilesOf(pid), "anon_inode:inotify") == 1;
}

// Once it has settled it looks once a second, and is woken when the file changes.
TEST_F(StateWaitTest, ItSleepsWhileNothingHappens) {
  const auto wait = Wait();
  EXPECT_FALSE(wait->EndsWithin(milliseconds(1'200))) << "settles";
  const int before = SleepsOf(wait->pid());
  ASSERT_GT(before, 0);
  EXPECT_FALSE(wait->EndsWithin(milliseconds(500)));
  EXPECT_LE(SleepsOf(wait->pid()) - before, 5);
  EXPECT_TRUE(HasInotify(wait->pid()));
  Set("1");
  EXPECT_EQ(wait->Finish().out, "1\n");
}

TEST_F(StateWaitTest, S25ItHasTheFileOpenOnceHoweverOftenItLooks) {
  Set("1");
  const auto wait = Wait({"--since-version=1000"});
  EXPECT_FALSE(wait->EndsWithin(milliseconds(200)));
  const std::vector<std::string> before = testing::OpenFilesOf(wait->pid());
  const std::string file = place_.database().string();
  for (const std::string& name : {file, file + "-wal", file + "-shm"}) {
    EXPECT_EQ(std::ranges::count(before, name), 1) << name;
  }
  for (int i = 0; i < 20; ++i) Set(std::to_string(i));
  EXPECT_FALSE(wait->EndsWithin(milliseconds(100)));
  EXPECT_EQ(testing::OpenFilesOf(wait->pid()), before);
}

TEST_F(StateWaitTest, SignalsEndItAndLeaveTheFileSound) {
  for (const int signal : {SIGTERM, SIGINT, SIGKILL}) {
    const auto wait = Wait();
    EXPECT_FALSE(wait->EndsWithin(milliseconds(50)));
    wait->Signal(signal);
    EXPECT_EQ(wait->Finish().exit_code, 128 + signal);
    EXPECT_EQ(place_.Ic({"state", "incr", "n", "s"}).exit_code, 0);
    EXPECT_EQ(place_.Ic({"health"}).out, "ok\n");
  }
}

TEST_F(StateWaitTest, AFileThatTakesThePlaceOfTheDatabaseIsWaitedOn) {
  const IcPlace other;
  other.Init();
  const auto wait = Wait();
  EXPECT_FALSE(wait->EndsWithin(milliseconds(100)));
  for (const char* const suffix : {"-wal", "-shm"}) {
    std::filesystem::remove(place_.database().string() + suffix);
  }
  std::filesystem::rename(other.database(), place_.database());
  EXPECT_FALSE(wait->EndsWithin(milliseconds(100))) << "it does not have the key";
  Set("7");
  ASSERT_TRUE(wait->EndsWithin(milliseconds(10'000)));
  EXPECT_EQ(wait->Finish().out, "7\n");
}

TEST_F(StateWaitTest, ADatabaseThatIsRemovedEndsTheWaitAndSaysSo) {
  // Above it is another one, which the call does not mean.
  const std::filesystem::path inner = place_.path() / "inner";
  std::filesystem::create_directory(inner);
  const auto database = [&] { return inner / ".clavain" / "intercore.db"; };
  const std::vector<std::function<void()>> removals = {
      [&] { std::filesystem::remove(database()); },
      [&] { std::filesystem::remove_all(inner / ".clavain"); },
      [&] { std::filesystem::rename(inner / ".clavain", inner / "away"); }};
  for (const auto& remove : removals) {
    std::filesystem::remove_all(inner / ".clavain");
    ASSERT_EQ(place_.Ic({"init", "--db=" + database().string()}).exit_code, 0);
    const auto wait = place_.Start(
        {.arguments = {"state", "wait", "key", "s", "--timeout=60s"}, .directory = "inner"});
    // Until it watches the file it may not have looked for it, and would find the one above.
    while (!HasInotify(wait->pid())) ASSERT_FALSE(wait->EndsWithin(milliseconds(10)));
    remove();
    ASSERT_TRUE(wait->EndsWithin(milliseconds(10'000)));
    const Finished run = wait->Finish();
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("there is no database at " + database().string()));
  }
}

TEST_F(StateWaitTest, ManyWaitersAllWake) {
  constexpr std::size_t kWaiters = 8;
  std::vector<std::unique_ptr<IcProcess>> waits;
  waits.reserve(kWaiters);
  for (std::size_t i = 0; i < kWaiters; ++i) waits.push_back(Wait());
  EXPECT_FALSE(waits.back()->EndsWithin(milliseconds(100)));
  Set("1");
  for (const auto& wait : waits) EXPECT_EQ(wait->Finish().out, "1\n");
}

}  // namespace
}  // namespace interlock
