#include "store/reservations.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/time_text.h"
#include "domain/event.h"
#include "glob/overlap.h"
#include "glob/prefix.h"
#include "glob/product.h"
#include "json/object_text.h"
#include "store/events.h"

namespace interlock::store {
namespace {

using domain::Access;
using domain::Conflict;
using domain::Reservation;

#define IL_RESERVATION_COLUMNS                                                          \
  "r.id, r.project, r.agent, r.pattern, r.literal, r.is_exclusive, r.reason, r.fence, " \
  "r.created_at, r.expires_at, r.released_at"
constexpr int kReservationColumns = 11;
constexpr int kPatternColumn = 3;
constexpr int kLiteralColumn = 4;

// reservations_by_prefix, and the primary key of agents. ?2 = now, ?3 = the agent whose own claims
// do not count, ?4 = 1 when only exclusive ones count. An agent of another project is alive all the
// same, but nothing more of it is told.
#define IL_HOLDS                                                               \
  IL_RESERVATION_COLUMNS                                                       \
  ", CASE WHEN a.project = r.project THEN a.name END, a.last_seen, a.project " \
  "FROM reservations AS r "                                                    \
  "LEFT JOIN agents AS a ON a.id = r.agent AND a.deregistered_at IS NULL "     \
  "WHERE r.released_at IS NULL AND r.project = ?1 AND r.expires_at > ?2 "      \
  "AND r.agent <> ?3 AND r.is_exclusive >= ?4 AND "
constexpr std::size_t kHoldParameters = 4;
// Once per key: for a list SQLite makes a table in memory, which costs more than all the look-ups.
constexpr db::Sql kHoldsAt = "SELECT " IL_HOLDS "r.prefix = ?5";
constexpr db::Sql kHoldsUnder = "SELECT " IL_HOLDS "r.prefix >= ?5 AND r.prefix < ?6";
constexpr db::Sql kHoldsAnywhere = "SELECT " IL_HOLDS "r.prefix >= ''";
// events_of_project for the ids, then the primary key.
constexpr db::Sql kHoldsSince =
    "SELECT " IL_HOLDS
    "r.id IN (SELECT e.entity_id FROM events AS e WHERE e.project = ?1 AND e.cursor > ?5 "
    "AND e.type IN ('reservation.created', 'reservation.renewed', 'reservation.transferred'))";
#undef IL_HOLDS

// reservations' primary key.
constexpr db::Sql kFind =
    "SELECT " IL_RESERVATION_COLUMNS " FROM reservations AS r WHERE r.id = ?1";

// reservations' primary key.
constexpr db::Sql kFindUnchanged =
    "SELECT " IL_RESERVATION_COLUMNS " FROM reservations AS r WHERE r.id = ?1 AND r.version = 1";

// reservations_held_by: an agent's own active ones are few.
constexpr db::Sql kFindSame =
    "SELECT " IL_RESERVATION_COLUMNS
    " FROM reservations AS r WHERE r.released_at IS NULL AND r.project = ?1 AND r.agent = ?2 "
    "AND r.expires_at > ?3 AND r.canonical = ?4 AND r.is_exclusive = ?5 "
    "ORDER BY r.expires_at DESC LIMIT 1";

// reservations_of_project.
constexpr db::Sql kGrantedAfter =
    "SELECT id FROM reservations WHERE released_at IS NULL AND project = ?1 AND created_at > ?2 "
    "LIMIT 1";

// reservations_held_by.
constexpr db::Sql kCountHeldBy =
    "SELECT COUNT(*) FROM reservations WHERE released_at IS NULL AND project = ?1 AND agent = ?2 "
    "AND expires_at > ?3";

// reservations_held_by: an agent's own unreleased ones are few.
constexpr db::Sql kHoldsAnything =
    "SELECT id FROM reservations WHERE released_at IS NULL AND agent = ?1 AND expires_at > ?2 "
    "LIMIT 1";

// reservations_held_by, in its order.
constexpr db::Sql kHeldBy =
    "SELECT " IL_RESERVATION_COLUMNS
    " FROM reservations AS r WHERE r.released_at IS NULL AND r.project = ?1 AND r.agent = ?2 "
    "AND r.expires_at > ?3 ORDER BY r.expires_at";

// reservations_held_by: an agent's own unreleased ones are few.
constexpr db::Sql kActiveOfAgent =
    "SELECT " IL_RESERVATION_COLUMNS
    " FROM reservations AS r WHERE r.released_at IS NULL AND r.agent = ?1 AND r.expires_at > ?2";

// reservations_of_agent, in its order from the end.
constexpr db::Sql kOfAgent = "SELECT " IL_RESERVATION_COLUMNS
                             " FROM reservations AS r WHERE r.agent = ?2 "
                             "AND r.project = coalesce(?1, r.project) "
                             "ORDER BY r.created_at DESC LIMIT ?3";

// reservations_of_project, in its order from the end.
constexpr db::Sql kOfProject =
    "SELECT " IL_RESERVATION_COLUMNS
    " FROM reservations AS r WHERE r.released_at IS NULL AND r.project = ?1 "
    "AND r.expires_at > ?2 ORDER BY r.created_at DESC LIMIT ?3";

// fences' primary key. Asked for what they changed (RETURNING), they would need a table in memory.
constexpr db::Sql kTakeFence =
    "INSERT INTO fences (project, last) VALUES (?1, 1) "
    "ON CONFLICT (project) DO UPDATE SET last = last + 1";
constexpr db::Sql kLastFence = "SELECT last FROM fences WHERE project = ?1";

// reservations' primary key.
constexpr db::Sql kInsert =
    "INSERT INTO reservations (id, project, agent, pattern, literal, is_exclusive, reason, fence, "
    "created_at, expires_at, released_at, canonical, prefix) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

// reservations' primary key.
constexpr db::Sql kUpdate =
    "UPDATE reservations SET agent = ?2, reason = ?3, fence = ?4, created_at = ?5, "
    "expires_at = ?6, released_at = ?7, version = version + 1 WHERE id = ?1";

// reservations' primary key. What they do not name they do not write anew in any index.
constexpr db::Sql kSetReleased =
    "UPDATE reservations SET released_at = ?2, version = version + 1 WHERE id = ?1";
constexpr db::Sql kSetExpiry =
    "UPDATE reservations SET expires_at = ?2, version = version + 1 WHERE id = ?1";

// reservations_held_by, once per agent of the list.
constexpr std::size_t kAgentsPerStatement = 64;
constexpr db::Sql kHeldByAny =
    "SELECT agent, pattern, literal FROM reservations "
    "WHERE released_at IS NULL AND project = ?1 AND expires_at > ?2 AND agent IN ("
    "?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,?25,?26,?27,"
    "?28,?29,?30,?31,?32,?33,?34,?35,?36,?37,?38,?39,?40,?41,?42,?43,?44,?45,?46,?47,?48,?49,?50,"
    "?51,?52,?53,?54,?55,?56,?57,?58,?59,?60,?61,?62,?63,?64,?65,?66)";

// reservations_expiring for the ids, then the primary keys of both tables.
#define IL_EXPIRED                                                                       \
  "e.id FROM reservations AS e WHERE e.released_at IS NULL AND e.expires_at < ?1 "       \
  "AND NOT EXISTS (SELECT 1 FROM agents AS a WHERE a.id = e.agent AND a.last_seen > ?2 " \
  "AND a.deregistered_at IS NULL) ORDER BY e.expires_at "
constexpr db::Sql kFindExpired = "SELECT " IL_EXPIRED "LIMIT 1";
constexpr db::Sql kSweep =
    "DELETE FROM reservations AS r WHERE r.id IN (SELECT " IL_EXPIRED
    "LIMIT ?3) "
    "RETURNING id, project, agent, pattern, literal, is_exclusive, reason, fence, created_at, "
    "expires_at, released_at";
// The same, and the primary key of agents.
constexpr db::Sql kOwnersOfExpired =
    "SELECT DISTINCT a.id, a.last_seen FROM reservations AS r "
    "JOIN agents AS a ON a.id = r.agent AND a.deregistered_at IS NULL "
    "WHERE r.id IN (SELECT " IL_EXPIRED "LIMIT ?3)";
#undef IL_EXPIRED

// reservations_released.
constexpr db::Sql kFindReleased =
    "SELECT id FROM reservations WHERE released_at IS NOT NULL AND released_at < ?1 LIMIT 1";

// reservations_released for the ids, then the primary key.
constexpr db::Sql kPruneReleased =
    "DELETE FROM reservations WHERE id IN (SELECT id FROM reservations "
    "WHERE released_at IS NOT NULL AND released_at < ?1 ORDER BY released_at LIMIT ?2)";

// reservations_expiring.
constexpr db::Sql kCountActive =
    "SELECT COUNT(*) FROM reservations WHERE released_at IS NULL AND expires_at > ?1";

constexpr db::NamedSql kStatements[] = {
    IL_SQL(kHoldsAt),      IL_SQL(kHoldsUnder),    IL_SQL(kHoldsAnywhere),   IL_SQL(kFind),
    IL_SQL(kHeldBy),       IL_SQL(kOfAgent),       IL_SQL(kOfProject),       IL_SQL(kTakeFence),
    IL_SQL(kInsert),       IL_SQL(kUpdate),        IL_SQL(kSweep),           IL_SQL(kPruneReleased),
    IL_SQL(kCountActive),  IL_SQL(kFindSame),      IL_SQL(kActiveOfAgent),   IL_SQL(kCountHeldBy),
    IL_SQL(kHeldByAny),    IL_SQL(kFindExpired),   IL_SQL(kFindUnchanged),   IL_SQL(kFindReleased),
    IL_SQL(kGrantedAfter), IL_SQL(kHoldsAnything), IL_SQL(kLastFence),       IL_SQL(kSetReleased),
    IL_SQL(kSetExpiry),    IL_SQL(kHoldsSince),    IL_SQL(kOwnersOfExpired),
};

// The columns in the order of the statements above.
Reservation ReservationFrom(const db::Row& row) {
  Reservation reservation{
      .id = row.String(0),
      .project = row.String(1),
      .agent = row.String(2),
      .pattern = row.String(3),
      .literal = row.Bool(4),
      .access = row.Bool(5) ? Access::kExclusive : Access::kShared,
      .reason = row.String(6),
      .fence = row.Int(7),
      .created_at = {row.Int(8)},
      .expires_at = {row.Int(9)},
  };
  if (const auto at = row.OptionalInt(10)) reservation.released_at = Timestamp{*at};
  return reservation;
}

std::optional<std::int64_t> ReleasedMicros(const Reservation& reservation) {
  if (!reservation.released_at) return std::nullopt;
  return reservation.released_at->micros;
}

// Calls `on_row` for each row that the index of prefixes gives, or that was granted since.
Result<void> ForEachHold(db::Connection& connection, const Claim& claim, Timestamp now,
                         const db::Connection::OnRow& on_row) {
  const glob::KeySet keys = glob::OverlapKeys(claim.pattern);
  std::array<db::Value, kHoldParameters + 2> values;
  values[0] = claim.project;
  values[1] = now.micros;
  values[2] = claim.agent;
  values[3] = std::int64_t{claim.access == Access::kShared};
  if (claim.compared_at && claim.compared_at->now <= now) {
    values[kHoldParameters] = claim.compared_at->cursor;
    IL_TRY_VOID(
        connection.Execute(kHoldsSince, std::span(values).first(kHoldParameters + 1), on_row));
    return {};
  }
  for (const std::string& key : keys.exact) {
    values[kHoldParameters] = std::string_view(key);
    IL_TRY_VOID(connection.Execute(kHoldsAt, std::span(values).first(kHoldParameters + 1), on_row));
  }
  values[kHoldParameters] = std::string_view(keys.under.lo);
  if (!keys.under.hi) {
    IL_TRY_VOID(
        connection.Execute(kHoldsAnywhere, std::span(values).first(kHoldParameters), on_row));
    return {};
  }
  values[kHoldParameters + 1] = std::string_view(*keys.under.hi);
  IL_TRY_VOID(connection.Execute(kHoldsUnder, values, on_row));
  return {};
}

template <typename... Args>
Result<std::int64_t> Count(db::Connection& connection, const db::Sql& sql, const Args&... args) {
  IL_TRY(const auto count,
         connection.One(sql, [](const db::Row& row) { return row.Int(0); }, args...));
  return count.value_or(0);
}

template <typename... Args>
Result<std::vector<Reservation>> ReadAll(db::Connection& connection, const db::Sql& sql,
                                         const Args&... args) {
  std::vector<Reservation> all;
  IL_TRY_VOID(connection.ForEach(
      sql, [&](const db::Row& row) { all.push_back(ReservationFrom(row)); }, args...));
  return all;
}

}  // namespace

Result<glob::Pattern> ParseClaim(std::string_view text, bool literal) {
  return literal ? glob::Pattern::Literal(text) : glob::Pattern::Parse(text);
}

Result<glob::Pattern> ParseHeld(std::string_view text, bool literal) {
  return literal ? glob::Pattern::Literal(text) : glob::Pattern::ParseHeld(text);
}

namespace {

// To read a row of what is held, in the steps of a glob::Budget: 33 000 rows are all of one.
constexpr std::int64_t kStepsPerRow = 60;

// Of the conflicts of one claim together. They may be thousands, told under the only write lock.
constexpr std::size_t kReasonBytesMax = std::size_t{256} * 1024;

struct TextHash {
  using is_transparent = void;  // NOLINT(readability-identifier-naming): the library looks for it
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

// The patterns that are held are compared again and again: what was parsed once is kept, each
// thread for itself, until it is too much.
Result<std::shared_ptr<const glob::Pattern>> KnownPattern(std::string_view text, bool literal) {
  constexpr std::size_t kBytesMax = std::size_t{8} << 20U;
  using Patterns = std::unordered_map<std::string, std::shared_ptr<const glob::Pattern>, TextHash,
                                      std::equal_to<>>;
  struct Known {
    std::array<Patterns, 2> patterns;  // patterns, and paths
    std::size_t bytes = 0;
  };
  thread_local Known known;
  const Patterns& same_sort = known.patterns.at(literal ? 1 : 0);
  if (const auto found = same_sort.find(text); found != same_sort.end()) return found->second;
  IL_TRY(glob::Pattern parsed, ParseHeld(text, literal));
  // What the pattern and each of its tokens take, about.
  known.bytes += 512 + 4 * text.size() + 16 * parsed.token_count();
  if (known.bytes > kBytesMax) known = {};
  auto pattern = std::make_shared<const glob::Pattern>(std::move(parsed));
  known.patterns.at(literal ? 1 : 0).emplace(text, pattern);
  return pattern;
}

}  // namespace

Result<std::vector<Conflict>> FindConflicts(db::Connection& connection, const Claim& claim,
                                            const HolderRules& rules, glob::Budget& budget) {
  std::vector<Conflict> conflicts;
  std::size_t reason_bytes = 0;
  const auto compare = [&](const db::Row& row) -> Result<void> {
    if (!budget.Spend(kStepsPerRow)) return glob::TooComplex();
    IL_TRY(const auto pattern, KnownPattern(row.Text(kPatternColumn), row.Bool(kLiteralColumn)));
    if (!budget.Spend(pattern->parse_steps())) return glob::TooComplex();
    IL_TRY(std::optional<std::string> witness, glob::Overlap(claim.pattern, *pattern, budget));
    if (!witness) return {};
    Reservation held = ReservationFrom(row);
    reason_bytes += held.reason.size();
    if (reason_bytes > kReasonBytesMax) std::string().swap(held.reason);  // with its memory
    Conflict conflict{
        .reservation_id = std::move(held.id),
        .agent = held.agent,
        .held_by = row.IsNull(kReservationColumns) ? std::move(held.agent)
                                                   : row.String(kReservationColumns),
        .pattern = std::move(held.pattern),
        .access = held.access,
        .reason = std::move(held.reason),
        .fence = held.fence,
        .expires_at = held.expires_at,
        .requested = claim.pattern.text(),
        .witness = *std::move(witness),
    };
    std::optional<Timestamp> seen;
    if (const auto at = row.OptionalInt(kReservationColumns + 1)) {
      const std::string_view home = row.Text(kReservationColumns + 2);
      seen = rules.sightings.Newest(conflict.agent, {*at});
      if (home == claim.project) conflict.last_seen = seen;
    }
    conflict.holder_state = domain::StateOf(seen, rules.now, rules.grace);
    conflicts.push_back(std::move(conflict));
    return {};
  };
  IL_TRY_VOID(ForEachHold(connection, claim, rules.now, compare));
  std::ranges::sort(conflicts, {}, &Conflict::fence);
  return conflicts;
}

Result<std::optional<Reservation>> FindReservation(db::Connection& connection,
                                                   std::string_view id) {
  return connection.One(kFind, ReservationFrom, id);
}

Result<std::optional<Reservation>> FindUnchanged(db::Connection& connection, std::string_view id) {
  return connection.One(kFindUnchanged, ReservationFrom, id);
}

Result<std::optional<Reservation>> FindSame(db::Connection& connection, const Claim& claim,
                                            Timestamp now) {
  return connection.One(kFindSame, ReservationFrom, claim.project, claim.agent, now.micros,
                        claim.pattern.canonical(), claim.access == Access::kExclusive);
}

Result<bool> WasGrantedAfter(db::Connection& connection, std::string_view project, Timestamp now) {
  IL_TRY(const auto found,
         connection.One(
             kGrantedAfter, [](const db::Row& row) { return row.String(0); }, project, now.micros));
  return found.has_value();
}

Result<std::int64_t> CountHeldBy(db::Connection& connection, std::string_view project,
                                 std::string_view agent, Timestamp now) {
  return Count(connection, kCountHeldBy, project, agent, now.micros);
}

Result<bool> HoldsAnything(db::Connection& connection, std::string_view agent, Timestamp now) {
  IL_TRY(const auto found,
         connection.One(
             kHoldsAnything, [](const db::Row& row) { return row.String(0); }, agent, now.micros));
  return found.has_value();
}

Result<std::vector<Reservation>> ListHeldBy(db::Connection& connection, std::string_view project,
                                            std::string_view agent, Timestamp now) {
  return ReadAll(connection, kHeldBy, project, agent, now.micros);
}

Result<std::vector<HeldPattern>> ListHeldByAny(db::Connection& connection, std::string_view project,
                                               std::span<const std::string> agents, Timestamp now) {
  std::vector<HeldPattern> all;
  const auto take = [&](const db::Row& row) -> Result<void> {
    all.push_back({.agent = row.String(0), .pattern = row.String(1), .literal = row.Bool(2)});
    return {};
  };
  std::array<db::Value, 2 + kAgentsPerStatement> values;
  values[0] = project;
  values[1] = now.micros;
  for (std::size_t begin = 0; begin < agents.size(); begin += kAgentsPerStatement) {
    const auto some = agents.subspan(begin, std::min(kAgentsPerStatement, agents.size() - begin));
    for (std::size_t i = 0; i < kAgentsPerStatement; ++i) {
      values[2 + i] = std::string_view(some[std::min(i, some.size() - 1)]);
    }
    IL_TRY_VOID(connection.Execute(kHeldByAny, values, take));
  }
  return all;
}

Result<std::vector<Reservation>> ListActiveOfAgent(db::Connection& connection,
                                                   std::string_view agent, Timestamp now) {
  return ReadAll(connection, kActiveOfAgent, agent, now.micros);
}

Result<std::vector<Reservation>> ListOfAgent(db::Connection& connection,
                                             std::optional<std::string_view> project,
                                             std::string_view agent, std::int64_t limit) {
  return ReadAll(connection, kOfAgent, project, agent, limit);
}

Result<std::vector<Reservation>> ListOfProject(db::Connection& connection, std::string_view project,
                                               Timestamp now, std::int64_t limit) {
  return ReadAll(connection, kOfProject, project, now.micros, limit);
}

Result<std::int64_t> TakeFence(db::Transaction& tx, std::string_view project) {
  IL_TRY_VOID(tx->Run(kTakeFence, project));
  IL_TRY(const auto fence,
         tx->One(kLastFence, [](const db::Row& row) { return row.Int(0); }, project));
  if (!fence) return Error(Errc::kInternal, "a fence was taken, and none came back");
  return *fence;
}

Result<void> InsertReservation(db::Transaction& tx, const Reservation& reservation,
                               const glob::Pattern& pattern) {
  const std::string prefix = glob::PrefixKey(pattern);
  IL_TRY_VOID(
      tx->Run(kInsert, reservation.id, reservation.project, reservation.agent, reservation.pattern,
              reservation.literal, reservation.access == Access::kExclusive, reservation.reason,
              reservation.fence, reservation.created_at.micros, reservation.expires_at.micros,
              ReleasedMicros(reservation), pattern.canonical(), prefix));
  return {};
}

Result<void> UpdateReservation(db::Transaction& tx, const Reservation& reservation) {
  IL_TRY_VOID(tx->Run(kUpdate, reservation.id, reservation.agent, reservation.reason,
                      reservation.fence, reservation.created_at.micros,
                      reservation.expires_at.micros, ReleasedMicros(reservation)));
  return {};
}

Result<void> SetReleased(db::Transaction& tx, std::string_view id, Timestamp at) {
  IL_TRY_VOID(tx->Run(kSetReleased, id, at.micros));
  return {};
}

Result<void> SetExpiry(db::Transaction& tx, std::string_view id, Timestamp at) {
  IL_TRY_VOID(tx->Run(kSetExpiry, id, at.micros));
  return {};
}

Result<std::vector<Reservation>> SweepReservations(db::Transaction& tx, const SweepQuery& query) {
  auto swept = ReadAll(tx.connection(), kSweep, query.expired_before.micros,
                       query.seen_after.micros, query.limit);
  if (swept.ok()) std::ranges::sort(*swept, {}, &Reservation::expires_at);
  return swept;
}

Result<std::vector<ExpiredOwner>> FindOwnersOfExpired(db::Connection& connection,
                                                      const SweepQuery& query) {
  std::vector<ExpiredOwner> owners;
  const auto take = [&owners](const db::Row& row) {
    owners.push_back({row.String(0), {row.Int(1)}});
  };
  IL_TRY_VOID(connection.ForEach(kOwnersOfExpired, take, query.expired_before.micros,
                                 query.seen_after.micros, query.limit));
  return owners;
}

Result<bool> HasExpired(db::Connection& connection, const SweepQuery& query) {
  IL_TRY(const auto found, connection.One(
                               kFindExpired, [](const db::Row& row) { return row.String(0); },
                               query.expired_before.micros, query.seen_after.micros));
  return found.has_value();
}

Result<bool> HasReleased(db::Connection& connection, Timestamp released_before) {
  IL_TRY(const auto found, connection.One(
                               kFindReleased, [](const db::Row& row) { return row.String(0); },
                               released_before.micros));
  return found.has_value();
}

Result<std::int64_t> PruneReleased(db::Transaction& tx, Timestamp released_before,
                                   std::int64_t limit) {
  return tx->Run(kPruneReleased, released_before.micros, limit);
}

Result<std::int64_t> CountActive(db::Connection& connection, Timestamp now) {
  return Count(connection, kCountActive, now.micros);
}

std::string ReservationJson(const Reservation& reservation, Timestamp now) {
  json::ObjectText text;
  text.Add("id", reservation.id)
      .Add("agent_id", reservation.agent)
      .Add("project", reservation.project)
      .Add("path_pattern", reservation.pattern);
  if (reservation.literal) text.Add("literal", true);
  text.Add("exclusive", reservation.access == Access::kExclusive);
  if (!reservation.reason.empty()) text.Add("reason", reservation.reason);
  text.Add("fence", reservation.fence)
      .Add("created_at", FormatRfc3339(reservation.created_at))
      .Add("expires_at", FormatRfc3339(reservation.expires_at));
  if (reservation.released_at) text.Add("released_at", FormatRfc3339(*reservation.released_at));
  return text.Add("is_active", domain::IsActive(reservation, now)).Text();
}

std::string ConflictJson(const Conflict& conflict) {
  json::ObjectText text;
  if (conflict.reservation_id) {
    text.Add("reservation_id", *conflict.reservation_id);
  } else {
    text.Add("waiting", true);
  }
  text.Add("agent_id", conflict.agent)
      .Add("held_by", conflict.held_by)
      .Add("pattern", conflict.pattern)
      .Add("exclusive", conflict.access == Access::kExclusive);
  if (!conflict.reason.empty()) text.Add("reason", conflict.reason);
  text.Add("expires_at", FormatRfc3339(conflict.expires_at));
  if (conflict.fence) text.Add("fence", *conflict.fence);
  if (conflict.last_seen) text.Add("last_seen", FormatRfc3339(*conflict.last_seen));
  return text.Add("holder_state", Name(conflict.holder_state))
      .Add("requested", conflict.requested)
      .Add("witness", conflict.witness)
      .Text();
}

std::string RefusalJson(std::string_view agent, const std::vector<std::string>& patterns,
                        std::span<const Conflict> conflicts, std::size_t enough_bytes) {
  json::ArrayText texts;
  std::size_t bytes = 0;
  for (const Conflict& one : conflicts) {
    if (bytes > enough_bytes) break;
    const std::string text = ConflictJson(one);
    bytes += text.size();
    texts.AddRaw(text);
  }
  return json::ObjectText()
      .Add("agent_id", agent)
      .Add("path_patterns", patterns)
      .Add("conflicts", texts)
      .Text();
}

Result<void> AppendReservationEvent(db::Transaction& tx, std::string_view type,
                                    const Reservation& reservation, std::string_view agent,
                                    Timestamp at) {
  IL_TRY_VOID(AppendEvent(tx, {.type = std::string(type),
                               .project = reservation.project,
                               .entity_id = reservation.id,
                               .agent = std::string(agent),
                               .created_at = at,
                               .data = ReservationJson(reservation, at)}));
  return {};
}

std::span<const db::NamedSql> ReservationStatements() { return kStatements; }

}  // namespace interlock::store
