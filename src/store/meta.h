#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"

namespace interlock::store {

// Which installation a database belongs to: chosen when the file was made, the same ever after,
// also in its backups.
struct Instance {
  std::string id;
  Timestamp created_at;

  bool operator==(const Instance&) const = default;
};

// The instance of this file; `new_id` and `now` become it when it has none yet.
// REQUIRES: new_id is not empty.
Result<Instance> EnsureInstance(db::Transaction& tx, std::string_view new_id, Timestamp now);

// Nothing before the first EnsureInstance().
Result<std::optional<Instance>> FindInstance(db::Connection& connection);

// Which log of events the database holds: random, made with the file. A file that is restored from
// a backup has the id of the backup; give it a new one, so that clients drop their cursors.
Result<std::string> ReadLogId(db::Connection& connection);

std::span<const db::NamedSql> MetaStatements();

}  // namespace interlock::store
