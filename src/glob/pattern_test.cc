#include "glob/pattern.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "glob/hostile_pattern.h"

namespace interlock::glob {
namespace {

using std::string_literals::operator""s;

Pattern Parsed(std::string_view text) {
  Result<Pattern> pattern = Pattern::Parse(text);
  EXPECT_TRUE(pattern.ok()) << text << ": " << pattern.error();
  return std::move(pattern).value();
}

struct MatchCase {
  std::string_view pattern;
  std::string_view path;
  bool matches;
};

void ExpectMatches(std::initializer_list<MatchCase> cases) {
  for (const auto& [pattern, path, matches] : cases) {
    EXPECT_EQ(Parsed(pattern).Matches(path), matches) << pattern << " against " << path;
  }
}

void ExpectRefused(Errc code, std::initializer_list<std::string> texts) {
  for (const std::string& text : texts) {
    const Result<Pattern> pattern = Pattern::Parse(text);
    ASSERT_FALSE(pattern.ok()) << text;
    EXPECT_EQ(pattern.error().code(), code) << text << ": " << pattern.error();
    EXPECT_FALSE(pattern.error().message().empty());
  }
}

TEST(PatternTest, StarsAndQuestionMarksStayInsideTheirSegment) {
  ExpectMatches({{"*.go", "main.go", true},
                 {"*.go", "a/main.go", false},
                 {"*", "a", true},
                 {"*", "a/b", false},
                 {"*/*", "a/b", true},
                 {"*/*", "a", false},
                 {"a?c", "abc", true},
                 {"a?c", "ac", false},
                 {"a?c", "a/c", false},
                 {"a*c", "a/c", false},
                 {"a*b*c", "aXbYbZc", true},
                 {"a*b*c", "acb", false},
                 {"*a*b", "xxaxxaxxb", true},
                 {"*.*", ".gitignore", true},
                 {"x*", "x", true}});
}

TEST(PatternTest, APathWithoutWildcardsCoversWhatIsBelowIt) {
  ExpectMatches({{"src", "src", true},
                 {"src", "src/main.go", true},
                 {"src", "src/a/b.go", true},
                 {"src", "srcs", false},
                 {"src", "srcs/a", false},
                 {"src", "a/src", false},
                 {"src/a", "src", false},
                 {"src/a", "src/a/b", true},
                 {"src/.", "src/a/b", true},
                 {"src/{a,b}", "src/b/c/d", true},
                 {"src/{a,b}", "src/c/d", false},
                 {"src/{a,*.c}", "src/a/x", true},
                 {"src/{a,*.c}", "src/x.c/a", false},
                 {"src/*", "src/a/b.cc", false},
                 {"src/a?", "src/ab/c", false},
                 {"src/[a]", "src/a/b", false},
                 {"\\*", "*/a", true},
                 {"src", "src/", false},
                 {"src", "src//a", false},
                 {"src", "src/../a", false},
                 {"src", "src/a\xFF", false}});
  EXPECT_TRUE(Pattern::Literal("app/[id]")->Matches("app/[id]/page.tsx"));
  EXPECT_FALSE(Pattern::Literal("app/[id]")->Matches("app/i/page.tsx"));
}

TEST(PatternTest, MatchesBelowTellsWhetherAPathBelowMatches) {
  const struct {
    std::string_view pattern;
    std::string_view path;
    bool below;
  } kCases[] = {
      {"src/*.cc", "src", true},     {"src/*.cc", "src/a.cc", false}, {"src/*/x", "src/a", true},
      {"src/*/x", "src/a/x", false}, {"*/[ab]c/x", "q/bc", true},     {"*/[ab]c/x", "q/cc", false},
      {"**/x", "a/b/c", true},       {"a/**/x", "a/b/c", true},       {"a/**/x", "b", false},
      {"src", "src", true},          {"src", "src/a", true},          {"src/a/b", "src", true},
      {"src/a/b", "src/b", false},   {"{x,src/*/y}", "src", true},    {"{x,src/*/y}", "x/y", true},
      {"*a*/b", "xaya", true},       {"*a*/b", "xy", false},          {"a/", "a", true}};
  for (const auto& one : kCases) {
    EXPECT_EQ(Parsed(one.pattern).MatchesBelow(one.path), one.below)
        << one.pattern << " below " << one.path;
  }
}

TEST(PatternTest, DoubleStarCrossesDirectories) {
  ExpectMatches({{"**", "a", true},
                 {"**", "a/b/c", true},
                 {"**/*.go", "b.go", true},
                 {"**/*.go", "a/b/c.go", true},
                 {"**/*.go", "a/b/c.rs", false},
                 {"a/**/z", "a/z", true},
                 {"a/**/z", "a/b/c/z", true},
                 {"a/**/z", "az", false},
                 {"src/**", "src/a/b.go", true},
                 {"src/**", "src/a", true},
                 {"src/**", "src", false},
                 {"src/**", "srcs/a", false},
                 {"**/**", "a", true},
                 {"**/**/x", "x", true},
                 {"a/**/**", "a", false},
                 {"a/**/**", "a/b", true},
                 {"**/a/**/b/**", "x/a/b/c", true},
                 {"**/a/**/b/**", "x/a/b", false},
                 {"**/a/b/**/c", "a/a/b/x/c", true},
                 {"**/*/**", "a", false},
                 {"**/*/**", "a/b", true}});
}

TEST(PatternTest, DoubleStarInsideASegmentIsOneStar) {
  ExpectMatches({{"a**b", "ab", true},
                 {"a**b", "aXXb", true},
                 {"a**b", "a/b", false},
                 {"**.go", "x.go", true},
                 {"**.go", "a/x.go", false},
                 {"***", "a", true},
                 {"***", "a/b", false},
                 {"x/***", "x/a/b", false}});
  EXPECT_EQ(Parsed("a**b").canonical(), "a*b");
}

TEST(PatternTest, TrailingSlashMeansEverythingBelow) {
  ExpectMatches({{"a/", "a/b", true},
                 {"a/", "a/b/c", true},
                 {"a/", "a", false},
                 {"a/**/", "a", false},
                 {"a/**/", "a/b", true},
                 {"*/", "a/b", true},
                 {"**/", "a", true},
                 {"{a,b}/", "b/x", true},
                 {"{a/,b}", "a/x/y", true},
                 {"{a/,b}", "b", true},
                 {"{a/,b}", "b/x", true}});
  EXPECT_EQ(Parsed("a/").canonical(), "a/**");
}

TEST(PatternTest, TextIsNormalisedFirst) {
  const auto same = [](std::string_view text, std::string_view canonical) {
    EXPECT_EQ(Parsed(text).canonical(), canonical) << text;
  };
  same("./a", "a");
  same("././a", "a");
  same(".//a", "a");
  same("a//b", "a/b");
  same("a/////b", "a/b");
  same("a/./b", "a/b");
  same("a/././/./b", "a/b");
  same("a/.", "a");
  same("a/./.", "a");
  same("a/./", "a/**");
  same("a//", "a/**");
  same("./**/.", "**");
  same("{./a,./b}", "{a,b}");
  same("{.,a}/b", "{a/b,b}");
  same("x{/,/./}y", "x/y");
}

TEST(PatternTest, CanonicalTextForgetsSpelling) {
  const auto equal = [](std::string_view a, std::string_view b) {
    EXPECT_EQ(Parsed(a).canonical(), Parsed(b).canonical()) << a << " and " << b;
  };
  equal("{a,b}", "{b,a}");
  equal("{a,b,a}", "{a,b}");
  equal("{a,a}", "a");
  equal("{src,lib}/x", "{lib/x,src/x}");
  equal("\\(a\\|b\\)", "(a|b)");
  equal("[abc]", "[a-c]");
  equal("[!a]", "[^a]");
  equal("[cba]", "[a-bc]");
  equal("src/**", "src/");
  equal("src/**", "src/**/*");
  equal("**", "**/**/*");
  equal("*?*", "*");
  equal("a*?*?", "a??*");
  equal("{x}", "\\{x\\}");
  EXPECT_NE(Parsed("a/*").canonical(), Parsed("a/\\*").canonical());
  EXPECT_NE(Parsed("*?x").canonical(), Parsed("*x").canonical());
  EXPECT_NE(Parsed("[a]").canonical(), Parsed("[^a]").canonical());
  // A name that looks like a pattern and the same name, escaped, are one reservation.
  EXPECT_EQ(Pattern::Literal("app/[id]/page.tsx")->canonical(),
            Parsed("app/\\[id\\]/page.tsx").canonical());
}

TEST(PatternTest, CanonicalTextMeansTheSame) {
  for (const std::string_view text : {"a",           "{a,b\\,c}/[^a-z\\]]*",
                                      "**/x?/**",    "\\[id\\]",
                                      "[]a-]",       "[\\^a]",
                                      "[!]]",        "\\{a",
                                      "a\\}",        "[.-0]",
                                      "é/[à-ü]",     "{a,{b,c}d}/",
                                      "[^\\!]",      "[\\\\]",
                                      "x,y",         "[{,}]",
                                      "C++\\(1)",    "*\\(a)",
                                      "a@{\\(b),c}", "a@\\(b"}) {
    const Pattern once = Parsed(text);
    EXPECT_EQ(Pattern::ParseHeld(once.canonical())->canonical(), once.canonical()) << text;
  }
}

TEST(PatternTest, BracesAlternate) {
  ExpectMatches({{"{a,b}.go", "a.go", true},
                 {"{a,b}.go", "b.go", true},
                 {"{a,b}.go", "c.go", false},
                 {"{a,b}.go", "{a,b}.go", false},
                 {"src/{a/*,b}.go", "src/a/x.go", true},
                 {"src/{a/*,b}.go", "src/b.go", true},
                 {"{a,{b,c}d}e", "ae", true},
                 {"{a,{b,c}d}e", "cde", true},
                 {"{a,{b,c}d}e", "ce", false},
                 {"{,x}a", "a", true},
                 {"{,x}a", "xa", true},
                 {"a{,/b}", "a/b", true},
                 {"a{,/b}", "a", true},
                 {"{a,b}{c,d}", "bc", true},
                 {"{**/,}x", "a/b/x", true},
                 {"{**/,}x", "x", true},
                 {"*{*,b}/x", "p/q/x", true}});
}

TEST(PatternTest, BracesWithASingleBranchAreLiteral) {
  ExpectMatches({{"{a}", "{a}", true},
                 {"{a}", "a", false},
                 {"{}", "{}", true},
                 {"{{a,b}}", "{a}", true},
                 {"{{a,b}}", "a", false},
                 {"a,b", "a,b", true},
                 {"Doe, Jane.txt", "Doe, Jane.txt", true},
                 {"{{ cookiecutter.slug }}/setup.py", "{{ cookiecutter.slug }}/setup.py", true},
                 {"{*}", "{xyz}", true}});
}

TEST(PatternTest, BracesWithoutAPartnerAreRefused) {
  ExpectRefused(Errc::kInvalidPattern,
                {"src/{a,b", "{a,b", "a,b}", "{a,{b,c}", "{a,b}}", "}{", "{", "x}", "{a}}", "{{a}",
                 "{1..3", "1..3}", "{a\\}", "\\{a}", "{a[}]"});
  const auto open = Pattern::Parse("src/{a,b");
  EXPECT_NE(open.error().message().find("{ has no partner; write {a,b}"), std::string::npos);
  EXPECT_NE(open.error().message().find("\\{ or literal:true"), std::string::npos);
  EXPECT_EQ(std::get<std::int64_t>(open.error().details()[0].second), 4);
  EXPECT_NE(Pattern::Parse("a,b}").error().message().find("} has no partner"), std::string::npos);
  EXPECT_TRUE(Pattern::Literal("src/{a,b")->Matches("src/{a,b"));
  ExpectMatches({{"\\{a,b", "{a,b", true}, {"a\\}", "a}", true}, {"[{]a", "{a", true}});
}

TEST(PatternTest, BlanksBesideBranchesAreRefused) {
  ExpectRefused(Errc::kInvalidPattern, {"src/{a, b}.cc", "{a ,b}", "{ a,b}", "{a,b }", "{a,\tb}",
                                        "{{c, d},b}", "{x{a, b}}"});
  EXPECT_NE(Pattern::Parse("{a, b}").error().message().find("remove them"), std::string::npos);
  ExpectMatches({{"{a,[ ]b}", " b", true}, {"{a b,c}", "a b", true}, {"{ a }", "{ a }", true}});
}

TEST(PatternTest, BlanksAroundThePatternAreRefused) {
  ExpectRefused(Errc::kInvalidPattern,
                {" src/a.cc ", " src/a.cc", "src/a.cc ", "\ta", "a\n", "a\r\n", " ", "src/* "});
  const auto refused = Pattern::Parse("src/a.cc\n");
  EXPECT_NE(refused.error().message().find("remove them"), std::string::npos);
  EXPECT_NE(refused.error().message().find("literal:true"), std::string::npos);
  EXPECT_EQ(std::get<std::int64_t>(refused.error().details()[0].second), 8);
  EXPECT_TRUE(Pattern::Literal(" a ")->Matches(" a "));
  ExpectMatches({{"My File.txt", "My File.txt", true}, {"a/ b /c", "a/ b /c", true}});
}

TEST(PatternTest, NamesThatLeadOutOfTheProjectAreRefused) {
  ExpectRefused(
      Errc::kInvalidPattern,
      {"C:/x",    "c:/x/*.cc", "C:\\x",     "C:\\\\x", "C:\\[x]",   "C:",       "{C:/a,D:/b}",
       "./C:/x",  "~/x",       "~",         "~me/x",   "~me",       "{a,~/b}",  ".//~/x",
       "$HOME/x", "$HOME",     "${HOME}/x", "${X}",    "${X:-y}/z", "$(pwd)/x", "{$A,b}/c"});
  for (const std::string_view text : {"C:/x", "C:\\x", "~/x", "$HOME/x", "${X}"}) {
    const auto refused = Pattern::Parse(text);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_NE(refused.error().message().find("relative to the project's root"), std::string::npos);
    EXPECT_NE(refused.error().message().find("literal:true"), std::string::npos);
    EXPECT_TRUE(Pattern::Literal(text)->Matches(text)) << text;
  }
  for (const std::string_view name :
       {"routes/$id.tsx", "$id.tsx", "$id.edit/a.tsx", "a$b.js", "src/$HOME/x", "src/${X}.hbs",
        "${name}.hbs", "$", "$$/x", "src/~/x", "a~", "~$doc.docx", "~backup.txt", "CC:/x", "C:x",
        "x/C:/y", "1:/x"}) {
    EXPECT_TRUE(Parsed(name).Matches(name)) << name;
  }
  ExpectMatches({{"[~]/x", "~/x", true}, {"$\\{X\\}/y", "${X}/y", true}});
}

TEST(PatternTest, ALeadingExclamationMarkIsRefused) {
  ExpectRefused(Errc::kInvalidPattern, {"!neg", "!*.cc", "!", "!/a", "{!a,b}"});
  const auto refused = Pattern::Parse("!neg");
  EXPECT_NE(refused.error().message().find("excludes nothing"), std::string::npos);
  EXPECT_NE(refused.error().message().find("literal:true"), std::string::npos);
  ExpectMatches({{"a!", "a!", true}, {"a/!b", "a/!b", true}, {"[\\!]a*", "!ab", true}});
  EXPECT_TRUE(Pattern::Literal("!neg")->Matches("!neg"));
}

TEST(PatternTest, EscapesAndClassesHideBraces) {
  ExpectMatches({{"\\{a,b\\}", "{a,b}", true},
                 {"{a\\,b,c}", "a,b", true},
                 {"{a\\,b,c}", "c", true},
                 {"{a\\,b}", "{a,b}", true},
                 {"{[,],b}", ",", true},
                 {"{[a,b]}", "{,}", true},
                 {"[{]a,b\\}", "{a,b}", true},
                 {"{a\\},b}", "a}", true},
                 {"[{a,b}]", "{", true},
                 {"[{a,b}]", "a", true}});
}

TEST(PatternTest, ClassesFollowTheirGrammar) {
  ExpectMatches({{"[abc].go", "b.go", true}, {"[^a].go", "a.go", false}, {"[^a].go", "b.go", true},
                 {"[!a].go", "a.go", false}, {"[!a].go", "b.go", true},  {"[a!]", "!", true},
                 {"[a^]", "^", true},        {"[]a]x", "]x", true},      {"[]a]x", "ax", true},
                 {"[^]a]", "]", false},      {"[^]a]", "b", true},       {"[a-]x", "-x", true},
                 {"[-a]", "-", true},        {"[--0]", ".x", false},     {"[+--]", ",", true},
                 {"[a\\-z]", "m", false},    {"[a\\-z]", "-", true},     {"[\\]]", "]", true},
                 {"[X-\\]]", "Z", true},     {"[^a]b", "/b", false},     {"x[.-0]y", "x/y", false},
                 {"x[.-0]y", "x0y", true},   {"[[]", "[", true},         {"[a-b-d]", "-", true},
                 {"[a-b-d]", "c", false},    {"[à-ü]", "é", true}});
  // The range's ends are the wrong way round: "a" lies behind "]".
  ExpectRefused(Errc::kInvalidPattern, {"[a-\\]]"});
}

TEST(PatternTest, EscapesTakeTheNextCharacterAsItIs) {
  ExpectMatches({{"\\*.go", "*.go", true},
                 {"\\*.go", "main.go", false},
                 {"a/\\?", "a/?", true},
                 {"{\\*,b}/x", "*/x", true},
                 {"x[\\\\*]", "x\\", true},
                 {"\\[a\\]", "[a]", true},
                 {"\\**", "*x", true},
                 {"\\**/x", "a/b/x", false},
                 {"a\\]\\}\\,", "a]},", true},
                 {"\\(a\\|b\\)", "(a|b)", true},
                 {"[\\^\\!\\-\\[]", "-", true}});
}

TEST(PatternTest, EscapesOfOrdinaryCharactersAreRefused) {
  ExpectRefused(Errc::kInvalidPattern, {"src\\a.cc",
                                        "\\a",
                                        "a\\.b",
                                        "a\\_b",
                                        "a\\ b",
                                        "\\é",
                                        "\\1",
                                        "src\\",
                                        "a\\-b",
                                        "\\!a",
                                        "\\@a",
                                        "C:\\Users\\me",
                                        "[\\d]",
                                        "[\\w-]",
                                        "[a-\\z]",
                                        "{a,b\\c}",
                                        "src\\\\a.cc",
                                        "\\\\",
                                        "\\\\server\\share",
                                        "a/\\\\b"});
  const auto windows = Pattern::Parse("src\\a.cc");
  EXPECT_NE(windows.error().message().find("use / between directories"), std::string::npos);
  EXPECT_NE(windows.error().message().find("literal:true"), std::string::npos);
  EXPECT_NE(Pattern::Parse("src\\").error().message().find("use /"), std::string::npos);
  EXPECT_TRUE(Pattern::Literal("src\\a.cc")->Matches("src\\a.cc"));
}

TEST(PatternTest, EscapedStarsInsideANameAreRefused) {
  ExpectRefused(Errc::kInvalidPattern, {"src\\*.cc", "src\\?.cc", "src\\**", "a/b\\*", ".\\*.cc",
                                        "*\\*", "{src,lib}\\*.cc", "x{a,\\*b}"});
  const auto refused = Pattern::Parse("src\\*.cc");
  EXPECT_NE(refused.error().message().find("use / as in src/*.cc"), std::string::npos);
  EXPECT_NE(refused.error().message().find("[*]"), std::string::npos);
  EXPECT_TRUE(Pattern::Literal("src\\*.cc")->Matches("src\\*.cc"));
  ExpectMatches({{"a[*]b", "a*b", true}, {"src/\\*.cc", "src/*.cc", true}});
}

TEST(PatternTest, SequencesInBracesAreRefused) {
  ExpectRefused(Errc::kInvalidPattern, {"{1..3}", "v{01..10}.md", "{a..e}", "{-5..5}", "{0..9..3}",
                                        "{a,{1..3}}", "x{A..z..-1}y", "{1..a}"});
  EXPECT_NE(Pattern::Parse("{1..3}").error().message().find("{1,2,3}"), std::string::npos);
  ExpectMatches({{"\\{1..3\\}", "{1..3}", true},
                 {"{1..3,5}", "1..3", true},
                 {"{foo..bar}", "{foo..bar}", true},
                 {"{1.3}", "{1.3}", true},
                 {"{1...3}", "{1...3}", true},
                 {"{..}", "{..}", true},
                 {"{1..}", "{1..}", true},
                 {"{1..?}", "{1..x}", true}});
  EXPECT_TRUE(Pattern::Literal("{1..3}")->Matches("{1..3}"));
}

TEST(PatternTest, NamedClassesAreRefused) {
  ExpectRefused(Errc::kInvalidPattern, {"[[:alpha:]]", "x[[:digit:][:space:]]*", "[^[:space:]]",
                                        "[a[:x:]", "[[.a.]]", "[[=e=]]", "{a,[[:alpha:]]}"});
  EXPECT_NE(Pattern::Parse("[[:alpha:]]").error().message().find("[A-Za-z]"), std::string::npos);
  ExpectMatches({{"[[:]", ":", true},
                 {"[[::]", "[", true},
                 {"[:a:]", "a", true},
                 {"[\\[:a:]", ":", true},
                 {"[[:a]", "a", true},
                 {"[:[a:]", "[", true}});
}

TEST(PatternTest, ExtendedGlobsAreRefused) {
  ExpectRefused(Errc::kInvalidPattern,
                {"@(a|b)", "?(a)", "*(a|b).c", "+(a)", "!(a)", "src/!(*.o)", "x@(a|(b|c))", "**(a)",
                 "{a,*}(b)", "{@(a|b),c}", "C++(1).txt", "@()", "@(a/b|c)"});
  const auto refused = Pattern::Parse("@(a|b)");
  EXPECT_NE(refused.error().message().find("{a,b}"), std::string::npos);
  EXPECT_NE(refused.error().message().find("literal:true"), std::string::npos);
  ExpectMatches({{"a(b).txt", "a(b).txt", true},
                 {"foo@2x(1).png", "foo@2x(1).png", true},
                 {"app/(group)/page.tsx", "app/(group)/page.tsx", true},
                 {"(a|b)", "(a|b)", true},
                 {"@(a", "@(a", true},
                 {"a*(", "ab(", true},
                 {"*((a)", "x((a)", true},
                 {"C++\\(1).txt", "C++(1).txt", true},
                 {"\\*(a)", "*(a)", true},
                 {"[@](a)", "@(a)", true},
                 {"@{(,x}b", "@(b", true},
                 {"a)@(b", "a)@(b", true}});
  EXPECT_TRUE(Pattern::Literal("C++(1).txt")->Matches("C++(1).txt"));
}

TEST(PatternTest, TextsThatWereAcceptedOnceStillAre) {
  for (const auto& [text, path] :
       std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"src\\a.cc", "srca.cc"},
           {"{1..3}", "{1..3}"},
           {"[[:alpha:]]", "p]"},
           {"@(a|b)", "@(a|b)"},
           {" src/a.cc ", " src/a.cc "},
           {"src/{a,b", "src/{a,b"},
           {"a}", "a}"},
           {"{a, b}", " b"},
           {"C:/x", "C:/x"},
           {"C:\\x", "C:x"},
           {"src\\*.cc", "src*.cc"},
           {"src\\\\a.cc", "src\\a.cc"},
           {"~/x", "~/x"},
           {"$HOME/x", "$HOME/x"},
           {"${X}", "${X}"},
           {"!neg", "!neg"}}) {
    EXPECT_FALSE(Pattern::Parse(text).ok()) << text;
    const Result<Pattern> held = Pattern::ParseHeld(text);
    ASSERT_TRUE(held.ok()) << text;
    EXPECT_TRUE(held->Matches(path)) << text;
    const Result<Pattern> again = Pattern::ParseHeld(held->canonical());
    ASSERT_TRUE(again.ok()) << held->canonical();
    EXPECT_TRUE(again->Matches(path)) << text;
  }
  EXPECT_FALSE(Pattern::ParseHeld("[a").ok());
}

