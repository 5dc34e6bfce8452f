#include "testing/mail_rows.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/events.h"
#include "store/mailboxes.h"
#include "store/message_row.h"

namespace interlock::testing {
namespace {

using domain::Message;

constexpr db::Sql kInsertMessage =
    "INSERT INTO messages (cursor, project, id, sender, thread_id, topic, subject, body, "
    "importance, ack_required, recipients, created_at) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
constexpr db::Sql kInsertInbox =
    "INSERT INTO inbox (project, agent, cursor, kind, ack_required) VALUES (?1, ?2, ?3, ?4, ?5)";
constexpr db::Sql kInsertMember =
    "INSERT INTO thread_members (project, thread_id, agent, last_cursor, message_count, posted) "
    "VALUES (?1, ?2, ?3, ?4, 1, ?5) ON CONFLICT (project, thread_id, agent) DO UPDATE "
    "SET last_cursor = ?4, message_count = message_count + 1, posted = max(posted, ?5)";

std::optional<std::string> UnlessEmpty(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

Result<void> Deliver(db::Transaction& tx, const Message& message, domain::Cursor cursor,
                     const std::vector<std::string>& agents, domain::AddressKind kind) {
  for (const std::string& agent : agents) {
    IL_TRY_VOID(
        tx->Run(kInsertInbox, message.project, agent, cursor, Name(kind), message.ack_required));
    IL_TRY_VOID(store::CountDelivered(tx, message.project, agent, cursor));
  }
  return {};
}

}  // namespace

Result<domain::Cursor> InsertMessage(db::Transaction& tx, const Message& message) {
  IL_TRY(const domain::Cursor cursor,
         store::AppendEvent(tx, {.type = domain::event_type::kMessageCreated,
                                 .project = message.project,
                                 .entity_id = message.id,
                                 .created_at = message.created_at}));
  const std::string recipients = store::RecipientsText({.received = message.addresses});
  IL_TRY_VOID(tx->Run(kInsertMessage, cursor, message.project, message.id, message.sender,
                      UnlessEmpty(message.thread_id), UnlessEmpty(message.topic), message.subject,
                      message.body, message.importance, message.ack_required, recipients,
                      message.created_at.micros));
  const domain::Addresses& all = message.addresses;
  IL_TRY_VOID(Deliver(tx, message, cursor, all.to, domain::AddressKind::kTo));
  IL_TRY_VOID(Deliver(tx, message, cursor, all.cc, domain::AddressKind::kCc));
  IL_TRY_VOID(Deliver(tx, message, cursor, all.bcc, domain::AddressKind::kBcc));
  if (message.thread_id.empty()) return cursor;
  const std::vector<std::string> agents = all.All();
  std::set<std::string> members(agents.begin(), agents.end());
  members.insert(message.sender);
  for (const std::string& agent : members) {
    IL_TRY_VOID(tx->Run(kInsertMember, message.project, message.thread_id, agent, cursor,
                        agent == message.sender));
  }
  return cursor;
}

domain::Message Filled(domain::Message message, int number, Timestamp now) {
  if (message.id.empty()) message.id = "m" + std::to_string(number);
  if (message.sender.empty()) message.sender = "s";
  if (message.addresses.empty()) message.addresses.to = {"a"};
  if (message.created_at.micros == 0) message.created_at = now;
  return message;
}

}  // namespace interlock::testing
