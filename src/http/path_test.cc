#include "http/path.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace interlock::http {
namespace {

TEST(PathTest, TargetsAreSplitAndDecoded) {
  const struct {
    std::string target, path, query;
  } kCases[] = {
      {"/", "/", ""},
      {"/health", "/health", ""},
      {"/health?a=%20b", "/health", "a=%20b"},
      {"/a%2Fb%20c", "/a/b c", ""},
      {"/caf%C3%A9?", "/café", ""},
      {"/a?b?c", "/a", "b?c"},
      {"http://localhost:7338/health?x", "/health", "x"},
      {"http://localhost", "/", ""},
      {"http://localhost?x", "/", "x"},
      {"/%25", "/%", ""},
  };
  for (const auto& c : kCases) {
    const auto parsed = ParseTarget(c.target);
    ASSERT_TRUE(parsed.ok()) << c.target;
    EXPECT_EQ(parsed->path, c.path) << c.target;
    EXPECT_EQ(parsed->query, c.query) << c.target;
  }
}

TEST(PathTest, TargetsThatMeanNothingAreRefused) {
  for (const std::string target :
       {"", "health", "*", "localhost:80", "/%", "/%4", "/%zz", "/%00", "/%FF", "/%C0%AF",
        "/%ED%A0%80", "/%F4%90%80%80", "/%E0%80%80", "/%F0%80%80%80", "/%C3", "/%80"}) {
    const auto parsed = ParseTarget(target);
    ASSERT_FALSE(parsed.ok()) << target;
    EXPECT_EQ(parsed.error().code(), Errc::kInvalidArgument) << target;
  }
}

TEST(PathTest, CleaningNeverLeadsAboveTheRoot) {
  const struct {
    std::string path, clean;
  } kCases[] = {
      {"/", "/"},
      {"//", "/"},
      {"/health", "/health"},
      {"//health", "/health"},
      {"/./health", "/health"},
      {"/a/../health", "/health"},
      {"/../../etc", "/etc"},
      {"/a//b/", "/a/b/"},
      {"/a/.", "/a"},
      {"/a/b/..", "/a"},
      {"/a/./", "/a/"},
      {"/..", "/"},
      {"/...", "/..."},
      {"/a/", "/a/"},
      {"/.hidden", "/.hidden"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(CleanPath(c.path), c.clean) << c.path;
    EXPECT_EQ(CleanPath(CleanPath(c.path)), CleanPath(c.path)) << c.path;
  }
}

TEST(PathTest, WhatMayNotBeUncleanIsClean) {
  constexpr std::string_view kLetters = "/.a";
  int clean = 0;
  int unclean = 0;
  std::vector<std::string> paths = {""};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string path = paths[i];
    if (MayBeUnclean(path)) {
      ++unclean;
    } else {
      ++clean;
      ASSERT_EQ(CleanPath(path), path);
    }
    if (path.size() == 7) continue;
    for (const char letter : kLetters) paths.push_back(path + letter);
  }
  EXPECT_FALSE(MayBeUnclean("/"));
  EXPECT_FALSE(MayBeUnclean("/api/agents/a.b/heartbeat/"));
  EXPECT_GT(clean, 50);
  EXPECT_GT(unclean, 1'000);
}

TEST(PathTest, EncodedPathsDecodeToThemselves) {
  std::string all = "/";
  for (int c = 1; c < 128; ++c) all += static_cast<char>(c);
  all += "é€😀";
  const std::string encoded = EncodePath(all);
  EXPECT_EQ(encoded.find_first_of("\r\n ?#\""), std::string::npos);
  EXPECT_EQ(ParseTarget(encoded)->path, all);
}

}  // namespace
}  // namespace interlock::http
