#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "glob/hostile_pattern.h"
#include "glob/overlap.h"

namespace interlock::glob {
namespace {

Pattern P(std::string_view text) {
  Result<Pattern> pattern = Pattern::Parse(text);
  EXPECT_TRUE(pattern.ok()) << pattern.error();
  return std::move(pattern).value();
}

struct Spent {
  std::optional<std::string> witness;
  std::int64_t steps;
};

// The answer, which must come within the default budget, and what it took.
Spent Ask(const Pattern& a, const Pattern& b) {
  Budget budget;
  const auto witness = Overlap(a, b, budget);
  EXPECT_TRUE(witness.ok()) << a.text().substr(0, 80) << " and " << b.text().substr(0, 80);
  if (!witness.ok()) return {std::nullopt, 0};
  return {*witness, Budget::kStepsDefault - budget.left()};
}

TEST(OverlapHostileTest, StarsInALongSegment) {
  const std::string run(120, 'a');
  const Pattern a = P(Repeat(run + "*", 32) + "b");
  const Pattern b = P(Repeat("*" + run, 32) + "c");
  const Spent apart = Ask(a, b);
  EXPECT_FALSE(apart.witness.has_value());
  EXPECT_LT(apart.steps, Budget::kStepsDefault / 4);
  const Pattern c = P(Repeat("*" + run, 32) + "ab");
  const Spent shared = Ask(a, c);
  ASSERT_TRUE(shared.witness.has_value());
  EXPECT_TRUE(a.Matches(*shared.witness));
  EXPECT_TRUE(c.Matches(*shared.witness));
  EXPECT_LT(shared.steps, Budget::kStepsDefault / 3);
}

TEST(OverlapHostileTest, StarsAgainstTheirLike) {
  const Spent spent = Ask(P(Repeat("a*", 32) + "b"), P(Repeat("*a", 32) + "c"));
  EXPECT_FALSE(spent.witness.has_value());
  EXPECT_LT(spent.steps, Budget::kStepsDefault / 500);
}

TEST(OverlapHostileTest, ManySegmentsAndDoubleStars) {
  const Pattern a = P(Repeat("**/" + Repeat("a/", 50), 32) + "b");
  const Pattern b = P(Repeat(Repeat("a/", 50) + "**/", 32) + "c");
  EXPECT_FALSE(Ask(a, b).witness.has_value());
  const Pattern c = P(Repeat(Repeat("a/", 50) + "**/", 32) + "b");
  const Spent spent = Ask(a, c);
  ASSERT_TRUE(spent.witness.has_value());
  EXPECT_TRUE(a.Matches(*spent.witness));
  EXPECT_TRUE(c.Matches(*spent.witness));
}

TEST(OverlapHostileTest, SixtyFourBranchesOnBothSides) {
  const std::string body = Repeat("a", 60);
  const Spent literal = Ask(P(Branches(body, "bcdefghi")), P(Branches(body, "jklmnopq")));
  EXPECT_FALSE(literal.witness.has_value());
  for (const std::string_view piece : {"*a", "?a", "[a-y]a", "a*/", ".*/", "**/*a/"}) {
    const std::string wild = Repeat(piece, 60 / piece.size());
    const Pattern a = P(Branches(wild, "bcdefghi"));
    const Pattern b = P(Branches(wild, "jklmnopq"));
    const Spent apart = Ask(a, b);
    EXPECT_FALSE(apart.witness.has_value()) << piece;
    const Spent same = Ask(a, a);
    ASSERT_TRUE(same.witness.has_value());
    EXPECT_TRUE(a.Matches(*same.witness));
  }
}

TEST(OverlapHostileTest, FourKibibytesOfLiterals) {
  const Pattern a = P(Repeat("a", 4095) + "*");
  const Pattern b = P("*" + Repeat("a", 4094) + "b");
  const Spent spent = Ask(a, b);
  ASSERT_TRUE(spent.witness.has_value());
  EXPECT_TRUE(a.Matches(*spent.witness));
  EXPECT_TRUE(b.Matches(*spent.witness));
  EXPECT_FALSE(Ask(P(Repeat("ab", 2048)), P(Repeat("ab*", 32) + Repeat("ab", 1990) + "c")).witness);
}

TEST(OverlapHostileTest, ClassesWithThousandsOfRanges) {
  // Every other character from U+0400 on, and those between.
  std::string even = "[";
  std::string odd = "[";
  for (char32_t c = 0x400; even.size() < 4000; c += 2) {
    AppendUtf8(even, c);
    AppendUtf8(odd, c + 1);
  }
  EXPECT_FALSE(Ask(P(even + "]*"), P(odd + "]*")).witness.has_value());
  EXPECT_TRUE(Ask(P(even + "]*"), P(odd + "a]*")).witness == std::nullopt);
  EXPECT_TRUE(Ask(P(even + "a]*"), P(odd + "a]*")).witness.has_value());
  EXPECT_TRUE(Ask(P("[^" + even.substr(1) + "]"), P(odd + "]")).witness.has_value());
}

// A thousand classes against a thousand letters: whatever the answer, it comes within the budget,
// and the same from both sides.
TEST(OverlapHostileTest, ClassesAgainstLettersAnswerOrGiveUp) {
  std::string classes = "{";
  std::string letters = "{";
  char32_t c = 0x400;
  for (int branch = 0; branch < 60; ++branch) {
    if (branch > 0) {
      classes += ",";
      letters += ",";
    }
    for (int i = 0; i < 8; ++i, ++c) {
      classes += "[^";
      AppendUtf8(classes, c);
      classes += "]*";
      for (int k = 0; k < 3; ++k) AppendUtf8(letters, c + static_cast<char32_t>(k) * 500);
      letters += "*";
    }
    classes += "a";
    letters += "b";
  }
  const Pattern a = P(classes + "}");
  const Pattern b = P(letters + "}");
  Budget one;
  Budget other;
  const auto forth = Overlap(a, b, one);
  const auto back = Overlap(b, a, other);
  EXPECT_EQ(one.left(), other.left());
  ASSERT_EQ(forth.ok(), back.ok());
  if (forth.ok()) {
    EXPECT_EQ(*forth, std::nullopt);
  } else {
    EXPECT_EQ(forth.error().code(), Errc::kPatternTooComplex);
  }
}

TEST(OverlapHostileTest, AUsedUpBudgetIsSaidSoWhereverItEnds) {
  const Pattern a = P("{**/[a-f]?*x,src/*[^b]}/?b");
  const Pattern b = P("{src,**}/[e-z]*/.*b{,c}");
  Budget ample;
  const auto witness = Overlap(a, b, ample).value();
  const std::int64_t needed = Budget::kStepsDefault - ample.left();
  for (std::int64_t steps = 0; steps < needed; ++steps) {
    Budget budget(steps);
    const auto starved = Overlap(a, b, budget);
    ASSERT_FALSE(starved.ok()) << steps;
    ASSERT_EQ(starved.error().code(), Errc::kPatternTooComplex);
  }
  Budget exact(needed);
  EXPECT_EQ(Overlap(a, b, exact).value(), witness);
}

}  // namespace
}  // namespace interlock::glob
