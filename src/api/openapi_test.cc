#include "api/openapi.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "api/routes.h"
#include "json/parse.h"
#include "json/schema.h"
#include "json/write.h"

namespace interlock::api {
namespace {

constexpr QueryParameter kQuery[] = {
    {"limit", QueryParameter::Type::kInteger, "How many."},
    {"fresh", QueryParameter::Type::kBoolean, "Only fresh ones."},
};
constexpr Failure kFailures[] = {
    {404, "There is no such thing."},
    {409, "It is taken."},
};

json::Value ThingSchema() { return json::ObjectSchema({{"id", json::StringSchema()}}); }

const std::array<Route, 4> kRoutes = {{
    {.method = Method::kGet,
     .path = "/api/things/{id...}/parts",
     .handler = nullptr,
     .summary = "The parts of a thing",
     .project = ProjectFrom::kQuery,
     .answer_schema = ThingSchema,
     .query = kQuery},
    {.method = Method::kPost,
     .path = "/api/things",
     .handler = nullptr,
     .summary = "Makes a thing",
     .project = ProjectFrom::kBody,
     .actor = ActorFrom::kBodyFrom,
     .body = BodyKind::kJson,
     .success = 201,
     .body_schema = ThingSchema,
     .answer_schema = ThingSchema,
     .failures = kFailures},
    {.method = Method::kDelete,
     .path = "/api/things",
     .handler = nullptr,
     .summary = "Forgets all things",
     .success = 204},
    {.method = Method::kGet,
     .path = "/thing.txt",
     .handler = nullptr,
     .summary = "Things as text",
     .access = Access::kAnyone,
     .answer_type = "text/plain"},
}};

json::Value Document() { return *json::Parse(OpenApiText(kRoutes, "1.2.3")); }

// What stands at a JSON pointer, as text; "" when nothing does.
std::string At(const std::string& pointer) {
  const json::Value document = Document();
  boost::system::error_code missing;
  const json::Value* const found = document.find_pointer(pointer, missing);
  return found == nullptr ? "" : json::Write(*found);
}

TEST(OpenApiTest, TheDocumentSaysItsVersions) {
  EXPECT_EQ(At("/openapi"), "\"3.1.0\"");
  EXPECT_EQ(At("/info/version"), "\"1.2.3\"");
  EXPECT_EQ(At("/jsonSchemaDialect"), "\"https://json-schema.org/draft/2020-12/schema\"");
}

TEST(OpenApiTest, EveryRowIsAnOperationOfItsPath) {
  EXPECT_EQ(Document().at("paths").get_object().size(), 3U);
  EXPECT_EQ(At("/paths/~1api~1things/post/summary"), "\"Makes a thing\"");
  EXPECT_EQ(At("/paths/~1api~1things/delete/summary"), "\"Forgets all things\"");
  EXPECT_EQ(At("/paths/~1api~1things~1{id}~1parts/get/operationId"), "\"get_api_things_id_parts\"");
  EXPECT_EQ(At("/paths/~1api~1things~1{id}~1parts/get/tags"), "[\"things\"]");
  EXPECT_EQ(At("/paths/~1thing.txt/get/operationId"), "\"get_thing_txt\"");
}

TEST(OpenApiTest, ParametersAreThoseOfThePathTheQueryAndTheRow) {
  const std::string parameters = "/paths/~1api~1things~1{id}~1parts/get/parameters";
  EXPECT_EQ(At(parameters + "/0"),
            R"({"name":"id","in":"path","required":true,"description":"May hold slashes.",)"
            R"("schema":{"type":"string"},"x-takes-slashes":true})");
  EXPECT_EQ(At(parameters + "/1"),
            R"({"name":"limit","in":"query","description":"How many.","schema":{"type":"integer",)"
            R"("minimum":0,"maximum":9223372036854775807}})");
  EXPECT_EQ(At(parameters + "/2/schema"), R"({"type":"boolean"})");
  EXPECT_EQ(At(parameters + "/3"), R"({"$ref":"#/components/parameters/Project"})");
  EXPECT_EQ(At(parameters + "/4"), R"({"$ref":"#/components/parameters/AgentId"})");
  EXPECT_EQ(At(parameters + "/5"), "");
  EXPECT_EQ(At("/paths/~1thing.txt/get/parameters"), "");
}

TEST(OpenApiTest, ABodyAndItsAnswerHaveTheirSchemas) {
  const std::string thing =
      R"({"type":"object","properties":{"id":{"type":"string"}},"required":["id"]})";
  const std::string post = "/paths/~1api~1things/post";
  EXPECT_EQ(At(post + "/requestBody/required"), "true");
  EXPECT_EQ(At(post + "/requestBody/content/application~1json/schema"), thing);
  EXPECT_EQ(At(post + "/responses/201/content/application~1json/schema"), thing);
  EXPECT_EQ(At(post + "/responses/200"), "");
  EXPECT_EQ(At("/paths/~1api~1things/delete/requestBody"), "");
  EXPECT_NE(At("/paths/~1api~1things/delete/responses/204"), "");
  EXPECT_EQ(At("/paths/~1api~1things/delete/responses/204/content"), "");
  EXPECT_EQ(At("/paths/~1thing.txt/get/responses/200/content/text~1plain/schema"),
            R"({"type":"string"})");
}

TEST(OpenApiTest, FailuresAreTheCommonOnesAndThoseOfTheRow) {
  const std::string responses = "/paths/~1api~1things/post/responses";
  EXPECT_EQ(At(responses + "/400"), R"({"$ref":"#/components/responses/BadRequest"})");
  EXPECT_EQ(At(responses + "/401"), R"({"$ref":"#/components/responses/Unauthorized"})");
  EXPECT_EQ(At(responses + "/404/description"), "\"There is no such thing.\"");
  EXPECT_EQ(At(responses + "/409/description"), "\"It is taken.\"");
  EXPECT_EQ(At(responses + "/409/content/application~1json/schema"),
            R"({"$ref":"#/components/schemas/Error"})");
  EXPECT_EQ(At("/paths/~1api~1things/delete/responses/409"), "");
  EXPECT_EQ(At("/paths/~1thing.txt/get/responses/401"), "");
}

TEST(OpenApiTest, WhoMayCallStandsAtEachOperation) {
  EXPECT_EQ(At("/paths/~1thing.txt/get/security"), "[]");
  for (const std::string method : {"delete", "post"}) {
    EXPECT_EQ(At("/paths/~1api~1things/" + method + "/security"),
              R"([{},{"key":[]},{"agent_token":[]},{"key":[],"agent_token":[]}])");
  }
}

// A route that is not described does not exist.
TEST(OpenApiTest, EveryRouteOfTheServerIsDescribed) {
  ASSERT_FALSE(Routes().empty());
  for (const Route& route : Routes()) {
    SCOPED_TRACE(std::string(MethodName(route.method)) + " " + std::string(route.path));
    EXPECT_GE(route.summary.size(), 10U);
    EXPECT_EQ(route.body == BodyKind::kNone, route.body_schema == nullptr);
    EXPECT_TRUE(route.answer_schema == nullptr || route.answer_type.empty());
    EXPECT_TRUE(route.success != 204 || route.answer_schema == nullptr);
    for (const QueryParameter& parameter : route.query) {
      EXPECT_FALSE(parameter.meaning.empty()) << parameter.name;
    }
    for (const Failure& failure : route.failures) {
      EXPECT_GE(failure.status, 400);
      EXPECT_FALSE(failure.meaning.empty()) << failure.status;
      EXPECT_NE(http::ReasonPhrase(failure.status), "") << failure.status;
    }
  }
}

}  // namespace
}  // namespace interlock::api
