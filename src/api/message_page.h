#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "domain/mailbox.h"

namespace interlock::api {

struct Request;

// Writes a page of messages as a JSON array, straight from the rows: every list of messages in the
// API is one of these. For one thread at a time.
//
// Who sees which bcc address is decided here: the sender all of them, a bcc recipient its own,
// everybody else none.
class MessagePage final : public domain::MessageSink {
 public:
  // Which fields a message has; besides those of all, id, thread_id, project, from, to, body and
  // created_at. A field with a question mark is left out when it is empty or false.
  enum class Shape : std::uint8_t {
    kFull,      // cc?, bcc?, subject?, topic?, importance?, ack_required?, cursor
    kStaleAck,  // subject?, kind, read_at (null when unread), age_seconds
  };
  struct Options {
    Shape shape = Shape::kFull;
    std::string head = {};    // members before "messages" in the answer: `"thread_id":"t",`
    std::string viewer = {};  // the agent that reads; empty = nobody we know
    // Takes this many messages at most, and says that there are more when it is given another one.
    std::int64_t messages_max;
    // Of the array's text between its brackets; 0 = any. The first message is taken however large
    // it is, so that whoever follows the pages gets on.
    std::int64_t bytes_max = 0;
    Timestamp now = {};  // what age_seconds is reckoned from
  };

  explicit MessagePage(Options options);

  void Restart() override;
  domain::Flow Add(const domain::MessageView& message) override;

  // The array's elements with commas between them, without brackets.
  std::string_view text() const { return std::string_view(text_).substr(start_); }
  std::int64_t count() const { return count_; }
  // Of the last message; nothing when there is none.
  std::optional<domain::Cursor> last_cursor() const { return last_cursor_; }
  // There are messages that would have been on this page, but for its bounds.
  bool more() const { return more_; }

  // {head"messages":[…],"cursor":n} with "more":true when there are; `asked` is the cursor that the
  // client asked from. The page is written as a part of this text, which is handed over: it is not
  // copied, and the page is empty afterwards.
  std::string TakeAnswer(domain::Cursor asked);

 private:
  void MakeRoom();
  void Append(const domain::MessageView& message);
  void AppendFull(const domain::MessageView& message);
  void AppendStaleAck(const domain::MessageView& message);
  void AppendBcc(const domain::MessageView& message);

  const Options options_;
  std::string text_;   // the answer as far as it is known
  std::size_t start_;  // where the elements begin in it
  std::int64_t count_ = 0;
  std::optional<domain::Cursor> last_cursor_;
  bool more_ = false;
};

// `limit` of the query, at most `max`; `otherwise` when it is absent or 0.
std::int64_t LimitFrom(const Request& request, std::int64_t otherwise, std::int64_t max);
// `max_bytes` of the query, at most Limits::page_bytes_max; that, when it is absent or 0.
std::int64_t BytesMaxFrom(const Request& request);

}  // namespace interlock::api
