#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"

namespace interlock::store {

struct SeenAgent {
  std::string id;
  std::string name;
  std::string project;
  Timestamp last_seen = {};

  bool operator==(const SeenAgent&) const = default;
};

// The registered agents that were last seen after `after` and until `until`, the oldest first.
Result<std::vector<SeenAgent>> AgentsSeenBetween(db::Connection& connection, Timestamp after,
                                                 Timestamp until, std::int64_t rows_max);

std::span<const db::NamedSql> LapseStatements();

}  // namespace interlock::store
