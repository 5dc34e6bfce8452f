// Any bytes: whatever parses keeps the limits, and must write and read back as the same value, in
// every layout, as valid UTF-8; whatever does not must be refused with a position inside the text.
// Reading without making a value refuses the same texts. The members of what we wrote are found as
// text as they are as values. A described struct that was read is the same when written and read
// again, and one that was not is refused with a field. The first byte picks the options, so that
// small limits are met often.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "json/codec.h"
#include "json/parse.h"
#include "json/slice.h"
#include "json/value.h"
#include "json/write.h"
#include "targets.h"

namespace interlock::fuzz {

using namespace json;  // NOLINT(google-build-using-namespace): all of it is the subject

namespace {

// One field of every sort that a codec knows. The names are short, so that the fuzzer finds them.
struct Inner {
  std::string s;
  std::optional<std::int8_t> i;
  bool operator==(const Inner&) const = default;
};
IL_JSON_FIELDS(Inner, s, i)

struct Outer {
  std::optional<bool> b;
  std::optional<std::int64_t> n;
  std::optional<std::uint32_t> u;
  std::optional<double> d;
  std::optional<std::string> s;
  std::optional<Timestamp> t;
  Field<std::string> f;
  std::optional<Inner> o;
  std::optional<std::vector<Inner>> a;
  std::optional<std::map<std::string, std::int64_t>> m;
  std::optional<Value> v;
  bool operator==(const Outer&) const = default;
};
IL_JSON_FIELDS(Outer, b, n, u, d, s, t, f, o, a, m, v)

ParseOptions PickOptions(std::uint8_t pick) {
  ParseOptions options;
  if ((pick & 1U) != 0) options.trailing = Trailing::kIgnore;
  if ((pick & 2U) != 0) options.big_integers = BigIntegers::kRefuse;
  if ((pick & 4U) != 0) options.limits.depth_max = 3;
  if ((pick & 8U) != 0) options.limits.string_bytes_max = 8;
  if ((pick & 16U) != 0) options.limits.key_bytes_max = 4;
  if ((pick & 32U) != 0) options.limits.elements_max = 4;
  if ((pick & 64U) != 0) options.limits.members_max = 3;
  if ((pick & 128U) != 0) options.limits.bytes_max = 64;
  return options;
}

void CheckRefusal(const Error& error, std::string_view text) {
  IL_CHECK(error.code() == Errc::kBadJson);
  IL_CHECK(error.details().size() == 2);
  const auto line = std::get<std::int64_t>(error.details()[0].second);
  const auto column = std::get<std::int64_t>(error.details()[1].second);
  IL_CHECK(line >= 1 && column >= 1);
  IL_CHECK(static_cast<std::size_t>(line + column) <= text.size() + 2);
  IL_CHECK(IsUtf8(error.message()));
}

void CheckLimits(const Value& value, const Limits& limits, std::size_t depth) {
  if (value.is_string()) {
    IL_CHECK(value.get_string().size() <= limits.string_bytes_max);
    IL_CHECK(IsUtf8(View(value.get_string())));
  } else if (value.is_array()) {
    IL_CHECK(depth < limits.depth_max && value.get_array().size() <= limits.elements_max);
    for (const Value& element : value.get_array()) CheckLimits(element, limits, depth + 1);
  } else if (value.is_object()) {
    IL_CHECK(depth < limits.depth_max && value.get_object().size() <= limits.members_max);
    for (const auto& member : value.get_object()) {
      IL_CHECK(member.key().size() <= limits.key_bytes_max);
      CheckLimits(member.value(), limits, depth + 1);
    }
  }
}

void CheckScan(std::string_view text, const ParseOptions& options, const Result<Value>& parsed) {
  std::size_t strings = 0;
  const Result<void> scanned = Scan(text, options, [&](std::string_view string) -> Result<void> {
    ++strings;
    IL_CHECK(IsUtf8(string) && string.size() <= options.limits.string_bytes_max);
    return {};
  });
  IL_CHECK(scanned.ok() == parsed.ok());
  if (!scanned.ok()) IL_CHECK(scanned.error().message() == parsed.error().message());
  if (parsed.ok() && parsed->is_string()) IL_CHECK(strings == 1);
}

void CheckRoundTrip(const Value& value, const ParseOptions& options, const WriteOptions& layout) {
  const std::string text = Write(value, layout);
  IL_CHECK(IsUtf8(text));
  ParseOptions again = options;
  again.trailing = Trailing::kRefuse;
  again.limits.bytes_max = text.size();  // an escape or an indent may be longer than what was read
  const Result<Value> back = Parse(text, again);
  IL_CHECK(back.ok(), text);
  IL_CHECK(*back == value, text);
  IL_CHECK(Write(*back, layout) == text, text);
}

// Of text that we wrote, parts are found without reading it.
void CheckSlices(const Value& value) {
  const std::string text = Write(value);
  const ParseOptions whole{.limits = {.depth_max = 1024}};
  if (value.is_array()) {
    const std::vector<std::string_view> elements = RawElements(text);
    IL_CHECK(elements.size() == value.get_array().size(), text);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      IL_CHECK(Parse(elements[i], whole).value() == value.get_array()[i], text);
    }
  }
  if (!value.is_object()) return;
  const std::array<std::string_view, 4> keys = {"s", "a", "o", "none"};
  const auto found = RawMembers(text, keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Value* const member = value.get_object().if_contains(keys[i]);
    IL_CHECK(found[i].empty() == (member == nullptr), text);
    if (member != nullptr) IL_CHECK(Parse(found[i], whole).value() == *member, text);
  }
}

void CheckCodec(const Value& value, const DecodeOptions& options) {
  const Result<Outer> decoded = Decode<Outer>(value, options);
  if (!decoded.ok()) {
    IL_CHECK(decoded.error().code() == Errc::kInvalidArgument);
    IL_CHECK(IsUtf8(decoded.error().message()));
    IL_CHECK(decoded.error().message().size() < 1024, decoded.error().message());
    IL_CHECK(!value.is_object() || !decoded.error().details().empty());
    return;
  }
  const Value encoded = Encode(*decoded);
  const Result<Outer> again = Decode<Outer>(encoded, kStrict.decode);
  // A map may hold nulls that the lenient reading left out, and a value null itself.
  IL_CHECK(again.ok() || decoded->v.has_value(), Write(encoded));
  if (again.ok()) IL_CHECK(*again == *decoded, Write(encoded));
}

}  // namespace

void FuzzJson(std::string_view input) {
  if (input.empty()) return;
  const std::string_view text = input.substr(1);
  const ParseOptions options = PickOptions(static_cast<std::uint8_t>(input[0]));
  const Result<Value> value = Parse(text, options);
  CheckScan(text, options, value);
  if (!value.ok()) return CheckRefusal(value.error(), text);
  CheckLimits(*value, options.limits, 0);
  for (const Layout layout : {Layout::kCompact, Layout::kPretty}) {
    for (const KeyOrder order : {KeyOrder::kAsAdded, KeyOrder::kSorted}) {
      CheckRoundTrip(*value, options, {.layout = layout, .key_order = order});
    }
  }
  CheckSlices(*value);
  CheckCodec(*value, kLenient.decode);
  CheckCodec(*value, kStrict.decode);
}

}  // namespace interlock::fuzz

IL_FUZZ_ENTRY(FuzzJson);
