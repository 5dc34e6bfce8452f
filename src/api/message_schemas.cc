#include "api/message_schemas.h"

#include "json/schema.h"

namespace interlock::api {
namespace {

using json::ArraySchema;
using json::BooleanSchema;
using json::IntegerSchema;
using json::Need;
using json::ObjectSchema;
using json::StringSchema;
using json::TimeSchema;

json::Value AgentsSchema() { return ArraySchema(StringSchema()); }

json::Value MessageSchema() {
  return ObjectSchema({
      {"id", StringSchema()},
      {"thread_id", StringSchema()},
      {"project", StringSchema()},
      {"from", StringSchema()},
      {"to", AgentsSchema()},
      {"cc", AgentsSchema(), Need::kOptional},
      {"bcc", AgentsSchema(), Need::kOptional},
      {"subject", StringSchema(), Need::kOptional},
      {"topic", StringSchema(), Need::kOptional},
      {"body", StringSchema()},
      {"importance", StringSchema(), Need::kOptional},
      {"ack_required", BooleanSchema(), Need::kOptional},
      {"created_at", TimeSchema()},
      {"cursor", IntegerSchema()},
  });
}

}  // namespace

json::Value MessagePageSchema() {
  return ObjectSchema({
      {"messages", ArraySchema(MessageSchema())},
      {"cursor", IntegerSchema()},
      {"more", BooleanSchema(), Need::kOptional},
  });
}

json::Value InboxCountsSchema() {
  return ObjectSchema({{"total", IntegerSchema()}, {"unread", IntegerSchema()}});
}

json::Value StaleAcksSchema() {
  json::Value message = ObjectSchema({
      {"id", StringSchema()},
      {"thread_id", StringSchema()},
      {"project", StringSchema()},
      {"from", StringSchema()},
      {"to", AgentsSchema()},
      {"subject", StringSchema(), Need::kOptional},
      {"body", StringSchema()},
      {"created_at", TimeSchema()},
      {"kind", json::EnumSchema({"to", "cc", "bcc"})},
      {"read_at", json::NullableSchema(TimeSchema())},
      {"age_seconds", IntegerSchema()},
  });
  return ObjectSchema({
      {"project", StringSchema()},
      {"agent", StringSchema()},
      {"ttl_seconds", IntegerSchema()},
      {"count", IntegerSchema()},
      {"messages", ArraySchema(std::move(message))},
      {"more", BooleanSchema(), Need::kOptional},
  });
}

json::Value ThreadSchema() {
  return ObjectSchema({
      {"thread_id", StringSchema()},
      {"messages", ArraySchema(MessageSchema())},
      {"cursor", IntegerSchema()},
      {"more", BooleanSchema(), Need::kOptional},
  });
}

json::Value ThreadListSchema() {
  json::Value thread = ObjectSchema({
      {"thread_id", StringSchema()},
      {"last_cursor", IntegerSchema()},
      {"message_count", IntegerSchema()},
      {"last_from", StringSchema()},
      {"last_body", StringSchema()},
      {"last_at", TimeSchema()},
  });
  return ObjectSchema({{"threads", ArraySchema(std::move(thread))}, {"cursor", IntegerSchema()}});
}

json::Value ReceiptBodySchema() {
  return ObjectSchema({{"agent", StringSchema(), Need::kOptional}});
}

}  // namespace interlock::api
