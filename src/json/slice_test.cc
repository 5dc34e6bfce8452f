#include "json/slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "json/object_text.h"

namespace interlock::json {
namespace {

std::string_view RawMember(std::string_view object, std::string_view key) {
  return RawMembers<1>(object, {key})[0];
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SliceTest, MembersAreFoundWhateverStandsAroundThem) {
  const std::vector<std::string> hostile = {R"(a"b)", R"(\)", "],}", R"("to":[)", "é", ""};
  const std::string text = ObjectText()
                               .Add("first", R"(","to":["no"])")
                               .Add("to", std::span<const std::string>(hostile))
                               .Add("none", ArrayText())
                               .Add("inner", ObjectText().Add("cc", 1))
                               .Add("n", -12)
                               .AddNull("nothing")
                               .Text();
  EXPECT_EQ(RawMember(text, "to"), ArrayText()
                                       .Add(hostile[0])
                                       .Add(hostile[1])
                                       .Add(hostile[2])
                                       .Add(hostile[3])
                                       .Add(hostile[4])
                                       .Add(hostile[5])
                                       .Text());
  EXPECT_EQ(RawMember(text, "none"), "[]");
  EXPECT_EQ(RawMember(text, "inner"), R"({"cc":1})");
  EXPECT_EQ(RawMember(text, "n"), "-12");
  EXPECT_EQ(RawMember(text, "nothing"), "null");
  EXPECT_EQ(RawMember(text, "cc"), "") << "it is a member of a member";
  EXPECT_EQ(RawMember(text, "t"), "");
  EXPECT_EQ(RawMember("{}", "to"), "");
}

TEST(SliceTest, SeveralMembersAreFoundInOnePassWhateverTheirOrder) {
  using Found = std::array<std::string_view, 3>;
  EXPECT_EQ((RawMembers<3>(R"({"b":[2],"a":1})", {"a", "b", "c"})), (Found{"1", "[2]", ""}));
}

TEST(SliceTest, ElementsAreGivenAsTheyAreWritten) {
  const std::string text = ArrayText().Add(R"(a","b)").Add("").Add(7).AddRaw("[1,[2]]").Text();
  EXPECT_THAT(RawElements(text), ElementsAre(R"("a\",\"b")", R"("")", "7", "[1,[2]]"));
  EXPECT_THAT(RawElements("[]"), IsEmpty());
}

TEST(SliceTest, TextOfOthersIsNeverReadBeyondItsEnd) {
  for (const std::string text : {"", "{", "[", "\"", "{\"", "{\"a", "{\"a\\", "{\"a\":", "[\"\\",
                                 "]", "}}", "[1,", "{\"a\":[[[", "::::", "[,,]"}) {
    // A copy of exactly that size, so that a sanitizer sees one byte too many.
    const std::vector<char> exact(text.begin(), text.end());
    const std::string_view view(exact.data(), exact.size());
    for (const std::string_view element : RawElements(view)) {
      EXPECT_LE(element.size(), view.size());
    }
    RawMember(view, "a");
  }
}

}  // namespace
}  // namespace interlock::json
