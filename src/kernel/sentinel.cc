#include "kernel/sentinel.h"

#include <fmt/format.h>

#include "base/check.h"

namespace interlock::kernel {
namespace {

constexpr std::int64_t kRetentionS = std::int64_t{7} * 24 * 60 * 60;

// The interval of a row that fired with another interval and was later claimed with interval 0.
// Longer than any clock runs.
constexpr std::int64_t kPermanentS = 1'000'000'000'000;

// The table's primary key.
constexpr db::Sql kInsert =
    "INSERT INTO sentinels (name, scope_id, last_fired, interval_s) VALUES (?1, ?2, 0, ?3) "
    "ON CONFLICT (name, scope_id) DO NOTHING";

// The table's primary key. Returns a row if the claim fires. ?3 is the interval, ?4 is now.
constexpr db::Sql kClaim =
    "UPDATE sentinels SET last_fired = ?4, interval_s = ?3 WHERE name = ?1 AND scope_id = ?2 AND "
    "((last_fired = 0) OR "
    "((?3 > 0) AND (interval_s IS NULL OR interval_s > 0) AND "
    "((?4 - last_fired >= ?3) OR (last_fired - ?4 >= ?3)))) "
    "RETURNING last_fired";

// The table's primary key. For a row of the older program that is claimed with interval 0.
constexpr db::Sql kMakeOnceOnly =
    "UPDATE sentinels SET interval_s = 0 WHERE name = ?1 AND scope_id = ?2 "
    "AND interval_s IS NULL";

// ic_sentinels_prune. ?1 is now, ?2 is 7 days before. It reads few rows in vain: only those with
// intervals above 7 days.
constexpr db::Sql kPruneStale =
    "DELETE FROM sentinels WHERE (interval_s > 0 OR interval_s IS NULL) AND last_fired < ?2 "
    "AND (interval_s IS NULL OR last_fired < ?1 - interval_s)";

// ic_sentinels_prune. ?1 is the time, ?2 is now, ?3 is 7 days before. Keeps rows that still
// throttle, and for 7 days rows that may be permanent.
constexpr db::Sql kPrune =
    "DELETE FROM sentinels WHERE (interval_s > 0 OR interval_s IS NULL) AND last_fired < ?1 "
    "AND ((interval_s IS NULL AND last_fired < ?3) OR last_fired <= ?2 - interval_s)";

// The table's primary key. Raises the interval of a row after a claim with a longer interval, so
// that the row is not pruned while it still throttles that claim.
constexpr db::Sql kKeepLonger =
    "UPDATE sentinels SET interval_s = ?3 WHERE name = ?1 AND scope_id = ?2 AND interval_s > 0 "
    "AND interval_s < ?3";

// ic_sentinels_prune. ?1 is the time, ?2 is kPermanentS.
constexpr db::Sql kPrunePermanent =
    "DELETE FROM sentinels WHERE (interval_s > 0 OR interval_s IS NULL) AND last_fired < ?1 "
    "AND (interval_s IS NULL OR interval_s >= ?2)";

// ic_sentinels_once
constexpr db::Sql kPruneOnceOnly = "DELETE FROM sentinels WHERE interval_s = 0 AND last_fired < ?1";

// The table's primary key.
constexpr db::Sql kReset = "DELETE FROM sentinels WHERE name = ?1 AND scope_id = ?2";

// The table's primary key.
constexpr db::Sql kResetOfName = "DELETE FROM sentinels WHERE name = ?1";

// The table's primary key, in index order. Returns every row.
constexpr db::Sql kList =
    "SELECT name, scope_id, last_fired, interval_s FROM sentinels WHERE name >= '' "
    "ORDER BY name, scope_id";

constexpr db::NamedSql kStatements[] = {
    IL_SQL(kInsert), IL_SQL(kClaim),         IL_SQL(kMakeOnceOnly),  IL_SQL(kPruneStale),
    IL_SQL(kPrune),  IL_SQL(kPruneOnceOnly), IL_SQL(kReset),         IL_SQL(kResetOfName),
    IL_SQL(kList),   IL_SQL(kKeepLonger),    IL_SQL(kPrunePermanent)};

}  // namespace

Result<SentinelVerdict> ClaimSentinel(db::Transaction& tx, const SentinelId& id,
                                      std::int64_t interval_s, std::int64_t now) {
  IL_CHECK(interval_s >= 0);
  IL_TRY_VOID(tx->Run(kInsert, id.name, id.scope_id, interval_s));
  IL_TRY(const auto fired, tx->One(
                               kClaim, [](const db::Row& row) { return row.Int(0); }, id.name,
                               id.scope_id, interval_s, now));
  if (fired) return SentinelVerdict::kAllowed;
  if (interval_s == 0) IL_TRY_VOID(tx->Run(kMakeOnceOnly, id.name, id.scope_id));
  const std::int64_t keep_s = interval_s == 0 ? kPermanentS : interval_s;
  if (keep_s > kRetentionS) IL_TRY_VOID(tx->Run(kKeepLonger, id.name, id.scope_id, keep_s));
  return SentinelVerdict::kThrottled;
}

Result<ClaimedSentinels> ClaimSentinels(Transaction& tx, std::span<const SentinelClaim> claims,
                                        std::int64_t now, StaleRows stale) {
  ClaimedSentinels claimed;
  claimed.verdicts.reserve(claims.size());
  for (const SentinelClaim& claim : claims) {
    IL_TRY(const SentinelVerdict verdict, ClaimSentinel(tx, claim.id, claim.interval_s, now));
    claimed.verdicts.push_back(verdict);
  }
  if (stale == StaleRows::kKeep) return claimed;
  auto pruned = tx.Attempt([&]() -> Result<void> {
    IL_TRY_VOID(PruneStaleSentinels(tx, now));
    return {};
  });
  if (!pruned && !tx.is_open()) {
    return Error(Errc::kCancelled, fmt::format("{}", pruned.error().message()));
  }
  if (!pruned) claimed.prune_error = std::move(pruned).error();
  return claimed;
}

Result<std::int64_t> PruneStaleSentinels(db::Transaction& tx, std::int64_t now) {
  return tx->Run(kPruneStale, now, now - kRetentionS);
}

Result<std::int64_t> PruneSentinels(db::Transaction& tx, std::int64_t before, OnceOnly once_only,
                                    std::int64_t now) {
  IL_TRY(std::int64_t rows, tx->Run(kPrune, before, now, now - kRetentionS));
  if (once_only == OnceOnly::kKeep) return rows;
  IL_TRY(const std::int64_t once, tx->Run(kPruneOnceOnly, before));
  IL_TRY(const std::int64_t permanent, tx->Run(kPrunePermanent, before, kPermanentS));
  return rows + once + permanent;
}

Result<std::int64_t> ResetSentinel(db::Transaction& tx, const SentinelId& id) {
  return tx->Run(kReset, id.name, id.scope_id);
}

Result<std::int64_t> ResetSentinels(db::Transaction& tx, std::string_view name) {
  return tx->Run(kResetOfName, name);
}

Result<std::vector<Sentinel>> ListSentinels(db::Connection& connection) {
  std::vector<Sentinel> rows;
  IL_TRY_VOID(connection.ForEach(kList, [&](const db::Row& row) {
    const std::optional<std::int64_t> interval_s = row.OptionalInt(3);
    rows.push_back({.name = row.String(0),
                    .scope_id = row.String(1),
                    .last_fired = row.Int(2),
                    .interval_s = interval_s.value_or(0) >= kPermanentS ? 0 : interval_s});
  }));
  return rows;
}

std::span<const db::NamedSql> SentinelStatements() { return kStatements; }

}  // namespace interlock::kernel
