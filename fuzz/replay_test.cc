// Every input of fuzz/corpus through its target, in a program that any compiler builds. An input
// that breaks a target ends the program; its name is the last line before.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "targets.h"

namespace interlock::fuzz {
namespace {

namespace fs = std::filesystem;

struct Target {
  std::string_view name;  // of its folder in the corpus, and of its program
  void (*run)(std::string_view input);

  friend std::ostream& operator<<(std::ostream& out, const Target& target) {
    return out << target.name;
  }
};

constexpr std::array kTargets = {
    Target{"glob_fuzz", FuzzGlob},     Target{"http_fuzz", FuzzHttp}, Target{"ic_fuzz", FuzzIc},
    Target{"json_fuzz", FuzzJson},     Target{"keys_fuzz", FuzzKeys}, Target{"time_fuzz", FuzzTime},
    Target{"target_fuzz", FuzzTarget}, Target{"ws_fuzz", FuzzWs},
};
constexpr Target kCanary = {"canary_fuzz", FuzzCanary};

std::vector<fs::path> Inputs(const Target& target) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(INTERLOCK_CORPUS) / target.name)) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// How many inputs there were.
std::size_t Replay(const Target& target) {
  const std::vector<fs::path> files = Inputs(target);
  for (const fs::path& path : files) {
    std::fprintf(stderr, "%s/%s\n", std::string(target.name).c_str(), path.filename().c_str());
    // A copy of exactly its size, so that a read past the end is seen.
    const std::string text = ReadAll(path);
    const std::vector<char> bytes(text.begin(), text.end());
    target.run({bytes.data(), bytes.size()});
  }
  return files.size();
}

class ReplayTest : public ::testing::TestWithParam<Target> {};

TEST_P(ReplayTest, EveryInputOfTheCorpusKeepsThePromises) {
  constexpr std::size_t kSomeDozens = 100;  // CI replays them twice
  const std::size_t count = Replay(GetParam());
  EXPECT_GT(count, 0U);
  EXPECT_LE(count, kSomeDozens);
}

INSTANTIATE_TEST_SUITE_P(Corpus, ReplayTest, ::testing::ValuesIn(kTargets),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(ReplayOfTheCanaryTest, AnInputThatBreaksATargetFails) {
  EXPECT_DEATH(Replay(kCanary), "canary_fuzz/.*\n.*check failed.*the planted bug");
}

TEST(ReplayOfTheCanaryTest, EveryFolderOfTheCorpusIsReplayed) {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(INTERLOCK_CORPUS)) {
    folders.push_back(entry.path().filename());
  }
  std::ranges::sort(folders);
  std::vector<std::string> names = {std::string(kCanary.name)};
  for (const Target& target : kTargets) names.emplace_back(target.name);
  std::ranges::sort(names);
  EXPECT_EQ(folders, names);
}

}  // namespace
}  // namespace interlock::fuzz
