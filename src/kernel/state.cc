#include "kernel/state.h"

#include <fmt/format.h>

#include "kernel/payload.h"

namespace interlock::kernel {
namespace {

// The table's primary key.
constexpr db::Sql kFind =
    "SELECT key, scope_id, version, updated_at, expires_at, payload FROM state "
    "WHERE key = ?1 AND scope_id = ?2 AND (expires_at IS NULL OR expires_at > ?3)";

// The table's primary key, in index order.
constexpr db::Sql kListOfKey =
    "SELECT key, scope_id, version, updated_at, expires_at FROM state "
    "WHERE key = ?1 AND (expires_at IS NULL OR expires_at > ?2) ORDER BY scope_id";

// ic_state_scope
constexpr db::Sql kListOfScope =
    "SELECT key, scope_id, version, updated_at, expires_at FROM state "
    "WHERE scope_id = ?1 AND (expires_at IS NULL OR expires_at > ?2) ORDER BY key";

// The table's primary key. ?4 is now.
constexpr db::Sql kSet =
    "INSERT INTO state (key, scope_id, payload, updated_at, expires_at, version) "
    "VALUES (?1, ?2, ?3, ?4, ?5, 1) ON CONFLICT (key, scope_id) DO UPDATE SET "
    "payload = excluded.payload, updated_at = excluded.updated_at, "
    "expires_at = excluded.expires_at, version = CASE WHEN state.expires_at IS NOT NULL "
    "AND state.expires_at <= excluded.updated_at THEN 1 ELSE state.version + 1 END "
    "RETURNING version";

// The table's primary key. ?4 is now.
constexpr db::Sql kSetIfAbsent =
    "INSERT INTO state (key, scope_id, payload, updated_at, expires_at, version) "
    "VALUES (?1, ?2, ?3, ?4, ?5, 1) ON CONFLICT (key, scope_id) DO UPDATE SET "
    "payload = excluded.payload, updated_at = excluded.updated_at, "
    "expires_at = excluded.expires_at, version = 1 "
    "WHERE (state.expires_at IS NOT NULL AND state.expires_at <= excluded.updated_at) "
    "RETURNING version";

// The table's primary key.
constexpr db::Sql kSetIfVersion =
    "UPDATE state SET payload = ?3, updated_at = ?4, expires_at = ?5, version = version + 1 "
    "WHERE key = ?1 AND scope_id = ?2 AND version = ?6 "
    "AND (expires_at IS NULL OR expires_at > ?4) RETURNING version";

// The table's primary key. The caller checks the expiry: SQLite 3.40 evaluates IS NULL wrongly in
// the RETURNING clause of a DELETE.
constexpr db::Sql kDelete =
    "DELETE FROM state WHERE key = ?1 AND scope_id = ?2 RETURNING expires_at";

// The table's primary key.
constexpr db::Sql kPruneOfKey =
    "DELETE FROM state WHERE key = ?1 AND expires_at IS NOT NULL AND expires_at <= ?2";

// The table's primary key.
constexpr db::Sql kDeleteOfKey = "DELETE FROM state WHERE key = ?1";

// ic_state_expires
constexpr db::Sql kPrune = "DELETE FROM state WHERE expires_at IS NOT NULL AND expires_at <= ?1";

constexpr db::NamedSql kStatements[] = {
    IL_SQL(kFind),        IL_SQL(kListOfKey),    IL_SQL(kListOfScope), IL_SQL(kSet),
    IL_SQL(kSetIfAbsent), IL_SQL(kSetIfVersion), IL_SQL(kDelete),      IL_SQL(kDeleteOfKey),
    IL_SQL(kPruneOfKey),  IL_SQL(kPrune)};

StateEntry WithoutPayload(const db::Row& row) {
  return {.key = row.String(0),
          .scope_id = row.String(1),
          .version = row.Int(2),
          .updated_at = row.Int(3),
          .expires_at = row.OptionalInt(4),
          .payload = {}};
}

StateEntry WithPayload(const db::Row& row) {
  StateEntry state = WithoutPayload(row);
  state.payload = row.String(5);
  return state;
}

std::int64_t VersionOf(const db::Row& row) { return row.Int(0); }

// Cannot overflow: TtlSeconds() limits the time to live.
std::optional<std::int64_t> ExpiresAt(std::int64_t now, std::optional<std::int64_t> ttl_s) {
  if (!ttl_s) return std::nullopt;
  return now + *ttl_s;
}

Result<std::vector<StateEntry>> List(db::Connection& connection, const db::Sql& sql,
                                     std::string_view of, std::int64_t now) {
  std::vector<StateEntry> rows;
  IL_TRY_VOID(connection.ForEach(
      sql, [&](const db::Row& row) { rows.push_back(WithoutPayload(row)); }, of, now));
  return rows;
}

}  // namespace

Result<std::optional<StateEntry>> FindState(db::Connection& connection, const StateId& id,
                                            std::int64_t now) {
  return connection.One(kFind, WithPayload, id.key, id.scope_id, now);
}

Result<std::vector<StateEntry>> ListStateOfKey(db::Connection& connection, std::string_view key,
                                               std::int64_t now) {
  return List(connection, kListOfKey, key, now);
}

Result<std::vector<StateEntry>> ListStateOfScope(db::Connection& connection,
                                                 std::string_view scope_id, std::int64_t now) {
  return List(connection, kListOfScope, scope_id, now);
}

Result<std::optional<std::int64_t>> SetState(db::Transaction& tx, const StateId& id,
                                             const StateWrite& write, std::int64_t now) {
  const auto expires_at = ExpiresAt(now, write.ttl_s);
  if (write.if_version.value_or(0) > 0) {
    return tx->One(kSetIfVersion, VersionOf, id.key, id.scope_id, write.payload, now, expires_at,
                   *write.if_version);
  }
  const db::Sql& sql = write.if_version ? kSetIfAbsent : kSet;
  return tx->One(sql, VersionOf, id.key, id.scope_id, write.payload, now, expires_at);
}

Result<Counter> IncrementState(db::Transaction& tx, const StateId& id,
                               const StateIncrement& increment, std::int64_t now) {
  IL_TRY(const auto found, FindState(tx.connection(), id, now));
  const auto before = found ? IntegerIn(found->payload) : 0;
  if (!before) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("the value of '{}' is not a 64-bit integer", id.key))
        .WithDetail("do", "read it with 'ic state get', replace it with 'ic state set'");
  }
  Counter counter;
  if (__builtin_add_overflow(*before, increment.by, &counter.value)) {
    return Error(Errc::kInvalidArgument, fmt::format("'{}' is {}; adding {} exceeds 64 bits",
                                                     id.key, *before, increment.by))
        .WithDetail("do", "reset it with 'ic state set'");
  }
  std::optional<std::int64_t> expires_at = found ? found->expires_at : std::nullopt;
  if (increment.expiry == StateIncrement::Expiry::kSet) {
    expires_at = ExpiresAt(now, increment.ttl_s);
  }
  const std::string payload = std::to_string(counter.value);
  IL_TRY(const auto version,
         tx->One(kSet, VersionOf, id.key, id.scope_id, payload, now, expires_at));
  IL_CHECK(version.has_value());
  counter.version = *version;
  return counter;
}

Result<bool> DeleteState(db::Transaction& tx, const StateId& id, std::int64_t now) {
  const auto is_live = [now](const db::Row& row) {
    const std::optional<std::int64_t> expires_at = row.OptionalInt(0);
    return !expires_at || *expires_at > now;
  };
  IL_TRY(const std::optional<bool> live, tx->One(kDelete, is_live, id.key, id.scope_id));
  return live.value_or(false);
}

Result<std::int64_t> DeleteStateOfKey(db::Transaction& tx, std::string_view key, std::int64_t now) {
  IL_TRY_VOID(tx->Run(kPruneOfKey, key, now));
  return tx->Run(kDeleteOfKey, key);
}

Result<std::int64_t> PruneState(db::Transaction& tx, std::int64_t now) {
  return tx->Run(kPrune, now);
}

std::span<const db::NamedSql> StateStatements() { return kStatements; }

}  // namespace interlock::kernel
