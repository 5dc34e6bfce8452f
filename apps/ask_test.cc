#include "ask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "glob/pattern.h"
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

// Seen from a directory that is in no work tree.
Place PlaceAt(const std::string& path, const std::string& project = "web",
              const fs::path& here = "/nowhere") {
  AskOptions options;
  options.path = path;
  options.project = project;
  const auto place = PlaceOf(options, here);
  EXPECT_TRUE(place.ok()) << place.error();
  return place.ok() ? *place : Place{};
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
  // With the sign before it the parenthesis would be a form of other tools, which are refused.
  fs::create_directories(root.path() / "C++(1)");
  EXPECT_EQ(PlaceAt(project + "/C++(1)", project),
            (Place{.pattern = "C++\\(1)/", .literal = false}));
}

TEST(PlaceOfTest, ThePatternOfADirectoryIsOneThatTheServerTakes) {
  const testing::TempDir root;
  const std::string project = root.path().string();
  for (const std::string name : {"app/[id]", "C++(1)", "a*b", "a?", "back\\slash", "x,y", "{a",
                                 "b}", "~", "$HOME", "!x", " blank ", "C:", "src/~"}) {
    fs::create_directories(root.path() / name);
    const Place place = PlaceAt(project + "/" + name, project);
    const auto pattern = glob::Pattern::Parse(place.pattern);
    ASSERT_TRUE(pattern.ok()) << place.pattern << ": " << pattern.error();
    EXPECT_TRUE(pattern->Matches(name + "/x")) << place.pattern;
    EXPECT_FALSE(pattern->Matches("z/x")) << place.pattern;
  }
}

TEST(PlaceOfTest, FormsOfOtherToolsAreRefusedUnlessTheFileExists) {
  const testing::TempDir directory;
  fs::create_directories(directory.path() / ".git");
  fs::create_directories(directory.path() / "src");
  AskOptions options;
  options.project = "web";
  for (const char* path :
       {"~/x", "$HOME/x", "C:/x", " a.cc", "a.cc ", "!a.cc", "a\\*.cc", "{a,b", "a}"}) {
    options.path = path;
    options.literal = false;
    const auto refused = PlaceOf(options, directory.path() / "src");
    ASSERT_FALSE(refused.ok()) << path;
    EXPECT_EQ(refused.error().code(), Errc::kInvalidPattern) << path;
    EXPECT_THAT(refused.error().message(), HasSubstr("--literal")) << path;
    options.literal = true;
    EXPECT_EQ(PlaceOf(options, directory.path() / "src")->pattern, std::string("src/") + path);
  }
  std::ofstream(directory.path() / "src" / "!a.cc").close();
  EXPECT_EQ(PlaceAt("!a.cc", "web", directory.path() / "src"),
            (Place{.pattern = "src/!a.cc", .literal = true}));
}

TEST(PlaceOfTest, AnAbsolutePathIsTakenRelativeToAProjectThatIsOne) {
  EXPECT_EQ(PlaceAt("/w/repo/src/x.cc", "/w/repo/").pattern, "src/x.cc");
  EXPECT_EQ(PlaceAt("/w/repo/./src//x.cc", "/w/repo").pattern, "src/x.cc");
  EXPECT_EQ(PlaceAt("/w/other/x.cc", "/w/repo").pattern, "/w/other/x.cc");
  EXPECT_EQ(PlaceAt("/w/repository", "/w/repo").pattern, "/w/repository");
  EXPECT_EQ(PlaceAt("/w/repo/x.cc", "web").pattern, "/w/repo/x.cc");
}

TEST(PlaceOfTest, ACheckoutIsTheSameThroughASymbolicLink) {
  const testing::TempDir directory;
  const fs::path real = directory.path() / "real";
  const fs::path link = directory.path() / "link";
  fs::create_directories(real / ".git");
  fs::create_directories(real / "src");
  std::ofstream(real / "src" / "a.cc").close();
  fs::create_symlink("a.cc", real / "src" / "alias.cc");
  fs::create_directory_symlink(real, link);
  EXPECT_EQ(PlaceAt(link / "src" / "a.cc", "web", real / "src"),
            (Place{.pattern = "src/a.cc", .literal = true}));
  EXPECT_EQ(PlaceAt(link / "src" / "new.cc", "web", real).pattern, "src/new.cc");
  EXPECT_EQ(PlaceAt(link / "src" / "*.cc", "web", real).pattern, "src/*.cc");
  EXPECT_EQ(PlaceAt(link / "src", "web", real).pattern, "src/");
  EXPECT_EQ(PlaceAt(link, "web", real).pattern, "**");
  EXPECT_EQ(PlaceAt("a.cc", link, real / "src").pattern, "src/a.cc") << "the project is the link";
  EXPECT_EQ(PlaceAt(real / "src" / "a.cc", link, "/").pattern, "src/a.cc");
  EXPECT_EQ(PlaceAt(real / "src" / "alias.cc", "web", real).pattern, "src/alias.cc");
}

