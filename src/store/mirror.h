#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/event.h"
#include "domain/reservation.h"

// What somebody needs who keeps a copy of the reservations elsewhere: which of them changed since a
// place in the log, and how they are now; and a note of how far the copy has come.
namespace interlock::store {

struct ReservationChanges {
  // Each once. As they are now, which may be later than the last event looked at: who applies one
  // page after another never goes back in time. One that the sweeper removed is as it was, with
  // the time of its removal as released_at.
  std::vector<domain::Reservation> changed = {};
  domain::Cursor reached = 0;  // all events up to here have been looked at
  bool ended = false;          // there are no more
};

// Looks at the events after `after`, at most `rows_max`. kGone, cursor_expired, when some of them
// are no longer kept; never for 0, the oldest one kept. What is active now has changed within the
// longest lease (domain::kLeaseMinutesMax), a day, and events are kept for a day at least: so from
// 0 on, everything that is active is found.
Result<ReservationChanges> ReadReservationChanges(db::Connection& connection, domain::Cursor after,
                                                  std::size_t rows_max);

// How far the copy has come, and the last row written there, by which a copy of that age is told
// from another one.
struct MirrorMark {
  domain::Cursor cursor = 0;
  std::string last_id = {};  // empty: nothing was ever written
  std::string last_owner = {};
  std::int64_t last_expires_at = 0;
  std::int64_t last_released_at = 0;  // 0 = it was not

  bool operator==(const MirrorMark&) const = default;
};

// The mark that was saved last; an empty one when there is none, or none that can be read.
Result<MirrorMark> LoadMirrorMark(db::Connection& connection);
Result<void> SaveMirrorMark(db::Transaction& tx, const MirrorMark& mark);

std::span<const db::NamedSql> MirrorStatements();

}  // namespace interlock::store