TEST(PatternTest, MatchingIsByCodePointAndCaseSensitive) {
  ExpectMatches({{"?", "é", true},
                 {"??", "é", false},
                 {"?", "\xF0\x9F\x98\x80", true},
                 {"[\xF0\x9F\x98\x80]", "\xF0\x9F\x98\x80", true},
                 {"[^a]", "\xF0\x9F\x98\x80", true},
                 {"A.go", "a.go", false}});
}

TEST(PatternTest, WhatIsNoPathMatchesNothing) {
  const Pattern everything = Parsed("**");
  for (const std::string& bad : {""s, "."s, ".."s, "/a"s, "a/"s, "a//b"s, "a/./b"s, "../a"s,
                                 "a/.."s, "\xFF"s, "a\0b"s, "\xED\xA0\x80"s}) {
    EXPECT_FALSE(IsPath(bad)) << bad;
    EXPECT_FALSE(everything.Matches(bad)) << bad;
    EXPECT_FALSE(Parsed("*").Matches(bad)) << bad;
    EXPECT_FALSE(Parsed("{*/*,?,??,*/?/*,[^a]}").Matches(bad)) << bad;
  }
  for (const std::string_view good : {"a", "...", ".a", "a.", "..a", "a/...", "é", " ", "*"}) {
    EXPECT_TRUE(IsPath(good)) << good;
    EXPECT_TRUE(everything.Matches(good)) << good;
  }
}

