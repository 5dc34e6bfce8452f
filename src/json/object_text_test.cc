#include "json/object_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "json/parse.h"
#include "json/value.h"

namespace interlock::json {
namespace {

TEST(ObjectTextTest, FieldsStandInTheOrderOfTheCalls) {
  const std::vector<std::string> names = {"x", "y\"z"};
  const std::string owned = "owned";
  EXPECT_EQ(ObjectText()
                .Add("literal", "a pointer is text, not a bool")
                .Add("owned", owned)
                .Add("flag", true)
                .Add("int", 7)
                .Add("size", names.size())
                .Add("low", std::numeric_limits<std::int64_t>::min())
                .Add("high", std::numeric_limits<std::uint64_t>::max())
                .Add("ratio", 0.5)
                .AddNull("nothing")
                .Add("names", names)
                .Add("inner", ObjectText().Add("a", 1))
                .AddRaw("raw", "[1,2]")
                .Text(),
            R"({"literal":"a pointer is text, not a bool","owned":"owned","flag":true,"int":7,)"
            R"("size":2,"low":-9223372036854775808,"high":18446744073709551615,"ratio":0.5,)"
            R"("nothing":null,"names":["x","y\"z"],"inner":{"a":1},"raw":[1,2]})");
}

TEST(ObjectTextTest, EmptyOnesAreValidToo) {
  EXPECT_EQ(ObjectText().Text(), "{}");
  EXPECT_EQ(ArrayText().Text(), "[]");
  EXPECT_EQ(ObjectText().Add("list", ArrayText()).Text(), R"({"list":[]})");
  EXPECT_EQ(ObjectText().Add("", "").Text(), R"({"":""})");
}

TEST(ObjectTextTest, ArraysHoldTextNumbersAndObjects) {
  EXPECT_EQ(ArrayText().Add("a").Add(std::string("b")).Add(1).Add(false).Text(),
            R"(["a","b",1,false])");
  EXPECT_EQ(ArrayText().Add(ObjectText().Add("k", 1)).Add(ObjectText()).AddRaw("null").Text(),
            R"([{"k":1},{},null])");
}

TEST(ObjectTextTest, HostileTextCannotLeaveItsString) {
  const std::string hostile = "\",\"admin\":true,\"x\":\"\n\x01\xFF\\";
  const std::string text = ObjectText().Add(hostile, hostile).Text();
  const Result<Value> back = Parse(text);
  ASSERT_TRUE(back.ok()) << text;
  EXPECT_EQ(back->get_object().size(), 1u);
}

}  // namespace
}  // namespace interlock::json
