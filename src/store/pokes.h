#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/event.h"
#include "domain/window.h"

// Messages that are to be put before their recipients at once (table `pokes`). A poke is pending
// until it was put before the recipient (injected), or the recipient has seen it otherwise
// (surfaced). What was surfaced is never pending again.
namespace interlock::store {

// Of the message with this cursor, for this recipient. Nothing changes when there is one already.
Result<void> StagePoke(db::Transaction& tx, domain::Cursor cursor, std::string_view project,
                       std::string_view recipient);

// It was put before the recipient; the first time stays.
Result<void> MarkInjected(db::Transaction& tx, domain::Cursor cursor, std::string_view recipient,
                          Timestamp at);

// The recipient has seen the message with this id; logs peer.window_poke. False, and no event, when
// no poke of it was pending.
Result<bool> SurfacePoke(db::Transaction& tx, std::string_view project, std::string_view recipient,
                         std::string_view message_id, Timestamp at);

struct PendingPoke {
  std::string_view message_id;
  std::string_view sender;
  std::string_view sender_name;  // empty: nobody has registered it
  std::string_view thread_id;    // empty: in none
  std::string_view body;         // as it was sent
  Timestamp created_at;          // of the message
};
// Gives the pending ones of an agent to `take`, oldest first; at most `limit`. The texts die with
// the call.
Result<void> ListPendingPokes(db::Connection& connection, std::string_view project,
                              std::string_view recipient, std::int64_t limit,
                              const std::function<void(const PendingPoke&)>& take);

// What became of the pokes of a message, by recipient; those it was not to be put before are not
// among them.
Result<std::map<std::string, domain::DeliveryState>> PokesOf(db::Connection& connection,
                                                             domain::Cursor cursor);

// Logs that a message was, or was not, put before a recipient: peer.window_poke.
struct PokeAttempt {
  std::string project;
  std::string message_id;
  std::string sender;
  std::string recipient;
  domain::DeliveryState state = domain::DeliveryState::kDeferred;
  std::string reason = {};  // why not; empty when it was
};
Result<void> LogPoke(db::Transaction& tx, const PokeAttempt& attempt, Timestamp at);

std::span<const db::NamedSql> PokeStatements();

}  // namespace interlock::store
