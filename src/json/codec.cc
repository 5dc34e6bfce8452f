#include "json/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/time_text.h"
#include "base/utf8.h"

namespace interlock::json {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::ranges::equal(a, b, {}, Lower, Lower);
}

std::string_view KeyOf(const Object::value_type& member) {
  return {member.key().data(), member.key().size()};
}

// A key of the client's, cut between two characters so that no message grows with it.
std::string Shown(std::string_view name) {
  constexpr std::size_t kShownMax = 64;
  if (name.size() <= kShownMax) return std::string(name);
  std::size_t size = 0;
  while (size < kShownMax) size += FirstUtf8Unit(name.substr(size)).size;
  return fmt::format("{}…", name.substr(0, size));
}

Error AtField(const DecodeContext& at, std::string message) {
  Error error(Errc::kInvalidArgument, std::move(message));
  if (at.path == nullptr) return error;
  return std::move(error).WithDetail("field", at.path->Text());
}

// "" for the document itself, else " for field x".
std::string ForField(const DecodeContext& at) {
  return at.path == nullptr ? "" : fmt::format(" for field {}", at.path->Text());
}

// 5.0 and 5e0 are the integer 5. From 2^53 on a double can stand for several integers, so a number
// that large must be written in digits alone.
Result<std::int64_t> IntegerOf(const DecodeContext& at, double number) {
  constexpr double kTwoTo53 = 9007199254740992.0;
  constexpr double kTwoTo63 = 9223372036854775808.0;
  const double size = std::abs(number);
  const bool whole = std::trunc(number) == number;
  if (whole && size < kTwoTo53) return static_cast<std::int64_t>(number);
  std::string_view kind = "that is too large for a fraction or exponent";
  if (!whole) kind = "with a fraction";
  if (size >= kTwoTo63) kind = "beyond 64 bits";
  return AtField(at,
                 fmt::format("wrong type{}: expected integer, got number {}", ForField(at), kind));
}

template <typename Low, typename High, typename Got>
Error OutOfRange(const DecodeContext& at, Low low, High high, Got got) {
  return BadValue(at, fmt::format("{} is not between {} and {}", got, low, high));
}

}  // namespace

std::string Path::Text() const {
  const std::string before = parent == nullptr ? "" : parent->Text();
  if (name.data() == nullptr) return fmt::format("{}[{}]", before, index);
  return before.empty() ? Shown(name) : fmt::format("{}.{}", before, Shown(name));
}

Error WrongType(const DecodeContext& at, std::string_view expected, const Value& got) {
  return AtField(
      at, fmt::format("wrong type{}: expected {}, got {}", ForField(at), expected, KindName(got)));
}

Error BadValue(const DecodeContext& at, std::string_view reason) {
  return AtField(at, fmt::format("bad value{}: {}", ForField(at), reason));
}

Result<bool> Codec<bool>::Decode(const Value& value, const DecodeContext& at) {
  if (!value.is_bool()) return WrongType(at, "boolean", value);
  return value.get_bool();
}

Result<double> Codec<double>::Decode(const Value& value, const DecodeContext& at) {
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  if (!value.is_double()) return WrongType(at, "number", value);
  return value.get_double();
}

Result<std::string> Codec<std::string>::Decode(const Value& value, const DecodeContext& at) {
  if (!value.is_string()) return WrongType(at, "string", value);
  return std::string(View(value.get_string()));
}

Value Codec<std::string>::Encode(std::string_view value) { return String(value); }

Result<Timestamp> Codec<Timestamp>::Decode(const Value& value, const DecodeContext& at) {
  IL_TRY(const std::string text, Codec<std::string>::Decode(value, at));
  Result<Timestamp> time = ParseRfc3339(text);
  if (!time.ok()) return BadValue(at, time.error().message());
  return time;
}

Value Codec<Timestamp>::Encode(Timestamp value) { return String(FormatRfc3339(value)); }

namespace internal {

Result<std::int64_t> DecodeSigned(const Value& value, std::int64_t low, std::int64_t high,
                                  const DecodeContext& at) {
  if (value.is_uint64()) return OutOfRange(at, low, high, value.get_uint64());
  if (!value.is_int64() && !value.is_double()) return WrongType(at, "integer", value);
  std::int64_t n = 0;
  if (value.is_double()) {
    IL_TRY(n, IntegerOf(at, value.get_double()));
  } else {
    n = value.get_int64();
  }
  if (n < low || n > high) return OutOfRange(at, low, high, n);
  return n;
}

Result<std::uint64_t> DecodeUnsigned(const Value& value, std::uint64_t high,
                                     const DecodeContext& at) {
  std::uint64_t n = 0;
  if (value.is_uint64()) {
    n = value.get_uint64();
  } else {
    constexpr auto kSignedMax = std::numeric_limits<std::int64_t>::max();
    IL_TRY(const std::int64_t number, DecodeSigned(value, -kSignedMax - 1, kSignedMax, at));
    if (number < 0) return OutOfRange(at, 0, high, number);
    n = static_cast<std::uint64_t>(number);
  }
  if (n > high) return OutOfRange(at, 0, high, n);
  return n;
}

const Value* FindMember(const Object& object, std::string_view name,
                        std::span<const std::string_view> names, const DecodeOptions& options) {
  if (const Value* exact = object.if_contains(name)) return exact;
  if (options.names == Names::kExact) return nullptr;
  const Value* found = nullptr;
  for (const auto& member : object) {
    const std::string_view key = KeyOf(member);
    if (!EqualIgnoringCase(key, name) || std::ranges::find(names, key) != names.end()) continue;
    found = &member.value();  // the last one counts, as with duplicate keys
  }
  return found;
}

Result<void> RefuseUnknown(const Object& object, std::span<const std::string_view> names,
                           const DecodeContext& at) {
  if (at.options.unknown_fields == UnknownFields::kIgnore) return {};
  for (const auto& member : object) {
    const std::string_view key = KeyOf(member);
    const bool known = std::ranges::any_of(names, [&](std::string_view name) {
      return at.options.names == Names::kExact ? key == name : EqualIgnoringCase(key, name);
    });
    if (known) continue;
    const Path path{.parent = at.path, .name = key};
    return AtField({at.options, &path}, fmt::format("unknown field {}", path.Text()));
  }
  return {};
}

Error MissingField(const DecodeContext& at) {
  return AtField(at, fmt::format("missing field {}", at.path->Text()));
}

}  // namespace internal
}  // namespace interlock::json
