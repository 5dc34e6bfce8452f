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

// Sentinels: "may I do this now?", answered yes to one of many who ask at once. A row per name and
// scope says when it last fired, and by which interval it was claimed.
//
// (1) An interval above 0 fires when that many seconds have passed since it last fired.
// (2) Interval 0 fires once, for good. A row that was claimed so is throttled for every later
//     interval until it is reset, and never pruned unless a person asks for it. A row that fired by
//     another interval and is asked for once is throttled, and kept in the same way.
// (3) A row without an interval comes from a file of an older program: it is judged by the interval
//     of the call. One of 0 makes it (2). As it may have fired for good it is kept for 7 days,
//     unless a person asks for (2) to be pruned.
// (4) A last firing that lies ahead of `now` by the interval or more was stamped by a clock that
//     has been set back since, and counts as long ago: else it would throttle until that time
//     comes again. One that lies ahead by less throttles as if it were just now.
//
// `now` is whole seconds since 1970 and must be taken inside the transaction. Taken before it, the
// wait for the lock would make a firing by another process look like (4).
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

struct SentinelId {
  std::string_view name;
  std::string_view scope_id;
};

enum class Verdict : std::uint8_t { kAllowed, kThrottled };

// Claims it, if it may fire. REQUIRES: interval_s >= 0
Result<Verdict> ClaimSentinel(db::Transaction& tx, const SentinelId& id, std::int64_t interval_s,
                              std::int64_t now);

struct SentinelClaim {
  SentinelId id;
  std::int64_t interval_s = 0;
};
struct Claimed {
  std::vector<Verdict> verdicts;         // one per claim
  std::optional<Error> not_pruned = {};  // why stale rows are still there; the verdicts stand
};

enum class Prune : std::uint8_t { kStale, kNot };

// Claims each for itself, in order, and prunes what is stale. They count when `tx` has been
// committed, not before. kCancelled: the pruning ended the transaction, and the claims with it; to
// be called again in a new one, without pruning.
Result<Claimed> ClaimSentinels(Transaction& tx, std::span<const SentinelClaim> claims,
                               std::int64_t now, Prune prune = Prune::kStale);

// Removes rows of intervals above 0, and of none, that fired more than 7 days ago and longer ago
// than their interval: they would fire anyway. How many there were.
Result<std::int64_t> PruneStaleSentinels(db::Transaction& tx, std::int64_t now);

enum class OnceOnly : std::uint8_t { kKeep, kInclude };

// Removes rows that last fired before the given time and throttle nobody by the interval they were
// claimed with; how many there were. kInclude: also those of (2), which may then fire again.
Result<std::int64_t> PruneSentinels(db::Transaction& tx, std::int64_t before, OnceOnly once_only,
                                    std::int64_t now);

// Lets it fire again, whatever it was. How many there were.
Result<std::int64_t> ResetSentinel(db::Transaction& tx, const SentinelId& id);
Result<std::int64_t> ResetSentinels(db::Transaction& tx, std::string_view name);

struct Sentinel {
  std::string name;
  std::string scope_id;
  std::int64_t last_fired = 0;
  std::optional<std::int64_t> interval_s = {};  // 0 = kept until it is reset; nothing = not known

  bool operator==(const Sentinel&) const = default;
};

// All of them, by name and scope.
Result<std::vector<Sentinel>> ListSentinels(db::Connection& connection);

std::span<const db::NamedSql> SentinelStatements();

}  // namespace interlock::kernel
