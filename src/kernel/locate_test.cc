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
  return Locate({.flag = std::move(flag), .environment = {}, .directory = "/some/where"});
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
        Case{"x.db/", "does not end in .db"}, Case{"../x.db", "holds '..'"},
        Case{"a..b.db", "holds '..'"}, Case{"/some/x.db", "not under"},
        Case{"/some/wherever/x.db", "not under"}, Case{"/etc/x.db", "not under"}}) {
    const Result<fs::path> found = Flag(wrong.flag);
    ASSERT_FALSE(found.ok()) << wrong.flag;
    EXPECT_EQ(found.error().exit_code(), 2);
    EXPECT_THAT(found.error().message(), HasSubstr(wrong.rule));
  }
  EXPECT_FALSE(Flag(std::string("a\0.db", 5)).ok());
}

TEST(LocateTest, TheEnvironmentMayNameAFileAnywhere) {
  const auto named = [](std::string text) {
    return Locate({.flag = {}, .environment = std::move(text), .directory = "/some/where"}).value();
  };
  EXPECT_EQ(named("/else/x.db"), "/else/x.db");
  EXPECT_EQ(named("../x"), "/some/x");
  EXPECT_EQ(Locate({.flag = "f.db", .environment = "/else/x.db", .directory = "/d"}).value(),
            "/d/f.db");
}

TEST(LocateTest, OtherwiseItIsTheNearestAboveOrTheOneToBeMadeHere) {
  const TempDir temp;
  const fs::path below = temp.path() / "a" / "b";
  fs::create_directories(below);
  const auto found = [&below] {
    return Locate({.flag = {}, .environment = {}, .directory = below}).value();
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
