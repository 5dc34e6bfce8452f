#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/ic_process.h"
#include "kernel/schema.h"
#include "testing/child_process.h"
#include "testing/lock_holder.h"
#include "testing/raw_db.h"

// `ic state` as hooks call it. Tests that begin with S and a number are lines of the list of what
// ic was founded to do.
namespace interlock {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using testing::Finished;
using ::testing::HasSubstr;
using testing::IcCall;
using testing::IcPlace;

constexpr db::Sql kRows = "SELECT count(*) FROM state";

class StateProcessTest : public ::testing::Test {
 protected:
  void SetUp() override { place_.Init(); }

  void Set(const std::string& key, const std::string& scope, const std::string& payload,
           const std::vector<std::string>& flags = {}) const {
    std::vector<std::string> call = {"state", "set", key, scope};
    call.insert(call.end(), flags.begin(), flags.end());
    const Finished run = place_.Ic(call, payload);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    ASSERT_EQ(run.out + run.err, "");
  }
  // The value, or "(none)".
  std::string Get(const std::string& key, const std::string& scope) const {
    const Finished run = place_.Ic({"state", "get", key, scope});
    if (run.exit_code == 1 && run.out.empty() && run.err.empty()) return "(none)";
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  }
  // As if that many seconds had passed.
  void Pass(int count) const {
    place_.Sql("UPDATE state SET updated_at = updated_at - " + std::to_string(count) +
               ", expires_at = expires_at - " + std::to_string(count));
  }
  std::set<std::string> Files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(place_.path())) {
      names.insert(entry.path().lexically_relative(place_.path()).string());
    }
    return names;
  }

  IcPlace place_;
};

TEST_F(StateProcessTest, AValueComesFromStdinFromAnArgumentOrFromAFile) {
  Set("key", "in", " {\"a\": 1}\n");
  EXPECT_EQ(Get("key", "in"), "{\"a\": 1}\n");
  EXPECT_EQ(place_.Ic({"state", "set", "key", "arg", "[1, 2]"}, "not read").exit_code, 0);
  EXPECT_EQ(Get("key", "arg"), "[1, 2]\n");
  fs::create_directory(place_.path() / "sub");
  std::ofstream(place_.path() / "sub/p.json") << "\"from a file\"\n";
  EXPECT_EQ(place_.Ic({"state", "set", "key", "file", "@sub/p.json"}, "not read").exit_code, 0);
  EXPECT_EQ(Get("key", "file"), "\"from a file\"\n");
  EXPECT_EQ(place_.Ic({"state", "set", "key", "neg", "-5"}).exit_code, 0);
  EXPECT_EQ(Get("key", "neg"), "-5\n");
}

