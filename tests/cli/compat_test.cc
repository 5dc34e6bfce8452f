#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/ic_process.h"

namespace interlock {
namespace {

namespace fs = std::filesystem;
using testing::Finished;
using ::testing::HasSubstr;
using testing::IcPlace;
using ::testing::Not;

// A place with a database and a directory of old files.
class CompatTest : public ::testing::Test {
 protected:
  CompatTest() {
    place_.Init();
    fs::create_directory(old());
  }
  fs::path old() const { return place_.path() / "old"; }
  void Put(const std::string& name, const std::string& content) const {
    std::ofstream(old() / name, std::ios::binary) << content;
  }
  Finished Compat(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "compat");
    arguments.push_back("--dir=" + old().string());
    return place_.Ic(arguments);
  }
  std::string Line(const std::string& name, const std::string& rest) const {
    return (old() / name).string() + '\t' + rest + '\n';
  }

  IcPlace place_;
};

TEST_F(CompatTest, StatusLooksForStateAndForSentinels) {
  Put("clavain-stop-s1", "");
  place_.Sql(
      "INSERT INTO state (key, scope_id, payload, updated_at) VALUES ('dispatch','s','1',1)");
  place_.Sql("INSERT INTO sentinels VALUES ('handoff', 's', 5, 0)");
  const Finished status = Compat({"status"});
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_EQ(status.out,
            "KEY\t\t\tLEGACY\tDB\n"
            "autopub             \tno\tno\n"
            "catalog_remind      \tno\tno\n"
            "compound_throttle   \tno\tno\n"
            "discovery_brief     \tno\tno\n"
            "dispatch            \tno\tyes\n"
            "drift_throttle      \tno\tno\n"
            "handoff             \tno\tyes\n"
            "stop                \tyes\tno\n");
  fs::remove_all(place_.path() / ".clavain");
  EXPECT_THAT(Compat({"status"}).out, HasSubstr("stop                \tyes\tn/a\n"));
}

TEST_F(CompatTest, CheckCountsLiveScopes) {
  place_.Sql(
      "INSERT INTO state (key, scope_id, payload, updated_at, expires_at) VALUES"
      " ('dispatch','a','1',1,NULL), ('dispatch','b','1',1,99999999999), ('dispatch','c','1',1,2)");
  EXPECT_EQ(place_.Ic({"compat", "check", "dispatch"}).out, "dispatch: 2 scope(s) in DB\n");
  const Finished missing = place_.Ic({"compat", "check", "stop"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(missing.out, "stop: not in DB\n");
  EXPECT_EQ(place_.Ic({"compat", "check"}).exit_code, 3);
}

TEST_F(CompatTest, ImportTakesWhatIsNewReportsEachAndCanBeRepeated) {
  Put("clavain-dispatch-7.json", " {\"a\": 1}\n");
  Put("clavain-discovery-brief-s.cache", "two\nlines");
  Put("clavain-autopub.lock", "");
  Put("clavain-unrelated", "x");
  fs::create_directory(old() / "clavain-handoff-h");  // as the library leaves it
  const Finished dry = Compat({"import", "--dry-run"});
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("would be imported"));
  EXPECT_EQ(place_.Int("SELECT count(*) FROM state") + place_.Int("SELECT count(*) FROM sentinels"),
            0);
  const Finished import = Compat({"import"});
  EXPECT_EQ(import.exit_code, 0) << import.err;
  EXPECT_EQ(import.out,
            Line("clavain-autopub.lock", "autopub\tglobal\timported") +
                Line("clavain-discovery-brief-s.cache", "discovery_brief\ts\timported") +
                Line("clavain-dispatch-7.json", "dispatch\t7\timported") +
                Line("clavain-handoff-h", "handoff\th\timported"));
  EXPECT_EQ(place_.Text("SELECT payload FROM state WHERE key = 'dispatch'"), "{\"a\": 1}");
  EXPECT_EQ(place_.Text("SELECT payload FROM state WHERE key = 'discovery_brief'"),
            "\"two\\nlines\"");
  EXPECT_GT(place_.Int("SELECT min(last_fired) FROM sentinels WHERE interval_s IS NULL"), 0);
  const Finished again = Compat({"import"});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.out, Not(HasSubstr("imported")));
  EXPECT_EQ(place_.Int("SELECT max(version) FROM state"), 1);
}

TEST_F(CompatTest, ALiveKeyIsNeverReplaced) {
  Put("clavain-dispatch-7.json", "{\"old\":1}");
  place_.Sql(
      "INSERT INTO state (key, scope_id, payload, updated_at) VALUES ('dispatch','7','2',1)");
  const Finished import = Compat({"import"});
  EXPECT_EQ(import.out,
            Line("clavain-dispatch-7.json", "dispatch\t7\tkept: the database has another value"));
  EXPECT_EQ(place_.Text("SELECT payload FROM state"), "2");
}

TEST_F(CompatTest, WhatMayNotBeStoredIsRefusedAndTheRestImported) {
  Put("clavain-dispatch-bad.json", "{broken");
  Put("clavain-dispatch-key.json", R"({"k":"ghp_abcdefghijklmnopqrstuvwxyz0123456789"})");
  Put("clavain-dispatch-ok.json", "1");
  Put("clavain-dispatch-large.json", std::string((std::size_t{2} << 20), '1'));
  const Finished import = Compat({"import"});
  EXPECT_EQ(import.exit_code, 1);
  EXPECT_THAT(import.out, HasSubstr("dispatch\tbad\trefused: "));
  EXPECT_THAT(import.out, HasSubstr("dispatch\tlarge\trefused: "));
  EXPECT_THAT(import.out, HasSubstr("likely secret"));
  EXPECT_THAT(import.out, HasSubstr("dispatch\tok\timported"));
  EXPECT_EQ(place_.Int("SELECT count(*) FROM state"), 1);
}

TEST_F(CompatTest, SymlinksAndOthersFilesAreNotLookedAt) {
  Put("target", "{\"a\":1}");
  fs::create_symlink("target", old() / "clavain-dispatch-link.json");
  if (::geteuid() == 0) {
    Put("clavain-dispatch-theirs.json", "1");
    ASSERT_EQ(::chown((old() / "clavain-dispatch-theirs.json").c_str(), 65534, 65534), 0);
  }
  EXPECT_EQ(Compat({"import"}).out, "");
}

TEST_F(CompatTest, CleanRemovesOnlyWhatTheDatabaseHas) {
  Put("clavain-dispatch-in.json", "{\"a\":1}");
  Put("clavain-stop-s", "");
  fs::create_directories(old() / "clavain-drift-last-d" / "after-5");  // a guard that fired twice
  ASSERT_EQ(Compat({"import"}).exit_code, 0);
  Put("clavain-dispatch-out.json", "{\"b\":1}");
  Put("clavain-dispatch-in2.json", "{\"c\":1}");
  place_.Sql(
      "INSERT INTO state (key, scope_id, payload, updated_at) VALUES ('dispatch','in2','9',1)");
  EXPECT_THAT(Compat({"clean", "--dry-run"}).out, HasSubstr("would be removed"));
  EXPECT_TRUE(fs::exists(old() / "clavain-dispatch-in.json"));
  const Finished clean = Compat({"clean"});
  EXPECT_EQ(clean.exit_code, 0) << clean.err;
  EXPECT_FALSE(fs::exists(old() / "clavain-dispatch-in.json"));
  EXPECT_FALSE(fs::exists(old() / "clavain-stop-s"));
  EXPECT_FALSE(fs::exists(old() / "clavain-drift-last-d"));
  EXPECT_TRUE(fs::exists(old() / "clavain-dispatch-out.json"));
  EXPECT_TRUE(fs::exists(old() / "clavain-dispatch-in2.json"));
}

TEST_F(CompatTest, TheDirectoryMayBeNamedFromHere) {
  Put("clavain-dispatch-7.json", "{}");
  const Finished import = place_.Ic({"compat", "import", "--dir=old"});
  EXPECT_EQ(import.out, "old/clavain-dispatch-7.json\tdispatch\t7\timported\n");
  EXPECT_EQ(place_.Ic({"compat", "clean", "--dir=./old"}).out,
            "./old/clavain-dispatch-7.json\tdispatch\t7\tremoved\n");
}

TEST_F(CompatTest, ADirectoryThatIsNotThereIsAnError) {
  const Finished status = place_.Ic({"compat", "import", "--dir=/nowhere/at/all"});
  EXPECT_EQ(status.exit_code, 2);
  EXPECT_THAT(status.err, HasSubstr("--dir"));
}

}  // namespace
}  // namespace interlock
