#include "glob/overlap.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace interlock::glob {
namespace {

struct Case {
  std::string_view a;
  std::string_view b;
  bool overlap;
};

// Checks both directions, and that a witness is one.
void ExpectOverlaps(std::initializer_list<Case> cases) {
  for (const auto& [text_a, text_b, overlap] : cases) {
    SCOPED_TRACE(std::string(text_a) + " and " + std::string(text_b));
    const Pattern a = Pattern::Parse(text_a).value();
    const Pattern b = Pattern::Parse(text_b).value();
    const std::optional<std::string> witness = Overlap(a, b).value();
    EXPECT_EQ(witness.has_value(), overlap) << witness.value_or("");
    EXPECT_EQ(Overlap(b, a).value(), witness);
    if (!witness) continue;
    EXPECT_TRUE(a.Matches(*witness)) << *witness;
    EXPECT_TRUE(b.Matches(*witness)) << *witness;
  }
}

TEST(OverlapTest, FilesAndStars) {
  ExpectOverlaps({{"*.go", "*.go", true},
                  {"*.go", "*.rs", false},
                  {"foo.go", "foo.go", true},
                  {"foo.go", "bar.go", false},
                  {"*.go", "main.go", true},
                  {"internal/*.go", "internal/http.go", true},
                  {"internal/*.go", "pkg/*.go", false},
                  {"src/[a-z]*.go", "src/main.go", true},
                  {"src/[A-Z]*.go", "src/main.go", false},
                  {"pkg/events/*.go", "pkg/events/reconcile.go", true},
                  {"pkg/*/reconcile.go", "pkg/events/*.go", true},
                  {"pkg/*.go", "pkg/events/*.go", false},
                  {"internal/http/*.go", "internal/http/router.go", true},
                  {"docs/*.md", "docs/README.md", true},
                  {"cmd/intermute/*.go", "cmd/intermute/main.go", true},
                  {"internal/*/handler/*.go", "internal/*/handler/auth.go", true},
                  {"src/main.go", "lib/util.go", false},
                  {"src/[a-z]*.go", "src/[A-Z]*.go", false},
                  {"src", "src/main.go", true},
                  {"*.test.js", "foo.test.*", true},
                  {"*.test.js", "*.spec.js", false}});
}

TEST(OverlapTest, StarsAgainstStars) {
  ExpectOverlaps({{"a*b", "a*c", false},
                  {"a*b", "*ab", true},
                  {"a*", "*b", true},
                  {"*a*", "*b*", true},
                  {"x*y*z", "xz", false},
                  {"a?c", "abc", true},
                  {"a?c", "ac", false},
                  {"?", "é", true},
                  {"A.go", "a.go", false},
                  {"ab*", "*a", true},
                  {"a*a", "a", false}});
}

TEST(OverlapTest, ClassesAndEscapes) {
  ExpectOverlaps({{"[abc].go", "[c-e].go", true},
                  {"[abc].go", "[d-f].go", false},
                  {"[^a].go", "a.go", false},
                  {"[^a].go", "b.go", true},
                  {"\\*.go", "*.go", true},
                  {"\\*.go", "main.go", false},
                  {"[]a]x", "]x", true},
                  {"[a-]x", "-x", true},
                  {"[^a]", "[a]", false},
                  {"[^a-y]", "[a-z]", true},
                  {"[^a-z]", "[a-z]", false},
                  {"[!a].go", "a.go", false},
                  {"[!a].go", "b.go", true},
                  {"[^\x01-y]", "?", true}});
  EXPECT_EQ(Pattern::Parse("a[/]b").error().code(), Errc::kInvalidPattern);
}

TEST(OverlapTest, DoubleStars) {
  ExpectOverlaps({{"**", "a", true},
                  {"**", "a/b", true},
                  {"**", "**", true},
                  {"src/**", "src/a", true},
                  {"src/**", "src/a/b.go", true},
                  {"src/**", "src", true},
                  {"**/*.go", "a/b.go", true},
                  {"**/*.go", "b.go", true},
                  {"**/*.go", "a/b/c.go", true},
                  {"a/**/z", "a/z", true},
                  {"a/**", "**/z", true},
                  {"a/**", "b/**", false},
                  {"a/**", "**/a", true},
                  {"a/**", "*", false},
                  {"a/**", "*/b/*", true},
                  {"**/a/**", "**/b/**", true},
                  {"a/**/b", "c/**/b", false},
                  {"a/**/b", "a/*/c", false},
                  {"a/**/b/c", "a/**/c", true},
                  {"a/**/b/c", "**/b", false},
                  {"a/b/c", "**/b", true},
                  {"**/a/b", "a/**/b", true},
                  {"**/x", "**/y", false},
                  {"x/**/*.go", "**/y/*.*", true}});
}

TEST(OverlapTest, BracesSlashesAndDots) {
  ExpectOverlaps({{"{a,b}.go", "a.go", true},
                  {"{a,b}.go", "{c,b}.go", true},
                  {"{a,b}.go", "{c,d}.go", false},
                  {"{a,b/c}/d", "b/*/d", true},
                  {"{x,**/y}", "a/b/{y,z}", true},
                  {"a/", "a", true},
                  {"a/", "a/*", true},
                  {"a/", "a/b/c", true},
                  {"a//*", "a/*/b", false},
                  {"a//b", "a/b", true},
                  {"./a", "a", true},
                  {"./src//x", "src/./x", true}});
}

TEST(OverlapTest, OnlyPathsAreShared) {
  ExpectOverlaps(
      {{"[.]", "?", false},          {"?", "[.a]", true},         {"[.]*", "*[.]", true},
       {".?", "?.", false},          {".?", "?[.a]", true},       {".*", "*.", true},
       {"..*", "??", false},         {".*", "[.]?", true},        {"?", "[^a]", true},
       {"[.b]", "[.c]", false},      {"[.b]?", "[.c]?", true},    {"[.b]?", "[.c].", false},
       {"[.b]*", "[.c].", false},    {"*[.b]*", "[.c].", true},   {"a/[.b]", "**/[.c]", false},
       {"a/**/c", "a/[.b]/c", true}, {"a/*/c", "a/[.b]/c", true}, {"a/?/c", "a/[.]/c", false},
       {"a/**/c", "a/[.]/c", false}, {"*", "[.][.]", false},      {"**", ".[.]", false},
       {"[.b]*c*", "[.][.]c", true}});
}

TEST(OverlapTest, LiteralPathsAreComparedAsText) {
  const Pattern page = Pattern::Literal("app/[id]/page.tsx").value();
  EXPECT_EQ(Overlap(page, Pattern::Parse("app/**").value()).value(), "app/[id]/page.tsx");
  EXPECT_EQ(Overlap(Pattern::Parse("app/[id]/page.tsx").value(), page).value(), std::nullopt);
  EXPECT_EQ(Overlap(page, page).value(), "app/[id]/page.tsx");
}

TEST(OverlapTest, PathsOverlapWhatIsBelowThem) {
  ExpectOverlaps({{"src", "src/a.cc", true},      {"src", "src/a/b.cc", true},
                  {"src", "srcs/a.cc", false},    {"src/a", "src/b", false},
                  {"src/*", "src/a/b.cc", false}, {"src", "src/*.cc", true},
                  {"src", "lib/*.cc", false},     {"src", "*/a.cc", true},
                  {"src", "?r/a.cc", false},      {"src", "**/*.cc", true},
                  {"src/{a,b}", "src/b/c", true}, {"src/{a,b}", "src/{c,d}/e", false},
                  {"src/{a,b}", "src/?/e", true}, {"{src,lib}/a", "**/b", true},
                  {"{a,b/c}", "b", true},         {"{a,b/c}", "{d,b}/c/*", true},
                  {"{a,b/c}", "b/d*", false},     {"a/b", "*", false},
                  {"a/b", "[a]", false},          {"a", "[a]", true}});
}

TEST(OverlapTest, WitnessesReadWell) {
  const auto witness = [](std::string_view a, std::string_view b) {
    return Overlap(Pattern::Parse(a).value(), Pattern::Parse(b).value()).value().value_or("none");
  };
  EXPECT_EQ(witness("src/**/*.go", "src/main.go"), "src/main.go");
  EXPECT_EQ(witness("src/*.go", "*/main.*"), "src/main.go");
  EXPECT_EQ(witness("**", "*"), "a");
  EXPECT_EQ(witness("src/**", "**/test_*"), "src/test_");
  EXPECT_EQ(witness("a/**/z", "a/b/**"), "a/b/z");
  EXPECT_EQ(witness("src", "src/a.cc"), "src/a.cc");
  EXPECT_EQ(witness("src", "src"), "src");
  EXPECT_EQ(witness("src", "src/*"), "src/a");
  EXPECT_EQ(witness("src", "src/**"), "src/a");
  EXPECT_EQ(witness("src", "s*"), "src");
  EXPECT_EQ(witness("src", "**/main.cc"), "src/main.cc");
  EXPECT_EQ(witness("src/{a,b}", "src/b/c.cc"), "src/b/c.cc");
  EXPECT_EQ(witness("src/{a,b}", "src/{b,c}"), "src/b");
}

TEST(OverlapTest, ABudgetCanBeSharedAndRunsOut) {
  const Pattern a = Pattern::Parse("src/**/*_test.go").value();
  const Pattern b = Pattern::Parse("src/http/*.go").value();
  Budget budget(5000);
  int answered = 0;
  while (true) {
    const auto witness = Overlap(a, b, budget);
    if (!witness.ok()) {
      EXPECT_EQ(witness.error().code(), Errc::kPatternTooComplex);
      break;
    }
    EXPECT_TRUE(witness->has_value());
    ASSERT_LT(++answered, 100);
  }
  EXPECT_GT(answered, 0);
  EXPECT_EQ(budget.left(), 0);
  const Pattern path = Pattern::Parse("x").value();
  EXPECT_FALSE(Overlap(path, path, budget).ok());
}

TEST(OverlapTest, BothDirectionsSpendTheSame) {
  for (const std::string_view text : {"*a*", "{a,b}*", "x?z", "a", "**/[a-c]*", "xa/b*", "*b*"}) {
    const Pattern a = Pattern::Parse(text).value();
    const Pattern b = Pattern::Parse("{*a/b,*b*,[^x]}").value();
    Budget one;
    Budget other;
    EXPECT_EQ(Overlap(a, b, one).value(), Overlap(b, a, other).value());
    EXPECT_EQ(one.left(), other.left()) << text;
  }
}

}  // namespace
}  // namespace interlock::glob
