#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"

// State: JSON values by key and scope, each with a version and an optional expiry. No function
// returns an expired value; pruning only frees its space.
//
// The first write of a value has version 1, and each further write adds 1. A value that was deleted
// or has expired (pruned or not) starts again at version 1.
//
// All times are Unix seconds. Read `now` inside the transaction: if it were read before the wait
// for the lock, a write could have an older time than the one before it.
namespace interlock::kernel {

struct StateEntry {
  std::string key;
  std::string scope_id;
  std::int64_t version = 0;
  std::int64_t updated_at = 0;
  std::optional<std::int64_t> expires_at = {};
  std::string payload;  // JSON as given by the caller; empty in lists

  bool operator==(const StateEntry&) const = default;
};

// Identifies one row.
struct StateId {
  std::string_view key;
  std::string_view scope_id;
};

Result<std::optional<StateEntry>> FindState(db::Connection& connection, const StateId& id,
                                            std::int64_t now);

// Return all scopes of a key, or all keys of a scope, sorted and without payloads.
Result<std::vector<StateEntry>> ListStateOfKey(db::Connection& connection, std::string_view key,
                                               std::int64_t now);
Result<std::vector<StateEntry>> ListStateOfScope(db::Connection& connection,
                                                 std::string_view scope_id, std::int64_t now);

struct StateWrite {
  std::string_view payload;                // REQUIRES: checked by CheckPayload()
  std::optional<std::int64_t> ttl_s = {};  // nullopt: no expiry
  // nullopt: write always. 0: only if there is no value. N: only over version N.
  std::optional<std::int64_t> if_version = {};
};

// Returns the new version, or nullopt if `if_version` did not match; then nothing was written.
Result<std::optional<std::int64_t>> SetState(db::Transaction& tx, const StateId& id,
                                             const StateWrite& write, std::int64_t now);

struct StateIncrement {
  std::int64_t by = 1;
  enum class Expiry : std::uint8_t { kKeep, kSet } expiry = Expiry::kKeep;
  std::optional<std::int64_t> ttl_s = {};  // for kSet; nullopt: no expiry
};
struct Counter {
  std::int64_t value = 0;
  std::int64_t version = 0;
};

// Adds to the stored integer; a missing value counts as 0. kInvalidArgument: the payload is not an
// integer, or the sum does not fit 64 bits; then nothing is written.
Result<Counter> IncrementState(db::Transaction& tx, const StateId& id,
                               const StateIncrement& increment, std::int64_t now);

// Return whether there was a value, or how many. Expired rows are removed too but not counted.
Result<bool> DeleteState(db::Transaction& tx, const StateId& id, std::int64_t now);
Result<std::int64_t> DeleteStateOfKey(db::Transaction& tx, std::string_view key, std::int64_t now);

// Removes expired rows and returns their number.
Result<std::int64_t> PruneState(db::Transaction& tx, std::int64_t now);

std::span<const db::NamedSql> StateStatements();

}  // namespace interlock::kernel