TEST(PatternTest, PatternsThatOnlyDotsWouldMatchMatchNothing) {
  for (const std::string_view text : {"[.]", "[.][.]", ".[.]", "a/[.]", "[.]/a", "**/[.][.]/b"}) {
    EXPECT_TRUE(Parsed(text).expansions().empty()) << text;
  }
  EXPECT_EQ(*Parsed("{[.],a}").literal_path(), "a");
  EXPECT_TRUE(Parsed("[.][.][.]").Matches("..."));
}

TEST(PatternTest, AbsolutePatternsAreRefused) {
  ExpectRefused(Errc::kAbsolutePattern,
                {"/", "/a", "//a", "/./a", "/.", "/**", "{/a,b}", "{a,/b}", "{,a}/b", "/{a,b}"});
}

TEST(PatternTest, InvalidPatternsAreRefused) {
  ExpectRefused(
      Errc::kInvalidPattern,
      {"",       "..",    "../a",    "a/..",   "a/../b",   "\\.\\./a",     ".\\.", "{..,a}/b",
       "{.,a}.", "a\0b"s, "\xFF",    "a\xC3",  "\xC0\xAF", "\xED\xA0\x80", ".",    "./",
       "././.",  "{a,}",  "{,}",     "[",      "[]",       "[^]",          "[!]",  "[a",
       "[^a",    "[]a",   "a[b/c]d", "a[/]b",  "[b-a]",    "[z-a]x",       "\\",   "a\\",
       "a\\/b",  "[a\\",  "[a-\\",   "{[a,b}", "[a-",      "{a,./}"});
  ExpectRefused(Errc::kInvalidPattern, {Repeat("a", kPatternBytesMax + 1)});
  // A class that leaves nothing.
  ExpectRefused(Errc::kInvalidPattern, {"[^\x01-\xF4\x8F\xBF\xBF]"});
}

