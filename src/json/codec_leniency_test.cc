#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/codec.h"
#include "json/member.h"

// Each way in which the reading of requests is lenient, on and off.
namespace interlock::json {
namespace {

struct Request {
  std::string name;
  std::optional<std::string> note;
  std::optional<std::map<std::string, std::string>> metadata;
};
IL_JSON_FIELDS(Request, name, note, metadata)

struct Twins {
  std::optional<std::string> id;
  std::optional<std::string> ID;
};
IL_JSON_FIELDS(Twins, id, ID)

// name|note|metadata as read, or the error.
std::string Read(std::string_view text, const TextOptions& options) {
  const Result<Request> request = DecodeText<Request>(text, options);
  if (!request.ok()) return request.error().message();
  std::string out = request->name + "|" + request->note.value_or("-") + "|";
  if (!request->metadata) return out + "-";
  for (const auto& [key, value] : *request->metadata) out.append(key).append("=").append(value);
  return out;
}

TextOptions With(DecodeOptions decode) { return {.parse = {}, .decode = decode}; }

TEST(JsonLeniencyTest, UnknownFieldsAreIgnoredOrRefused) {
  const std::string_view text = R"({"extra":{"deep":[1]},"name":"a"})";
  EXPECT_EQ(Read(text, With({.unknown_fields = UnknownFields::kIgnore})), "a|-|-");
  EXPECT_EQ(Read(text, With({.unknown_fields = UnknownFields::kRefuse})), "unknown field extra");
  EXPECT_EQ(Read(R"({"NAME":"a"})", With({.unknown_fields = UnknownFields::kRefuse})), "a|-|-")
      << "a name in other case is a known one";
}

TEST(JsonLeniencyTest, NullIsAbsentOrAWrongType) {
  const DecodeOptions absent = {.nulls = Nulls::kAsAbsent};
  const DecodeOptions refuse = {.nulls = Nulls::kRefuse};
  const std::string_view optional = R"({"name":"a","note":null,"metadata":null})";
  EXPECT_EQ(Read(optional, With(absent)), "a|-|-");
  EXPECT_EQ(Read(optional, With(refuse)), "wrong type for field note: expected string, got null");
  EXPECT_EQ(Read(R"({"name":null})", With(absent)), "missing field name");
  EXPECT_EQ(Read(R"({"name":null})", With(refuse)),
            "wrong type for field name: expected string, got null");
  const std::string_view entry = R"({"name":"a","metadata":{"k":null,"l":"v"}})";
  EXPECT_EQ(Read(entry, With(absent)), "a|-|l=v");
  EXPECT_EQ(Read(entry, With(refuse)),
            "wrong type for field metadata.k: expected string, got null");
}

TEST(JsonLeniencyTest, NamesInOtherCaseAreAFallback) {
  const DecodeOptions ignore = {.names = Names::kIgnoreCase};
  const DecodeOptions exact = {.names = Names::kExact};
  EXPECT_EQ(Read(R"({"Name":"a","NOTE":"n"})", With(ignore)), "a|n|-");
  EXPECT_EQ(Read(R"({"Name":"a"})", With(exact)), "missing field name");
  EXPECT_EQ(Read(R"({"name":"exact","NAME":"other"})", With(ignore)), "exact|-|-");
  EXPECT_EQ(Read(R"({"NAME":"other","name":"exact"})", With(ignore)), "exact|-|-");
  EXPECT_EQ(Read(R"({"NAME":"first","Name":"last"})", With(ignore)), "last|-|-");
  EXPECT_EQ(Read(R"({"name":"a","metadata":{"K":"1","k":"2"}})", With(ignore)), "a|-|K=1k=2")
      << "keys of a map are data";
}

TEST(JsonLeniencyTest, AMemberThatIsExactlyAnotherFieldIsNoFallback) {
  const Twins twins = *DecodeText<Twins>(R"({"ID":"upper"})", kLenient);
  EXPECT_EQ(twins.ID, "upper");
  EXPECT_EQ(twins.id, std::nullopt);
}

TEST(JsonLeniencyTest, WhoDecodesWithoutAStructFindsMembersByTheSameRule) {
  const Value value = *Parse(R"({"ID":1,"Name":2,"NAME":3})");
  const auto found = [&](std::string_view name, std::vector<std::string_view> names,
                         const DecodeOptions& options) -> std::int64_t {
    const Value* const member = FindMember(value.get_object(), name, names, options);
    return member == nullptr ? 0 : member->get_int64();
  };
  EXPECT_EQ(found("ID", {"ID"}, kLenient.decode), 1);
  EXPECT_EQ(found("name", {"name"}, kLenient.decode), 3);
  EXPECT_EQ(found("id", {"id"}, kLenient.decode), 1);
  EXPECT_EQ(found("id", {"id", "ID"}, kLenient.decode), 0);
  EXPECT_EQ(found("id", {"id"}, kStrict.decode), 0);
}

TEST(JsonLeniencyTest, BytesAfterTheFirstValueAreIgnoredOrRefused) {
  const std::string_view text = "{\"name\":\"a\"}{\"name\":\"b\"} \xFF";
  EXPECT_EQ(Read(text, {.parse = {.trailing = Trailing::kIgnore}, .decode = {}}), "a|-|-");
  EXPECT_EQ(Read(text, {.parse = {.trailing = Trailing::kRefuse}, .decode = {}}),
            "line 1, column 13: unexpected text after the JSON value");
}

TEST(JsonLeniencyTest, MissingFieldsAreRefusedOrKeepTheirDefault) {
  EXPECT_EQ(Read("{}", With({.missing = Missing::kRefuse})), "missing field name");
  EXPECT_EQ(Read("{}", With({.missing = Missing::kKeepDefault})), "|-|-");
  EXPECT_EQ(Read(R"({"name":null})", With({.missing = Missing::kKeepDefault})), "|-|-");
}

TEST(JsonLeniencyTest, TheTwoNamedSetsAreTheTwoEnds) {
  const std::string_view sloppy = "{\"NAME\":\"a\",\"note\":null,\"x\":1}garbage";
  EXPECT_EQ(Read(sloppy, kLenient), "a|-|-");
  EXPECT_EQ(Read(sloppy, kStrict), "line 1, column 31: unexpected text after the JSON value");
  EXPECT_EQ(Read(R"({"name":"a","note":"n"})", kStrict), "a|n|-");
}

}  // namespace
}  // namespace interlock::json
