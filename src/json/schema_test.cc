#include "json/schema.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "json/write.h"

namespace interlock::json {
namespace {

struct Part {
  std::string name;
  std::optional<std::int64_t> count;
};
IL_JSON_FIELDS(Part, name, count)

struct Whole {
  bool flag = false;
  std::uint8_t byte = 0;
  std::int64_t big = 0;
  std::uint64_t huge = 0;
  double ratio = 0;
  Timestamp at;
  std::vector<std::string> tags;
  std::map<std::string, std::string> metadata;
  std::vector<Part> parts;
  std::optional<Part> more;
  Field<std::string> note;
  Field<Value> anything;
  std::vector<std::optional<std::string>> holes;
  Value raw;
  std::string class_;
};
IL_JSON_FIELDS(Whole, flag, byte, big, huge, ratio, at, tags, metadata, parts, more, note, anything,
               holes, raw, class_)

struct Nothing {};
IL_JSON_FIELDS(Nothing)

std::string PropertyOfWhole(std::string_view name) {
  const Value schema = SchemaOf<Whole>();
  return Write(schema.at("properties").at(name));
}

TEST(JsonSchemaTest, EachTypeOfAMemberHasItsSchema) {
  EXPECT_EQ(PropertyOfWhole("flag"), R"({"type":"boolean"})");
  EXPECT_EQ(PropertyOfWhole("byte"), R"({"type":"integer","minimum":0,"maximum":255})");
  EXPECT_EQ(PropertyOfWhole("big"), R"({"type":"integer","minimum":-9223372036854775808,)"
                                    R"("maximum":9223372036854775807})");
  EXPECT_EQ(PropertyOfWhole("huge"),
            R"({"type":"integer","minimum":0,"maximum":18446744073709551615})");
  EXPECT_EQ(PropertyOfWhole("ratio"), R"({"type":"number"})");
  EXPECT_EQ(PropertyOfWhole("at"), R"({"type":"string","format":"date-time"})");
  EXPECT_EQ(PropertyOfWhole("tags"), R"({"type":"array","items":{"type":"string"}})");
  EXPECT_EQ(PropertyOfWhole("metadata"),
            R"({"type":"object","additionalProperties":{"type":"string"}})");
  EXPECT_EQ(PropertyOfWhole("raw"), "{}");
  EXPECT_EQ(PropertyOfWhole("class"), R"({"type":"string"})");
}

TEST(JsonSchemaTest, AStructInAStructStandsInline) {
  const std::string part =
      R"({"type":"object","properties":{"name":{"type":"string"},"count":{"type":"integer",)"
      R"("minimum":-9223372036854775808,"maximum":9223372036854775807}},"required":["name"]})";
  EXPECT_EQ(Write(SchemaOf<Part>()), part);
  EXPECT_EQ(PropertyOfWhole("more"), part);
  EXPECT_EQ(PropertyOfWhole("parts"), R"({"type":"array","items":)" + part + "}");
  EXPECT_EQ(Write(SchemaOf<Nothing>()), R"({"type":"object","properties":{}})");
}

TEST(JsonSchemaTest, OnlyWhatTellsNullFromAbsentTakesNull) {
  EXPECT_EQ(PropertyOfWhole("note"), R"({"anyOf":[{"type":"string"},{"type":"null"}]})");
  EXPECT_EQ(PropertyOfWhole("anything"), "{}");
  EXPECT_EQ(PropertyOfWhole("holes"),
            R"({"type":"array","items":{"anyOf":[{"type":"string"},{"type":"null"}]}})");
}

TEST(JsonSchemaTest, WhatIsNeitherOptionalNorFieldIsRequired) {
  EXPECT_EQ(Write(SchemaOf<Whole>().at("required")),
            R"(["flag","byte","big","huge","ratio","at","tags","metadata","parts","holes","raw",)"
            R"("class"])");
}

TEST(JsonSchemaTest, NothingIsRequiredWhereDefaultsAreKept) {
  const Value schema = SchemaOf<Whole, Missing::kKeepDefault>();
  EXPECT_FALSE(schema.get_object().contains("required"));
  const Value& part = schema.at("properties").at("parts").at("items");
  EXPECT_FALSE(part.get_object().contains("required"));
  EXPECT_TRUE(part.at("properties").get_object().contains("name"));
}

TEST(JsonSchemaTest, ASchemaIsPutTogetherByHand) {
  const Value schema =
      WithMember(ObjectSchema({{"message_id", StringSchema()},
                               {"importance", EnumSchema({"low", "high"})},
                               {"denied", ArraySchema(StringSchema()), Need::kOptional}}),
                 {"cursor", IntegerSchema()});
  EXPECT_EQ(Write(schema),
            R"({"type":"object","properties":{"message_id":{"type":"string"},)"
            R"("importance":{"type":"string","enum":["low","high"]},)"
            R"("denied":{"type":"array","items":{"type":"string"}},)"
            R"("cursor":{"type":"integer","minimum":0,"maximum":9223372036854775807}},)"
            R"("required":["message_id","importance","cursor"]})");
}

}  // namespace
}  // namespace interlock::json
