#include "api/plan_codec.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "json/codec.h"
#include "json/member.h"
#include "json/schema.h"

namespace interlock::domain {
IL_JSON_FIELDS(PlanStep, order, action, expected, alternatives)
}  // namespace interlock::domain

namespace interlock::api {
namespace {

using domain::InfoOf;
using domain::PlanField;
using domain::PlanInfo;
using domain::PlanValue;
using json::Need;
using json::Value;

// As everywhere, but nothing is missing: a step may leave out what it does not need.
constexpr json::DecodeOptions kOptions = {.missing = json::Missing::kKeepDefault};

// Finds the members of one body.
class Members {
 public:
  Members(const Value& body, const PlanInfo& info) : object_(body.get_object()) {
    names_ = {"id", "project", "version", info.created_name, info.updated_name};
    for (const PlanField& field : info.fields) names_.push_back(field.name);
  }

  const Value* Find(std::string_view name) const {
    return json::FindMember(object_, name, names_, kOptions);
  }

  // Nothing when it is not there, or null.
  template <typename T>
  Result<std::optional<T>> Read(std::string_view name) const {
    const Value* const found = name.empty() ? nullptr : Find(name);
    if (found == nullptr || found->is_null()) return std::optional<T>();
    const json::Path path{.name = name};
    IL_TRY(T value, json::Codec<T>::Decode(*found, {kOptions, &path}));
    return std::optional<T>(std::move(value));
  }