TEST(PatternTest, RefusalsPointAtThePlace) {
  const Result<Pattern> pattern = Pattern::Parse("src/[a-z");
  ASSERT_FALSE(pattern.ok());
  EXPECT_EQ(pattern.error().slug(), "invalid_pattern");
  EXPECT_EQ(pattern.error().http_status(), 400);
  ASSERT_EQ(pattern.error().details().size(), 1U);
  EXPECT_EQ(pattern.error().details()[0].first, "offset");
  EXPECT_EQ(std::get<std::int64_t>(pattern.error().details()[0].second), 4);
}

TEST(PatternTest, LiteralCharactersAreNeverCounted) {
  EXPECT_TRUE(Pattern::Parse("docs/plans/2026-04-19-intermute-live-tmux-transport.md").ok());
  EXPECT_TRUE(Pattern::Parse(Repeat("a", kPatternBytesMax)).ok());
  EXPECT_TRUE(Pattern::Parse(Repeat("a/", 2047) + "b").ok());
}

TEST(PatternTest, WildcardsAreCountedInEachExpansion) {
  for (const std::string piece : {"?", "*a", "[ab]", "**/", "***x", "a**b", "[^a]"}) {
    EXPECT_TRUE(Pattern::Parse(Repeat(piece, kWildcardsMax) + "e").ok()) << piece;
    ExpectRefused(Errc::kPatternTooComplex, {Repeat(piece, kWildcardsMax + 1) + "e"});
  }
  const std::string half = Repeat("?", kWildcardsMax / 2);
  EXPECT_TRUE(Pattern::Parse("{" + half + "," + half + "}" + half).ok());
  ExpectRefused(Errc::kPatternTooComplex, {"{a," + half + "?}" + half});
  // A trailing slash is a wildcard as it stands for one.
  EXPECT_TRUE(Pattern::Parse(Repeat("?", kWildcardsMax - 1) + "/").ok());
  ExpectRefused(Errc::kPatternTooComplex, {Repeat("?", kWildcardsMax) + "/"});
}

