#include "events/frame.h"

#include "base/time_text.h"
#include "json/parse.h"
#include "json/value.h"
#include "json/write.h"

namespace interlock::events {
namespace {

void AppendField(std::string& out, std::string_view key, std::string_view text) {
  out.append(",\"").append(key).append("\":");
  json::AppendQuoted(out, text);
}

// Adds the top-level fields that older clients read.
void AppendExpired(std::string& out, const domain::Event& event) {
  AppendField(out, "reservation_id", event.entity_id);
  AppendField(out, "agent_id", event.agent.value_or(""));
  const auto data = json::Parse(event.data);
  if (!data.ok() || !data->is_object()) return;
  const json::Value* const pattern = data->get_object().if_contains("path_pattern");
  if (pattern == nullptr || !pattern->is_string()) return;
  AppendField(out, "path_pattern", json::View(pattern->get_string()));
}

}  // namespace

const Frame& FrameMaker::Logged() {
  if (logged_ == nullptr) logged_ = Make(event_.agent);
  return logged_;
}

const Frame& FrameMaker::For(const std::string& agent) {
  if (addressee_ != agent) {
    addressed_ = Make(agent);
    addressee_ = agent;
  }
  return addressed_;
}

void FrameMaker::MakeParts() {
  if (!head_.empty()) return;
  head_ = event_.cursor == 0 ? "{" : "{\"cursor\":" + std::to_string(event_.cursor) + ",";
  head_ += "\"type\":";
  json::AppendQuoted(head_, event_.type);
  AppendField(head_, "project", event_.project);
  AppendField(head_, "entity_id", event_.entity_id);
  AppendField(short_tail_, "created_at", FormatRfc3339(event_.created_at));
  if (event_.type.starts_with("message.")) AppendField(short_tail_, "message_id", event_.entity_id);
  if (event_.type == domain::event_type::kReservationExpired) AppendExpired(short_tail_, event_);
  tail_ = short_tail_ + ",\"data\":" + (event_.data.empty() ? "null" : event_.data) + "}";
  short_tail_ += ",\"truncated\":true}";
}

Frame FrameMaker::Make(const std::optional<std::string>& agent) {
  MakeParts();
  std::string text = head_;
  if (agent) AppendField(text, "agent", *agent);
  text += text.size() + tail_.size() <= kFrameBytesMax ? tail_ : short_tail_;
  return std::make_shared<const std::string>(std::move(text));
}

}  // namespace interlock::events