 private:
  const json::Object& object_;
  std::vector<std::string_view> names_;
};

template <typename T>
Result<PlanValue> ReadAs(const Members& members, std::string_view name) {
  IL_TRY(std::optional<T> value, members.Read<T>(name));
  return PlanValue(std::move(value).value_or(T()));
}

Result<PlanValue> ReadField(const Members& members, const PlanField& field) {
  switch (field.type) {
    case PlanField::Type::kText:
      return ReadAs<std::string>(members, field.name);
    case PlanField::Type::kTexts:
      return ReadAs<std::vector<std::string>>(members, field.name);
    case PlanField::Type::kNumber:
      return ReadAs<double>(members, field.name);
    case PlanField::Type::kSteps:
      return ReadAs<std::vector<domain::PlanStep>>(members, field.name);
  }
  IL_CHECK(false);
}

Value StepsSchema() {
  const Value text = json::StringSchema();
  return json::ArraySchema(
      json::ObjectSchema({{"order", json::SchemaOf<std::int64_t>()},
                          {"action", text},
                          {"expected", text},
                          {"alternatives", json::ArraySchema(text), Need::kOptional}}));
}

Value FieldSchema(const PlanField& field) {
  switch (field.type) {
    case PlanField::Type::kText: {
      Value schema = json::StringSchema();
      if (field.choices.empty()) return schema;
      json::Array choices;
      for (const std::string_view choice : field.choices) choices.push_back(json::String(choice));
      schema.get_object().emplace("enum", std::move(choices));
      return schema;
    }
    case PlanField::Type::kTexts:
      return json::ArraySchema(json::StringSchema());
    case PlanField::Type::kNumber:
      return json::NumberSchema();
    case PlanField::Type::kSteps:
      return StepsSchema();
  }
  IL_CHECK(false);
}

Value Times(Value schema, const PlanInfo& info, Need need) {
  for (const std::string_view name : {info.created_name, info.updated_name}) {
    if (name.empty()) continue;
    schema = json::WithMember(std::move(schema), {name, json::TimeSchema(), need});
  }
  return schema;
}

bool IsRequired(const PlanField& field) { return field.need == PlanField::Need::kRequired; }

bool IsStatus(const PlanField& field) { return field.name == "status"; }

bool IsEmptyText(const PlanValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text != nullptr && text->empty();
}

// The value that the body gives the field; nothing = the field stays as it is.
Result<std::optional<PlanValue>> ReadChange(const Members& members, const PlanField& field,
                                            PlanBody as) {
  const Value* const found = members.Find(field.name);
  if (as == PlanBody::kPatch && found == nullptr) return std::optional<PlanValue>();
  const bool absent = found == nullptr || found->is_null();
  if (as == PlanBody::kWhole && absent && (IsRequired(field) || IsStatus(field))) {
    return std::optional<PlanValue>();
  }
  IL_TRY(PlanValue value, ReadField(members, field));
  if (as == PlanBody::kWhole && IsStatus(field) && IsEmptyText(value)) {
    return std::optional<PlanValue>();
  }
  return std::optional<PlanValue>(std::move(value));
}

}  // namespace

Result<domain::PlanChange> DecodePlan(domain::PlanKind kind, const Value& body, PlanBody as) {
  const PlanInfo& info = InfoOf(kind);
  const Members members(body, info);
  domain::PlanChange change;
  IL_TRY(const std::optional<std::int64_t> version, members.Read<std::int64_t>("version"));
  change.version = version.value_or(0);
  IL_TRY(change.created_at, members.Read<Timestamp>(info.created_name));
  IL_TRY(change.updated_at, members.Read<Timestamp>(info.updated_name));
  for (const PlanField& field : info.fields) {
    IL_TRY(std::optional<PlanValue> value, ReadChange(members, field, as));
    if (value) change.values.emplace(field.name, *std::move(value));
  }
  return change;
}

Value PlanSchema(domain::PlanKind kind) {
  const PlanInfo& info = InfoOf(kind);
  Value schema =
      json::ObjectSchema({{"id", json::StringSchema()}, {"project", json::StringSchema()}});
  for (const PlanField& field : info.fields) {
    const bool always = field.need != PlanField::Need::kOptional;
    schema = json::WithMember(std::move(schema), {field.name, FieldSchema(field),
                                                  always ? Need::kRequired : Need::kOptional});
  }
  if (info.locking == PlanInfo::Locking::kVersion) {
    schema = json::WithMember(std::move(schema), {"version", json::IntegerSchema(1)});
  }
  return Times(std::move(schema), info, Need::kRequired);
}

Value NewPlanSchema(domain::PlanKind kind) {
  const PlanInfo& info = InfoOf(kind);
  Value schema = json::ObjectSchema({{"id", json::StringSchema(), Need::kOptional},
                                     {"project", json::StringSchema(), Need::kOptional}});
  for (const PlanField& field : info.fields) {
    Value one = FieldSchema(field);
    if (!IsRequired(field)) one = json::NullableSchema(std::move(one));
    schema = json::WithMember(
        std::move(schema),
        {field.name, std::move(one), IsRequired(field) ? Need::kRequired : Need::kOptional});
  }
  if (info.locking == PlanInfo::Locking::kVersion) {
    schema =
        json::WithMember(std::move(schema), {"version", json::IntegerSchema(), Need::kOptional});
  }
  return Times(std::move(schema), info, Need::kOptional);
}

Value PlanChangeSchema(domain::PlanKind kind, PlanBody as) {
  const PlanInfo& info = InfoOf(kind);
  // The path names the plan; clients send its id and its times with the rest of it.
  Value schema = json::ObjectSchema({{"id", json::StringSchema(), Need::kOptional},
                                     {"project", json::StringSchema(), Need::kOptional}});
  if (info.locking == PlanInfo::Locking::kVersion) {
    schema = json::WithMember(std::move(schema), {"version", json::IntegerSchema(1)});
  }
  for (const PlanField& field : info.fields) {
    Value one = FieldSchema(field);
    const bool nullable = as == PlanBody::kWhole || !IsRequired(field);
    if (nullable) one = json::NullableSchema(std::move(one));
    schema = json::WithMember(std::move(schema), {field.name, std::move(one), Need::kOptional});
  }
  return Times(std::move(schema), info, Need::kOptional);
}

}  // namespace interlock::api
