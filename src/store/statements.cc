#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "store/agents.h"
#include "store/contacts.h"
#include "store/events.h"
#include "store/inbox.h"
#include "store/lapses.h"
#include "store/mailboxes.h"
#include "store/message_retention.h"
#include "store/messages.h"
#include "store/meta.h"
#include "store/mirror.h"
#include "store/ping.h"
#include "store/planning.h"
#include "store/pokes.h"
#include "store/receipts.h"
#include "store/reservations.h"
#include "store/schema.h"
#include "store/status.h"
#include "store/threads.h"
#include "store/topics.h"
#include "store/windows.h"

namespace interlock::store {

std::span<const db::NamedSql> Statements() {
  static const std::vector<db::NamedSql> kAll = [] {
    std::vector<db::NamedSql> all;
    // One line per noun.
    for (const auto& statements : {
             AgentStatements(),       ContactStatements(),
             EventStatements(),       InboxStatements(),
             LapseStatements(),       MailboxStatements(),
             MessageStatements(),     MessageRetentionStatements(),
             MetaStatements(),        MirrorStatements(),
             PingStatements(),        PlanStatements(),
             PokeStatements(),        ReceiptStatements(),
             ReservationStatements(), StatusStatements(),
             ThreadStatements(),      TopicStatements(),
             WindowStatements(),
         }) {
      std::ranges::copy(statements, std::back_inserter(all));
    }
    return all;
  }();
  return kAll;
}

}  // namespace interlock::store
