#include "ask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "testing/temp_db.h"

namespace interlock::app {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

Place PlaceAt(const std::string& path, const std::string& project = "web") {
  AskOptions options;
  options.path = path;
  options.project = project;
  return PlaceOf(options);
}

TEST(PlaceOfTest, APathMeansItselfAndASlashOrAWildcardMakesAPattern) {
  EXPECT_EQ(PlaceAt("src/main.cc"), (Place{.pattern = "src/main.cc", .literal = true}));
  EXPECT_EQ(PlaceAt("no/such/dir/"), (Place{.pattern = "no/such/dir/", .literal = false}));
  for (const char* pattern : {"src/*.cc", "a?c", "x/[ab]", "{a,b}"}) {
    EXPECT_EQ(PlaceAt(pattern), (Place{.pattern = pattern, .literal = false}));
  }
}

TEST(PlaceOfTest, WhatIsThereOnDiskIsTakenForWhatItIs) {
  const testing::TempDir root;
  const std::string project = root.path().string();
  fs::create_directories(root.path() / "app" / "[id]");
  std::ofstream(root.path() / "app" / "[id]" / "page.tsx").close();
  EXPECT_EQ(PlaceAt(project + "/app/[id]/page.tsx", project),
            (Place{.pattern = "app/[id]/page.tsx", .literal = true}));
  EXPECT_EQ(PlaceAt(project + "/app", project), (Place{.pattern = "app/", .literal = false}));
  EXPECT_EQ(PlaceAt(project + "/app/[id]/", project),
            (Place{.pattern = "app/\\[id]/", .literal = false}));
}

TEST(PlaceOfTest, AnAbsolutePathIsTakenRelativeToAProjectThatIsOne) {
  EXPECT_EQ(PlaceAt("/w/repo/src/x.cc", "/w/repo/").pattern, "src/x.cc");
  EXPECT_EQ(PlaceAt("/w/repo/./src//x.cc", "/w/repo").pattern, "src/x.cc");
  EXPECT_EQ(PlaceAt("/w/other/x.cc", "/w/repo").pattern, "/w/other/x.cc");
  EXPECT_EQ(PlaceAt("/w/repository", "/w/repo").pattern, "/w/repository");
  EXPECT_EQ(PlaceAt("/w/repo/x.cc", "web").pattern, "/w/repo/x.cc");
}

TEST(PlaceOfTest, LiteralMeansLiteral) {
  AskOptions options;
  options.path = "src/*.cc";
  options.literal = true;
  EXPECT_EQ(PlaceOf(options), (Place{.pattern = "src/*.cc", .literal = true}));
}

TEST(RoughlyTest, SaysAsMuchAsAGlanceCanTake) {
  EXPECT_EQ(Roughly(Duration{0}), "0s");
  EXPECT_EQ(Roughly(seconds(-5)), "0s") << "clocks may be set back";
  EXPECT_EQ(Roughly(milliseconds(59'999)), "59s");
  EXPECT_EQ(Roughly(seconds(60)), "1m");
  EXPECT_EQ(Roughly(minutes(59)), "59m");
  EXPECT_EQ(Roughly(minutes(65)), "1h05m");
  EXPECT_EQ(Roughly(hours(47)), "47h00m");
  EXPECT_EQ(Roughly(hours(50)), "2d");
}

TEST(AskTest, WithoutAServerItSaysHowToStartOne) {
  const testing::TempDir directory;
  AskOptions options;
  options.server.url = "unix:" + (directory.path() / "none.sock").string();
  const Done done = Ask(options, {});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_THAT(done.text, AllOf(HasSubstr("no server at unix:"), HasSubstr("intermute serve")));
}

TEST(AskTest, AMistakenAddressOrAMissingProjectIsTheCallersMistake) {
  AskOptions options;
  options.server.url = "ftp://x";
  EXPECT_EQ(Ask(options, {}).exit_code, 1);
  options = {.question = AskOptions::Question::kWho, .server = {}, .project = {}, .path = "x"};
  const Done done = Ask(options, {});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.text, HasSubstr("--project"));
}

}  // namespace
}  // namespace interlock::app
