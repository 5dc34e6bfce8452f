#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "glob/overlap.h"
#include "testing/random.h"
#include "testing/slow_glob.h"

namespace interlock::glob {
namespace {

using ::interlock::testing::kSlowBuild;
using ::interlock::testing::SlowGlob;

// Every text of one to `length` pieces.
std::vector<std::string> AllTexts(const std::vector<std::string>& pieces, std::size_t length) {
  std::vector<std::string> texts;
  std::vector<std::string> last = {""};
  for (std::size_t i = 0; i < length; ++i) {
    std::vector<std::string> longer;
    for (const std::string& text : last) {
      for (const std::string& piece : pieces) longer.push_back(text + piece);
    }
    texts.insert(texts.end(), longer.begin(), longer.end());
    last = std::move(longer);
  }
  return texts;
}

struct Paths {
  std::vector<std::string> all;  // by length
  std::size_t longest;           // index of the first of the greatest length
};

// The paths that one to `length` pieces make; pieces that end in a slash lose the last one.
Paths AllPaths(const std::vector<std::string>& pieces, std::size_t length) {
  Paths paths{{}, 0};
  for (std::size_t now = 1; now <= length; ++now) {
    paths.longest = paths.all.size();
    std::vector<std::string> texts = AllTexts(pieces, now);
    texts.erase(texts.begin(),
                texts.end() - static_cast<std::ptrdiff_t>(std::pow(pieces.size(), now)));
    for (std::string& text : texts) {
      if (pieces.back().size() > 1 && text.ends_with("/")) text.pop_back();
      if (IsPath(text)) paths.all.push_back(text);
    }
  }
  return paths;
}

struct Subject {
  Pattern pattern;
  std::vector<std::uint64_t> matched;  // one bit per path
};

// All that parse, with what they match by the slow matcher; checks the fast one on the way.
std::vector<Subject> MakeSubjects(const std::vector<std::string>& texts,
                                  const std::vector<std::string>& paths) {
  std::vector<Subject> subjects;
  for (const std::string& text : texts) {
    Result<Pattern> pattern = Pattern::Parse(text);
    const std::optional<SlowGlob> slow = SlowGlob::Parse(text);
    EXPECT_EQ(pattern.ok(), slow.has_value()) << text;
    if (!pattern.ok() || !slow) continue;
    Subject subject{std::move(pattern).value(), {}};
    subject.matched.resize(paths.size() / 64 + 1);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const bool matches = slow->Matches(paths[i]);
      if (matches) subject.matched[i / 64] |= std::uint64_t{1} << (i % 64);
      if (subject.pattern.Matches(paths[i]) != matches) {
        ADD_FAILURE() << text << " against " << paths[i] << " must be " << matches;
      }
    }
    subjects.push_back(std::move(subject));
  }
  return subjects;
}

std::optional<std::size_t> FirstCommon(const Subject& a, const Subject& b) {
  for (std::size_t i = 0; i < a.matched.size(); ++i) {
    const std::uint64_t both = a.matched[i] & b.matched[i];
    if (both != 0) return i * 64 + static_cast<std::size_t>(std::countr_zero(both));
  }
  return std::nullopt;
}

// Compares Overlap() with the bits for every pair. The paths must reach beyond the shortest common
// one of any pair; that they do is checked, too: nothing new may appear at the greatest length.
void CheckAllPairs(const std::vector<std::string>& texts, const Paths& paths) {
  const std::vector<Subject> subjects = MakeSubjects(texts, paths.all);
  std::size_t last = 0;
  std::size_t overlaps = 0;
  std::size_t pairs = 0;
  for (std::size_t a = 0; a < subjects.size(); ++a) {
    for (std::size_t b = a; b < subjects.size(); ++b) {
      const std::optional<std::size_t> common = FirstCommon(subjects[a], subjects[b]);
      const auto witness = Overlap(subjects[a].pattern, subjects[b].pattern).value();
      const auto mirrored = Overlap(subjects[b].pattern, subjects[a].pattern).value();
      ++pairs;
      const std::string names = subjects[a].pattern.text() + " and " + subjects[b].pattern.text();
      ASSERT_EQ(witness.has_value(), common.has_value())
          << names << " share " << (common ? paths.all[*common] : witness.value_or("nothing"));
      ASSERT_EQ(witness, mirrored) << names;
      if (!witness) continue;
      ++overlaps;
      last = std::max(last, *common);
      ASSERT_TRUE(subjects[a].pattern.Matches(*witness)) << names << ": " << *witness;
      ASSERT_TRUE(subjects[b].pattern.Matches(*witness)) << names << ": " << *witness;
    }
  }
  EXPECT_LT(last, paths.longest) << "longer paths are needed, as for " << paths.all[last];
  EXPECT_GT(overlaps, pairs / 50);
  EXPECT_LT(overlaps, pairs * 49 / 50);
  std::printf("%zu patterns, %zu paths, %zu of %zu pairs overlap, the last path needed is %s\n",
              subjects.size(), paths.all.size(), overlaps, pairs, paths.all[last].c_str());
}

// A path need not hold other letters than the patterns do: with only literals, `?` and `*` any
// other letter can be replaced by `a`. In the shortest common path each character moves one of the
// two patterns on, is the only one of its segment, or begins what is below a path: with four
// characters a side, at most eight.
TEST(OverlapExhaustiveTest, AllPairsOfShortPatternsAgreeWithBruteForce) {
  const std::size_t length = kSlowBuild ? 3 : 4;
  CheckAllPairs(AllTexts({"a", "b", "/", "*", "?"}, length),
                AllPaths({"a", "b", "/"}, 2 * length + 1));
}

// `a`, `b` and `ab` are all the segments needed: whatever matches another one matches one of these.
// Three segments a side, and one below a trailing slash, make at most six in the shortest path.
TEST(OverlapExhaustiveTest, AllPairsOfSegmentsAndDoubleStarsAgreeWithBruteForce) {
  const std::size_t length = kSlowBuild ? 2 : 3;
  std::vector<std::string> texts = AllTexts({"**/", "a/", "b/", "*/", "a*/", "*b/"}, length);
  for (std::string text : std::vector(texts)) {
    text.pop_back();  // "a/**" as well as "a/**/"
    texts.push_back(std::move(text));
  }
  CheckAllPairs(texts, AllPaths({"a/", "b/", "ab/"}, 2 * length + 1));
}

// Here the paths that do not exist matter: empty segments, "." and "..". `c` stands for everything
// that no pattern names.
TEST(OverlapExhaustiveTest, AllPairsWithDotsAndClassesAgreeWithBruteForce) {
  std::vector<std::string> texts =
      AllTexts({".", "a", "*", "?", "[.]", "[^.]", "[^a]", "[.a]", "/"}, 2);
  for (const std::string& text : AllTexts({".", "*", "?", "[.a]"}, kSlowBuild ? 2 : 3)) {
    texts.push_back(text);
    // Below `.../a` the shortest path of `**/???` has nine characters.
    if (text != "...") texts.push_back(text + "/a");
    texts.push_back("**/" + text);
  }
  CheckAllPairs(texts, AllPaths({".", "a", "c", "/"}, kSlowBuild ? 6 : 8));
}

TEST(OverlapExhaustiveTest, AllPairsOfLiteralBracesAgreeWithBruteForce) {
  CheckAllPairs(AllTexts({"{", "}", "\\{", ",", "a", "*"}, 3), AllPaths({"a", "{", "}", ","}, 5));
}

// Each text is accepted, or refused as a form of another tool, by both implementations alike.
TEST(OverlapExhaustiveTest, AllTextsOfForeignFormsAreAcceptedOrRefusedAlike) {
  const std::vector<std::string> texts = AllTexts(
      {"{", "}", ",", "a", "*", "\\", " ", "~", "$", "!", ":", "/", "."}, kSlowBuild ? 3 : 4);
  std::size_t refused = 0;
  for (const std::string& text : texts) {
    const bool accepted = Pattern::Parse(text).ok();
    ASSERT_EQ(accepted, SlowGlob::Parse(text).has_value()) << text;
    if (!accepted) ++refused;
  }
  EXPECT_GT(refused, texts.size() / 20);
  EXPECT_LT(refused, texts.size() * 19 / 20);
}

TEST(OverlapExhaustiveTest, AllPairsOfAlternationsAgreeWithBruteForce) {
  std::vector<std::string> texts;
  for (const std::string body : {"a,b", "a,b/a", "*,b", "{a,b},b/", "a,{b,b/a}", "a/,**"}) {
    for (const std::string tail : {"", "a", "/a", "*", "/**"}) {
      const std::string text = std::string("{").append(body).append("}").append(tail);
      texts.push_back(text);
      texts.push_back("?" + text);
    }
  }
  CheckAllPairs(texts, AllPaths({"a", "b", "/"}, 8));
}

}  // namespace
}  // namespace interlock::glob
