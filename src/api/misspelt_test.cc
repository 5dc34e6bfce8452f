#include "api/misspelt.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/codec.h"
#include "json/schema.h"

namespace interlock::api {
namespace {

struct Step {
  std::optional<std::string> action;
  std::optional<std::string> expected;
};
IL_JSON_FIELDS(Step, action, expected)

struct Claim {
  std::string agent_id;
  std::optional<std::string> path_pattern;
  std::optional<std::vector<std::string>> path_patterns;
  std::optional<std::string> project;
  std::optional<bool> exclusive;
  std::optional<std::string> agent;
  std::optional<std::vector<Step>> steps;
  json::Field<Step> first_step;
  std::optional<std::map<std::string, std::string>> metadata;
};
IL_JSON_FIELDS(Claim, agent_id, path_pattern, path_patterns, project, exclusive, agent, steps,
               first_step, metadata)

Result<void> Check(std::string_view body) {
  static const json::Value kSchema = json::SchemaOf<Claim>();
  return RefuseMisspelt(*json::Parse(body), kSchema);
}

// "field>meant", or "" when the body is fine.
std::string Refused(std::string_view body) {
  const Result<void> checked = Check(body);
  if (checked.ok()) return "";
  EXPECT_EQ(checked.error().http_status(), 400);
  EXPECT_EQ(checked.error().slug(), "unknown_field");
  const auto& details = checked.error().details();
  return std::get<std::string>(details.at(0).second) + ">" +
         std::get<std::string>(details.at(1).second);
}

TEST(MisspeltTest, AFieldThatIsNearlyAKnownOneIsRefusedWithTheOneMeant) {
  EXPECT_EQ(Refused(R"({"exlusive":false})"), "exlusive>exclusive");
  EXPECT_EQ(Refused(R"({"Exlusive":false})"), "Exlusive>exclusive");
  EXPECT_EQ(Refused(R"({"exclusive_":false})"), "exclusive_>exclusive");
  EXPECT_EQ(Refused(R"({"projct":"p"})"), "projct>project");
  EXPECT_EQ(Refused(R"({"agentId":"a"})"), "agentId>agent_id");
  EXPECT_EQ(Refused(R"({"pathPattern":"a"})"), "pathPattern>path_pattern");
  EXPECT_EQ(Refused(R"({"path_patern":"a"})"), "path_patern>path_pattern");
  EXPECT_EQ(Check(R"({"exlusive":false})").error().message(),
            "The field exlusive is unknown; did you mean exclusive? Correct it or leave it out.");
}

TEST(MisspeltTest, TheSameWordsInAnotherOrderAreRefused) {
  EXPECT_EQ(Refused(R"({"pattern_path":"a"})"), "pattern_path>path_pattern");
  EXPECT_EQ(Refused(R"({"PATTERNS_PATH":["a"]})"), "PATTERNS_PATH>path_patterns");
  EXPECT_EQ(Refused(R"({"id-agent":"a"})"), "id-agent>agent_id");
}

TEST(MisspeltTest, KnownFieldsAndOtherUnknownOnesPass) {
  for (const char* body :
       {R"({})", R"({"agent_id":"a","path_pattern":"b","path_patterns":["c"]})",
        R"({"AGENT_ID":"a","Exclusive":true,"Path_Patterns":[]})",
        R"({"id":"","created_at":"","expires_at":"","is_active":false,"released_at":null})",
        R"({"exc":1,"exclusiveness":1,"pattern":"x","path":"y","":1,"_":2,"x":{"exlusive":1}})",
        R"({"agnet":"five letters are too few","agents":[],"step":1,"stepz":1})"}) {
    EXPECT_EQ(Refused(body), "") << body;
  }
}

TEST(MisspeltTest, ObjectsInsideTheBodyAreCheckedToo) {
  EXPECT_EQ(Refused(R"({"steps":[{"action":"a"},{"acton":"b"}]})"), "steps[1].acton>action");
  EXPECT_EQ(Refused(R"({"STEPS":[{"acton":"b"}]})"), "STEPS[0].acton>action");
  EXPECT_EQ(Refused(R"({"first_step":{"expcted":"b"}})"), "first_step.expcted>expected");
  EXPECT_EQ(Refused(R"({"first_step":null,"steps":[null,1,"x"]})"), "");
  EXPECT_EQ(Refused(R"({"metadata":{"exlusive":"names of a map are data"}})"), "");
}

TEST(MisspeltTest, OnlySoManyUnknownFieldsAreLookedAt) {
  const auto with_unknown = [](int count) {
    std::string body = "{";
    for (int i = 0; i < count; ++i) body += "\"unknown" + std::to_string(i) + "\":0,";
    return body + R"("exlusive":0,"exclusive":false})";
  };
  EXPECT_EQ(Refused(with_unknown(255)), "exlusive>exclusive");
  EXPECT_EQ(Refused(with_unknown(256)), "");
  EXPECT_EQ(Refused(with_unknown(9000)), "");
}

}  // namespace
}  // namespace interlock::api
