#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "cli/ic_process.h"

namespace interlock {
namespace {

namespace fs = std::filesystem;
using testing::Finished;
using ::testing::HasSubstr;
using testing::IcPlace;

unsigned ModeOf(const fs::path& path) {
  struct stat found = {};
  EXPECT_EQ(::lstat(path.c_str(), &found), 0) << path;
  return found.st_mode & 0777U;
}

TEST(SetupTest, InitMakesADirectoryAndAFileThatOnlyTheOwnerCanRead) {
  const IcPlace place;
  const Finished init = place.Ic({"init"});
  EXPECT_EQ(init.exit_code, 0) << init.err;
  EXPECT_EQ(init.out, "initialized " + place.database().string() + " (schema v100)\n");
  EXPECT_EQ(ModeOf(place.database().parent_path()), 0700U);
  EXPECT_EQ(ModeOf(place.database()), 0600U);
  EXPECT_EQ(place.Ic({"health"}).out, "ok\n");
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

}  // namespace
}  // namespace interlock
