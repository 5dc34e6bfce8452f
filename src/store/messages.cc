#include "store/messages.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "json/object_text.h"
#include "store/events.h"
#include "store/mailboxes.h"
#include "store/message_row.h"

namespace interlock::store {
namespace {

using domain::Addresses;
using domain::AddressKind;
using domain::Cursor;
using domain::Message;

// messages_by_id.
constexpr db::Sql kFindById =
    "SELECT " IL_MESSAGE_COLUMNS " FROM messages AS m WHERE m.project = ?1 AND m.id = ?2";

// The table's end: cursors rise.
constexpr db::Sql kInsertMessage =
    "INSERT INTO messages (cursor, project, id, sender, thread_id, topic, subject, body, "
    "importance, ack_required, recipients, created_at) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

// The primary key.
constexpr db::Sql kDeliver =
    "INSERT INTO inbox (project, agent, cursor, kind, ack_required) VALUES (?1, ?2, ?3, ?4, ?5)";

// The primary key. ?5: 1 for the sender.
constexpr db::Sql kCountInThread =
    "INSERT INTO thread_members (project, thread_id, agent, last_cursor, message_count, posted) "
    "VALUES (?1, ?2, ?3, ?4, 1, ?5) ON CONFLICT (project, thread_id, agent) DO UPDATE SET "
    "last_cursor = excluded.last_cursor, message_count = thread_members.message_count + 1, "
    "posted = CASE WHEN excluded.posted = 1 THEN 1 ELSE thread_members.posted END";

constexpr db::NamedSql kStatements[] = {IL_SQL(kFindById), IL_SQL(kInsertMessage), IL_SQL(kDeliver),
                                        IL_SQL(kCountInThread)};

std::optional<std::string_view> NullIfEmpty(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

std::string EventData(const Message& message) {
  constexpr std::size_t kKeysAndQuotes = 128;
  json::ObjectText data(kKeysAndQuotes + message.id.size() + message.sender.size() +
                        message.thread_id.size() + message.subject.size() + message.topic.size() +
                        message.importance.size());
  data.Add("id", message.id).Add("from", message.sender);
  for (const auto& [key, text] : {std::pair{"thread_id", &message.thread_id},
                                  {"subject", &message.subject},
                                  {"topic", &message.topic},
                                  {"importance", &message.importance}}) {
    if (!text->empty()) data.Add(key, *text);
  }
  if (message.ack_required) data.Add("ack_required", true);
  return std::move(data).Text();
}

Result<void> Deliver(db::Transaction& tx, const Message& message, Cursor cursor,
                     domain::DeliveryListener& listener) {
  const std::array<std::pair<AddressKind, const std::vector<std::string>*>, 3> kinds = {
      {{AddressKind::kTo, &message.addresses.to},
       {AddressKind::kCc, &message.addresses.cc},
       {AddressKind::kBcc, &message.addresses.bcc}}};
  for (const auto& [kind, agents] : kinds) {
    const std::string_view name = domain::Name(kind);
    for (const std::string& agent : *agents) {
      IL_TRY_VOID(tx->Run(kDeliver, message.project, agent, cursor, name, message.ack_required));
      IL_TRY_VOID(CountDelivered(tx, message.project, agent, cursor));
      listener.Delivered(message.project, agent, cursor);
    }
  }
  return {};
}

Result<void> CountInThread(db::Transaction& tx, const Message& message, Cursor cursor) {
  const auto count = [&](const std::string& agent, bool posted) {
    return tx->Run(kCountInThread, message.project, message.thread_id, agent, cursor, posted);
  };
  IL_TRY_VOID(count(message.sender, true));
  for (const auto* agents :
       {&message.addresses.to, &message.addresses.cc, &message.addresses.bcc}) {
    for (const std::string& agent : *agents) {
      if (agent != message.sender) IL_TRY_VOID(count(agent, false));
    }
  }
  return {};
}

// Each kind of `a` followed by that of `b`.
Addresses Joined(const Addresses& a, const Addresses& b) {
  Addresses joined = a;
  joined.to.insert(joined.to.end(), b.to.begin(), b.to.end());
  joined.cc.insert(joined.cc.end(), b.cc.begin(), b.cc.end());
  joined.bcc.insert(joined.bcc.end(), b.bcc.begin(), b.bcc.end());
  return joined;
}

}  // namespace

Outgoing MakeOutgoing(Message message, domain::Resolution resolution) {
  Outgoing outgoing;
  outgoing.event = {.type = domain::event_type::kMessageCreated,
                    .project = message.project,
                    .entity_id = message.id,
                    .agent = message.sender,
                    .created_at = message.created_at,
                    .data = EventData(message)};
  outgoing.message = std::move(message);
  SetResolution(outgoing, std::move(resolution));
  return outgoing;
}

void SetResolution(Outgoing& outgoing, domain::Resolution resolution) {
  outgoing.resolution = std::move(resolution);
  outgoing.recipients = RecipientsText(
      {.received = outgoing.message.addresses, .denied = {}, .resolution = outgoing.resolution});
}

Outgoing WithDenied(const Outgoing& all, Addresses received, Addresses denied) {
  IL_CHECK(received.size() + denied.size() == all.message.addresses.size());
  Outgoing outgoing = all;
  outgoing.recipients = RecipientsText({received, std::move(denied), all.resolution});
  outgoing.message.addresses = std::move(received);
  return outgoing;
}

Result<Cursor> InsertMessage(db::Transaction& tx, const Outgoing& outgoing,
                             domain::DeliveryListener& listener) {
  const Message& message = outgoing.message;
  IL_CHECK(!message.addresses.empty());
  IL_TRY(const Cursor cursor, AppendEvent(tx, outgoing.event));
  IL_TRY_VOID(tx->Run(kInsertMessage, cursor, message.project, message.id, message.sender,
                      NullIfEmpty(message.thread_id), NullIfEmpty(message.topic), message.subject,
                      message.body, message.importance, message.ack_required, outgoing.recipients,
                      message.created_at.micros));
  IL_TRY_VOID(Deliver(tx, message, cursor, listener));
  if (!message.thread_id.empty()) IL_TRY_VOID(CountInThread(tx, message, cursor));
  return cursor;
}

Result<std::optional<SentMessage>> FindSentMessage(db::Connection& connection,
                                                   std::string_view project, std::string_view id) {
  std::optional<SentMessage> found;
  IL_TRY_VOID(connection.ForEach(
      kFindById,
      [&](const db::Row& row) -> Result<void> {
        IL_TRY(Message message, MessageFrom(row));
        IL_TRY(Recipients recipients, ReadRecipients(row.Text(kRecipientsColumn)));
        message.addresses = Joined(recipients.received, recipients.denied);
        found = SentMessage{std::move(message), std::move(recipients.received),
                            std::move(recipients.denied), std::move(recipients.resolution)};
        return {};
      },
      project, id));
  return found;
}

std::span<const db::NamedSql> MessageStatements() { return kStatements; }

}  // namespace interlock::store
