#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "domain/event.h"
#include "domain/message.h"

// What one asks of stored mail, and what comes back. Pages go by cursor: a page holds what stands
// after (threads of an agent: before) the cursor given, which itself is not in it, so whoever
// follows the cursors sees everything once.
namespace interlock::domain {

// One stored message as a page shows it. The texts are views that die when MessageSink::Add()
// returns; a page of mail is written to its answer without being copied in between.
struct MessageView {
  Cursor cursor = 0;
  std::string_view id = {};
  std::string_view project = {};
  std::string_view sender = {};
  std::string_view thread_id = {};  // empty = in no thread
  std::string_view topic = {};      // empty = none
  std::string_view subject = {};
  std::string_view body = {};
  std::string_view importance = {};
  bool ack_required = false;
  std::string_view to = {};  // each the text of a JSON array of agent ids; empty = none
  std::string_view cc = {};
  std::string_view bcc = {};
  Timestamp created_at = {};

  // Of the inbox that is read; nothing in threads and topics.
  std::string_view recipient = {};  // the address under which the message is there
  std::optional<AddressKind> kind = {};
  std::optional<Timestamp> read_at = {};
};

enum class Flow : std::uint8_t { kGoOn, kEnough };

// Takes a page of messages, one by one in their order. A read may be run again from the start, so
// it begins with Restart(). Used by one thread at a time; it is owned by who asked and by the read.
class MessageSink {
 public:
  virtual ~MessageSink() = default;

  virtual void Restart() = 0;
  // kEnough ends the read; what came before stays.
  virtual Flow Add(const MessageView& message) = 0;
};

// Hears of each message that is put into an inbox, inside the transaction that does it: that may
// yet fail, or be run again. Quick; any storage thread.
class DeliveryListener {
 public:
  virtual ~DeliveryListener() = default;

  virtual void Delivered(std::string_view project, std::string_view agent, Cursor cursor) = 0;
};

// Mail that was stored in a project under a name that nobody had then.
struct BareName {
  std::string project;
  std::string name;

  bool operator==(const BareName&) const = default;
};

// What came to an agent, however it was addressed.
struct InboxQuery {
  std::optional<std::string> project = {};  // nothing = every project
  std::string agent;
  Cursor after = 0;
  std::int64_t limit = 0;
  std::optional<BareName> also = {};  // if it is of the project, or of every one
};

// What a read that reached the end of an inbox has shown of it.
struct InboxEnd {
  Cursor last = 0;  // nothing stands in the inbox after it
  Cursor seen = 0;  // everything up to here was there to be read, in whichever inbox

  bool operator==(const InboxEnd&) const = default;
};

struct InboxCounts {
  std::int64_t total = 0;
  std::int64_t unread = 0;

  bool operator==(const InboxCounts&) const = default;
};

// What waits for an agent's acknowledgement, oldest first.
struct StaleAcksQuery {
  std::string project;
  std::string agent;
  std::optional<Timestamp> created_until = {};  // nothing = however young
  std::int64_t limit = 0;
  std::optional<BareName> also = {};
};

// The messages of one thread.
struct ThreadQuery {
  std::string project;
  std::string thread_id;
  Cursor after = 0;
  std::int64_t limit = 0;
};

// The messages of one topic.
struct TopicQuery {
  std::string project;
  std::string topic;  // as TopicName() makes it
  Cursor after = 0;
  std::int64_t limit = 0;
};

// The threads that an agent takes part in, newest first.
struct ThreadsQuery {
  std::string project;
  std::string agent;
  std::optional<std::string> or_name = {};  // threads under this name are the agent's, too
  std::optional<Cursor> before = {};        // nothing = from the newest
  std::int64_t limit = 0;
};

// A thread as one of its members sees it: of the messages that it sent or received there.
struct ThreadSummary {
  std::string thread_id;
  Cursor last_cursor = 0;
  std::int64_t message_count = 0;
  std::string last_from;
  std::string last_body;  // its beginning
  Timestamp last_at;

  bool operator==(const ThreadSummary&) const = default;
};

// A recipient says that it has read a message, or that it will see to it. Neither implies the
// other, and the first time of each stays.
enum class ReceiptKind : std::uint8_t { kRead, kAck };

struct Receipt {
  ReceiptKind kind;
  std::string project;
  std::string message_id;
  std::string agent;  // empty: the message's only recipient
  Timestamp at;
};

enum class ReceiptOutcome : std::uint8_t {
  kRecorded,
  kAlreadyThere,
  kNoSuchMessage,
  kNotARecipient,
  kNobodyNamed,  // no agent was given and the message has several recipients: nothing changed
};

}  // namespace interlock::domain
