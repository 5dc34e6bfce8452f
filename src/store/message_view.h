#pragma once

#include <concepts>
#include <optional>
#include <utility>

#include "base/result.h"
#include "db/connection.h"
#include "domain/mailbox.h"
#include "json/slice.h"
#include "store/message_row.h"

// How the lists of messages (inbox, thread, topic) go from rows to their sink; for the files of
// this folder.
namespace interlock::store {

// The column `kind` of an inbox row. What is not to or cc counts as bcc, which is shown least.
inline domain::AddressKind AddressKindFrom(std::string_view text) {
  if (text == "to") return domain::AddressKind::kTo;
  return text == "cc" ? domain::AddressKind::kCc : domain::AddressKind::kBcc;
}

// REQUIRES: the row's first columns are IL_MESSAGE_COLUMNS. The views live as long as the row.
inline domain::MessageView MessageViewFrom(const db::Row& row) {
  const auto [to, cc, bcc] = json::RawMembers<3>(row.Text(kRecipientsColumn), {"to", "cc", "bcc"});
  return domain::MessageView{
      .cursor = row.Int(0),
      .id = row.Text(2),
      .project = row.Text(1),
      .sender = row.Text(3),
      .thread_id = row.Text(4),
      .topic = row.Text(5),
      .subject = row.Text(6),
      .body = row.Text(7),
      .importance = row.Text(8),
      .ack_required = row.Bool(9),
      .to = to,
      .cc = cc,
      .bcc = bcc,
      .created_at = {row.Int(11)},
  };
}

// Runs `sql` and hands each row, as `view_from` sees it, to `sink`, until one is enough.
template <std::invocable<const db::Row&> ViewFrom, typename... Args>
Result<void> ReadMessages(db::Connection& connection, domain::MessageSink& sink, const db::Sql& sql,
                          ViewFrom view_from, const Args&... args) {
  sink.Restart();
  bool enough = false;
  auto read = connection.ForEach(
      sql,
      [&](const db::Row& row) -> Result<void> {
        enough = sink.Add(view_from(row)) == domain::Flow::kEnough;
        if (enough) return Error(Errc::kCancelled, "the page is full");  // ends the statement
        return {};
      },
      args...);
  if (!read.ok() && !enough) return std::move(read).error();
  return {};
}

}  // namespace interlock::store
