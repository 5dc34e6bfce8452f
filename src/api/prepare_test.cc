#include "api/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <string>

#include "api/body.h"

namespace interlock::api {
namespace {

using ::testing::HasSubstr;

Route With(BodyKind body, ProjectFrom project = ProjectFrom::kNone) {
  return {.method = Method::kPost,
          .path = "/x",
          .handler = nullptr,
          .summary = "a test",
          .project = project,
          .body = body};
}

// A request with this body. It refers to what was sent, which is kept for all tests.
Request Sending(std::string body) {
  static std::deque<http::Request> sent;
  Request request(sent.emplace_back());
  request.path = "/x";
  request.sent.body = std::move(body);
  return request;
}

Result<Request> Prepared(const Route& route, Request request) {
  IL_TRY_VOID(Prepare(route, request, {}));
  return request;
}

struct Sample {
  std::string from;
  std::optional<std::int64_t> count;
};
IL_JSON_FIELDS(Sample, from, count)

TEST(PrepareTest, OneJsonObjectIsParsedAndWhatFollowsIsIgnored) {
  for (const char* body : {R"({"from":"a","count":2,"more":[1]})", R"( {"FROM":"a","Count":2} )",
                           R"({"from":"b","from":"a","count":2}{"from":"c"} trailing)"}) {
    const auto prepared = Prepared(With(BodyKind::kJson), Sending(body));
    ASSERT_TRUE(prepared.ok()) << prepared.error();
    const auto sample = DecodeBody<Sample>(*prepared);
    ASSERT_TRUE(sample.ok()) << sample.error();
    EXPECT_EQ(sample->from, "a");
    EXPECT_EQ(sample->count, 2);
  }
  EXPECT_EQ(Prepared(With(BodyKind::kNone), Sending("{\"a\":"))->json, nullptr);
}

TEST(PrepareTest, AWrongTypeAndAMissingFieldAreNamed) {
  const auto decode = [](std::string body) {
    return DecodeBody<Sample>(*Prepared(With(BodyKind::kJson), Sending(std::move(body)))).error();
  };
  EXPECT_THAT(decode(R"({"from":7})").message(), HasSubstr("field from: expected string"));
  EXPECT_THAT(decode(R"({"from":"a","count":1.5})").message(), HasSubstr("field count"));
  EXPECT_THAT(decode(R"({"from":null})").message(), HasSubstr("from"));
  EXPECT_EQ(decode("{}").http_status(), 400);
}

TEST(PrepareTest, EveryKindOfBodyHasItsOwnRefusals) {
  const struct {
    std::string body;
    std::string refusal;  // of kJson; empty: none
    bool optional_takes_it;
  } kCases[] = {
      {"{}", "", true},
      {"", "The request body is empty; send a JSON object.", true},
      {" \r\n\t", "The request body is empty; send a JSON object.", true},
      {"null", "of type null; send a JSON object", true},
      {"[]", "of type array; send a JSON object", false},
      {"\"a\"", "of type string; send a JSON object", false},
      {"7", "of type number; send a JSON object", false},
      {"{\n  \"a\": }", "not valid JSON: line 2, column 8", false},
      {"{\"a\":1", "not valid JSON: line 1, column 7", false},
      {"{\"a\":\"\xFF\"}", "not valid JSON: line 1, column 7", false},
      {std::string("{\"a\":\"\0\"}", 9), "not valid JSON: line 1, column 7", false},
      {std::string(2000, '['), "not valid JSON: line 1", false},
  };
  for (const auto& c : kCases) {
    const auto strict = Prepared(With(BodyKind::kJson), Sending(c.body));
    ASSERT_EQ(strict.ok(), c.refusal.empty()) << c.body;
    if (!strict.ok()) {
      EXPECT_EQ(strict.error().http_status(), 400) << c.body;
      EXPECT_THAT(strict.error().message(), HasSubstr(c.refusal));
    }
    const auto optional = Prepared(With(BodyKind::kOptionalJson), Sending(c.body));
    EXPECT_EQ(optional.ok(), c.optional_takes_it) << c.body;
    if (optional.ok()) {
      EXPECT_TRUE(optional->json->as_object().empty()) << c.body;
    }
  }
}

// "project", "-" for every project, or "400 slug".
std::string Found(ProjectFrom from, auth::Caller::Mode mode, std::string_view sent) {
  Request request = Sending("");
  request.caller.mode = mode;
  if (mode == auth::Caller::Mode::kKey) request.caller.project = "mine";
  const bool in_body = from == ProjectFrom::kBody;
  if (in_body) {
    request.sent.body = json::Write(json::Value(json::Object{{"project", sent}}));
  } else if (from == ProjectFrom::kPath) {
    request.params.emplace_back("project", std::string(sent));
  } else {
    for (const char c : sent) request.query += c == ' ' ? '+' : c;
    request.query.insert(0, "project=");
  }
  const auto prepared = Prepared(With(in_body ? BodyKind::kJson : BodyKind::kNone, from), request);
  if (prepared.ok()) return prepared->project.value_or("-");
  return std::to_string(prepared.error().http_status()) + " " +
         std::string(prepared.error().slug());
}

TEST(PrepareTest, TheProjectIsFoundWhereTheRowSaysAndHeldAgainstTheKey) {
  using enum ProjectFrom;
  const struct {
    ProjectFrom from;
    std::string sent, local, key;
  } kCases[] = {
      {kNone, "other", "-", "-"},
      {kNone, "mine", "-", "-"},
      {kKey, "other", "-", "mine"},
      {kKey, "", "-", "mine"},
      {kQuery, "", "-", "mine"},
      {kQuery, " ", "-", "mine"},
      {kQuery, " other ", "other", "mine"},
      {kQuery, "mine", "mine", "mine"},
      {kQueryChecked, "", "-", "mine"},
      {kQueryChecked, " ", "-", "mine"},
      {kQueryChecked, " mine ", "mine", "mine"},
      {kQueryChecked, "other", "other", "403 project_mismatch"},
      {kQueryChecked, "Mine", "Mine", "403 project_mismatch"},
      {kBody, "mine", "mine", "mine"},
      {kBody, " mine ", "mine", "mine"},
      {kBody, "other", "other", "403 project_mismatch"},
      {kBody, "", "", "mine"},
      {kBody, " ", "", "mine"},
      {kPath, "mine", "mine", "mine"},
      {kPath, " other ", "other", "403 project_mismatch"},
      {kPath, " ", "400 invalid_request", "400 invalid_request"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Found(c.from, auth::Caller::Mode::kLocal, c.sent), c.local) << c.sent;
    EXPECT_EQ(Found(c.from, auth::Caller::Mode::kKey, c.sent), c.key) << c.sent;
  }
}

// "" when the query is fine, else the field of the 400.
std::string RefusedParameter(std::string query) {
  static constexpr QueryParameter kQuery[] = {
      {"n", QueryParameter::Type::kInteger, "a number"},
      {"flag", QueryParameter::Type::kBoolean, "a boolean"},
      {"text", QueryParameter::Type::kText, "a text"},
  };
  Route route = With(BodyKind::kNone);
  route.query = kQuery;
  Request request = Sending("");
  request.query = std::move(query);
  const auto prepared = Prepared(route, std::move(request));
  if (prepared.ok()) return "";
  EXPECT_EQ(prepared.error().http_status(), 400);
  EXPECT_EQ(prepared.error().slug(), "invalid_request");
  return std::get<std::string>(prepared.error().details().at(0).second);
}

TEST(PrepareTest, AQueryNumberThatIsNoneOrDoesNotFitIs400WithItsName) {
  for (const char* bad : {"abc", "-1", "%2B1", "1.0", "1e3", "0x1", "99999999999999999999",
                          "9223372036854775808", "1%202", "true"}) {
    EXPECT_EQ(RefusedParameter(std::string("n=") + bad), "n") << bad;
    EXPECT_EQ(RefusedParameter(std::string("text=x&n=") + bad + "&n=1"), "n") << bad;
  }
  for (const char* good : {"", "%20", "0", "007", "9223372036854775807"}) {
    EXPECT_EQ(RefusedParameter(std::string("n=") + good), "") << good;
  }
  EXPECT_EQ(RefusedParameter("text=abc&unknown=-1"), "");
}

TEST(PrepareTest, AQueryBooleanIsTrueFalseOneOrZero) {
  for (const char* bad : {"yes", "TRUE", "False", "flase", "2", "01", "maybe", "true%20false"}) {
    EXPECT_EQ(RefusedParameter(std::string("flag=") + bad), "flag") << bad;
    EXPECT_EQ(RefusedParameter(std::string("flag=") + bad + "&flag=1"), "flag") << bad;
  }
  for (const char* good : {"", "%20", "true", "false", "1", "0", "%20true"}) {
    EXPECT_EQ(RefusedParameter(std::string("flag=") + good), "") << good;
  }
  EXPECT_EQ(RefusedParameter("flag"), "");
}

TEST(PrepareTest, BadJsonIsAnsweredWithItsPlace) {
  const auto prepared = Prepared(With(BodyKind::kJson), Sending("{\n  \"a\": }"));
  EXPECT_EQ(ErrorResponse(prepared.error()).body,
            "{\"error\":\"bad_json\",\"message\":\"Correct the request body, which is not valid "
            "JSON: line 2, column 8: unexpected character '}'\",\"line\":2,\"column\":8}\n");
}

TEST(PrepareTest, AProjectInTheBodyThatIsNoTextIsRefusedByName) {
  for (const auto mode : {auth::Caller::Mode::kLocal, auth::Caller::Mode::kKey}) {
    for (const char* body : {R"({"project":7})", R"({"PROJECT":[]})", R"({"project":"a\u0000"})"}) {
      Request request = Sending(body);
      request.caller = {.mode = mode, .project = "mine"};
      const auto prepared = Prepared(With(BodyKind::kJson, ProjectFrom::kBody), std::move(request));
      ASSERT_FALSE(prepared.ok()) << body;
      EXPECT_EQ(prepared.error().http_status(), 400) << body;
      ASSERT_FALSE(prepared.error().details().empty()) << body;
      EXPECT_EQ(std::get<std::string>(prepared.error().details()[0].second), "project");
    }
  }
  // Absent and null are blank.
  for (const char* body : {"{}", R"({"project":null})"}) {
    const auto prepared = Prepared(With(BodyKind::kJson, ProjectFrom::kBody), Sending(body));
    ASSERT_TRUE(prepared.ok()) << body;
    EXPECT_EQ(prepared->project, "");
  }
}

TEST(PrepareTest, TheFirstRefusalCounts) {
  Request request = Sending("{");
  request.query = "a=%zz";
  request.params.emplace_back("id", " ");
  const Route route = With(BodyKind::kJson, ProjectFrom::kBody);
  EXPECT_THAT(Prepared(route, request).error().message(), HasSubstr("query parameter a"));
  request.query = "";
  EXPECT_THAT(Prepared(route, request).error().message(), HasSubstr("names the id"));
  request.params[0].second = "7";
  EXPECT_THAT(Prepared(route, request).error().message(), HasSubstr("not valid JSON"));
}

TEST(PrepareDeathTest, DecodingABodyThatTheRowDoesNotAskForFailsACheck) {
  const auto prepared = Prepared(With(BodyKind::kNone), Sending("{}"));
  EXPECT_DEATH(DecodeBody<Sample>(*prepared).ok(), "check failed");
}

}  // namespace
}  // namespace interlock::api
