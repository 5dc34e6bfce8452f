// Any bytes: whatever parses must write and read back as the same value, in every layout, as valid
// UTF-8; whatever does not must be refused with a position inside the text. The first byte picks
// the options, so that small limits are met often.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "base/utf8.h"
#include "json/parse.h"
#include "json/value.h"
#include "json/write.h"

namespace interlock::json {
namespace {

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const ParseOptions options = PickOptions(data[0]);
  const Result<Value> value = Parse(text, options);
  if (!value.ok()) {
    CheckRefusal(value.error(), text);
    return 0;
  }
  for (const Layout layout : {Layout::kCompact, Layout::kPretty}) {
    for (const KeyOrder order : {KeyOrder::kAsAdded, KeyOrder::kSorted}) {
      CheckRoundTrip(*value, options, {.layout = layout, .key_order = order});
    }
  }
  return 0;
}

}  // namespace interlock::json
