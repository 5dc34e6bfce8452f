#include "glob/prefix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "glob/overlap.h"
#include "glob/random_pattern.h"
#include "testing/random.h"
#include "testing/seeded_random.h"

namespace interlock::glob {
namespace {

using ::interlock::testing::Below;
using ::interlock::testing::kSlowBuild;

Pattern P(std::string_view text) { return Pattern::Parse(text).value(); }

TEST(PrefixTest, TheKeyIsThePathOrTheDirectory) {
  EXPECT_EQ(PrefixKey(P("src/main.go")), "src/main.go/");
  EXPECT_EQ(PrefixKey(P("src/*.go")), "src/");
  EXPECT_EQ(PrefixKey(P("src/a*.go")), "src/");
  EXPECT_EQ(PrefixKey(P("src/http/**")), "src/http/");
  EXPECT_EQ(PrefixKey(P("src/")), "src/");
  EXPECT_EQ(PrefixKey(P("**/*.go")), "");
  EXPECT_EQ(PrefixKey(P("a*")), "");
  EXPECT_EQ(PrefixKey(P("src/{a,b}.go")), "src/");
  EXPECT_EQ(PrefixKey(P("{src/a,src/b/c}/*")), "src/");
  EXPECT_EQ(PrefixKey(P("{src,lib}/*")), "");
  EXPECT_EQ(PrefixKey(P("{src/a,src}")), "src/");
  EXPECT_EQ(PrefixKey(P("{src,srcs}")), "");
  EXPECT_EQ(PrefixKey(P("./a//\\*b/[x]")), "a/*b/");
  EXPECT_EQ(PrefixKey(Pattern::Literal("app/[id]/p").value()), "app/[id]/p/");
}

TEST(PrefixTest, KeysOfAPathAreThoseAboveAndBelowIt) {
  const KeySet keys = OverlapKeys(P("a/b/c.go"));
  EXPECT_EQ(keys.exact, (std::vector<std::string>{"", "a/", "a/b/"}));
  EXPECT_EQ(keys.under.lo, "a/b/c.go/");
  EXPECT_EQ(keys.under.hi, "a/b/c.go0");
}

TEST(PrefixTest, KeysOfADirectoryAreThoseAboveAndARange) {
  const KeySet keys = OverlapKeys(P("a/b/*.go"));
  EXPECT_EQ(keys.exact, (std::vector<std::string>{"", "a/"}));
  EXPECT_EQ(keys.under.lo, "a/b/");
  EXPECT_EQ(keys.under.hi, "a/b0");
  EXPECT_TRUE(keys.Contains("a/b/"));
  EXPECT_TRUE(keys.Contains("a/b/\xF4\x8F\xBF\xBF"));
  EXPECT_FALSE(keys.Contains("a/b"));
  EXPECT_FALSE(keys.Contains("a/b0"));
  EXPECT_FALSE(keys.Contains("a/bc/"));
}

TEST(PrefixTest, KeysOfAPatternWithoutADirectoryAreAll) {
  const KeySet keys = OverlapKeys(P("**/*.go"));
  EXPECT_TRUE(keys.exact.empty());
  EXPECT_EQ(keys.under.lo, "");
  EXPECT_FALSE(keys.under.hi.has_value());
}

TEST(PrefixTest, DeepPathsHaveFewKeys) {
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "d/";
  const KeySet path = OverlapKeys(P(deep + "x"));
  EXPECT_EQ(path.exact.size(), kKeyDepthMax);
  const KeySet below = OverlapKeys(P(deep + "*"));
  EXPECT_EQ(below.exact.size(), kKeyDepthMax);
  EXPECT_EQ(below.under.lo.size(), 2 * kKeyDepthMax);
  EXPECT_TRUE(path.Contains(PrefixKey(P(deep + "*"))));
  EXPECT_TRUE(below.Contains(PrefixKey(P(deep + "x"))));
  // Once a path was its own key, however deep.
  EXPECT_TRUE(path.Contains(deep + "x/"));
  EXPECT_TRUE(below.Contains(deep + "x/"));
}

TEST(PrefixTest, NoOverlappingPatternIsOutsideTheKeys) {
  std::mt19937_64 rng(testing::TestSeed());
  RandomPatterns random(rng);
  constexpr std::size_t kPool = 2000;
  std::vector<Pattern> pool;
  for (std::size_t i = 0; i < kPool; ++i) {
    // Half of them under shared directories, where keys have a depth to differ in.
    const std::string_view directories[] = {"", "", "src/", "src/http/", "src/ht", "lib/\\*/"};
    auto pattern = Pattern::Parse(std::string(directories[Below(rng, 6)]) + random.Next().text());
    if (pattern.ok()) pool.push_back(std::move(pattern).value());
  }
  std::vector<std::string> prefix;
  std::vector<KeySet> keys;
  for (const Pattern& pattern : pool) {
    prefix.push_back(PrefixKey(pattern));
    keys.push_back(OverlapKeys(pattern));
  }
  const std::size_t pairs = kSlowBuild ? 100'000 : 3'000'000;
  std::size_t overlaps = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    const std::size_t a = Below(rng, pool.size());
    const std::size_t b = Below(rng, pool.size());
    const bool found = keys[a].Contains(prefix[b]);
    // Whether one finds the other does not depend on who asks.
    ASSERT_EQ(found, keys[b].Contains(prefix[a])) << pool[a].text() << " and " << pool[b].text();
    if (found) continue;
    const auto witness = Overlap(pool[a], pool[b]).value();
    ASSERT_FALSE(witness.has_value())
        << pool[a].text() << " and " << pool[b].text() << " share " << *witness;
    ++overlaps;
  }
  EXPECT_GT(overlaps, pairs / 10) << "the keys keep nothing away";
}

// 200 directories with 50 files each, every file reserved: a request must meet few of them.
TEST(PrefixTest, KeysKeepMostOfAProjectAway) {
  std::vector<std::string> stored;
  for (int directory = 0; directory < 200; ++directory) {
    const std::string base = "src/module" + std::to_string(directory) + "/";
    for (int file = 0; file < 49; ++file) {
      stored.push_back(PrefixKey(P(base + "file" + std::to_string(file) + ".cc")));
    }
    stored.push_back(PrefixKey(P(base + "*.h")));
  }
  const auto met = [&stored](std::string_view text) {
    const KeySet keys = OverlapKeys(P(text));
    return std::ranges::count_if(stored, [&](const auto& key) { return keys.Contains(key); });
  };
  EXPECT_EQ(met("src/module7/file3.cc"), 2);  // itself and the directory's pattern
  EXPECT_EQ(met("src/module7/*.cc"), 50);
  EXPECT_EQ(met("src/module7/"), 50);
  EXPECT_EQ(met("lib/**"), 0);
  EXPECT_EQ(met("README.md"), 0);
  EXPECT_EQ(met("src/**"), 10'000);
}

}  // namespace
}  // namespace interlock::glob
