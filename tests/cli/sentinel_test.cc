#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cli/ic_process.h"
#include "testing/child_process.h"
#include "testing/lock_holder.h"
#include "testing/random.h"

// `ic sentinel` as hooks call it. Tests that begin with S and a number are lines of the list of
// what ic was founded to do.
namespace interlock {
namespace {

namespace fs = std::filesystem;
using testing::Finished;
using ::testing::HasSubstr;
using testing::IcCall;
using testing::IcPlace;
using testing::UnixNow;

constexpr std::int64_t kDay = 86'400;
constexpr db::Sql kLastFired = "SELECT last_fired FROM sentinels WHERE name = 'guard'";
constexpr db::Sql kRows = "SELECT count(*) FROM sentinels";

class SentinelProcessTest : public ::testing::Test {
 protected:
  void SetUp() override { place_.Init(); }

  // "allowed", "throttled", or what went wrong.
  std::string Check(const std::string& interval, const std::string& name = "guard") const {
    const Finished run = place_.Ic({"sentinel", "check", name, "scope", "--interval=" + interval});
    if (run.exit_code == 0 && run.out == "allowed\n" && run.err.empty()) return "allowed";
    if (run.exit_code == 1 && run.out == "throttled\n" && run.err.empty()) return "throttled";
    return "exit code " + std::to_string(run.exit_code) + ": " + run.out + run.err;
  }
  // As if it had fired at another time.
  void FiredAt(std::int64_t time, const std::string& name = "guard") const {
    place_.Sql("UPDATE sentinels SET last_fired = " + std::to_string(time) + " WHERE name = '" +
               name + "'");
  }

