#include "store/pokes.h"

#include <utility>

#include "json/object_text.h"
#include "store/events.h"

namespace interlock::store {
namespace {

using domain::DeliveryState;

// pokes' primary key.
constexpr db::Sql kStage =
    "INSERT INTO pokes (cursor, recipient, project) VALUES (?1, ?2, ?3) "
    "ON CONFLICT (cursor, recipient) DO NOTHING";

// pokes' primary key.
constexpr db::Sql kMarkInjected =
    "UPDATE pokes SET injected_at = coalesce(injected_at, ?3) WHERE cursor = ?1 AND recipient = ?2";

// messages_by_id, then pokes' primary key.
constexpr db::Sql kSurface =
    "UPDATE pokes SET surfaced_at = ?4 WHERE recipient = ?2 AND surfaced_at IS NULL "
    "AND injected_at IS NULL "
    "AND cursor = (SELECT cursor FROM messages WHERE project = ?1 AND id = ?3)";

// pokes_pending, then the tables of messages and agents by their keys.
constexpr db::Sql kListPending =
    "SELECT m.id, m.sender, m.body, m.created_at, coalesce(m.thread_id, ''), coalesce(a.name, '') "
    "FROM pokes AS p JOIN messages AS m ON m.cursor = p.cursor "
    "LEFT JOIN agents AS a ON a.id = m.sender "
    "WHERE p.project = ?1 AND p.recipient = ?2 AND p.injected_at IS NULL "
    "AND p.surfaced_at IS NULL ORDER BY p.cursor LIMIT ?3";

// pokes' primary key.
constexpr db::Sql kOfMessage = "SELECT recipient, injected_at FROM pokes WHERE cursor = ?1";

constexpr db::NamedSql kStatements[] = {
    IL_SQL(kStage),       IL_SQL(kMarkInjected), IL_SQL(kSurface),
    IL_SQL(kListPending), IL_SQL(kOfMessage),
};

Result<void> Log(db::Transaction& tx, std::string_view project, std::string_view message_id,
                 std::string_view agent, Timestamp at, std::string data) {
  IL_TRY_VOID(tx.LockProject(project));
  IL_TRY_VOID(AppendEvent(tx, {.type = domain::event_type::kWindowPoke,
                               .project = std::string(project),
                               .entity_id = std::string(message_id),
                               .agent = std::string(agent),
                               .created_at = at,
                               .data = std::move(data)}));
  return {};
}

}  // namespace

Result<void> StagePoke(db::Transaction& tx, domain::Cursor cursor, std::string_view project,
                       std::string_view recipient) {
  IL_TRY_VOID(tx->Run(kStage, cursor, recipient, project));
  return {};
}

Result<void> MarkInjected(db::Transaction& tx, domain::Cursor cursor, std::string_view recipient,
                          Timestamp at) {
  IL_TRY_VOID(tx->Run(kMarkInjected, cursor, recipient, at.micros));
  return {};
}

Result<bool> SurfacePoke(db::Transaction& tx, std::string_view project, std::string_view recipient,
                         std::string_view message_id, Timestamp at) {
  IL_TRY(const std::int64_t changed, tx->Run(kSurface, project, recipient, message_id, at.micros));
  if (changed == 0) return false;
  json::ObjectText data;
  data.Add("message_id", message_id).Add("recipient", recipient).Add("result", "surfaced");
  IL_TRY_VOID(Log(tx, project, message_id, recipient, at, data.Text()));
  return true;
}

Result<void> ListPendingPokes(db::Connection& connection, std::string_view project,
                              std::string_view recipient, std::int64_t limit,
                              const std::function<void(const PendingPoke&)>& take) {
  IL_TRY_VOID(connection.ForEach(
      kListPending,
      [&take](const db::Row& row) {
        take({.message_id = row.Text(0),
              .sender = row.Text(1),
              .sender_name = row.Text(5),
              .thread_id = row.Text(4),
              .body = row.Text(2),
              .created_at = {row.Int(3)}});
      },
      project, recipient, limit));
  return {};
}

Result<std::map<std::string, DeliveryState>> PokesOf(db::Connection& connection,
                                                     domain::Cursor cursor) {
  std::map<std::string, DeliveryState> pokes;
  IL_TRY_VOID(connection.ForEach(
      kOfMessage,
      [&](const db::Row& row) {
        pokes[row.String(0)] = row.IsNull(1) ? DeliveryState::kDeferred : DeliveryState::kInjected;
      },
      cursor));
  return pokes;
}

Result<void> LogPoke(db::Transaction& tx, const PokeAttempt& attempt, Timestamp at) {
  json::ObjectText data;
  data.Add("message_id", attempt.message_id)
      .Add("from", attempt.sender)
      .Add("recipient", attempt.recipient)
      .Add("result", Name(attempt.state));
  if (!attempt.reason.empty()) data.Add("reason", attempt.reason);
  return Log(tx, attempt.project, attempt.message_id, attempt.sender, at, data.Text());
}

std::span<const db::NamedSql> PokeStatements() { return kStatements; }

}  // namespace interlock::store
