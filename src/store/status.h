#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/sightings.h"

// How much there is of everything, for people who look after a server. Each number costs a walk
// over the entries of an index that it counts, and over nothing else.
namespace interlock::store {

struct StatusCounts {
  std::int64_t agents_alive = 0;  // seen within the grace
  std::int64_t agents_registered = 0;
  std::int64_t reservations_active = 0;
  std::int64_t mail_unread = 0;  // a message counts once for each recipient that has not read it

  bool operator==(const StatusCounts&) const = default;
};

// Of one project, or (nothing) of all. An agent is alive that was seen after `seen_after`.
Result<StatusCounts> CountStatus(db::Connection& connection,
                                 std::optional<std::string_view> project, Timestamp now,
                                 Timestamp seen_after, const domain::Sightings& sightings);

std::span<const db::NamedSql> StatusStatements();

}  // namespace interlock::store