  IcPlace place_;
};

// A scope is any text, and names of older programs are too: a row stays one line of three fields.
TEST_F(SentinelProcessTest, ARowIsOneLineWhateverItsNameAndScopeHold) {
  for (const std::string name : {"tab\there", "line\nbreak", "esc\x1b", "del\x7f"}) {
    const Finished check = place_.Ic({"sentinel", "check", name, "s", "--interval=0"});
    EXPECT_EQ(check.exit_code, 2) << name;
    EXPECT_THAT(check.err, HasSubstr("control character"));
    EXPECT_EQ(place_.Ic({"sentinel", "check-many", "a", "s", "0", name, "s", "0"}).exit_code, 2);
  }
  EXPECT_EQ(place_.Int(kRows), 0) << "not even the one before it";
  EXPECT_EQ(place_.Ic({"sentinel", "check-many", "a", "x\ty\nz", "0", "a", "\"q\"", "0"}).out,
            "a\t\"x\\ty\\nz\"\tallowed\na\t\"\\\"q\\\"\"\tallowed\n");
  place_.Sql("INSERT INTO sentinels (name, scope_id, last_fired) VALUES ('old\tname', 's', 5)");
  place_.Sql("UPDATE sentinels SET last_fired = 7 WHERE name = 'a'");
  EXPECT_EQ(place_.Ic({"sentinel", "list"}).out,
            "a\t\"\\\"q\\\"\"\t7\na\t\"x\\ty\\nz\"\t7\n\"old\\tname\"\ts\t5\n");
  EXPECT_EQ(place_.Ic({"sentinel", "reset", "old\tname", "s"}).exit_code, 0);
  EXPECT_EQ(place_.Int(kRows), 2) << "what is there can be removed";
}

struct Tally {
  int allowed = 0;
  int throttled = 0;
  std::string other = {};
};

Tally TallyOf(const std::vector<Finished>& runs) {
  Tally tally;
  for (const Finished& run : runs) {
    if (run.exit_code == 0 && run.out == "allowed\n") {
      ++tally.allowed;
    } else if (run.exit_code == 1 && run.out == "throttled\n") {
      ++tally.throttled;
    } else {
      tally.other += std::to_string(run.exit_code) + ": " + run.out + run.err + "\n";
    }
    tally.other += run.err;
  }
  return tally;
}

TEST_F(SentinelProcessTest, S01OfManyAtOnceExactlyOneIsAllowed) {
  for (const std::string interval : {"60", "0"}) {
    for (const int count : {5, 10, 64}) {
      if (testing::kSlowBuild && interval == "0" && count == 64) continue;
      const std::string name = "guard-" + std::to_string(count) + "-" + interval;
      const Tally tally =
          TallyOf(place_.RunAtOnce(static_cast<std::size_t>(count), [&](std::size_t) {
            return IcCall{{"sentinel", "check", name, "s", "--interval=" + interval}};
          }));
      EXPECT_EQ(tally.allowed, 1) << name;
      EXPECT_EQ(tally.throttled, count - 1) << name;
      EXPECT_EQ(tally.other, "") << name;
    }
  }
}

TEST_F(SentinelProcessTest, S02IntervalZeroFiresOnceForGood) {
  EXPECT_EQ(Check("0"), "allowed");
  EXPECT_EQ(Check("0"), "throttled");
  for (const std::int64_t days : {8, 400}) {
    FiredAt(UnixNow() - days * kDay);
    EXPECT_EQ(Check("0"), "throttled") << days;
    EXPECT_EQ(Check("60", "another"), days == 8 ? "allowed" : "throttled") << "it prunes";
    EXPECT_EQ(Check("0"), "throttled") << days;
  }
  EXPECT_EQ(place_.Ic({"sentinel", "reset", "guard", "scope"}).out, "reset\n");
  EXPECT_EQ(Check("0"), "allowed");
}

TEST_F(SentinelProcessTest, S03NoPositiveIntervalArmsAOnceGuardAgain) {
  EXPECT_EQ(Check("0"), "allowed");
  FiredAt(UnixNow() - 2);
  EXPECT_EQ(Check("1"), "throttled");
  FiredAt(UnixNow() - 400 * kDay);
  EXPECT_EQ(Check("1"), "throttled");
  EXPECT_EQ(Check("0"), "throttled");
}

TEST_F(SentinelProcessTest, S04AnIntervalFiresAtFirstAndThenWhenItHasPassed) {
  EXPECT_EQ(Check("5000"), "allowed");
  EXPECT_EQ(Check("5000"), "throttled");
  FiredAt(UnixNow() - 4'900);
  EXPECT_EQ(Check("5000"), "throttled");
  FiredAt(UnixNow() - 5'000);
  EXPECT_EQ(Check("5000"), "allowed");
  EXPECT_EQ(Check("5000"), "throttled");
  FiredAt(0);
  EXPECT_EQ(Check("5000"), "allowed") << "a row that never fired";
}

TEST_F(SentinelProcessTest, S05ACheckWaitsForTheWriterAndDoesNotFail) {
  place_.Sql("CREATE TABLE note (text TEXT)");
  testing::LockHolder other(place_.database());
  other.Lock();
  const auto check =
      place_.Start({{"--timeout=30s", "sentinel", "check", "guard", "scope", "--interval=60"}});
  EXPECT_FALSE(check->EndsWithin(std::chrono::milliseconds(300)));
  other.Commit();
  const Finished run = check->Finish();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "allowed\n");
}

// The hook dies between "allowed" and its work. That the guard stays used up is documented, and a
// reset makes up for it.
TEST_F(SentinelProcessTest, S15AHookThatWasKilledHasUsedItsTurnUntilAReset) {
  const std::string ic = IcPlace::program().string();
  const Finished hook = testing::RunProgram(
      {"/bin/sh", "-c",
       "'" + ic + "' sentinel check guard scope --interval=0 && kill -9 $$; echo not reached"},
      place_.path().string());
  EXPECT_EQ(hook.exit_code, 128 + SIGKILL);
  EXPECT_EQ(hook.out, "allowed\n");
  EXPECT_EQ(Check("0"), "throttled");
  EXPECT_EQ(place_.Ic({"sentinel", "reset", "guard", "scope"}).exit_code, 0);
  EXPECT_EQ(Check("0"), "allowed");
}

TEST_F(SentinelProcessTest, S19StaleRowsGoWithAnyCheckAndOnceGuardsStay) {
  EXPECT_EQ(Check("60", "old"), "allowed");
  EXPECT_EQ(Check("0", "once"), "allowed");
  FiredAt(UnixNow() - 8 * kDay, "old");
  FiredAt(UnixNow() - 8 * kDay, "once");
  EXPECT_EQ(Check("60"), "allowed");
  EXPECT_EQ(place_.Text("SELECT group_concat(name) FROM (SELECT name FROM sentinels ORDER BY 1)"),
            "guard,once");
  FiredAt(UnixNow(), "once");
  place_.Sql("INSERT INTO sentinels (name, scope_id, last_fired, interval_s) VALUES ('o','o',1,9)");
  EXPECT_EQ(Check("60"), "throttled");
  EXPECT_EQ(place_.Int(kRows), 2) << "a throttled check prunes too";
}

TEST_F(SentinelProcessTest, S19PruningThatFailsIsAWarningAndNotAVerdict) {
  EXPECT_EQ(Check("60", "old"), "allowed");
  FiredAt(UnixNow() - 8 * kDay, "old");
  place_.Sql(
      "CREATE TRIGGER no BEFORE DELETE ON sentinels BEGIN SELECT RAISE(ABORT, 'not today'); END");
  const std::vector<std::string> check = {"sentinel", "check", "guard", "scope", "--interval=60"};
  const Finished first = place_.Ic(check);
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_EQ(first.out, "allowed\n");
  EXPECT_THAT(first.err, HasSubstr("ic: sentinel check: warning: cannot remove old sentinels"));
  EXPECT_THAT(first.err, HasSubstr("not today"));
  const Finished second = place_.Ic(check);
  EXPECT_EQ(second.exit_code, 1) << "the claim was committed";
  EXPECT_EQ(second.out, "throttled\n");
  EXPECT_EQ(place_.Int(kRows), 2);
}

TEST_F(SentinelProcessTest, S19PruningThatEndsTheTransactionIsAWarningToo) {
  EXPECT_EQ(Check("60", "old"), "allowed");
  FiredAt(UnixNow() - 8 * kDay, "old");
  place_.Sql(
      "CREATE TRIGGER no BEFORE DELETE ON sentinels BEGIN SELECT RAISE(ROLLBACK, 'all'); END");
  const std::vector<std::string> check = {"sentinel", "check", "guard", "scope", "--interval=60"};
  const Finished first = place_.Ic(check);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, "allowed\n");
  EXPECT_THAT(first.err, HasSubstr("cannot remove old sentinels"));
  EXPECT_EQ(place_.Ic(check).exit_code, 1) << "the claim was committed";
}

TEST_F(SentinelProcessTest, AClaimThatIsLostIsNeverAllowed) {
  place_.Sql(
      "CREATE TRIGGER no AFTER UPDATE ON sentinels BEGIN SELECT RAISE(ROLLBACK, 'all'); END");
  const Finished check = place_.Ic({"sentinel", "check", "guard", "scope", "--interval=60"});
  EXPECT_EQ(check.exit_code, 2);
  EXPECT_EQ(check.out, "");
  EXPECT_NE(check.err, "");
  EXPECT_EQ(place_.Int(kRows), 0);
}

// Each damage, then a check that must say so: exit code 2, nothing on stdout, a remedy on stderr.
TEST_F(SentinelProcessTest, S20DamageIsToldAndNeverAVerdict) {
  EXPECT_EQ(Check("0"), "allowed");
  const fs::path log = place_.database().string() + "-wal";
  const fs::path saved = place_.path() / "saved";
  fs::copy(place_.database().parent_path(), saved);
  const std::string garbage(fs::file_size(log), 'x');
  const std::vector<std::pair<std::string, std::function<void()>>> damages = {
      {"a log overwritten", [&] { std::ofstream(log) << garbage; }},
      {"a log of a few bytes", [&] { std::ofstream(log) << "garbage\n"; }},
      {"a log cut in the middle", [&] { fs::resize_file(log, 100); }},
      {"a log that lost its last byte", [&] { fs::resize_file(log, fs::file_size(log) - 1); }},
      {"a log emptied", [&] { fs::resize_file(log, 0); }},
      {"a log that is a directory",
       [&] {
         fs::remove(log);
         fs::create_directory(log);
       }},
      {"a database overwritten", [&] { std::ofstream(place_.database()) << garbage; }},
      {"a database emptied", [&] { fs::resize_file(place_.database(), 0); }},
  };
  for (const auto& [what, damage] : damages) {
    SCOPED_TRACE(what);
    damage();
    for (const std::vector<std::string>& call :
         {std::vector<std::string>{"sentinel", "check", "guard", "scope", "--interval=0"},
          {"state", "get", "key", "scope"},
          {"state", "set", "key", "scope", "1"}}) {
      const Finished run = place_.Ic(call);
      EXPECT_EQ(run.exit_code, 2) << call[1] << run.out;
      EXPECT_EQ(run.out, "");
      EXPECT_EQ(std::ranges::count(run.err, '\n'), 2) << "message and remedy: " << run.err;
    }
    fs::remove_all(place_.database().parent_path());
    fs::copy(saved, place_.database().parent_path());
    EXPECT_EQ(Check("0"), "throttled") << "as it was before the damage";
  }
}

TEST_F(SentinelProcessTest, S20AFileThatIsNotOursToReadIsToldAndNeverAVerdict) {
  EXPECT_EQ(Check("0"), "allowed");
  place_.GiveAway();
  const IcCall call = {.arguments = {"sentinel", "check", "guard", "scope", "--interval=0"},
                       .unprivileged = true};
  EXPECT_EQ(place_.Run(call).out, "throttled\n");
  for (const std::string suffix : {"-wal", ""}) {
    const std::string path = place_.database().string() + suffix;
    ASSERT_EQ(::chmod(path.c_str(), 0), 0);
    const Finished run = place_.Run(call);
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("their owner"));
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  }
  EXPECT_EQ(place_.Run(call).out, "throttled\n");
}

TEST_F(SentinelProcessTest, AnIntervalOfTheOlderProgramIsThatOfTheCall) {
  place_.Sql("INSERT INTO sentinels (name, scope_id, last_fired) VALUES ('guard', 'scope', " +
             std::to_string(UnixNow() - 500) + ")");
  EXPECT_EQ(Check("5000"), "throttled");
  EXPECT_EQ(Check("100"), "allowed");
  EXPECT_EQ(Check("100"), "throttled");
}

TEST_F(SentinelProcessTest, AClockThatWasSetBackDoesNotThrottleForYears) {
  EXPECT_EQ(Check("60"), "allowed");
  FiredAt(UnixNow() + 5'000 * kDay);
  EXPECT_EQ(Check("60"), "allowed");
  EXPECT_NEAR(static_cast<double>(place_.Int(kLastFired)), static_cast<double>(UnixNow()), 60);
}

TEST_F(SentinelProcessTest, CheckManyClaimsEachForItself) {
  EXPECT_EQ(Check("60"), "allowed");
  const std::vector<std::string> call = {"sentinel", "check-many", "guard", "scope", "60",
                                         "b",        "x y",        "0",     "b",     "x y",
                                         "0",        "c",          "",      "5"};
  const Finished run = place_.Ic(call);
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_EQ(run.out, "guard\tscope\tthrottled\nb\tx y\tallowed\nb\tx y\tthrottled\nc\t\tallowed\n");
  const Finished all =
      place_.Ic({"sentinel", "check-many", "d", "s", "0", "e", "s", "9", "--json"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_EQ(all.out,
            "[{\"name\":\"d\",\"scope_id\":\"s\",\"verdict\":\"allowed\"},"
            "{\"name\":\"e\",\"scope_id\":\"s\",\"verdict\":\"allowed\"}]\n");
}

TEST_F(SentinelProcessTest, CheckManyClaimsNothingWhenAnyOfItIsWrong) {
  for (const std::vector<std::string>& rest : {std::vector<std::string>{"a", "s", "60", "b", "s"},
                                               {"a", "s", "60", "b", "s", "x"},
                                               {"a", "s", "60", "b", "s", "-1"},
                                               {"a", "s", "60", "", "s", "1"},
                                               {}}) {
    std::vector<std::string> call = {"sentinel", "check-many"};
    call.insert(call.end(), rest.begin(), rest.end());
    const Finished run = place_.Ic(call);
    EXPECT_EQ(run.exit_code, 3) << run.out;
    EXPECT_NE(run.err, "");
  }
  EXPECT_EQ(place_.Int(kRows), 0);
}

TEST_F(SentinelProcessTest, ListResetAndPruneSayWhatTheyDid) {
  for (const std::string name : {"b", "a"}) EXPECT_EQ(Check("60", name), "allowed");
  EXPECT_EQ(Check("0", "once"), "allowed");
  FiredAt(111, "a");
  FiredAt(222, "b");
  FiredAt(333, "once");
  EXPECT_EQ(place_.Ic({"sentinel", "list"}).out,
            "a\tscope\t111\nb\tscope\t222\nonce\tscope\t333\n");
  EXPECT_EQ(place_.Ic({"sentinel", "list", "--json"}).out,
            "[{\"interval_s\":60,\"last_fired\":111,\"name\":\"a\",\"scope_id\":\"scope\"},"
            "{\"interval_s\":60,\"last_fired\":222,\"name\":\"b\",\"scope_id\":\"scope\"},"
            "{\"interval_s\":0,\"last_fired\":333,\"name\":\"once\",\"scope_id\":\"scope\"}]\n");
  EXPECT_EQ(place_.Ic({"sentinel", "reset-all", "a"}).out, "1 reset\n");
  EXPECT_EQ(place_.Ic({"sentinel", "reset-all", "a"}).out, "0 reset\n");
  EXPECT_EQ(place_.Ic({"sentinel", "reset", "a", "scope"}).out, "reset\n");
  EXPECT_EQ(place_.Ic({"sentinel", "prune", "--older-than=7d"}).out, "1 pruned\n");
  EXPECT_EQ(place_.Ic({"sentinel", "prune", "--older-than=1h"}).out, "0 pruned\n");
  EXPECT_EQ(place_.Ic({"sentinel", "prune", "--older-than=1h", "--include-once"}).out,
            "1 pruned\n");
  EXPECT_EQ(place_.Ic({"sentinel", "list", "--json"}).out, "[]\n");
}

TEST_F(SentinelProcessTest, PruningArmsNoThrottleBeforeItsTime) {
  for (const std::string name : {"day", "hour"}) {
    EXPECT_EQ(Check(name == "day" ? "86400" : "3600", name), "allowed");
    FiredAt(UnixNow() - 7200, name);
  }
  for (const std::string flag : {"--include-once=false", "--include-once"}) {
    EXPECT_EQ(place_.Ic({"sentinel", "prune", "--older-than=1h", flag}).out,
              flag == "--include-once" ? "0 pruned\n" : "1 pruned\n");
    EXPECT_EQ(Check("86400", "day"), "throttled") << flag;
  }
  EXPECT_EQ(place_.Ic({"sentinel", "reset", "day", "scope"}).out, "reset\n");
  EXPECT_EQ(Check("86400", "day"), "allowed");
}

TEST_F(SentinelProcessTest, WhatIsAskedForOnceAfterItFiredIsListedAndPrunedAsOnce) {
  EXPECT_EQ(Check("60"), "allowed");
  EXPECT_EQ(Check("0"), "throttled");
  FiredAt(777);
  EXPECT_EQ(Check("0"), "throttled");
  EXPECT_EQ(place_.Ic({"sentinel", "list", "--json"}).out,
            "[{\"interval_s\":0,\"last_fired\":777,\"name\":\"guard\",\"scope_id\":\"scope\"}]\n");
  EXPECT_EQ(place_.Ic({"sentinel", "prune", "--older-than=1h"}).out, "0 pruned\n");
  EXPECT_EQ(Check("0"), "throttled");
  EXPECT_EQ(place_.Ic({"sentinel", "prune", "--older-than=1h", "--include-once"}).out,
            "1 pruned\n");
  EXPECT_EQ(Check("0"), "allowed");
}

TEST_F(SentinelProcessTest, WrongCallsAreUsageErrorsAndClaimNothing) {
  for (const std::vector<std::string>& rest : std::vector<std::vector<std::string>>{
           {"check", "a", "s"},
           {"check", "a", "--interval=1"},
           {"check", "a", "s", "t", "--interval=1"},
           {"check", "a", "s", "--interval=-1"},
           {"check", "a", "s", "--interval=5m"},
           {"check", "a", "s", "--interval="},
           {"check", "a", "s", "--interval=1.5"},
           {"check", "a", "s", "--interval=99999999999999999999"},
           {"check", "", "s", "--interval=1"},
           {"check", "a", "s", "--interval=1", "--debounce=1"},
           {"reset", "a"},
           {"reset-all"},
           {"list", "a"},
           {"prune"},
           {"prune", "--older-than=-1h"},
           {"prune", "--older-than=1"},
           {"frobnicate"},
       }) {
    std::vector<std::string> call = {"sentinel"};
    call.insert(call.end(), rest.begin(), rest.end());
    const Finished run = place_.Ic(call);
    EXPECT_EQ(run.exit_code, 3) << ::testing::PrintToString(call) << run.out << run.err;
    EXPECT_EQ(run.out, "") << ::testing::PrintToString(call);
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 2) << run.err;
  }
  EXPECT_EQ(place_.Int(kRows), 0);
  EXPECT_EQ(place_.Ic({"sentinel", "check", "a", "s", "-i", "0"}).out, "allowed\n");
}

}  // namespace
}  // namespace interlock
