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

// State: a JSON value per key and scope, with a version and perhaps an end. What has expired is
// absent in every answer, from the second it expires; pruning only gives its space back.
//
// Versions: the first write of a value is version 1, each further one adds 1. A value that was
// deleted, or has expired, pruned or not, is written as one that never was: it begins at 1.
//
// `now` and all times are whole seconds since 1970. Take `now` inside the transaction, not before
// it: who waited for the lock would write a time that others have already passed.
namespace interlock::kernel {

struct State {
  std::string key;
  std::string scope_id;
  std::int64_t version = 0;
  std::int64_t updated_at = 0;
  std::optional<std::int64_t> expires_at = {};
  std::string payload;  // JSON, as it was given; empty in lists

  bool operator==(const State&) const = default;
};

// Names one row.
struct StateId {
  std::string_view key;
  std::string_view scope_id;
};

Result<std::optional<State>> FindState(db::Connection& connection, const StateId& id,
                                       std::int64_t now);

// All scopes of a key, by scope; all keys of a scope, by key. Without payloads.
Result<std::vector<State>> ListStateOfKey(db::Connection& connection, std::string_view key,
                                          std::int64_t now);
Result<std::vector<State>> ListStateOfScope(db::Connection& connection, std::string_view scope_id,
                                            std::int64_t now);

struct StateWrite {
  std::string_view payload;                // REQUIRES: CheckPayload() gave it
  std::optional<std::int64_t> ttl_s = {};  // nothing = no end
  // Nothing: whatever is there. 0: only when nothing is there. Else: only over that version.
  std::optional<std::int64_t> if_version = {};
};

// The new version; nothing when `if_version` did not hold, and then nothing was written.
Result<std::optional<std::int64_t>> SetState(db::Transaction& tx, const StateId& id,
                                             const StateWrite& write, std::int64_t now);

struct StateIncrement {
  std::int64_t by = 1;
  enum class Expiry : std::uint8_t { kKeep, kSet } expiry = Expiry::kKeep;
  std::optional<std::int64_t> ttl_s = {};  // for kSet; nothing = no end
};
struct Counter {
  std::int64_t value = 0;
  std::int64_t version = 0;
};

// Adds to the whole number that the row holds; what is absent counts as 0. kInvalidArgument when
// the payload is no whole number, or the sum would not fit 64 bits; nothing is written then.
Result<Counter> IncrementState(db::Transaction& tx, const StateId& id,
                               const StateIncrement& increment, std::int64_t now);

// Whether there was a value; how many there were. Rows that have expired go as well, uncounted.
Result<bool> DeleteState(db::Transaction& tx, const StateId& id, std::int64_t now);
Result<std::int64_t> DeleteStateOfKey(db::Transaction& tx, std::string_view key, std::int64_t now);

// Removes the rows that have expired; how many there were.
Result<std::int64_t> PruneState(db::Transaction& tx, std::int64_t now);

std::span<const db::NamedSql> StateStatements();

}  // namespace interlock::kernel