TEST(PatternTest, ExpansionsAreCountedBeforeTheyAreMade) {
  EXPECT_TRUE(Pattern::Parse(Repeat("{a,b}", 6)).ok());
  ExpectRefused(Errc::kPatternTooComplex, {Repeat("{a,b}", 7), "{" + Repeat("a,", 64) + "b}"});
  EXPECT_TRUE(Pattern::Parse("{" + Repeat("a,", 63) + "b}").ok());
  // 2^800, and nests as deep as the text allows: an expander that counts afterwards dies here.
  ExpectRefused(Errc::kPatternTooComplex, {Repeat("{a,b}", 800)});
  ExpectRefused(Errc::kPatternTooComplex, {Repeat("{a,", 1000) + Repeat("}", 1000)});
  ExpectRefused(Errc::kPatternTooComplex, {Repeat("{{a,b}", 400) + Repeat(",c}", 400)});
  EXPECT_TRUE(Pattern::Parse(Repeat("{", 2000) + "a" + Repeat("}", 2000)).ok());
  ExpectRefused(Errc::kInvalidPattern, {Repeat("{a,", 1000)});
  EXPECT_TRUE(Pattern::ParseHeld(Repeat("{a,", 1000)).ok());
}

TEST(PatternTest, ExpandedTextIsLimited) {
  const std::string shared(1000, 'x');
  EXPECT_TRUE(Pattern::Parse("{a,b,c,d,e,f,g,h}" + shared).ok());
  ExpectRefused(Errc::kPatternTooComplex, {"{a,b,c,d,e,f,g,h,i}" + shared});
}

