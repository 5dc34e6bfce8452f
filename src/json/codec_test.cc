#include "json/codec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace interlock::json {
namespace {

struct Item {
  std::string name;
  std::optional<std::int64_t> count;

  bool operator==(const Item&) const = default;
};
IL_JSON_FIELDS(Item, name, count)

struct Everything {
  bool flag = false;
  std::int8_t tiny = 0;
  std::uint8_t byte = 0;
  std::int32_t medium = 0;
  std::int64_t big = 0;
  std::uint64_t huge = 0;
  double ratio = 0;
  std::string text;
  std::vector<std::string> tags;
  std::map<std::string, std::string> metadata;
  std::vector<Item> items;
  Item inner;
  Value raw;
  std::optional<std::vector<Item>> more;
  std::string class_;

  bool operator==(const Everything&) const = default;
};
IL_JSON_FIELDS(Everything, flag, tiny, byte, medium, big, huge, ratio, text, tags, metadata, items,
               inner, raw, more, class_)

struct Nothing {
  bool operator==(const Nothing&) const = default;
};
IL_JSON_FIELDS(Nothing)

constexpr std::string_view kEverything =
    R"({"flag":true,"tiny":-128,"byte":255,"medium":-5,"big":-9223372036854775808,)"
    R"("huge":18446744073709551615,"ratio":0.25,"text":"é","tags":["a","b"],)"
    R"("metadata":{"k":"v","l":""},"items":[{"name":"x","count":1},{"name":"y"}],)"
    R"("inner":{"name":"z"},"raw":{"any":[1,null]},"more":[],"class":"c"})";

TEST(JsonCodecTest, AStructComesBackAsItWasWritten) {
  const Result<Everything> decoded = DecodeText<Everything>(kEverything, kStrict);
  ASSERT_TRUE(decoded.ok()) << decoded.error();
  EXPECT_TRUE(decoded->flag);
  EXPECT_EQ(decoded->tiny, -128);
  EXPECT_EQ(decoded->byte, 255);
  EXPECT_EQ(decoded->huge, ~std::uint64_t{0});
  EXPECT_EQ(decoded->text, "é");
  EXPECT_EQ(decoded->tags, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(decoded->metadata.at("k"), "v");
  EXPECT_EQ(decoded->items[0], (Item{"x", 1}));
  EXPECT_EQ(decoded->items[1], (Item{"y", std::nullopt}));
  EXPECT_EQ(Write(decoded->raw), R"({"any":[1,null]})");
  EXPECT_EQ(decoded->more, std::vector<Item>());
  EXPECT_EQ(decoded->class_, "c");
  EXPECT_EQ(EncodeText(*decoded), kEverything);
  EXPECT_EQ(*Decode<Everything>(Encode(*decoded)), *decoded);
}

TEST(JsonCodecTest, AStructWithoutFieldsIsAnEmptyObject) {
  EXPECT_EQ(EncodeText(Nothing()), "{}");
  EXPECT_TRUE(DecodeText<Nothing>("{}", kStrict).ok());
  EXPECT_FALSE(DecodeText<Nothing>("[]", kStrict).ok());
}

// `change` replaces the value of one field of kEverything.
std::string ErrorOf(std::string_view field, std::string_view value) {
  Value document = *Parse(kEverything);
  document.get_object()[field] = *Parse(value);
  const Result<Everything> decoded = Decode<Everything>(document);
  if (decoded.ok()) return "ok";
  EXPECT_EQ(decoded.error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(decoded.error().http_status(), 400);
  return decoded.error().message();
}

TEST(JsonCodecTest, AWrongTypeNamesTheFieldAndBothTypes) {
  struct Case {
    std::string_view field;
    std::string_view value;
    std::string_view message;
  };
  const std::vector<Case> cases = {
      {"text", "1", "wrong type for field text: expected string, got number"},
      {"text", "1.5", "wrong type for field text: expected string, got number"},
      {"text", "true", "wrong type for field text: expected string, got boolean"},
      {"text", "{}", "wrong type for field text: expected string, got object"},
      {"text", "[]", "wrong type for field text: expected string, got array"},
      {"flag", "\"true\"", "wrong type for field flag: expected boolean, got string"},
      {"flag", "1", "wrong type for field flag: expected boolean, got number"},
      {"big", "\"1\"", "wrong type for field big: expected integer, got string"},
      {"ratio", "\"1\"", "wrong type for field ratio: expected number, got string"},
      {"tags", "\"a\"", "wrong type for field tags: expected array, got string"},
      {"tags", "[\"a\",2]", "wrong type for field tags[1]: expected string, got number"},
      {"tags", "[null]", "wrong type for field tags[0]: expected string, got null"},
      {"metadata", "[]", "wrong type for field metadata: expected object, got array"},
      {"metadata", R"({"k":1})", "wrong type for field metadata.k: expected string, got number"},
      {"inner", "[]", "wrong type for field inner: expected object, got array"},
      {"inner", "{}", "missing field inner.name"},
      {"inner", R"({"name":[]})", "wrong type for field inner.name: expected string, got array"},
      {"items", R"([{"name":"a"},{"name":"b"},{"name":3}])",
       "wrong type for field items[2].name: expected string, got number"},
      {"items", R"([{"name":"a","count":"1"}])",
       "wrong type for field items[0].count: expected integer, got string"},
      {"more", R"([{}])", "missing field more[0].name"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ErrorOf(c.field, c.value), c.message) << c.field << " = " << c.value;
  }
}

TEST(JsonCodecTest, TheErrorCarriesThePathAsADetail) {
  const Result<Everything> decoded = DecodeText<Everything>(R"({"flag":1})", kLenient);
  ASSERT_FALSE(decoded.ok());
  ASSERT_EQ(decoded.error().details().size(), 1u);
  EXPECT_EQ(decoded.error().details()[0].first, "field");
  EXPECT_EQ(std::get<std::string>(decoded.error().details()[0].second), "flag");
  EXPECT_EQ(DecodeText<Item>("[]", kLenient).error().message(),
            "wrong type: expected object, got array");
}

TEST(JsonCodecTest, IntegersAreRangeCheckedAndNeverRounded) {
  struct Case {
    std::string_view field;
    std::string_view value;
    std::string_view message;
  };
  const std::vector<Case> cases = {
      {"tiny", "127", "ok"},
      {"tiny", "128", "bad value for field tiny: 128 is not between -128 and 127"},
      {"tiny", "-129", "bad value for field tiny: -129 is not between -128 and 127"},
      {"byte", "0", "ok"},
      {"byte", "-0", "ok"},
      {"byte", "256", "bad value for field byte: 256 is not between 0 and 255"},
      {"byte", "-1", "bad value for field byte: -1 is not between 0 and 255"},
      {"medium", "2147483647", "ok"},
      {"medium", "2147483648",
       "bad value for field medium: 2147483648 is not between -2147483648 and 2147483647"},
      {"big", "9223372036854775807", "ok"},
      {"big", "9223372036854775808",
       "bad value for field big: 9223372036854775808 is not between -9223372036854775808 and "
       "9223372036854775807"},
      {"huge", "18446744073709551615", "ok"},
      {"huge", "-1", "bad value for field huge: -1 is not between 0 and 18446744073709551615"},
      {"big", "18446744073709551616",
       "wrong type for field big: expected integer, got number beyond 64 bits"},
      {"big", "-9223372036854775809",
       "wrong type for field big: expected integer, got number beyond 64 bits"},
      {"huge", "18446744073709551616",
       "wrong type for field huge: expected integer, got number beyond 64 bits"},
      {"huge", "1e30", "wrong type for field huge: expected integer, got number beyond 64 bits"},
      {"big", "1.5", "wrong type for field big: expected integer, got number with a fraction"},
      {"huge", "5.5", "wrong type for field huge: expected integer, got number with a fraction"},
      {"big", "9007199254740993.0",
       "wrong type for field big: expected integer, got number that is too large for a fraction or "
       "exponent"},
      {"big", "-1e18",
       "wrong type for field big: expected integer, got number that is too large for a fraction or "
       "exponent"},
      {"ratio", "3", "ok"},
      {"ratio", "18446744073709551615", "ok"},
      {"ratio", "18446744073709551616", "ok"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ErrorOf(c.field, c.value), c.message) << c.field << " = " << c.value;
  }
}

TEST(JsonCodecTest, AWholeNumberIsAnIntegerHoweverItIsWritten) {
  const auto read = [](std::string_view text) { return Decode<std::int64_t>(*Parse(text)); };
  const std::pair<std::string_view, std::int64_t> cases[] = {
      {"5.0", 5},    {"5.000", 5}, {"5e0", 5},  {"1e1", 10},
      {"1.5e1", 15}, {"-3.0", -3}, {"-0.0", 0}, {"9007199254740991.0", 9007199254740991},
  };
  for (const auto& [text, number] : cases) {
    ASSERT_TRUE(read(text).ok()) << text << ": " << read(text).error();
    EXPECT_EQ(*read(text), number) << text;
  }
  EXPECT_EQ(*Decode<std::uint64_t>(*Parse("5.0")), 5U);
  EXPECT_EQ(Decode<std::uint8_t>(*Parse("256.0")).error().message(),
            "bad value: 256 is not between 0 and 255");
  EXPECT_EQ(Decode<std::uint8_t>(*Parse("-1.0")).error().message(),
            "bad value: -1 is not between 0 and 255");
}

TEST(JsonCodecTest, LongKeysOfAClientDoNotGrowTheMessage) {
  std::string key;
  for (int i = 0; i < 300; ++i) key += "é";
  const Value document(Object{{key, 1}});
  const auto decoded = Decode<std::map<std::string, std::string>>(document);
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().message(),
            "wrong type for field " + key.substr(0, 64) + "…: expected string, got number");
}

struct Patch {
  Field<std::string> title;
  Field<std::int64_t> order;
  Field<std::vector<std::string>> tags;
};
IL_JSON_FIELDS(Patch, title, order, tags)

TEST(JsonCodecTest, AbsentNullAndPresentAreToldApart) {
  const Patch patch = *DecodeText<Patch>(R"({"title":null,"order":3})", kLenient);
  EXPECT_EQ(patch.title.presence(), Presence::kNull);
  EXPECT_EQ(patch.order.presence(), Presence::kPresent);
  EXPECT_EQ(patch.tags.presence(), Presence::kAbsent);
  EXPECT_EQ(*patch.order, 3);
  EXPECT_EQ(patch.title.AppliedTo("old"), "");
  EXPECT_EQ(patch.order.AppliedTo(1), 3);
  EXPECT_EQ(patch.tags.AppliedTo({"kept"}), std::vector<std::string>{"kept"});
  EXPECT_EQ(EncodeText(patch), R"({"title":null,"order":3})");
  EXPECT_EQ(DecodeText<Patch>(R"({"title":"","tags":[]})", kLenient)->tags,
            std::vector<std::string>());
  EXPECT_TRUE(DecodeText<Patch>(R"({"title":null})", kStrict)->title.null());
  EXPECT_EQ(DecodeText<Patch>(R"({"order":"3"})", kLenient).error().message(),
            "wrong type for field order: expected integer, got string");
}

TEST(JsonCodecDeathTest, ReadingAFieldThatWasNotSentFailsACheck) {
  EXPECT_DEATH((void)*Field<std::string>(), "check failed");
  EXPECT_DEATH((void)*Field<std::string>::Null(), "check failed");
}

struct Stamped {
  Timestamp at;
  std::optional<Timestamp> until;
};
IL_JSON_FIELDS(Stamped, at, until)

TEST(JsonCodecTest, TimesAreRfc3339) {
  const auto stamped = DecodeText<Stamped>(R"({"at":"2026-01-02T05:04:05.250+02:00"})", kLenient);
  ASSERT_TRUE(stamped.ok()) << stamped.error();
  EXPECT_EQ(stamped->at.micros, 1'767'323'045'250'000);
  EXPECT_EQ(EncodeText(*stamped), R"({"at":"2026-01-02T03:04:05.25Z"})");
  EXPECT_EQ(DecodeText<Stamped>(R"({"at":1})", kLenient).error().message(),
            "wrong type for field at: expected string, got number");
  EXPECT_EQ(
      DecodeText<Stamped>(R"({"at":"2026-02-30T00:00:00Z"})", kLenient).error().message(),
      "bad value for field at: \"2026-02-30T00:00:00Z\" is not a time: 2026-02 has no day 30; "
      "write it like 2026-01-02T15:04:05Z");
}

enum class Colour : std::uint8_t { kRed, kGreen };

}  // namespace

// How a folder teaches the codecs a type of its own.
template <>
struct Codec<Colour> {
  static Result<Colour> Decode(const Value& value, const DecodeContext& at) {
    IL_TRY(const std::string name, Codec<std::string>::Decode(value, at));
    if (name == "red") return Colour::kRed;
    if (name == "green") return Colour::kGreen;
    return BadValue(at, "expected red or green");
  }
  static Value Encode(Colour value) { return value == Colour::kRed ? "red" : "green"; }
};

namespace {

struct Painted {
  std::vector<Colour> colours;
};
IL_JSON_FIELDS(Painted, colours)

TEST(JsonCodecTest, ATypeOfOnesOwnIsOneSpecialisation) {
  const auto painted = DecodeText<Painted>(R"({"colours":["red","green"]})", kLenient);
  ASSERT_TRUE(painted.ok());
  EXPECT_EQ(EncodeText(*painted), R"({"colours":["red","green"]})");
  EXPECT_EQ(DecodeText<Painted>(R"({"colours":["red","blue"]})", kLenient).error().message(),
            "bad value for field colours[1]: expected red or green");
}

}  // namespace
}  // namespace interlock::json
