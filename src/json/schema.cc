#include "json/schema.h"

namespace interlock::json {
namespace {

Value OfType(std::string_view type) {
  Object schema;
  schema.emplace("type", String(type));
  return schema;
}

Array Strings(std::initializer_list<std::string_view> texts) {
  Array array;
  array.reserve(texts.size());
  for (const std::string_view text : texts) array.push_back(String(text));
  return array;
}

}  // namespace

Value AnySchema() { return Object(); }
Value StringSchema() { return OfType("string"); }
Value BooleanSchema() { return OfType("boolean"); }
Value NumberSchema() { return OfType("number"); }

Value EnumSchema(std::initializer_list<std::string_view> values) {
  Value schema = OfType("string");
  schema.get_object().emplace("enum", Strings(values));
  return schema;
}

Value TimeSchema() {
  Value schema = OfType("string");
  schema.get_object().emplace("format", "date-time");
  return schema;
}

Value IntegerSchema(std::int64_t low, std::uint64_t high) {
  Value schema = OfType("integer");
  schema.get_object().emplace("minimum", low);
  schema.get_object().emplace("maximum", high);
  return schema;
}

Value ArraySchema(Value items) {
  Value schema = OfType("array");
  schema.get_object().emplace("items", std::move(items));
  return schema;
}

Value MapSchema(Value values) {
  Value schema = OfType("object");
  schema.get_object().emplace("additionalProperties", std::move(values));
  return schema;
}

Value NullableSchema(Value schema) {
  if (schema.get_object().empty()) return schema;  // anything: null too
  Array choices;
  choices.push_back(std::move(schema));
  choices.push_back(OfType("null"));
  Object either;
  either.emplace("anyOf", std::move(choices));
  return either;
}

Value WithMember(Value object_schema, SchemaMember member) {
  Object& object = object_schema.get_object();
  object.at("properties").get_object().insert_or_assign(member.name, std::move(member.schema));
  if (member.need == Need::kOptional) return object_schema;
  Value& required = object["required"];
  if (!required.is_array()) required.emplace_array();
  required.get_array().push_back(String(member.name));
  return object_schema;
}

Value ObjectSchema(std::initializer_list<SchemaMember> members) {
  Value schema = OfType("object");
  schema.get_object().emplace("properties", Object());
  for (const SchemaMember& member : members) schema = WithMember(std::move(schema), member);
  return schema;
}

}  // namespace interlock::json
