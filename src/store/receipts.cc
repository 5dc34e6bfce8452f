#include "store/receipts.h"

#include <optional>
#include <string>
#include <utility>

#include "json/object_text.h"
#include "store/events.h"
#include "store/mailboxes.h"
#include "store/message_row.h"
#include "store/message_view.h"

namespace interlock::store {
namespace {

using domain::ReceiptOutcome;

// messages_by_id.
constexpr db::Sql kFindRecipients =
    "SELECT cursor, recipients FROM messages WHERE project = ?1 AND id = ?2";

// inbox's primary key.
constexpr db::Sql kFindKind =
    "SELECT kind FROM inbox WHERE project = ?1 AND agent = ?2 AND cursor = ?3";

// inbox's primary key.
constexpr db::Sql kMarkRead =
    "UPDATE inbox SET read_at = ?4 "
    "WHERE project = ?1 AND agent = ?2 AND cursor = ?3 AND read_at IS NULL";

// inbox's primary key.
constexpr db::Sql kMarkAck =
    "UPDATE inbox SET ack_at = ?4 "
    "WHERE project = ?1 AND agent = ?2 AND cursor = ?3 AND ack_at IS NULL";

constexpr db::NamedSql kStatements[] = {IL_SQL(kFindRecipients), IL_SQL(kFindKind),
                                        IL_SQL(kMarkRead), IL_SQL(kMarkAck)};

domain::Event EventOf(const domain::Receipt& receipt, const std::string& agent,
                      domain::AddressKind kind) {
  const bool read = receipt.kind == domain::ReceiptKind::kRead;
  domain::Event event{
      .type = read ? domain::event_type::kMessageRead : domain::event_type::kMessageAck,
      .project = receipt.project,
      .entity_id = receipt.message_id,
      .created_at = receipt.at,
  };
  json::ObjectText data;
  if (kind != domain::AddressKind::kBcc) {
    event.agent = agent;
    data.Add("agent", agent);
  }
  event.data = data.Text();
  return event;
}

// The one whom a receipt without a name must mean: a blind copy counts like the others, for it may
// be the one who answers.
std::optional<std::string> OnlyRecipient(const domain::Addresses& received) {
  if (received.size() != 1) return std::nullopt;
  return received.All().front();
}

}  // namespace

Result<ReceiptOutcome> RecordReceipt(db::Transaction& tx, const domain::Receipt& receipt) {
  struct Found {
    domain::Cursor cursor;
    std::string recipients;
  };
  IL_TRY(const auto found,
         tx->One(
             kFindRecipients, [](const db::Row& row) { return Found{row.Int(0), row.String(1)}; },
             receipt.project, receipt.message_id));
  if (!found) return ReceiptOutcome::kNoSuchMessage;

  std::string agent = receipt.agent;
  if (agent.empty()) {
    IL_TRY(const Recipients recipients, ReadRecipients(found->recipients));
    const std::optional<std::string> only = OnlyRecipient(recipients.received);
    if (!only) return ReceiptOutcome::kNobodyNamed;
    agent = *only;
  }
  IL_TRY(const auto kind,
         tx->One(
             kFindKind, [](const db::Row& row) { return AddressKindFrom(row.Text(0)); },
             receipt.project, agent, found->cursor));
  if (!kind) return ReceiptOutcome::kNotARecipient;

  const db::Sql& mark = receipt.kind == domain::ReceiptKind::kRead ? kMarkRead : kMarkAck;
  IL_TRY(const std::int64_t changed,
         tx->Run(mark, receipt.project, agent, found->cursor, receipt.at.micros));
  if (changed == 0) return ReceiptOutcome::kAlreadyThere;
  if (receipt.kind == domain::ReceiptKind::kRead) {
    IL_TRY_VOID(CountRead(tx, receipt.project, agent));
  }
  IL_TRY_VOID(AppendEvent(tx, EventOf(receipt, agent, *kind)));
  return ReceiptOutcome::kRecorded;
}

std::span<const db::NamedSql> ReceiptStatements() { return kStatements; }

}  // namespace interlock::store
