#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/members.hpp>
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "json/field.h"
#include "json/parse.h"
#include "json/value.h"
#include "json/write.h"

// Structs to JSON and back. A struct names its fields once, in its own namespace:
//
//   struct Reply {
//     std::string id;                   // required
//     std::optional<std::int64_t> ttl;  // may be absent; not written when empty
//     json::Field<std::string> note;    // absent, null and sent are told apart
//   };
//   IL_JSON_FIELDS(Reply, id, ttl, note)
//
//   IL_TRY(const Reply reply, json::DecodeText<Reply>(body, json::kLenient));
//   const std::string text = json::EncodeText(reply);
//
// A field may be bool, an integer type, double, std::string, Timestamp (RFC 3339), Value (anything,
// kept as it came), a described struct, or an optional, Field, vector or map<string, …> of these;
// for other types specialise Codec. The JSON name is the member's, less one underscore at its end
// (`class_` is "class"). Fields are written in the order of IL_JSON_FIELDS.
//
// Heavy to compile: include it in .cc files. Stateless, so safe from any thread.
namespace interlock::json {

enum class UnknownFields : std::uint8_t { kIgnore, kRefuse };
enum class Nulls : std::uint8_t {
  kAsAbsent,  // a member that is null counts as not sent
  kRefuse,    // null is a wrong type
};
enum class Names : std::uint8_t {
  kIgnoreCase,  // when no member has the exact name, one that differs in ASCII case will do
  kExact,
};
enum class Missing : std::uint8_t {
  kRefuse,       // a field that is neither optional nor Field must be sent
  kKeepDefault,  // … keeps the value that its struct gives it
};

struct DecodeOptions {
  UnknownFields unknown_fields = UnknownFields::kIgnore;
  Nulls nulls = Nulls::kAsAbsent;
  Names names = Names::kIgnoreCase;
  Missing missing = Missing::kRefuse;
};

struct TextOptions {
  ParseOptions parse = {};
  DecodeOptions decode = {};
};

// What clients of the HTTP interface may count on.
inline constexpr TextOptions kLenient = {.parse = {.trailing = Trailing::kIgnore}, .decode = {}};
// For files and data of our own.
inline constexpr TextOptions kStrict = {
    .parse = {.trailing = Trailing::kRefuse, .big_integers = BigIntegers::kRefuse},
    .decode = {
        .unknown_fields = UnknownFields::kRefuse, .nulls = Nulls::kRefuse, .names = Names::kExact}};

// Where in the document we are, as a list on the stack from the innermost place outwards.
struct Path {
  const Path* parent = nullptr;
  std::string_view name = {};  // of a member; a null view: `index` of an array instead
  std::size_t index = 0;

  std::string Text() const;  // "items[2].name"; empty for the whole document
};

struct DecodeContext {
  const DecodeOptions& options;
  const Path* path;  // nullptr: the whole document
};

// kInvalidArgument with the detail `field`:
// "wrong type for field items[2].name: expected string, got number".
Error WrongType(const DecodeContext& at, std::string_view expected, const Value& got);
// "bad value for field x: <reason>"
Error BadValue(const DecodeContext& at, std::string_view reason);

// How one type is read and written. A specialisation has
//   static Result<T> Decode(const Value& value, const DecodeContext& at);
//   static Value Encode(const T& value);
template <typename T>
struct Codec;

template <typename T>
Result<T> Decode(const Value& value, const DecodeOptions& options = {}) {
  return Codec<T>::Decode(value, DecodeContext{options, nullptr});
}

template <typename T>
Result<T> DecodeText(std::string_view text, const TextOptions& options) {
  IL_TRY(const Value value, Parse(text, options.parse));
  return Decode<T>(value, options.decode);
}

template <typename T>
Value Encode(const T& value) {
  return Codec<T>::Encode(value);
}

template <typename T>
std::string EncodeText(const T& value, const WriteOptions& options = {}) {
  return Write(Codec<T>::Encode(value), options);
}

}  // namespace interlock::json

// Names the fields of a struct, all of them public. At most 50; none is fine too.
#define IL_JSON_FIELDS(Type, ...) BOOST_DESCRIBE_STRUCT(Type, (), (__VA_ARGS__))

#include "json/codec_impl.h"  // IWYU pragma: export
