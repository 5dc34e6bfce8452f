#include "intercore.h"

#include <gtest/gtest.h>

#include <fstream>

#include "testing/temp_db.h"

namespace interlock::app {
namespace {

namespace fs = std::filesystem;

void Touch(const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path).close();
}

TEST(FindIntercoreFileTest, TheNearestOneUpwardsIsTaken) {
  const testing::TempDir top;
  const fs::path deep = top.path() / "a" / "b" / "c";
  fs::create_directories(deep);
  const auto missing = FindIntercoreFile(deep);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), Errc::kNotFound);
  EXPECT_NE(missing.error().message().find("ic init"), std::string::npos);
  Touch(top.path() / ".clavain" / "intercore.db");
  EXPECT_EQ(FindIntercoreFile(deep).value(), top.path() / ".clavain" / "intercore.db");
  fs::create_directories(deep.parent_path() / ".clavain");  // without the file in it
  EXPECT_EQ(FindIntercoreFile(deep).value(), top.path() / ".clavain" / "intercore.db");
  Touch(deep / ".clavain" / "intercore.db");
  EXPECT_EQ(FindIntercoreFile(deep).value(), deep / ".clavain" / "intercore.db");
}

TEST(MirrorFileTest, ThereIsOneOnlyWhenItWasAskedFor) {
  ServeOptions options;
  EXPECT_EQ(MirrorFile(options), nullptr);
  options.coordination_dual_write = true;
  EXPECT_NE(MirrorFile(options), nullptr);
  options = {};
  options.intercore_db = "x.db";
  EXPECT_NE(MirrorFile(options), nullptr);
}

}  // namespace
}  // namespace interlock::app
