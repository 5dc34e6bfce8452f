#include "kernel/locate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "testing/temp_db.h"

namespace interlock::kernel {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::TempDir;

Result<fs::path> Flag(std::string flag) {
  return LocateDatabase({.flag = std::move(flag), .environment = {}, .directory = "/some/where"});
}

TEST(LocateTest, AFlagMustNameADatabaseBelowTheDirectory) {
  EXPECT_EQ(Flag("x.db").value(), "/some/where/x.db");
  EXPECT_EQ(Flag("./a//b/x.db").value(), "/some/where/a/b/x.db");
  EXPECT_EQ(Flag("/some/where/a/x.db").value(), "/some/where/a/x.db");
  EXPECT_EQ(Flag("a/../x.db").value(), "/some/where/x.db");
  struct Case {
    const char* flag;
    const char* rule;
  };
  for (const Case& wrong :
       {Case{"", "is empty"}, Case{"x.sqlite", "does not end in .db"},
        Case{"x.db/", "does not end in .db"}, Case{"../x.db", "contains '..'"},
        Case{"a..b.db", "contains '..'"}, Case{"/some/x.db", "not under"},
        Case{"/some/wherever/x.db", "not under"}, Case{"/etc/x.db", "not under"}}) {
    const Result<fs::path> found = Flag(wrong.flag);
    ASSERT_FALSE(found.ok()) << wrong.flag;
    EXPECT_EQ(found.error().exit_code(), 2);
    EXPECT_THAT(found.error().message(), HasSubstr(wrong.rule));
  }
  EXPECT_FALSE(Flag(std::string("a\0.db", 5)).ok());
}

TEST(LocateTest, AFlagMustNotLeadOutThroughASymlink) {
  const TempDir temp;
  const fs::path here = temp.path() / "here";
  fs::create_directories(here / "inside/deep");
  fs::create_directories(temp.path() / "outside/deep");
  fs::create_directory_symlink(temp.path() / "outside", here / "out");
  fs::create_directory_symlink("inside", here / "in");
  const auto flag = [&here](std::string text) {
    return LocateDatabase({.flag = std::move(text), .environment = {}, .directory = here});
  };
  for (const char* const path : {"out/x.db", "out/deep/x.db", "out/deep/to/be/made/x.db"}) {
    const Result<fs::path> found = flag(path);
    ASSERT_FALSE(found.ok()) << path;
    EXPECT_EQ(found.error().exit_code(), 2);
    EXPECT_THAT(found.error().message(), HasSubstr("path validation"));
    EXPECT_THAT(found.error().message(), HasSubstr("symlink"));
  }
  EXPECT_EQ(flag("in/deep/x.db").value(), here / "in/deep/x.db") << "it stays inside";
  EXPECT_EQ(flag("to/be/made/x.db").value(), here / "to/be/made/x.db");
}

TEST(LocateTest, TheDirectoryGoesByAnyOfItsNames) {
  const TempDir temp;
  const fs::path real = fs::canonical(temp.path()) / "real";
  const fs::path link = temp.path() / "link";
  fs::create_directory(real);
  fs::create_directory_symlink("real", link);
  for (const fs::path& directory : {real, link}) {
    const auto flag = [&directory](std::string text) {
      return LocateDatabase({.flag = std::move(text), .environment = {}, .directory = directory});
    };
    EXPECT_EQ(flag("x.db").value(), real / "x.db");
    EXPECT_EQ(flag((directory / "x.db").string()).value(), real / "x.db");
    EXPECT_EQ(flag((real / "x.db").string()).value(), real / "x.db");
    EXPECT_EQ(LocateDatabase({.flag = {}, .environment = "x.db", .directory = directory}).value(),
              real / "x.db");
  }
  EXPECT_FALSE(LocateDatabase(
                   {.flag = (temp.path() / "x.db").string(), .environment = {}, .directory = link})
                   .ok());
}

TEST(LocateTest, TheEnvironmentMayNameAFileAnywhere) {
  const auto named = [](std::string text) {
    return LocateDatabase({.flag = {}, .environment = std::move(text), .directory = "/some/where"})
        .value();
  };
  EXPECT_EQ(named("/else/x.db"), "/else/x.db");
  EXPECT_EQ(named("../x"), "/some/x");
  EXPECT_EQ(
      LocateDatabase({.flag = "f.db", .environment = "/else/x.db", .directory = "/d"}).value(),
      "/d/f.db");
}

TEST(LocateTest, OtherwiseItIsTheNearestAboveOrTheOneToBeMadeHere) {
  const TempDir temp;
  const fs::path below = temp.path() / "a" / "b";
  fs::create_directories(below);
  const auto found = [&below] {
    return LocateDatabase({.flag = {}, .environment = {}, .directory = below}).value();
  };
  EXPECT_EQ(found(), below / ".clavain/intercore.db");
  fs::create_directory(temp.path() / ".clavain");
  EXPECT_EQ(found(), below / ".clavain/intercore.db") << "a directory alone is no database";
  std::ofstream(temp.path() / ".clavain/intercore.db").flush();
  EXPECT_EQ(found(), temp.path() / ".clavain/intercore.db");
  fs::create_directory(temp.path() / "a/.clavain");
  std::ofstream(temp.path() / "a/.clavain/intercore.db").flush();
  EXPECT_EQ(found(), temp.path() / "a/.clavain/intercore.db");
}

}  // namespace
}  // namespace interlock::kernel
