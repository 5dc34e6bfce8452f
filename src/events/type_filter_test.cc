#include "events/type_filter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace interlock::events {
namespace {

// Which of a, b, c it hears.
std::string Heard(const TypeFilter& filter) {
  std::string heard;
  for (const char* type : {"a", "b", "c"}) {
    if (filter.Accepts(type)) heard += type;
  }
  return heard;
}

TEST(TypeFilterTest, WithoutTypesItHearsEverything) {
  EXPECT_EQ(Heard(TypeFilter()), "abc");
  EXPECT_EQ(Heard(TypeFilter(std::vector<std::string>())), "abc");
  EXPECT_TRUE(TypeFilter().AcceptsAll());
}

TEST(TypeFilterTest, TheFirstSubscriptionNarrowsAndFurtherOnesAdd) {
  TypeFilter filter;
  filter.Subscribe({"a"});
  EXPECT_EQ(Heard(filter), "a");
  filter.Subscribe({"a", "c"});
  EXPECT_EQ(Heard(filter), "ac");
  filter.Subscribe({});
  EXPECT_EQ(Heard(filter), "ac");
  filter.Unsubscribe({"a", "b"});
  EXPECT_EQ(Heard(filter), "c");
  filter.Unsubscribe({"c"});
  EXPECT_EQ(Heard(filter), "");
  filter.Subscribe({"b"});
  EXPECT_EQ(Heard(filter), "b");
}

TEST(TypeFilterTest, WhoUnsubscribesFromEverythingButSomeMaySubscribeThemAgain) {
  TypeFilter filter;
  filter.Unsubscribe({"a", "b"});
  EXPECT_EQ(Heard(filter), "c");
  EXPECT_EQ(filter.size(), 2U);
  filter.Subscribe({"a"});
  EXPECT_EQ(Heard(filter), "ac");
}

}  // namespace
}  // namespace interlock::events
