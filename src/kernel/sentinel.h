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
#include "kernel/database.h"

// Sentinels limit how often something is done. A sentinel fires for one of many concurrent callers
// and throttles the others. Each name and scope has one row with the time it last fired and the
// interval of that claim.
//
// (1) A claim with an interval above 0 fires if that many seconds have passed since the last
// firing. (2) A claim with interval 0 fires once. Its row then throttles every later claim, with
// any
//     interval, until it is reset; it is pruned only on explicit request. If a row already fired
//     with another interval, a claim with interval 0 is throttled and makes the row permanent too.
// (3) A row without an interval comes from a file of the older program. The interval of the claim
//     decides whether it fires; interval 0 makes it a row of (2). Because it may be permanent, it
//     is kept for 7 days, unless the caller asks to prune the rows of (2).
// (4) A last firing that is later than `now` by at least the interval was written before the clock
//     was set back. It counts as long ago; otherwise it would throttle until that time returns. A
//     last firing that is later by less throttles like one at `now`.
//
// `now` is in Unix seconds and must be read inside the transaction. If it were read earlier, a
// firing by another process during the wait for the lock would look like (4).
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

struct SentinelId {
  std::string_view name;
  std::string_view scope_id;
};

enum class SentinelVerdict : std::uint8_t { kAllowed, kThrottled };

// Claims one sentinel. REQUIRES: interval_s >= 0
Result<SentinelVerdict> ClaimSentinel(db::Transaction& tx, const SentinelId& id,
                                      std::int64_t interval_s, std::int64_t now);

struct SentinelClaim {
  SentinelId id;
  std::int64_t interval_s = 0;
};
struct ClaimedSentinels {
  std::vector<SentinelVerdict> verdicts;  // one per claim
  std::optional<Error> prune_error = {};  // why pruning failed; the verdicts are valid anyway
};

enum class StaleRows : std::uint8_t { kPrune, kKeep };

// Claims each sentinel independently, in order, and prunes stale rows. The claims take effect when
// `tx` is committed. kCancelled: pruning made SQLite roll back the transaction, so the claims are
// lost; call this again in a new transaction without pruning.
Result<ClaimedSentinels> ClaimSentinels(Transaction& tx, std::span<const SentinelClaim> claims,
                                        std::int64_t now, StaleRows stale = StaleRows::kPrune);

// Removes rows with an interval above 0, or without one, that last fired more than 7 days and more
// than their interval ago: the next claim would fire anyway. Returns the number of removed rows.
Result<std::int64_t> PruneStaleSentinels(db::Transaction& tx, std::int64_t now);

enum class OnceOnly : std::uint8_t { kKeep, kInclude };

// Removes rows that last fired before the given time and whose interval has passed. kInclude: also
// removes the rows of (2), which may then fire again. Returns the number of removed rows.
Result<std::int64_t> PruneSentinels(db::Transaction& tx, std::int64_t before, OnceOnly once_only,
                                    std::int64_t now);

// Removes the row, so that the next claim fires. Returns the number of removed rows.
Result<std::int64_t> ResetSentinel(db::Transaction& tx, const SentinelId& id);
Result<std::int64_t> ResetSentinels(db::Transaction& tx, std::string_view name);

struct Sentinel {
  std::string name;
  std::string scope_id;
  std::int64_t last_fired = 0;
  std::optional<std::int64_t> interval_s = {};  // 0: kept until reset; nullopt: unknown

  bool operator==(const Sentinel&) const = default;
};

// Sorted by name and scope.
Result<std::vector<Sentinel>> ListSentinels(db::Connection& connection);

std::span<const db::NamedSql> SentinelStatements();

}  // namespace interlock::kernel
