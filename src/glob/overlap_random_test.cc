#include <gtest/gtest.h>

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

using ::interlock::testing::Below;
using ::interlock::testing::kSlowBuild;
using ::interlock::testing::SlowGlob;

constexpr std::size_t kPool = 2000;

std::vector<Pattern> MakePool(std::mt19937_64& rng) {
  RandomPatterns random(rng);
  std::vector<Pattern> pool;
  pool.reserve(kPool);
  for (std::size_t i = 0; i < kPool; ++i) pool.push_back(random.Next());
  return pool;
}

TEST(OverlapRandomTest, WitnessesMatchBothPatterns) {
  std::mt19937_64 rng(testing::TestSeed());
  const std::size_t pairs = kSlowBuild ? 50'000 : 2'000'000;
  const std::vector<Pattern> pool = MakePool(rng);
  std::size_t overlaps = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    const Pattern& a = pool[Below(rng, kPool)];
    const Pattern& b = pool[Below(rng, kPool)];
    const std::optional<std::string> witness = Overlap(a, b).value();
    if (!witness) continue;
    ++overlaps;
    ASSERT_TRUE(IsPath(*witness)) << a.text() << " and " << b.text() << ": " << *witness;
    ASSERT_TRUE(a.Matches(*witness)) << a.text() << " and " << b.text() << ": " << *witness;
    ASSERT_TRUE(b.Matches(*witness)) << a.text() << " and " << b.text() << ": " << *witness;
  }
  EXPECT_GT(overlaps, pairs / 20);
  EXPECT_LT(overlaps, pairs / 2);
}

TEST(OverlapRandomTest, OverlapIsSymmetricAndReflexive) {
  std::mt19937_64 rng(testing::TestSeed());
  const std::vector<Pattern> pool = MakePool(rng);
  const std::size_t pairs = kSlowBuild ? 20'000 : 300'000;
  for (std::size_t i = 0; i < pairs; ++i) {
    const Pattern& a = pool[Below(rng, kPool)];
    const Pattern& b = pool[Below(rng, kPool)];
    ASSERT_EQ(Overlap(a, b).value(), Overlap(b, a).value()) << a.text() << " and " << b.text();
  }
  for (const Pattern& a : pool) {
    EXPECT_EQ(Overlap(a, a).value().has_value(), !a.expansions().empty()) << a.text();
    EXPECT_EQ(Overlap(a, Pattern::Parse("**").value()).value().has_value(),
              !a.expansions().empty());
  }
}

// A witness of one pair is a path like any other: where the slow matcher says that two patterns
// match it, Overlap() must have found them to overlap.
TEST(OverlapRandomTest, NoCommonPathIsMissed) {
  std::mt19937_64 rng(testing::TestSeed());
  const std::vector<Pattern> pool = MakePool(rng);
  std::vector<SlowGlob> slow;
  slow.reserve(pool.size());
  for (const Pattern& pattern : pool) slow.push_back(SlowGlob::Parse(pattern.text()).value());
  const std::size_t rounds = kSlowBuild ? 20 : 150;
  std::size_t shared = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto path = Overlap(pool[Below(rng, kPool)], pool[Below(rng, kPool)]).value();
    if (!path) continue;
    std::vector<std::size_t> matching;
    for (std::size_t i = 0; i < kPool; ++i) {
      const bool matches = slow[i].Matches(*path);
      ASSERT_EQ(pool[i].Matches(*path), matches) << pool[i].text() << " against " << *path;
      if (matches) matching.push_back(i);
    }
    for (std::size_t i = 0; i + 1 < matching.size(); ++i) {
      ++shared;
      ASSERT_TRUE(Overlap(pool[matching[i]], pool[matching[i + 1]]).value().has_value())
          << pool[matching[i]].text() << " and " << pool[matching[i + 1]].text() << " share "
          << *path;
    }
  }
  EXPECT_GT(shared, rounds);
}

TEST(OverlapRandomTest, TheSlowDecisionIsTheSame) {
  std::mt19937_64 rng(testing::TestSeed());
  const std::vector<Pattern> pool = MakePool(rng);
  constexpr std::size_t kShort = 24;  // the slow one is slow
  const std::size_t pairs = kSlowBuild ? 200 : 5'000;
  std::size_t compared = 0;
  while (compared < pairs) {
    const Pattern& a = pool[Below(rng, kPool)];
    const Pattern& b = pool[Below(rng, kPool)];
    if (a.text().size() > kShort || b.text().size() > kShort) continue;
    ++compared;
    const SlowGlob slow_a = SlowGlob::Parse(a.text()).value();
    const SlowGlob slow_b = SlowGlob::Parse(b.text()).value();
    ASSERT_EQ(Overlap(a, b).value().has_value(), slow_a.Overlaps(slow_b))
        << a.text() << " and " << b.text();
  }
}

TEST(OverlapRandomTest, EqualCanonicalTextsMatchTheSamePaths) {
  std::mt19937_64 rng(testing::TestSeed());
  const std::vector<Pattern> pool = MakePool(rng);
  for (const Pattern& pattern : pool) {
    const Result<Pattern> again = Pattern::ParseHeld(pattern.canonical());
    if (!again.ok()) {
      // Longer than what was sent, so a limit may be in the way; nothing else may.
      EXPECT_EQ(again.error().code(), Errc::kPatternTooComplex) << pattern.canonical();
      continue;
    }
    EXPECT_EQ(again->canonical(), pattern.canonical()) << pattern.text();
    for (int i = 0; i < 20; ++i) {
      const auto path = Overlap(pattern, pool[Below(rng, kPool)]).value();
      if (path) {
        EXPECT_TRUE(again->Matches(*path)) << pattern.text() << ": " << *path;
      }
    }
  }
}

}  // namespace
}  // namespace interlock::glob
