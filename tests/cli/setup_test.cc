#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cli/ic_process.h"
#include "db/backups.h"
#include "testing/raw_db.h"

namespace interlock {
namespace {

namespace fs = std::filesystem;
using testing::Finished;
using ::testing::HasSubstr;
using testing::IcPlace;
using ::testing::StartsWith;

constexpr char kVersion1[] =
    "CREATE TABLE state (key TEXT NOT NULL, scope_id TEXT NOT NULL, payload TEXT NOT NULL,"
    "  updated_at INTEGER NOT NULL, expires_at INTEGER, PRIMARY KEY (key, scope_id));"
    "CREATE TABLE sentinels (name TEXT NOT NULL, scope_id TEXT NOT NULL,"
    "  last_fired INTEGER NOT NULL, PRIMARY KEY (name, scope_id));"
    "INSERT INTO state VALUES ('k', 's', '1', 5, NULL); PRAGMA user_version=1";

unsigned ModeOf(const fs::path& path) {
  struct stat found = {};
  EXPECT_EQ(::lstat(path.c_str(), &found), 0) << path;
  return found.st_mode & 0777U;
}

std::string Bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Tables(const IcPlace& place) {
  return place.Text(
      "SELECT group_concat(coalesce(sql, name), ';') FROM"
      " (SELECT sql, name FROM sqlite_schema ORDER BY name)");
}

void MakeOldFile(const IcPlace& place) {
  fs::create_directory(place.path() / ".clavain");
  testing::RawDb(place.database()).Run(kVersion1);
}

// A sound database to which something happens, and what is then said of it.
struct Spoiled {
  const char* what;
  void (*spoil)(const IcPlace& place);
  const char* message;
  const char* remedy;
};

// The command is refused with a line that holds the message and one that holds the remedy.
void ExpectRefusals(const std::string& command, const std::vector<Spoiled>& cases) {
  for (const Spoiled& one : cases) {
    const IcPlace place;
    place.Init();
    one.spoil(place);
    const Finished run = place.Ic({command});
    EXPECT_EQ(run.exit_code, 2) << one.what;
    EXPECT_EQ(run.out, "") << one.what;
    EXPECT_THAT(run.err, StartsWith("ic: " + command + ": ")) << one.what;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 2) << one.what << ": " << run.err;
    const std::size_t end = std::min(run.err.find('\n'), run.err.size());
    EXPECT_THAT(run.err.substr(0, end), HasSubstr(one.message)) << one.what;
    EXPECT_THAT(run.err.substr(end), HasSubstr(one.remedy)) << one.what;
  }
}

TEST(SetupTest, InitMakesADirectoryAndAFileThatOnlyTheOwnerCanRead) {
  const IcPlace place;
  const Finished init = place.Ic({"init"});
  EXPECT_EQ(init.exit_code, 0) << init.err;
  EXPECT_EQ(init.out, "initialized " + place.database().string() + " (schema v100)\n");
  EXPECT_EQ(ModeOf(place.database().parent_path()), 0700U);
  EXPECT_EQ(ModeOf(place.database()), 0600U);
  EXPECT_EQ(place.Ic({"health"}).out, "ok\n");
  const Finished named =
      place.Ic({"init", "--db=" + (place.path() / "perms/.clavain/intercore.db").string()});
  EXPECT_EQ(named.exit_code, 0) << named.err;
  EXPECT_EQ(ModeOf(place.path() / "perms/.clavain"), 0700U);
  EXPECT_EQ(ModeOf(place.path() / "perms/.clavain/intercore.db"), 0600U);
}

TEST(SetupTest, InitMakesAFilePrivateThatWasNot) {
  const IcPlace place;
  MakeOldFile(place);
  fs::permissions(place.database(), fs::perms(0644));
  place.Init();
  EXPECT_EQ(ModeOf(place.database()), 0600U);
  fs::permissions(place.database(), fs::perms(0644));
  place.Init();
  EXPECT_EQ(ModeOf(place.database()), 0600U);
}

TEST(SetupTest, OnlyInitMakesADatabase) {
  const IcPlace place;
  fs::create_directory(place.path() / ".clavain");
  const Finished health = place.Ic({"health"});
  EXPECT_EQ(health.exit_code, 2);
  EXPECT_EQ(health.out, "");
  EXPECT_THAT(health.err, HasSubstr("run 'ic init'"));
  EXPECT_TRUE(fs::is_empty(place.path() / ".clavain"));
}

TEST(SetupTest, InASubdirectoryTheDatabaseAboveIsUsed) {
  const IcPlace place;
  place.Init();
  fs::create_directories(place.path() / "a/b");
  const Finished init = place.Run({.arguments = {"init"}, .directory = "a/b"});
  EXPECT_THAT(init.out, HasSubstr(place.database().string()));
  EXPECT_FALSE(fs::exists(place.path() / "a/b/.clavain"));
}

TEST(SetupTest, TheEnvironmentNamesTheDatabaseUnlessTheFlagDoes) {
  const IcPlace place;
  const std::string elsewhere = (place.path() / "elsewhere.db").string();
  fs::create_directory(place.path() / "sub");
  const auto init = [&](std::vector<std::string> arguments) {
    return place.Run({.arguments = std::move(arguments),
                      .environment = {"INTERCORE_DB=" + elsewhere},
                      .directory = "sub"});
  };
  EXPECT_EQ(init({"init"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(elsewhere));
  EXPECT_EQ(init({"--db", "x.db", "init"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(place.path() / "sub/x.db"));
}

TEST(SetupTest, ADirectoryThatWasEnteredThroughALinkIsTheCurrentOne) {
  const IcPlace place;
  fs::create_directory(place.path() / "real");
  fs::create_directory_symlink("real", place.path() / "link");
  fs::create_directories(place.path() / "outside/deep");
  fs::create_directory_symlink("../outside", place.path() / "real/out");
  const std::string link = (place.path() / "link").string();
  const auto init = [&](const std::string& file) {
    fs::remove(place.path() / "real/x.db");
    return place.Run({.arguments = {"init", "--db=" + file},
                      .environment = {"PWD=" + link},
                      .directory = "link"});
  };
  for (const std::string& file :
       {std::string("x.db"), link + "/x.db", (place.path() / "real/x.db").string()}) {
    const Finished run = init(file);
    EXPECT_EQ(run.exit_code, 0) << file << ": " << run.err;
    EXPECT_TRUE(fs::exists(place.path() / "real/x.db")) << file;
  }
  const Finished out = init("out/deep/x.db");
  EXPECT_EQ(out.exit_code, 2);
  EXPECT_THAT(out.err, HasSubstr("through a symlink"));
  EXPECT_TRUE(fs::is_empty(place.path() / "outside/deep"));
}

TEST(SetupTest, S16TheFileIsInWalModeAfterInit) {
  const IcPlace place;
  place.Init();
  EXPECT_EQ(place.Text("PRAGMA journal_mode"), "wal");
}

class S21ManyInitsTest : public ::testing::TestWithParam<std::size_t> {};

TEST_P(S21ManyInitsTest, OnANewPlaceAllSucceed) {
  const IcPlace alone;
  alone.Init();
  const IcPlace place;
  for (const Finished& init :
       place.RunAtOnce(GetParam(), [](std::size_t) { return testing::IcCall{{"init"}}; })) {
    EXPECT_EQ(init.exit_code, 0) << init.err;
    EXPECT_EQ(init.err, "");
  }
  EXPECT_EQ(place.Int("PRAGMA user_version"), 100);
  EXPECT_TRUE(db::Backups(place.database(), 5).List().empty());
  EXPECT_EQ(Tables(place), Tables(alone));
}

TEST_P(S21ManyInitsTest, OnAnOldFileAllSucceedAndOneMakesABackup) {
  const IcPlace place;
  MakeOldFile(place);
  for (const Finished& init :
       place.RunAtOnce(GetParam(), [](std::size_t) { return testing::IcCall{{"init"}}; })) {
    EXPECT_EQ(init.exit_code, 0) << init.err;
  }
  EXPECT_EQ(place.Int("PRAGMA user_version"), 100);
  EXPECT_EQ(db::Backups(place.database(), 5).List().size(), 1U);
  EXPECT_EQ(place.Int("SELECT version FROM state"), 1);
}

INSTANTIATE_TEST_SUITE_P(SetupTest, S21ManyInitsTest, ::testing::Values(10U, 50U));

TEST(SetupTest, S23ASecondInitChangesNothing) {
  const IcPlace place;
  place.Init();
  const std::string before = Tables(place);
  const std::string bytes = Bytes(place.database());
  EXPECT_EQ(place.Ic({"init"}).exit_code, 0);
  EXPECT_EQ(Tables(place), before);
  EXPECT_EQ(Bytes(place.database()), bytes);
}

TEST(SetupTest, HealthSaysWhatIsWrongAndWhatToDo) {
  const std::vector<Spoiled> cases = {
      {"missing", [](const IcPlace& place) { fs::remove_all(place.path() / ".clavain"); },
       "there is no database", "ic init"},
      {"empty",
       [](const IcPlace& place) {
         fs::remove_all(place.path() / ".clavain");
         fs::create_directory(place.path() / ".clavain");
         std::ofstream(place.database()).flush();
       },
       "not migrated", "ic init"},
      {"old",
       [](const IcPlace& place) {
         fs::remove_all(place.path() / ".clavain");
         MakeOldFile(place);
       },
       "older schema version 1", "ic init"},
      {"newer", [](const IcPlace& place) { place.Sql("PRAGMA user_version=9999"); }, "newer",
       "upgrade ic"},
      {"corrupt",
       [](const IcPlace& place) {
         fs::remove(place.database().string() + "-wal");
         std::ofstream(place.database(), std::ios::binary) << std::string(8192, 'x');
       },
       "not a database", "ic migrate rollback"},
      {"link",
       [](const IcPlace& place) {
         fs::rename(place.path() / ".clavain", place.path() / "real");
         fs::create_directory_symlink("real", place.path() / ".clavain");
       },
       "is a symlink", "INTERCORE_DB"},
  };
  ExpectRefusals("health", cases);
}

TEST(SetupTest, HealthFindsWhatCannotBeWritten) {
  const IcPlace place;
  place.Init();
  place.GiveAway();
  fs::permissions(place.database(), fs::perms(0400));
  const Finished file = place.Run({.arguments = {"health"}, .unprivileged = true});
  EXPECT_EQ(file.exit_code, 2);
  EXPECT_THAT(file.err, HasSubstr("read-only"));
  EXPECT_THAT(file.err, HasSubstr("writable for your user"));
  fs::permissions(place.database(), fs::perms(0000));
  const Finished closed = place.Run({.arguments = {"health"}, .unprivileged = true});
  EXPECT_EQ(closed.exit_code, 2);
  EXPECT_NE(closed.err, "");
  fs::permissions(place.database(), fs::perms(0600));
  EXPECT_EQ(place.Run({.arguments = {"health"}, .unprivileged = true}).out, "ok\n");
}

TEST(SetupTest, HealthFindsADirectoryThatCannotBeWritten) {
  const IcPlace place;
  place.Init();
  place.GiveAway();
  const fs::path directory = place.database().parent_path();
  for (const bool has_log : {true, false}) {
    if (!has_log) {
      place.Sql("PRAGMA wal_checkpoint(TRUNCATE)");
      fs::remove(place.database().string() + "-wal");
      fs::remove(place.database().string() + "-shm");
    }
    fs::permissions(directory, fs::perms(0555));
    const Finished health = place.Run({.arguments = {"health"}, .unprivileged = true});
    fs::permissions(directory, fs::perms(0700));
    EXPECT_EQ(health.exit_code, 2) << has_log;
    EXPECT_EQ(health.out, "") << has_log;
    EXPECT_THAT(health.err, HasSubstr(directory.string())) << has_log;
    EXPECT_THAT(health.err, HasSubstr("writable for your user")) << has_log;
  }
  EXPECT_EQ(place.Run({.arguments = {"health"}, .unprivileged = true}).out, "ok\n");
}

TEST(SetupTest, InitWhereNothingMayBeMadeSaysSo) {
  const IcPlace place;
  fs::permissions(place.path(), fs::perms(0555));
  const Finished init = place.Run({.arguments = {"init"}, .unprivileged = true});
  fs::permissions(place.path(), fs::perms(0755));
  EXPECT_EQ(init.exit_code, 2);
  EXPECT_EQ(init.out, "");
  EXPECT_THAT(init.err, HasSubstr(".clavain"));
  EXPECT_TRUE(fs::is_empty(place.path()));
}

TEST(SetupTest, AFullDiskLeavesAnOldFileAsItWas) {
  const IcPlace place;
  MakeOldFile(place);
  const Finished init = place.Run({.arguments = {"init"}, .file_bytes_max = 16 * 1024});
  EXPECT_EQ(init.exit_code, 2);
  EXPECT_EQ(init.out, "");
  EXPECT_NE(init.err, "");
  const testing::RawDb raw(place.database());
  EXPECT_EQ(place.Int("PRAGMA user_version"), 1);
  EXPECT_EQ(place.Ic({"init"}).exit_code, 0);
}

TEST(SetupTest, ADiskThatHoldsNothingIsLeftWithoutAFile) {
  const IcPlace place;
  const Finished init = place.Run({.arguments = {"init"}, .file_bytes_max = 1000});
  EXPECT_EQ(init.exit_code, 2);
  EXPECT_EQ(init.out, "");
  EXPECT_FALSE(fs::exists(place.database()));
  // With room for the file and not for its content: what is there is no obstacle.
  EXPECT_EQ(place.Run({.arguments = {"init"}, .file_bytes_max = 8192}).exit_code, 2);
  place.Init();
  EXPECT_EQ(place.Ic({"health"}).out, "ok\n");
}

TEST(SetupTest, EveryRefusalOfInitHasOneLineOfWhatToDo) {
  const std::vector<Spoiled> cases = {
      {"newer", [](const IcPlace& place) { place.Sql("PRAGMA user_version=9999"); },
       "newer than 100", "upgrade ic"},
      {"of an older program that went on",
       [](const IcPlace& place) {
         fs::remove_all(place.path() / ".clavain");
         MakeOldFile(place);
         testing::RawDb(place.database()).Run("PRAGMA user_version=57");
       },
       "newer than 39", "upgrade ic"},
      {"of a stranger",
       [](const IcPlace& place) {
         fs::remove_all(place.path() / ".clavain");
         fs::create_directory(place.path() / ".clavain");
         testing::RawDb(place.database()).Run("CREATE TABLE x (x); PRAGMA user_version=57");
       },
       "another program", "move this one away"},
      {"of no version", [](const IcPlace& place) { place.Sql("PRAGMA user_version=-5"); },
       "version -5", "ic migrate rollback"},
      {"empty with a log",
       [](const IcPlace& place) {
         place.Ic({"state", "set", "k", "s", "1"});
         fs::resize_file(place.database(), 0);
       },
       "-wal", "move"},
      {"link",
       [](const IcPlace& place) {
         fs::rename(place.path() / ".clavain", place.path() / "real");
         fs::create_directory_symlink("real", place.path() / ".clavain");
       },
       "is a symlink", "INTERCORE_DB"},
      {"directory",
       [](const IcPlace& place) {
         fs::remove_all(place.path() / ".clavain");
         fs::create_directories(place.database());
       },
       "not a regular file", "their owner"},
  };
  ExpectRefusals("init", cases);
}

TEST(SetupTest, ItIsOneFileThatWorksAnywhere) {
  const IcPlace place;
  const fs::path copy = place.path() / "intercore";
  fs::copy_file(IcPlace::program(), copy);
  const Finished init = place.Run({.arguments = {"init"}, .program = copy.string()});
  EXPECT_EQ(init.exit_code, 0) << init.err;
  EXPECT_EQ(place.Run({.arguments = {"health"}, .program = copy.string()}).out, "ok\n");
}

TEST(SetupTest, ARollbackAsksAndDoesWhatItIsTold) {
  const IcPlace place;
  MakeOldFile(place);
  place.Init();
  const Finished dry = place.Ic({"migrate", "rollback", "--dry-run"});
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_THAT(dry.out, StartsWith("would restore "));
  const Finished no = place.Ic({"migrate", "rollback"}, "n\n");
  EXPECT_EQ(no.exit_code, 1);
  EXPECT_EQ(place.Int("PRAGMA user_version"), 100);
  EXPECT_EQ(place.Ic({"migrate", "rollback"}).exit_code, 1) << "nobody answers";
  const Finished yes = place.Ic({"migrate", "rollback"}, "y\n");
  EXPECT_EQ(yes.exit_code, 0) << yes.err;
  EXPECT_EQ(place.Int("PRAGMA user_version"), 1);
  EXPECT_EQ(place.Ic({"migrate", "rollback", "--yes"}).exit_code, 1) << "no older one";
}

TEST(SetupTest, CompletionKnowsCommandsAndTheirFlags) {
  const IcPlace place;
  EXPECT_EQ(place.Ic({"completion", "next", "--", "he"}).out, "health\nhelp\n");
  EXPECT_EQ(place.Ic({"completion", "next", "--", "health", "--f"}).out, "--full\n");
  EXPECT_EQ(place.Ic({"completion", "next", "--", "--db", "x.db", "migrate", ""}).out,
            "rollback\n");
  EXPECT_EQ(place.Ic({"completion", "next", "--", "nothing", ""}).out, "");
  // As bash does it.
  std::ofstream(place.path() / "try.sh")
      << "PATH=" << IcPlace::program().parent_path().string() << ":$PATH\n"
      << "source <(ic completion bash)\nCOMP_WORDS=(ic migr)\nCOMP_CWORD=1\n_ic\n"
      << "echo \"${COMPREPLY[*]}\"\n";
  EXPECT_EQ(testing::RunProgram({"/bin/bash", "try.sh"}, place.path().string()).out, "migrate\n");
}

TEST(SetupTest, HelpOpensNoDatabase) {
  const IcPlace place;
  fs::create_directory(place.path() / ".clavain");
  std::ofstream(place.database()) << "no database";
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"--help"}, {"help"}, {"help", "init"}, {"health", "--help"}, {}}) {
    EXPECT_EQ(place.Ic(line).exit_code, 0);
  }
  EXPECT_EQ(place.Ic({"version"}).exit_code, 0);
}

TEST(SetupTest, TheReferenceInTheDocumentsIsWhatTheProgramSays) {
  const IcPlace place;
  const std::string document = Bytes(fs::path(INTERLOCK_DOCS) / "ic.md");
  const std::string mark = "<!-- ic help --markdown -->\n";
  const std::size_t start = document.find(mark);
  ASSERT_NE(start, std::string::npos);
  EXPECT_EQ(document.substr(start + mark.size()), "\n" + place.Ic({"help", "--markdown"}).out)
      << "docs/ic.md: replace what follows the mark by what ic help --markdown prints";
}

}  // namespace
}  // namespace interlock
