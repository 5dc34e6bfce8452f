#include "glob/cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "glob/overlap.h"
#include "glob/random_pattern.h"
#include "testing/random.h"
#include "testing/seeded_random.h"
#include "testing/slow_glob.h"

namespace interlock::glob {
namespace {

std::optional<std::string> Left(const std::string& pattern, const std::vector<std::string>& by) {
  std::vector<Pattern> others;
  others.reserve(by.size());
  for (const std::string& one : by) others.push_back(Pattern::Parse(one).value());
  Budget budget;
  return Uncovered(Pattern::Parse(pattern).value(), others, budget).value();
}

TEST(CoverTest, SaysWhetherPatternsHoldEveryPathOfAnother) {
  const struct {
    const char* pattern;
    std::vector<std::string> by;
    bool covered;
  } kCases[] = {
      {"src/a.cc", {"src/a.cc"}, true},
      {"src/a.cc", {"src/*"}, true},
      {"src/a.cc", {"src"}, true},
      {"src/**", {"src"}, true},
      {"src/*/x", {"src/a", "src/[!a]*/*", "src/a?*/x"}, true},
      {"src/*/x", {"src/a", "src/[!a]*"}, false},
      {"src", {"src/**"}, false},
      {"{src/a,src/b}.cc", {"src/*.cc"}, true},
      {"sr?", {"src"}, false},
      {"src/*.cc", {"src/**"}, true},
      {"src/**", {"src/*.cc"}, false},
      {"src/**", {"src/**", "x"}, true},
      {"src/**", {"**"}, true},
      {"**", {"*", "*/**"}, true},
      {"**", {"*/**"}, false},
      {"src/**", {"src/*", "src/*/**"}, true},
      {"src/**", {"src/*", "src/*/*/**"}, false},
      {"{a,b}.c", {"a.c", "b.c"}, true},
      {"{a,b,c}.c", {"a.c", "b.c"}, false},
      {"[a-z].c", {"[a-m].c", "[n-z].c"}, true},
      {"[a-z].c", {"[a-m].c", "[o-z].c"}, false},
      {"?.c", {"[!x].c", "x.c"}, true},
      {"**/*.go", {"*.go", "*/**"}, true},
      {"a/**/z", {"a/z", "a/**/?*/z"}, true},
      {"*", {"?", "??*"}, true},
      {"*", {"??*"}, false},
      {"???", {"*.*", "[!.]*"}, true},
      {"x", {}, false},
      {"[.]", {}, true},  // matches no path at all
  };
  for (const auto& one : kCases) {
    EXPECT_EQ(!Left(one.pattern, one.by).has_value(), one.covered) << one.pattern;
  }
}

TEST(CoverTest, EveryAnswerHasItsProof) {
  std::mt19937_64 rng(testing::TestSeed());
  RandomPatterns random(rng);
  std::vector<Pattern> pool;
  pool.reserve(400);
  for (int i = 0; i < 400; ++i) pool.push_back(random.Next());
  const auto any = [&]() -> const Pattern& { return pool[testing::Below(rng, pool.size())]; };
  int covered = 0;
  int open = 0;
  for (int i = 0; i < (testing::kSlowBuild ? 200 : 6000); ++i) {
    const Pattern& pattern = any();
    const std::vector<Pattern> by = {any(), any(), i % 2 == 0 ? pattern : any()};
    Budget budget(100'000);
    const auto left = Uncovered(pattern, by, budget);
    if (!left.ok()) continue;  // too complex: no answer, and that is one
    const auto matched = [&](const std::string& path) {
      return std::ranges::any_of(by, [&](const Pattern& one) { return one.Matches(path); });
    };
    if (left->has_value()) {
      ++open;
      EXPECT_TRUE(pattern.Matches(**left)) << pattern.text() << ": " << **left;
      EXPECT_FALSE(matched(**left)) << pattern.text() << ": " << **left;
      continue;
    }
    ++covered;
    const auto slow = testing::SlowGlob::Parse(pattern.text()).value();
    for (int k = 0; k < 20; ++k) {
      const auto path = Overlap(pattern, any()).value();
      if (path && slow.Names(*path)) {
        EXPECT_TRUE(matched(*path)) << pattern.text() << ": " << *path;
      }
    }
  }
  EXPECT_GT(covered, 20);
  EXPECT_GT(open, 20);
}

TEST(CoverTest, AHostilePatternIsGivenUpInTime) {
  std::string hostile = "*a";
  for (int i = 0; i < 30; ++i) hostile += "?";
  Budget budget;
  const std::vector<Pattern> by = {Pattern::Parse(hostile).value()};
  const auto left = Uncovered(Pattern::Parse("*b*").value(), by, budget);
  EXPECT_TRUE(left.ok() ? left->has_value() : left.error().code() == Errc::kPatternTooComplex);
  Budget small(100);
  EXPECT_FALSE(Uncovered(Pattern::Parse("**/*.go").value(), by, small).ok());
}

}  // namespace
}  // namespace interlock::glob
