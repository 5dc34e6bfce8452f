#include "api/request.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "http/query.h"

namespace interlock::api {
namespace {

class RequestTest : public ::testing::Test {
 protected:
  Request Asking(std::string_view query) {
    Request request(sent_);
    request.query_fields = *http::ParseQuery(query);
    return request;
  }

  http::Request sent_;
};

TEST_F(RequestTest, ValuesAreDecodedAndTheFirstOfSeveralCounts) {
  const Request request =
      Asking("project=a%20b+c%2B&project=second&flag&empty=&caf%C3%A9=%E2%82%AC&&=x&e==1=2&&");
  EXPECT_EQ(request.Query("project"), "a b c+");
  EXPECT_EQ(request.Query("flag"), "");
  EXPECT_EQ(request.Query("empty"), "");
  EXPECT_EQ(request.Query("café"), "€");
  EXPECT_EQ(request.Query("e"), "=1=2");
  EXPECT_EQ(request.Query(""), "x");
  EXPECT_EQ(request.Query("absent"), "");
  EXPECT_EQ(request.Query("Project"), "");  // names are exact
}

TEST_F(RequestTest, NumbersAreDecimalDigitsThatFit) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::pair<std::string, std::int64_t> kNumbers[] = {
      {"0", 0}, {"7", 7}, {"007", 7}, {"+7+", 7}, {"9223372036854775807", kMax},
  };
  for (const auto& [text, number] : kNumbers) {
    const Request request = Asking("n=" + text);
    EXPECT_EQ(request.QueryInt("n", -1), number) << text;
    EXPECT_EQ(request.QueryCursor("n"), number) << text;
  }
  for (const char* text :
       {"-0", "-7", "%2B7", "-", "7x", "0x7", "7.0", "1e3", "nan", "1+2", "", "+",
        "9223372036854775808", "99999999999999999999", "-9223372036854775808"}) {
    EXPECT_EQ(Asking(std::string("n=") + text).QueryNumber("n"), std::nullopt) << text;
  }
  EXPECT_EQ(Asking("").QueryInt("n", 3), 3);
  EXPECT_EQ(Asking("").QueryCursor("n"), 0);
}

TEST_F(RequestTest, BooleansIgnoreBlanksAroundThem) {
  EXPECT_EQ(Asking("b=+true").QueryBool("b"), true);
  EXPECT_EQ(Asking("b=0+").QueryBool("b"), false);
  EXPECT_EQ(Asking("b=+").QueryBool("b"), std::nullopt);
  EXPECT_EQ(Asking("").QueryBool("b"), std::nullopt);
}

using RequestDeathTest = RequestTest;

TEST_F(RequestDeathTest, ParameterThatTheTemplateDoesNotNameFailsACheck) {
  Request request(sent_);
  request.params.emplace_back("id", "7");
  EXPECT_EQ(request.Param("id"), "7");
  EXPECT_DEATH(request.Param("name"), "check failed.*name");
}

}  // namespace
}  // namespace interlock::api
