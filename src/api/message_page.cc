#include "api/message_page.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "api/request.h"
#include "base/limits.h"
#include "base/time_text.h"
#include "json/slice.h"
#include "json/write.h"

namespace interlock::api {
namespace {

void AppendNumber(std::string& out, std::int64_t number) {
  std::array<char, 24> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  out.append(buffer.data(), end);
}

// `key` comes with its quotes, its colon, and the comma before it.
void AppendText(std::string& out, std::string_view key, std::string_view text) {
  out += key;
  json::AppendQuoted(out, text);
}

void AppendUnlessEmpty(std::string& out, std::string_view key, std::string_view text) {
  if (!text.empty()) AppendText(out, key, text);
}

void AppendTime(std::string& out, std::string_view key, Timestamp time) {
  out += key;
  out += '"';
  AppendRfc3339(out, time);
  out += '"';
}

// Seconds since then. A clock that was set back makes nobody younger than now.
std::int64_t AgeSeconds(Timestamp created_at, Timestamp now) {
  const Duration age = std::max(now - created_at, Duration(0));
  return std::chrono::duration_cast<std::chrono::seconds>(age).count();
}

}  // namespace

MessagePage::MessagePage(Options options) : options_(std::move(options)) { Restart(); }

void MessagePage::Restart() {
  text_.clear();
  text_.append("{").append(options_.head).append(R"("messages":[)");
  start_ = text_.size();
  count_ = 0;
  last_cursor_.reset();
  more_ = false;
}

domain::Flow MessagePage::Add(const domain::MessageView& message) {
  if (count_ == options_.messages_max) {
    more_ = true;
    return domain::Flow::kEnough;
  }
  if (count_ == 0) MakeRoom();
  const std::size_t before = text_.size();
  if (count_ > 0) text_ += ',';
  Append(message);
  const auto bytes = static_cast<std::int64_t>(text_.size() - start_);
  if (count_ > 0 && options_.bytes_max > 0 && bytes > options_.bytes_max) {
    text_.resize(before);
    more_ = true;
    return domain::Flow::kEnough;
  }
  ++count_;
  last_cursor_ = message.cursor;
  return domain::Flow::kGoOn;
}

// For messages of usual size, below the size from which malloc() gives memory back at once.
void MessagePage::MakeRoom() {
  constexpr std::int64_t kUsualBytes = 768;
  constexpr std::int64_t kRoomMax = 60'000;
  text_.reserve(static_cast<std::size_t>(
      std::min(kRoomMax, std::min(options_.messages_max, kRoomMax) * kUsualBytes)));
}

void MessagePage::Append(const domain::MessageView& message) {
  AppendText(text_, R"({"id":)", message.id);
  AppendText(text_, R"(,"thread_id":)", message.thread_id);
  AppendText(text_, R"(,"project":)", message.project);
  AppendText(text_, R"(,"from":)", message.sender);
  text_ += R"(,"to":)";
  text_ += message.to.empty() ? "[]" : message.to;
  if (options_.shape == Shape::kFull) {
    AppendFull(message);
  } else {
    AppendStaleAck(message);
  }
  text_ += '}';
}

void MessagePage::AppendFull(const domain::MessageView& message) {
  if (!message.cc.empty()) text_.append(R"(,"cc":)").append(message.cc);
  AppendBcc(message);
  AppendUnlessEmpty(text_, R"(,"subject":)", message.subject);
  AppendUnlessEmpty(text_, R"(,"topic":)", message.topic);
  AppendText(text_, R"(,"body":)", message.body);
  AppendUnlessEmpty(text_, R"(,"importance":)", message.importance);
  if (message.ack_required) text_ += R"(,"ack_required":true)";
  AppendTime(text_, R"(,"created_at":)", message.created_at);
  text_ += R"(,"cursor":)";
  AppendNumber(text_, message.cursor);
}

void MessagePage::AppendStaleAck(const domain::MessageView& message) {
  AppendUnlessEmpty(text_, R"(,"subject":)", message.subject);
  AppendText(text_, R"(,"body":)", message.body);
  AppendTime(text_, R"(,"created_at":)", message.created_at);
  AppendText(text_, R"(,"kind":)", Name(message.kind.value_or(domain::AddressKind::kTo)));
  if (message.read_at) {
    AppendTime(text_, R"(,"read_at":)", *message.read_at);
  } else {
    text_ += R"(,"read_at":null)";
  }
  text_ += R"(,"age_seconds":)";
  AppendNumber(text_, AgeSeconds(message.created_at, options_.now));
}

void MessagePage::AppendBcc(const domain::MessageView& message) {
  const std::string_view recipient = message.recipient;
  const std::string_view viewing = recipient.empty() ? options_.viewer : recipient;
  if (message.bcc.empty() || viewing.empty()) return;
  if (viewing == message.sender) {
    text_.append(R"(,"bcc":)").append(message.bcc);
    return;
  }
  std::string viewer;
  json::AppendQuoted(viewer, viewing);
  const std::vector<std::string_view> hidden = json::RawElements(message.bcc);
  if (std::ranges::find(hidden, viewer) == hidden.end()) return;
  text_.append(R"(,"bcc":[)").append(viewer).append("]");
}

std::string MessagePage::TakeAnswer(domain::Cursor asked) {
  text_ += R"(],"cursor":)";
  AppendNumber(text_, last_cursor_.value_or(asked));
  if (more_) text_ += R"(,"more":true)";
  text_ += '}';
  std::string answer = std::move(text_);
  Restart();
  return answer;
}

std::int64_t LimitFrom(const Request& request, std::int64_t otherwise, std::int64_t max) {
  const std::int64_t limit = request.QueryInt("limit", otherwise);
  return limit == 0 ? otherwise : std::min(limit, max);
}

std::int64_t BytesMaxFrom(const Request& request) {
  constexpr auto kMax = static_cast<std::int64_t>(Limits().page_bytes_max);
  const std::int64_t bytes = request.QueryInt("max_bytes", kMax);
  return bytes == 0 ? kMax : std::min(bytes, kMax);
}

}  // namespace interlock::api
