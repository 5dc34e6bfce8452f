#include "domain/names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace interlock::domain {
namespace {

TEST(NamesTest, ThereAreThousandsOfTwoWordsAndNoTwoNumbersShareOne) {
  EXPECT_GE(kPlainNames, 4'000U);
  std::set<std::string> names;
  for (std::uint64_t number = 0; number < 3 * kPlainNames; ++number) {
    const std::string name = GeneratedName(number);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(name.find_first_of("0123456789") != std::string::npos, number >= kPlainNames) << name;
  }
}

TEST(NamesTest, ACrowdedNameGetsANumber) {
  const std::string name = GeneratedName(7);
  EXPECT_EQ(GeneratedName(7 + kPlainNames), name + " 2");
  EXPECT_EQ(GeneratedName(7 + (9 * kPlainNames)), name + " 10");
}

TEST(NamesTest, ANameIsTwoWordsWithCapitals) {
  for (std::uint64_t number = 0; number < kPlainNames; ++number) {
    const std::string name = GeneratedName(number);
    const std::size_t space = name.find(' ');
    ASSERT_NE(space, std::string::npos) << name;
    EXPECT_EQ(name.find(' ', space + 1), std::string::npos) << name;
    for (const std::size_t at : {std::size_t{0}, space + 1}) {
      EXPECT_TRUE(name[at] >= 'A' && name[at] <= 'Z') << name;
    }
  }
}

}  // namespace
}  // namespace interlock::domain
