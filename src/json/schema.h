#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "json/codec.h"
#include "json/value.h"

// What a JSON text may look like, as JSON Schema (2020-12). Of a described struct it is derived:
//
//   json::SchemaOf<Reply>()   // {"type":"object","properties":{"id":…},"required":["id"]}
//
// and of an answer that is written by hand it is put together from the parts below:
//
//   json::ObjectSchema({{"message_id", json::StringSchema()},
//                       {"denied", json::ArraySchema(json::StringSchema()),
//                       json::Need::kOptional}})
//
// An object may hold more members than its schema names: who reads ours must not break when we add
// one. Structs in structs stand inline; none may hold itself.
//
// Include it in .cc files, as json/codec.h. Stateless, so safe from any thread.
namespace interlock::json {

enum class Need : std::uint8_t { kRequired, kOptional };

struct SchemaMember {
  std::string_view name;
  Value schema;
  Need need = Need::kRequired;
};

Value AnySchema();
Value StringSchema();
Value EnumSchema(std::initializer_list<std::string_view> values);  // one of these strings
Value TimeSchema();                                                // RFC 3339
Value BooleanSchema();
Value NumberSchema();
// Whole numbers in a range; without arguments what a cursor or a count can be, 0 to 2^63 - 1.
Value IntegerSchema(std::int64_t low = 0,
                    std::uint64_t high = std::numeric_limits<std::int64_t>::max());
Value ArraySchema(Value items);
Value MapSchema(Value values);  // an object of any names
Value NullableSchema(Value schema);
Value ObjectSchema(std::initializer_list<SchemaMember> members);

// `member` added to an object schema, at the end: for an answer that is a struct and a little more.
Value WithMember(Value object_schema, SchemaMember member);

// The schema of one type; specialise it together with Codec.
template <typename T>
struct SchemaFor;

// The schema of T. `missing` as it is given to the codec: with kKeepDefault nothing is required.
template <typename T, Missing missing = Missing::kRefuse>
Value SchemaOf() {
  return SchemaFor<T>::Make(missing);
}

}  // namespace interlock::json

#include "json/schema_impl.h"  // IWYU pragma: export
