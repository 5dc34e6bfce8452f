#include "kernel/sentinel.h"

#include <fmt/format.h>

#include "base/check.h"

namespace interlock::kernel {
namespace {

constexpr std::int64_t kKeepS = std::int64_t{7} * 24 * 60 * 60;

// Longer than any clock runs: the interval of a row that fired by another one and was then asked
// for once.
constexpr std::int64_t kForGoodS = 1'000'000'000'000;

// The table's primary key.
constexpr db::Sql kInsert =
    "INSERT INTO sentinels (name, scope_id, last_fired, interval_s) VALUES (?1, ?2, 0, ?3) "
    "ON CONFLICT (name, scope_id) DO NOTHING";

// The table's primary key. The row that comes back is the verdict. ?3 is the interval, ?4 is now.
constexpr db::Sql kClaim =
    "UPDATE sentinels SET last_fired = ?4, interval_s = ?3 WHERE name = ?1 AND scope_id = ?2 AND "
    "((last_fired = 0) OR "
    "((?3 > 0) AND (interval_s IS NULL OR interval_s > 0) AND "
    "((?4 - last_fired >= ?3) OR (last_fired - ?4 >= ?3)))) "
    "RETURNING last_fired";

// The table's primary key. A row of an older program that has fired, asked for once.
constexpr db::Sql kMakeOnceOnly =
    "UPDATE sentinels SET interval_s = 0 WHERE name = ?1 AND scope_id = ?2 "
    "AND interval_s IS NULL";

// ic_sentinels_prune. ?1 is now, ?2 is 7 days before. Only rows of intervals above 7 days are
// looked at and left.
constexpr db::Sql kPruneStale =
    "DELETE FROM sentinels WHERE (interval_s > 0 OR interval_s IS NULL) AND last_fired < ?2 "
    "AND (interval_s IS NULL OR last_fired < ?1 - interval_s)";

// ic_sentinels_prune. ?1 is the time, ?2 is now, ?3 is 7 days before. What still throttles stays,
// and so does for that long what may have fired for good.
constexpr db::Sql kPrune =
    "DELETE FROM sentinels WHERE (interval_s > 0 OR interval_s IS NULL) AND last_fired < ?1 "
    "AND ((interval_s IS NULL AND last_fired < ?3) OR last_fired <= ?2 - interval_s)";

// The table's primary key. A row that throttles for longer than it was claimed for is not stale
// before that.
constexpr db::Sql kKeepLonger =
    "UPDATE sentinels SET interval_s = ?3 WHERE name = ?1 AND scope_id = ?2 AND interval_s > 0 "
    "AND interval_s < ?3";

// ic_sentinels_prune. ?1 is the time, ?2 is kForGoodS.
constexpr db::Sql kPruneForGood =
    "DELETE FROM sentinels WHERE (interval_s > 0 OR interval_s IS NULL) AND last_fired < ?1 "
    "AND (interval_s IS NULL OR interval_s >= ?2)";

// ic_sentinels_once
constexpr db::Sql kPruneOnceOnly = "DELETE FROM sentinels WHERE interval_s = 0 AND last_fired < ?1";

// The table's primary key.
constexpr db::Sql kReset = "DELETE FROM sentinels WHERE name = ?1 AND scope_id = ?2";

// The table's primary key.
constexpr db::Sql kResetOfName = "DELETE FROM sentinels WHERE name = ?1";

// The table's primary key, from its start to its end: whoever asks for the list gets all of it.
constexpr db::Sql kList =
    "SELECT name, scope_id, last_fired, interval_s FROM sentinels WHERE name >= '' "
    "ORDER BY name, scope_id";

constexpr db::NamedSql kStatements[] = {
    IL_SQL(kInsert), IL_SQL(kClaim),         IL_SQL(kMakeOnceOnly), IL_SQL(kPruneStale),
    IL_SQL(kPrune),  IL_SQL(kPruneOnceOnly), IL_SQL(kReset),        IL_SQL(kResetOfName),
    IL_SQL(kList),   IL_SQL(kKeepLonger),    IL_SQL(kPruneForGood)};

}  // namespace

Result<Verdict> ClaimSentinel(db::Transaction& tx, const SentinelId& id, std::int64_t interval_s,
                              std::int64_t now) {
  IL_CHECK(interval_s >= 0);
  IL_TRY_VOID(tx->Run(kInsert, id.name, id.scope_id, interval_s));
  IL_TRY(const auto fired, tx->One(
                               kClaim, [](const db::Row& row) { return row.Int(0); }, id.name,
                               id.scope_id, interval_s, now));
  if (fired) return Verdict::kAllowed;
  if (interval_s == 0) IL_TRY_VOID(tx->Run(kMakeOnceOnly, id.name, id.scope_id));
  const std::int64_t keep_s = interval_s == 0 ? kForGoodS : interval_s;
  if (keep_s > kKeepS) IL_TRY_VOID(tx->Run(kKeepLonger, id.name, id.scope_id, keep_s));
  return Verdict::kThrottled;
}

Result<Claimed> ClaimSentinels(Transaction& tx, std::span<const SentinelClaim> claims,
                               std::int64_t now, Prune prune) {
  Claimed claimed;
  claimed.verdicts.reserve(claims.size());
  for (const SentinelClaim& claim : claims) {
    IL_TRY(const Verdict verdict, ClaimSentinel(tx, claim.id, claim.interval_s, now));
    claimed.verdicts.push_back(verdict);
  }
  if (prune == Prune::kNot) return claimed;
  auto pruned = tx.Attempt([&]() -> Result<void> {
    IL_TRY_VOID(PruneStaleSentinels(tx, now));
    return {};
  });
  if (!pruned && !tx.is_open()) {
    return Error(Errc::kCancelled, fmt::format("{}", pruned.error().message()));
  }
  if (!pruned) claimed.not_pruned = std::move(pruned).error();
  return claimed;
}

Result<std::int64_t> PruneStaleSentinels(db::Transaction& tx, std::int64_t now) {
  return tx->Run(kPruneStale, now, now - kKeepS);
}

Result<std::int64_t> PruneSentinels(db::Transaction& tx, std::int64_t before, OnceOnly once_only,
                                    std::int64_t now) {
  IL_TRY(std::int64_t rows, tx->Run(kPrune, before, now, now - kKeepS));
  if (once_only == OnceOnly::kKeep) return rows;
  IL_TRY(const std::int64_t once, tx->Run(kPruneOnceOnly, before));
  IL_TRY(const std::int64_t for_good, tx->Run(kPruneForGood, before, kForGoodS));
  return rows + once + for_good;
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
                    .interval_s = interval_s.value_or(0) >= kForGoodS ? 0 : interval_s});
  }));
  return rows;
}

std::span<const db::NamedSql> SentinelStatements() { return kStatements; }

}  // namespace interlock::kernel