// A hook's stdin may be a terminal, or a pipe that nobody ever closes.
TEST_F(StateProcessTest, StdinIsNotTouchedWhenTheValueIsAnArgument) {
  const std::string fifo = (place_.path() / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::ofstream(place_.path() / "f.json") << "2";
  const std::string ic = "'" + IcPlace::program().string() + "' state set key ";
  testing::ChildProcess shell(
      {.arguments = {"/bin/sh", "-c", "exec 3<>fifo; " + ic + "a 1 <&3 && " + ic + "f @f.json <&3"},
       .directory = place_.path().string()});
  EXPECT_EQ(shell.Wait(seconds(30)), 0);
  EXPECT_EQ(Get("key", "a") + Get("key", "f"), "1\n2\n");
}

TEST_F(StateProcessTest, S06ConcurrentWritersAllSucceed) {
  for (const std::size_t count : {10U, 32U}) {
    const std::string scope = std::to_string(count);
    const auto runs = place_.RunAtOnce(count, [&](std::size_t i) {
      return IcCall{{"state", "set", "key", scope}, std::to_string(i)};
    });
    for (const Finished& run : runs) {
      EXPECT_EQ(run.exit_code, 0);
      EXPECT_EQ(run.out + run.err, "");
    }
    const int value = std::stoi(Get("key", scope));
    EXPECT_THAT(value, ::testing::AllOf(::testing::Ge(0), ::testing::Lt(count)));
    EXPECT_THAT(place_.Ic({"state", "get", "key", scope, "--json"}).out,
                HasSubstr("\"version\":" + scope + ","));
  }
}

TEST_F(StateProcessTest, ConcurrentIncrementsAddUpExactly) {
  const auto runs = place_.RunAtOnce(32, [](std::size_t i) {
    return IcCall{{"state", "incr", "turns", "s", "--by=" + std::to_string(i + 1)}};
  });
  std::set<std::string> sums;
  for (const Finished& run : runs) {
    EXPECT_EQ(run.exit_code, 0) << run.err;
    sums.insert(run.out);
  }
  EXPECT_EQ(sums.size(), 32) << "each has seen a sum of its own";
  EXPECT_EQ(Get("turns", "s"), "528\n");
}

TEST_F(StateProcessTest, OfManyWhoInsistOnAVersionOneWins) {
  for (const std::string flag : {"--if-absent", "--if-version=1"}) {
    const auto runs = place_.RunAtOnce(16, [&](std::size_t i) {
      return IcCall{{"state", "set", "leader", "s", std::to_string(i), flag}};
    });
    int winners = 0;
    for (const Finished& run : runs) {
      EXPECT_EQ(run.out, "");
      if (run.exit_code == 0) ++winners;
      if (run.exit_code == 0) continue;
      EXPECT_EQ(run.exit_code, 1) << run.err;
      EXPECT_THAT(run.err, HasSubstr("ic: state set: not written: 'leader' has version"));
    }
    EXPECT_EQ(winners, 1) << flag;
  }
  EXPECT_THAT(place_.Ic({"state", "get", "leader", "s", "--json"}).out,
              HasSubstr("\"version\":2,"));
}

// The lock is held for three seconds: less than the five that everybody waits by default.
TEST_F(StateProcessTest, AWriterThatHoldsTheLockForSecondsDelaysTheOthersAndFailsNobody) {
  place_.Sql("CREATE TABLE note (text TEXT)");
  testing::LockHolder other(place_.database());
  other.Lock();
  std::vector<std::unique_ptr<testing::IcProcess>> writers;
  for (int i = 0; i < 4; ++i) {
    writers.push_back(place_.Start({{"state", "set", "key", std::to_string(i), "1"}}));
    writers.push_back(place_.Start({{"state", "incr", "count", "s"}}));
    writers.push_back(place_.Start({{"sentinel", "check", "guard", "s", "--interval=60"}}));
  }
  EXPECT_EQ(Get("key", "0"), "(none)") << "readers do not wait at all";
  EXPECT_FALSE(writers.front()->EndsWithin(seconds(3)));
  other.Commit();
  int allowed = 0;
  int throttled = 0;
  for (const auto& writer : writers) {
    const Finished run = writer->Finish();
    EXPECT_EQ(run.err, "");
    if (run.out == "allowed\n") ++allowed;
    if (run.out == "throttled\n") ++throttled;
    EXPECT_EQ(run.exit_code, run.out == "throttled\n" ? 1 : 0);
  }
  EXPECT_EQ(allowed, 1);
  EXPECT_EQ(throttled, 3);
  EXPECT_EQ(Get("count", "s"), "4\n");
}

// Who waited for the lock writes to the database, and not to what once was it.
TEST_F(StateProcessTest, AWriterWhoseFileIsReplacedWhileItWaitsWritesToTheNewOne) {
  place_.Sql("CREATE TABLE note (text TEXT)");
  std::vector<std::unique_ptr<testing::IcProcess>> writers;
  {
    testing::LockHolder other(place_.database());
    other.Lock();
    writers.push_back(place_.Start({{"state", "set", "key", "s", "1"}}));
    writers.push_back(place_.Start({{"sentinel", "check", "once", "s", "--interval=0"}}));
    EXPECT_FALSE(writers.front()->EndsWithin(milliseconds(500)));
    EXPECT_FALSE(writers.back()->EndsWithin(milliseconds(500)));
    std::filesystem::rename(place_.database().parent_path(), place_.path() / "old");
    EXPECT_EQ(place_.Ic({"init"}).exit_code, 0);
    other.Commit();
  }
  for (const auto& writer : writers) EXPECT_EQ(writer->Finish().exit_code, 0);
  EXPECT_EQ(Get("key", "s"), "1\n");
  EXPECT_EQ(place_.Ic({"sentinel", "check", "once", "s", "--interval=0"}).out, "throttled\n");
}

// Another program that lets nobody else read holds up the opening already.
TEST_F(StateProcessTest, TheTimeoutHoldsForTheOpeningToo) {
  const testing::RawDb other(place_.database());
  other.Run("PRAGMA locking_mode=EXCLUSIVE; BEGIN IMMEDIATE; COMMIT");
  for (const std::vector<std::string>& call :
       {std::vector<std::string>{"state", "get", "key", "s"}, {"state", "set", "key", "s", "1"}}) {
    std::vector<std::string> timed = call;
    timed.emplace_back("--timeout=50ms");
    const auto process = place_.Start({timed});
    EXPECT_TRUE(process->EndsWithin(milliseconds(2'000))) << call[1];
    const Finished run = process->Finish();
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, HasSubstr("--timeout"));
  }
}

TEST_F(StateProcessTest, ALockThatIsHeldLongerThanTheTimeoutIsExitCode2) {
  place_.Sql("CREATE TABLE note (text TEXT)");
  testing::LockHolder other(place_.database());
  other.Lock();
  for (const std::vector<std::string>& call :
       {std::vector<std::string>{"--timeout=50ms", "state", "set", "key", "s", "1"},
        {"--timeout=50ms", "state", "incr", "key", "s"},
        {"--timeout=50ms", "sentinel", "check", "guard", "s", "--interval=60"}}) {
    const Finished run = place_.Ic(call);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("--timeout="));
  }
  other.Commit();
  EXPECT_EQ(place_.Int(kRows), 0);
}

TEST_F(StateProcessTest, S09TheSameValueAgainIsAWriteAndThereIsNoDebounce) {
  Set("key", "s", "1");
  Pass(1000);
  constexpr db::Sql kUpdated = "SELECT updated_at FROM state";
  const std::int64_t before = place_.Int(kUpdated);
  Set("key", "s", "1");
  EXPECT_GE(place_.Int(kUpdated), before + 1000);
  const Finished run = place_.Ic({"state", "set", "key", "s", "2", "--debounce=5s"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("unknown flag '--debounce'"));
  EXPECT_EQ(Get("key", "s"), "1\n");
}

TEST_F(StateProcessTest, S10NothingIsWrittenBesideTheDatabase) {
  const std::set<std::string> before = Files();
  const std::string scope = place_.path().parent_path().filename().string();
  Set("dispatch", scope, "{\"pid\":1}");
  Set("discovery_brief", scope, "1", {"--ttl=1h"});
  EXPECT_EQ(Files(), before);
  for (const std::string& name :
       {"clavain-dispatch-" + scope + ".json", "clavain-discovery-brief-" + scope + ".cache"}) {
    EXPECT_FALSE(fs::exists(fs::path("/tmp") / name));
    EXPECT_FALSE(fs::exists(fs::temp_directory_path() / name));
  }
}

TEST_F(StateProcessTest, S11GetNeverReadsALegacyFile) {
  const std::string scope = place_.path().parent_path().filename().string();
  const fs::path legacy = fs::path("/tmp") / ("clavain-dispatch-" + scope + ".json");
  std::ofstream(legacy) << "{\"from\":\"file\"}";
  EXPECT_EQ(Get("dispatch", scope), "(none)");
  Set("dispatch", scope, "{\"from\":\"db\"}");
  EXPECT_EQ(Get("dispatch", scope), "{\"from\":\"db\"}\n");
  fs::remove(place_.database().string() + "-wal");
  fs::remove(place_.database().string() + "-shm");
  fs::remove(place_.database());
  const Finished gone = place_.Ic({"state", "get", "dispatch", scope});
  EXPECT_EQ(gone.exit_code, 2);
  EXPECT_EQ(gone.out, "");
  EXPECT_THAT(gone.err, HasSubstr("run 'ic init'"));
  fs::remove(legacy);
}

TEST_F(StateProcessTest, S12WhatHasExpiredIsSeenByNoCommand) {
  Set("key", "s", "1", {"--ttl=10s"});
  Set("key", "t", "2");
  EXPECT_EQ(Get("key", "s"), "1\n");
  Pass(10);
  EXPECT_EQ(Get("key", "s"), "(none)");
  EXPECT_EQ(place_.Ic({"state", "get", "key", "s", "--json"}).exit_code, 1);
  EXPECT_EQ(place_.Ic({"state", "list", "key"}).out, "t\n");
  EXPECT_EQ(place_.Ic({"state", "list", "--scope=s"}).out, "");
  EXPECT_EQ(place_.Ic({"state", "list", "key", "--scope=s", "--json"}).out, "[]\n");
  EXPECT_EQ(place_.Ic({"state", "wait", "key", "s", "--timeout=0"}).exit_code, 1);
  EXPECT_EQ(place_.Int(kRows), 2) << "it is still there";
  EXPECT_EQ(place_.Ic({"state", "incr", "key", "s"}).out, "1\n") << "counts as 0";
  Set("key", "u", "3", {"--ttl=10s"});
  Pass(10);
  EXPECT_EQ(place_.Ic({"state", "set", "key", "u", "4", "--if-absent", "--json"}).out,
            "{\"version\":1}\n");
}

TEST_F(StateProcessTest, S13TheTimeToLiveIsWholeSeconds) {
  Set("key", "a", "1", {"--ttl=1500ms"});
  Set("key", "b", "1");
  Set("key", "c", "1", {"--ttl", "1h30m"});
  Set("key", "d", "1", {"--ttl=2562047h"});
  Set("key", "e", "1", {"--ttl=0"});
  EXPECT_EQ(place_.Text("SELECT group_concat(typeof(expires_at) || ' ' || "
                        "coalesce(expires_at - updated_at, 'none'), ', ') "
                        "FROM (SELECT * FROM state ORDER BY scope_id)"),
            "integer 1, null none, integer 5400, integer 9223369200, null none");
  for (const std::string ttl : {"500ms", "999ms", "1us"}) {
    EXPECT_EQ(place_.Ic({"state", "set", "key", "x", "1", "--ttl=" + ttl}).exit_code, 2) << ttl;
  }
  for (const std::string ttl : {"-1s", "-500ms", "5", "5x", "", "99999999999999h"}) {
    EXPECT_EQ(place_.Ic({"state", "set", "key", "x", "1", "--ttl=" + ttl}).exit_code, 3) << ttl;
  }
  EXPECT_EQ(Get("key", "x"), "(none)");
}

TEST_F(StateProcessTest, S14PruningChangesNothingThatIsSeen) {
  for (const std::string scope : {"a", "b", "c"}) Set("key", scope, "1", {"--ttl=10s"});
  Pass(10);
  Set("key", "b", "2");
  Set("other", "a", "3", {"--ttl=1h"});
  const auto seen = [&] {
    std::string all;
    for (const std::vector<std::string>& call :
         {std::vector<std::string>{"state", "get", "key", "a"},
          {"state", "get", "key", "b"},
          {"state", "list", "key"},
          {"state", "list", "--scope=a"},
          {"state", "get", "other", "a"},
          {"state", "wait", "key", "c", "--timeout=0"}}) {
      const Finished run = place_.Ic(call);
      all += std::to_string(run.exit_code) + run.out + run.err + "|";
    }
    return all;
  };
  const std::string before = seen();
  EXPECT_EQ(before, "1|02\n|0b\n|0other\n|03\n|1|");
  EXPECT_EQ(place_.Ic({"state", "prune"}).out, "2 pruned\n");
  EXPECT_EQ(seen(), before);
  EXPECT_EQ(place_.Ic({"state", "prune", "--expired"}).out, "0 pruned\n");
  EXPECT_EQ(place_.Int(kRows), 2);
}

TEST_F(StateProcessTest, S14DeletingSaysTheSameBeforeAndAfterPruning) {
  for (const bool prune : {false, true}) {
    for (const std::string scope : {"a", "b", "c"}) Set("key", scope, "1", {"--ttl=10s"});
    Pass(10);
    Set("key", "d", "2", {"--ttl=1h"});
    Set("key", "e", "3");
    if (prune) {
      EXPECT_EQ(place_.Ic({"state", "prune"}).out, "3 pruned\n");
    }
    const Finished expired = place_.Ic({"state", "delete", "key", "a"});
    EXPECT_EQ(expired.exit_code, 0) << expired.err;
    EXPECT_EQ(expired.out, "not found\n") << prune;
    EXPECT_EQ(place_.Ic({"state", "delete", "key", "b", "--json"}).out, "{\"deleted\":false}\n");
    EXPECT_EQ(place_.Ic({"state", "delete-all", "key"}).out, "2 deleted\n") << prune;
    EXPECT_EQ(place_.Ic({"state", "delete-all", "key"}).out, "0 deleted\n") << prune;
    EXPECT_EQ(place_.Int(kRows), 0) << "its space is given back all the same";
  }
}

// What each statement of the kernel relies on is looked at by the query-plan test; here the file
// as `ic init` made it.
TEST_F(StateProcessTest, S18KeysOfAScopeAreFoundThroughAnIndexAmongTenThousand) {
  place_.Sql(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) "
      "INSERT INTO state (key, scope_id, payload, updated_at) "
      "SELECT 'k' || (i % 10), 's' || (i / 10), i, 1 FROM n");
  constexpr db::Sql kByScope = "SELECT key FROM state WHERE scope_id = ?1 ORDER BY key";
  EXPECT_THAT(place_.OpenFile()->QueryPlan(kByScope).value(),
              ElementsAre(HasSubstr("ic_state_scope (scope_id=?)")));
  EXPECT_EQ(place_.Ic({"state", "list", "--scope=s77"}).out,
            "k0\nk1\nk2\nk3\nk4\nk5\nk6\nk7\nk8\nk9\n");
  EXPECT_EQ(Get("k3", "s500"), "5003\n");
}

TEST_F(StateProcessTest, S26AllTimesAreIntegers) {
  Set("key", "s", "1", {"--ttl=1h"});
  EXPECT_EQ(place_.Ic({"state", "incr", "n", "s", "--ttl=90m"}).exit_code, 0);
  EXPECT_EQ(place_.Ic({"sentinel", "check", "a", "s", "--interval=60"}).exit_code, 0);
  EXPECT_EQ(place_.Text("SELECT group_concat(DISTINCT t) FROM "
                        "(SELECT typeof(updated_at) AS t FROM state "
                        "UNION ALL SELECT typeof(expires_at) FROM state "
                        "UNION ALL SELECT typeof(version) FROM state "
                        "UNION ALL SELECT typeof(last_fired) FROM sentinels "
                        "UNION ALL SELECT typeof(interval_s) FROM sentinels)"),
            "integer");
}

TEST_F(StateProcessTest, S27PruningUsesAPartialIndexOnTheEnd) {
  EXPECT_THAT(place_.Text("SELECT sql FROM sqlite_master WHERE name = 'ic_state_expires'"),
              HasSubstr("(expires_at) WHERE expires_at IS NOT NULL"));
  const auto statements = kernel::Statements();
  const auto file = place_.OpenFile();
  int prunes = 0;
  for (const db::NamedSql& statement : statements) {
    if (!statement.sql.text().starts_with("DELETE FROM state WHERE expires_at")) continue;
    ++prunes;
    EXPECT_THAT(file->QueryPlan(statement.sql).value(),
                ElementsAre(HasSubstr("USING INDEX ic_state_expires (expires_at")));
  }
  EXPECT_EQ(prunes, 1);
}

TEST_F(StateProcessTest, GetDeleteAndListSayWhatThereIs) {
  Set("key", "b", "{\n  \"x\": [1,\n 2.50]\n}", {"--ttl=1h"});
  Set("key", "a", "1");
  place_.Sql("UPDATE state SET updated_at = 7, expires_at = 99999999999 WHERE scope_id = 'b'");
  EXPECT_EQ(Get("key", "b"), "{\n  \"x\": [1,\n 2.50]\n}\n") << "as it was given";
  EXPECT_EQ(place_.Ic({"state", "get", "key", "b", "--json"}).out,
            "{\"key\":\"key\",\"scope_id\":\"b\",\"version\":1,\"updated_at\":7,"
            "\"expires_at\":99999999999,\"payload\":{\"x\":[1,2.50]}}\n");
  EXPECT_EQ(place_.Ic({"state", "list", "key"}).out, "a\nb\n");
  EXPECT_EQ(place_.Ic({"state", "list", "key", "--scope=b", "--json"}).out,
            "[{\"expires_at\":99999999999,\"key\":\"key\",\"scope_id\":\"b\",\"updated_at\":7,"
            "\"version\":1}]\n");
  EXPECT_EQ(place_.Ic({"state", "delete", "key", "a"}).out, "deleted\n");
  const Finished again = place_.Ic({"state", "delete", "key", "a"});
  EXPECT_EQ(again.out, "not found\n");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(place_.Ic({"state", "delete-all", "key"}).out, "1 deleted\n");
  EXPECT_EQ(place_.Ic({"state", "delete-all", "key", "--json"}).out, "{\"deleted\":0}\n");
}

// A scope is any text, and a list stays one line for each.
TEST_F(StateProcessTest, AListIsOneLineForEachWhateverTheScopeHolds) {
  for (const std::string scope : {"a\nb", "a\\nb", "\"a\"", "t\tx\x1b\x7f", "plain \\ one"}) {
    Set("key", scope, "1");
  }
  EXPECT_EQ(place_.Ic({"state", "list", "key"}).out,
            "\"\\\"a\\\"\"\n\"a\\nb\"\na\\nb\nplain \\ one\n\"t\\tx\\u001b\\u007f\"\n");
  place_.Sql("UPDATE state SET key = 'old\tkey' WHERE scope_id = '\"a\"'");
  EXPECT_EQ(place_.Ic({"state", "list", "--scope=\"a\""}).out, "\"old\\tkey\"\n");
}

// Pruned or not, nobody can tell.
TEST_F(StateProcessTest, WhatExpiredOrWasDeletedBeginsAnew) {
  for (const std::vector<std::string>& removal :
       {std::vector<std::string>{"state", "list", "key"},
        std::vector<std::string>{"state", "prune"},
        std::vector<std::string>{"state", "delete", "key", "s"},
        std::vector<std::string>{"state", "delete-all", "key"}}) {
    Set("key", "s", "\"old\"");
    Set("key", "s", "\"old\"", {"--ttl=1h"});
    Pass(3601);
    EXPECT_EQ(place_.Ic(removal).exit_code, 0);
    const Finished stale = place_.Ic({"state", "set", "key", "s", "1", "--if-version=2"});
    EXPECT_EQ(stale.exit_code, 1) << removal[1];
    EXPECT_EQ(place_.Ic({"state", "get", "key", "s"}).exit_code, 1) << removal[1];
    EXPECT_EQ(place_.Ic({"--json", "state", "set", "key", "s", "1"}).out, "{\"version\":1}\n")
        << removal[1];
    EXPECT_EQ(place_.Ic({"state", "delete", "key", "s"}).exit_code, 0);
  }
}

struct BadCall {
  int exit_code;
  std::vector<std::string> arguments;
  std::string input = {};
  std::string says = {};
};

TEST_F(StateProcessTest, BadInputIsRefusedWithCauseAndRemedyAndWritesNothing) {
  const std::string deep = std::string(21, '[') + std::string(21, ']');
  fs::create_symlink("/etc/hostname", place_.path() / "link.json");
  std::ofstream(place_.path() / "big.json") << "\"" << std::string(3U << 20U, 'x') << "\"";
  const std::vector<BadCall> calls = {
      {3, {"set"}, "", "usage"},
      {3, {"set", "key"}, "1", "usage"},
      {3, {"set", "key", "s", "1", "2"}, "", "unexpected argument"},
      {3, {"set", "key", "s", "--tll=5s"}, "1", "--ttl"},
      {3, {"set", "key", "s", "--if-version=x"}, "1", "--if-version"},
      {3, {"set", "key", "s", "--if-version=-1"}, "1", "--if-version"},
      {3, {"set", "key", "s", "--if-version=2", "--if-absent"}, "1", "cannot both"},
      {2, {"set", "Key", "s"}, "1", "invalid key"},
      {2, {"set", "a b", "s"}, "1", "invalid key"},
      {2, {"set", "a/b", "s"}, "1", "invalid key"},
      {2, {"set", "", "s"}, "1", "invalid key"},
      {2, {"set", std::string(201, 'k'), "s"}, "1", "201 characters"},
      {2, {"set", "key", "s"}, "", "empty"},
      {2, {"set", "key", "s", ""}, "1", "empty"},
      {2, {"set", "key", "s"}, "{\"a\":", "line 1, column 6"},
      {2, {"set", "key", "s"}, "{} x", "column 4"},
      {2, {"set", "key", "s"}, deep, "deeper than 20"},
      {2, {"set", "key", "s"}, std::string(3U << 20U, ' ') + "1", "more than"},
      {2, {"set", "key", "s", "{\"t\":\"ghp_" + std::string(30, 'a') + "\"}"}, "", "likely secret"},
      {2, {"set", "key", "s", "\"password=hunter2hunter2\""}, "", "likely secret"},
      {2, {"set", "key", "s", "@missing.json"}, "", "No such file"},
      {2, {"set", "key", "s", "@../x.json"}, "", "under the current directory"},
      {2, {"set", "key", "s", "@/etc/hostname"}, "", "under the current directory"},
      {2, {"set", "key", "s", "@link.json"}, "", "symlink"},
      {2, {"set", "key", "s", "@big.json"}, "", "more than"},
      {2, {"set", "key", "s", "@.clavain"}, "", "not a regular file"},
      {3, {"get", "key"}, "", "usage"},
      {2, {"get", "KEY", "s"}, "", "invalid key"},
      {3, {"get", "key", "s", "--nope"}, "", "unknown flag"},
      {3, {"delete", "key"}, "", "usage"},
      {3, {"delete-all"}, "", "usage"},
      {3, {"list"}, "", "--scope"},
      {3, {"list", "key", "s"}, "", "unexpected argument"},
      {3, {"prune", "key"}, "", "unexpected argument"},
      {3, {"incr", "key", "s", "--by=1.5"}, "", "--by"},
      {3, {"incr", "key", "s", "--by=9223372036854775808"}, "", "--by"},
      {2, {"incr", "key", "s", "--ttl=1ms"}, "", "--ttl"},
      {3, {"wait", "key", "s"}, "", "--timeout is missing"},
      {3, {"wait", "key", "s", "--timeout=-1s"}, "", "--timeout"},
      {3, {"wait", "key", "s", "--timeout=x"}, "", "--timeout"},
      {3, {"wait", "key", "s", "--timeout=1s", "--since-version=-1"}, "", "--since-version"},
  };
  for (const BadCall& bad : calls) {
    std::vector<std::string> call = {"state"};
    call.insert(call.end(), bad.arguments.begin(), bad.arguments.end());
    const Finished run = place_.Ic(call, bad.input);
    SCOPED_TRACE(::testing::PrintToString(call).substr(0, 200));
    EXPECT_EQ(run.exit_code, bad.exit_code) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, ::testing::StartsWith("ic: state " + bad.arguments.front() + ": "));
    EXPECT_THAT(run.err, HasSubstr(bad.says));
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 2) << "message and remedy: " << run.err;
  }
  EXPECT_EQ(place_.Int(kRows), 0);
}

TEST_F(StateProcessTest, IncrementRefusesWhatIsNoWholeNumber) {
  Set("key", "s", "\"text\"");
  const Finished run = place_.Ic({"state", "incr", "key", "s"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("not a 64-bit integer"));
  EXPECT_EQ(Get("key", "s"), "\"text\"\n");
  EXPECT_EQ(place_.Ic({"state", "incr", "n", "s", "--by=-3", "--json"}).out,
            "{\"value\":-3,\"version\":1}\n");
}

}  // namespace
}  // namespace interlock
