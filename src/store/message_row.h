#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "db/sql.h"
#include "domain/message.h"
#include "domain/resolution.h"

// How a message stands in the table `messages`: what writing and reading share.
namespace interlock::store {

// The columns that MessageFrom() reads, in its order, of a table called m in the statement:
//
//   constexpr db::Sql kFind = "SELECT " IL_MESSAGE_COLUMNS " FROM messages AS m WHERE m.cursor =
//   ?1";
#define IL_MESSAGE_COLUMNS                                                         \
  "m.cursor, m.project, m.id, m.sender, m.thread_id, m.topic, m.subject, m.body, " \
  "m.importance, m.ack_required, m.recipients, m.created_at"

inline constexpr int kRecipientsColumn = 10;
inline constexpr int kMessageColumns = 12;  // a statement's own columns begin with this one

// kCorrupt when the recipients cannot be read.
Result<domain::Message> MessageFrom(const db::Row& row);

// The column `recipients`: whom a message reached, whom a contact policy kept it from, and, where
// the sender chose the id and so may repeat the message, how its texts were understood.
struct Recipients {
  domain::Addresses received = {};
  domain::Addresses denied = {};
  domain::Resolution resolution = {};

  bool operator==(const Recipients&) const = default;
};

// {"to":[],"cc":[],"bcc":[],"denied":{"to":[],"cc":[],"bcc":[]},"known":[to,agent_id,name,…],
// "elsewhere":[to,project,…],"from":[text],"left":[to,…]} without what is empty. In `known`, an
// empty `to` means the agent_id. REQUIRES: addresses are UTF-8.
std::string RecipientsText(const Recipients& recipients);

// Reads exactly what RecipientsText() writes, in one pass; kCorrupt for anything else.
Result<Recipients> ReadRecipients(std::string_view text);

}  // namespace interlock::store