// Otherwise thousands of hostile patterns that are held would be parsed for nothing.
TEST(PatternTest, PatternsThatAreHardToParseCost) {
  for (const std::string_view text : {"**/*.x1234", "src/**/*.go", "src/http/session.cc", "*"}) {
    EXPECT_EQ(Parsed(text).parse_steps(), 0) << text;
  }
  EXPECT_GT(Parsed(Branches(Repeat("*a", 30), "bcdefghi")).parse_steps(), 20'000);
  EXPECT_GT(Parsed(Repeat("{a,b}", 6) + Repeat("*x", 28)).parse_steps(), 15'000) << "86 bytes";
  EXPECT_GT(Parsed("{" + Repeat("a,", 63) + "b}*").parse_steps(), 4'000) << "all the same";
  EXPECT_GT(Parsed(Repeat("a", 4095) + "*").parse_steps(), 20'000);
  EXPECT_GT(Pattern::Literal(Repeat("a", 4096))->parse_steps(), 20'000);
}

TEST(PatternTest, LiteralTakesTheTextAsAPath) {
  const Result<Pattern> page = Pattern::Literal("app/[id]/page.tsx");
  ASSERT_TRUE(page.ok());
  EXPECT_TRUE(page->Matches("app/[id]/page.tsx"));
  EXPECT_FALSE(page->Matches("app/i/page.tsx"));
  EXPECT_EQ(*page->literal_path(), "app/[id]/page.tsx");
  EXPECT_EQ(page->text(), "app/[id]/page.tsx");
  EXPECT_EQ(*Pattern::Literal("./a//{b,c}/\\*/.")->literal_path(), "a/{b,c}/\\*");
  EXPECT_TRUE(Pattern::Literal(Repeat("*", 100))->Matches(Repeat("*", 100)));
}

TEST(PatternTest, LiteralRefusesWhatIsNoPath) {
  const auto refused = [](std::string_view text, Errc code) {
    const Result<Pattern> pattern = Pattern::Literal(text);
    ASSERT_FALSE(pattern.ok()) << text;
    EXPECT_EQ(pattern.error().code(), code) << text;
  };
  for (const std::string& text : {""s, "a/"s, "a/../b"s, ".."s, "."s, "a\0"s, "\xFF"s}) {
    refused(text, Errc::kInvalidPattern);
  }
  refused("/a", Errc::kAbsolutePattern);
  refused("/", Errc::kAbsolutePattern);
  refused(Repeat("a", kPatternBytesMax + 1), Errc::kInvalidPattern);
}

}  // namespace
}  // namespace interlock::glob