TEST(PlaceOfTest, LiteralMeansLiteral) {
  AskOptions options;
  options.path = "src/*.cc";
  options.literal = true;
  EXPECT_EQ(*PlaceOf(options, "/nowhere"), (Place{.pattern = "src/*.cc", .literal = true}));
}

TEST(PlaceOfTest, ARelativePathIsSeenFromTheCurrentDirectoryInTheRepository) {
  const testing::TempDir directory;
  const fs::path root = directory.path();
  const fs::path here = root / "src" / "[http]";
  fs::create_directories(here / "parts");
  std::ofstream(here / "a.cc").close();
  EXPECT_EQ(PlaceAt("a.cc", "web", here).pattern, "a.cc") << "in no repository";
  fs::create_directory(root / ".git");
  EXPECT_EQ(PlaceAt("a.cc", "web", here), (Place{.pattern = "src/[http]/a.cc", .literal = true}));
  EXPECT_EQ(PlaceAt("./new.cc", "web", here).pattern, "src/[http]/new.cc");
  EXPECT_EQ(PlaceAt("../x.cc", "web", here).pattern, "src/x.cc");
  EXPECT_EQ(PlaceAt("../../x.cc", "web", here).pattern, "x.cc");
  EXPECT_EQ(PlaceAt("src/x.cc", "web", root).pattern, "src/x.cc");
  EXPECT_EQ(PlaceAt((here / "a.cc").string(), "web", root).pattern, "src/[http]/a.cc");
  const auto below = [&](const std::string& path, const fs::path& from) {
    const Place place = PlaceAt(path, "web", from);
    EXPECT_FALSE(place.literal) << path;
    return place.pattern;
  };
  EXPECT_EQ(below("parts", here), "src/\\[http]/parts/");
  EXPECT_EQ(below("new/", here), "src/\\[http]/new/");
  EXPECT_EQ(below("*.cc", here), "src/\\[http]/*.cc");
  EXPECT_EQ(below(".", here), "src/\\[http]/");
  EXPECT_EQ(below("..", here), "src/");
  EXPECT_EQ(below("../..", here), "**");
  EXPECT_EQ(below(".", root), "**");
}

TEST(PlaceOfTest, APathOutsideTheRepositoryIsRefused) {
  const testing::TempDir directory;
  fs::create_directories(directory.path() / ".git");
  AskOptions options;
  options.project = "web";
  for (const char* path : {"../x.cc", "..", "./../x.cc"}) {
    options.path = path;
    const auto place = PlaceOf(options, directory.path());
    ASSERT_FALSE(place.ok()) << path;
    EXPECT_THAT(place.error().message(), HasSubstr("outside the repository"));
  }
}

TEST(PlaceOfTest, AGitFileMarksAWorkTreeOrASubmodule) {
  const testing::TempDir directory;
  fs::create_directories(directory.path() / ".git");
  fs::create_directories(directory.path() / "module" / "src");
  std::ofstream(directory.path() / "module" / ".git") << "gitdir: ../.git/modules/module\n";
  EXPECT_EQ(PlaceAt("x", "web", directory.path() / "module" / "src").pattern, "src/x");
}

TEST(PlaceOfTest, ARelativePathInAProjectThatIsADirectoryIsSeenFromThere) {
  EXPECT_EQ(PlaceAt("x.cc", "/w/repo", "/w/repo/src").pattern, "src/x.cc");
  EXPECT_EQ(PlaceAt("x.cc", "/w/repo/", "/w/repo").pattern, "x.cc");
  EXPECT_EQ(PlaceAt("x.cc", "/w/repo", "/w/other").pattern, "x.cc") << "from the root";
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
