#include "service/inbox_names.h"

#include <gtest/gtest.h>

#include <string>

namespace interlock::service {
namespace {

TEST(InboxNamesTest, ALearntTextIsKnownInItsProject) {
  InboxNames names;
  EXPECT_FALSE(names.Find("p", "1").has_value());
  names.Learn("p", "1", {.agent = "1", .bare_name = "ann"}, 5);
  ASSERT_TRUE(names.Find("p", "1").has_value());
  EXPECT_EQ(names.Find("p", "1")->agent, "1");
  EXPECT_EQ(names.Find("p", "1")->bare_name, "ann");
  EXPECT_FALSE(names.Find("q", "1").has_value());
}

TEST(InboxNamesTest, ARegistrationForgetsItsIdAndItsName) {
  InboxNames names;
  names.Learn("p", "1", {.agent = "1"}, 5);
  names.Learn("p", "ann", {.agent = "ann"}, 5);
  names.Learn("q", "ann", {.agent = "ann"}, 5);
  names.Changed("p", "1", "ann", 6);
  EXPECT_FALSE(names.Find("p", "1").has_value());
  EXPECT_FALSE(names.Find("p", "ann").has_value());
  EXPECT_TRUE(names.Find("q", "ann").has_value());
}

TEST(InboxNamesTest, AReadThatMissedARegistrationTeachesNothing) {
  InboxNames names;
  names.Changed("p", "1", "ann", 6);
  names.Learn("p", "ann", {.agent = "ann"}, 5);
  EXPECT_FALSE(names.Find("p", "ann").has_value());
  names.Learn("p", "1", {.agent = "1", .bare_name = "ann"}, 6);
  EXPECT_TRUE(names.Find("p", "1").has_value());
}

TEST(InboxNamesTest, AnAgentThatComesOrGoesForgetsWhoElseHasItsName) {
  InboxNames names;
  names.Learn("p", "1", {.agent = "1", .bare_name = "ann"}, 5);
  names.Learn("p", "2", {.agent = "2", .bare_name = "bob"}, 5);
  names.Learn("q", "3", {.agent = "3", .bare_name = "ann"}, 5);
  names.Changed("p", "4", "ann", 6);
  EXPECT_FALSE(names.Find("p", "1").has_value());
  EXPECT_TRUE(names.Find("p", "2").has_value());
  EXPECT_TRUE(names.Find("q", "3").has_value());
}

TEST(InboxNamesTest, MemoryIsBounded) {
  InboxNames names(2);
  names.Learn("p", "a", {.agent = "a"}, 1);
  names.Learn("p", "b", {.agent = "b"}, 1);
  names.Learn("p", "b", {.agent = "b"}, 1);
  EXPECT_TRUE(names.Find("p", "a").has_value());
  names.Learn("p", "c", {.agent = "c"}, 1);
  EXPECT_FALSE(names.Find("p", "a").has_value());
  EXPECT_TRUE(names.Find("p", "c").has_value());
  const std::string longer(600, 'x');
  names.Learn("p", longer, {.agent = longer}, 1);
  EXPECT_FALSE(names.Find("p", longer).has_value());
}

}  // namespace
}  // namespace interlock::service
