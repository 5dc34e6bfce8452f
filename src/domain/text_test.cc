#include "domain/text.h"

#include <gtest/gtest.h>

namespace interlock::domain {
namespace {

TEST(TextTest, TrimTakesBlanksFromBothEndsOnly) {
  EXPECT_EQ(Trim(" \t\r\n a b \v\f"), "a b");
  EXPECT_EQ(Trim("a"), "a");
  EXPECT_EQ(Trim(" \n "), "");
  EXPECT_EQ(Trim(""), "");
}

TEST(TextTest, BlanksAroundAndSlashesAtTheEndMakeNoOtherProject) {
  for (const char* name : {"web", " web ", "web/", "web//", "web/ ", " web / /\n"}) {
    EXPECT_EQ(ProjectName(name), "web") << name;
  }
  EXPECT_EQ(ProjectName("/home/ada/web/"), "/home/ada/web");
  EXPECT_EQ(ProjectName(" a b/c "), "a b/c");
  EXPECT_EQ(ProjectName("/"), "/");
  EXPECT_EQ(ProjectName(" // "), "/");
  EXPECT_EQ(ProjectName(" "), "");
  EXPECT_EQ(ProjectName(""), "");
}

TEST(TextTest, TopicsDifferNeitherInCaseNorInBlanksAround) {
  EXPECT_EQ(TopicName("  Build BROKEN "), "build broken");
  EXPECT_EQ(TopicName("ÄB"), "Äb");
  EXPECT_EQ(TopicName("  "), "");
}

}  // namespace
}  // namespace interlock::domain
