#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace interlock::domain {

// The place of a change in the order of all changes, in every project. The first one is 1; 0 stands
// before all.
using Cursor = std::int64_t;

// What happened to one thing, as the log keeps it.
struct Event {
  Cursor cursor = 0;  // 0 = not in the log: only who listens right now hears of it
  std::string type;   // "message.created"; the names are below
  std::string project;
  std::string entity_id;
  std::optional<std::string> agent = {};  // who did it, where that is known and may be shown
  Timestamp created_at = {};
  std::string data = {};  // the text of one JSON value; empty = none

  bool operator==(const Event&) const = default;
};

// The types of events. Those of planning are in planning.h, but for its actions.
namespace event_type {
inline constexpr char kAgentRegistered[] = "agent.registered";
inline constexpr char kAgentUpdated[] = "agent.updated";
inline constexpr char kAgentDeregistered[] = "agent.deregistered";
inline constexpr char kPolicyUpdated[] = "policy.updated";
inline constexpr char kContactAdded[] = "contact.added";
inline constexpr char kContactRemoved[] = "contact.removed";
inline constexpr char kMessageCreated[] = "message.created";
inline constexpr char kMessageRead[] = "message.read";
inline constexpr char kMessageAck[] = "message.ack";
inline constexpr char kReservationCreated[] = "reservation.created";
inline constexpr char kReservationRenewed[] = "reservation.renewed";
inline constexpr char kReservationReleased[] = "reservation.released";
inline constexpr char kReservationTransferred[] = "reservation.transferred";
inline constexpr char kReservationExpired[] = "reservation.expired";
inline constexpr char kReservationConflict[] = "reservation.conflict";  // live only
inline constexpr char kTaskAssigned[] = "task.assigned";
inline constexpr char kCujLinked[] = "cuj.linked";
inline constexpr char kCujUnlinked[] = "cuj.unlinked";
inline constexpr char kWindowUpdated[] = "window.updated";
inline constexpr char kWindowExpired[] = "window.expired";
inline constexpr char kWindowPoke[] = "peer.window_poke";
}  // namespace event_type

}  // namespace interlock::domain
