#include "store/mirror.h"

#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "json/codec.h"
#include "store/events.h"
#include "store/reservations.h"

namespace interlock::store {
namespace {

using domain::Access;
using domain::Reservation;

// events' primary key. Only of one type the data is needed, and that of others may be long.
constexpr db::Sql kChanges =
    "SELECT cursor, type, entity_id, created_at, "
    "CASE WHEN type = 'reservation.expired' THEN data END "
    "FROM events WHERE cursor > ?1 ORDER BY cursor LIMIT ?2";

// meta's primary key.
constexpr db::Sql kLoadMark = "SELECT value FROM meta WHERE key = ?1";
constexpr db::Sql kSaveMark =
    "INSERT INTO meta (key, value) VALUES (?1, ?2) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value";

constexpr db::NamedSql kStatements[] = {IL_SQL(kChanges), IL_SQL(kLoadMark), IL_SQL(kSaveMark)};

// Part of the file's format: a MarkText.
constexpr std::string_view kMarkKey = "intercore_mirror";

struct MarkText {
  std::int64_t cursor = 0;
  std::string last_id = {};
  std::string last_owner = {};
  std::int64_t last_expires_at = 0;
  std::int64_t last_released_at = 0;
};
IL_JSON_FIELDS(MarkText, cursor, last_id, last_owner, last_expires_at, last_released_at)

// What ReservationJson() writes, as far as it is needed here.
struct ReservationText {
  std::string agent_id;
  std::string project;
  std::string path_pattern;
  std::optional<bool> literal;
  bool exclusive = false;
  std::optional<std::string> reason;
  std::int64_t fence = 0;
  Timestamp created_at;
  Timestamp expires_at;
};
IL_JSON_FIELDS(ReservationText, agent_id, project, path_pattern, literal, exclusive, reason, fence,
               created_at, expires_at)

// An event that tells of a reservation.
struct Change {
  std::string id;
  Timestamp at;
  std::string data = {};  // of reservation.expired only
};

// The reservation that an event of type reservation.expired tells of; nothing when its data is not
// what we write: one bad row must not stop the copy.
std::optional<Reservation> ExpiredBy(const Change& change) {
  auto text = json::DecodeText<ReservationText>(change.data, json::kLenient);
  if (!text.ok()) return std::nullopt;
  return Reservation{.id = change.id,
                     .project = std::move(text->project),
                     .agent = std::move(text->agent_id),
                     .pattern = std::move(text->path_pattern),
                     .literal = text->literal.value_or(false),
                     .access = text->exclusive ? Access::kExclusive : Access::kShared,
                     .reason = std::move(text->reason).value_or(""),
                     .fence = text->fence,
                     .created_at = text->created_at,
                     .expires_at = text->expires_at,
                     .released_at = change.at};
}

// As it is now. Nothing when it is no longer there: the event of its end comes later in the log, or
// it ended so long ago that it is forgotten.
Result<std::optional<Reservation>> Current(db::Connection& connection, const Change& change) {
  IL_TRY(std::optional<Reservation> found, FindReservation(connection, change.id));
  if (!found && !change.data.empty()) found = ExpiredBy(change);
  return found;
}

}  // namespace

Result<ReservationChanges> ReadReservationChanges(db::Connection& connection, domain::Cursor after,
                                                  std::size_t rows_max) {
  IL_TRY_VOID(RefuseExpired(connection, after));
  ReservationChanges changes{.reached = after};
  std::vector<Change> told;
  std::size_t rows = 0;
  const auto add = [&](const db::Row& row) {
    ++rows;
    changes.reached = row.Int(0);
    if (!row.Text(1).starts_with("reservation.")) return;
    told.push_back({.id = row.String(2), .at = {row.Int(3)}, .data = row.String(4)});
  };
  IL_TRY_VOID(connection.ForEach(kChanges, add, after, static_cast<std::int64_t>(rows_max)));
  changes.ended = rows < rows_max;
  std::unordered_set<std::string_view> seen;
  for (const Change& change : told) {
    if (seen.contains(change.id)) continue;
    IL_TRY(std::optional<Reservation> current, Current(connection, change));
    if (!current) continue;
    seen.insert(change.id);
    changes.changed.push_back(*std::move(current));
  }
  return changes;
}

Result<MirrorMark> LoadMirrorMark(db::Connection& connection) {
  IL_TRY(const auto text,
         connection.One(kLoadMark, [](const db::Row& row) { return row.String(0); }, kMarkKey));
  if (!text) return MirrorMark{};
  auto mark = json::DecodeText<MarkText>(*text, json::kStrict);
  if (!mark.ok() || mark->cursor < 0) return MirrorMark{};
  return MirrorMark{.cursor = mark->cursor,
                    .last_id = std::move(mark->last_id),
                    .last_owner = std::move(mark->last_owner),
                    .last_expires_at = mark->last_expires_at,
                    .last_released_at = mark->last_released_at};
}

Result<void> SaveMirrorMark(db::Transaction& tx, const MirrorMark& mark) {
  const std::string text = json::EncodeText(MarkText{.cursor = mark.cursor,
                                                     .last_id = mark.last_id,
                                                     .last_owner = mark.last_owner,
                                                     .last_expires_at = mark.last_expires_at,
                                                     .last_released_at = mark.last_released_at});
  IL_TRY_VOID(tx->Run(kSaveMark, kMarkKey, text));
  return {};
}

std::span<const db::NamedSql> MirrorStatements() { return kStatements; }

}  // namespace interlock::store
