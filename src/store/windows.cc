#include "store/windows.h"

#include <utility>

#include "base/check.h"
#include "base/time_text.h"
#include "json/object_text.h"
#include "store/events.h"

namespace interlock::store {
namespace {

using domain::Window;

#define IL_WINDOW_COLUMNS                                                                \
  "id, project, uuid, agent_id, display_name, tmux_target, created_at, last_active_at, " \
  "expired_at"

// windows' primary key.
constexpr db::Sql kPut =
    "INSERT INTO windows (id, project, uuid, agent_id, display_name, tmux_target, created_at, "
    "last_active_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7) "
    "ON CONFLICT (project, uuid) DO UPDATE SET agent_id = excluded.agent_id, "
    "display_name = excluded.display_name, tmux_target = excluded.tmux_target, "
    "last_active_at = excluded.last_active_at, expired_at = NULL "
    "RETURNING " IL_WINDOW_COLUMNS;

// windows' primary key.
constexpr db::Sql kExpire =
    "UPDATE windows SET expired_at = ?3 "
    "WHERE project = ?1 AND uuid = ?2 AND expired_at IS NULL RETURNING " IL_WINDOW_COLUMNS;

// windows' primary key.
constexpr db::Sql kFind =
    "SELECT " IL_WINDOW_COLUMNS " FROM windows WHERE project = ?1 AND uuid = ?2";

// windows_active, read from its end; the UUID, which it ends with, settles equal times.
constexpr db::Sql kList = "SELECT " IL_WINDOW_COLUMNS
                          " FROM windows WHERE project = ?1 AND expired_at IS NULL "
                          "ORDER BY last_active_at DESC, uuid DESC LIMIT ?2";
#undef IL_WINDOW_COLUMNS

// agents' primary key.
constexpr db::Sql kFocus =
    "SELECT focus_state, focus_at FROM agents WHERE id = ?1 AND deregistered_at IS NULL";

// windows_of_agent, read from its end.
constexpr db::Sql kTarget =
    "SELECT tmux_target FROM windows "
    "WHERE project = ?1 AND agent_id = ?2 AND expired_at IS NULL AND tmux_target <> '' "
    "ORDER BY last_active_at DESC, uuid DESC LIMIT 1";

// config's primary key.
constexpr db::Sql kIsLiveTransportOn = "SELECT live_transport_enabled FROM config WHERE id = 1";

constexpr db::NamedSql kStatements[] = {
    IL_SQL(kPut),
    IL_SQL(kExpire),
    IL_SQL(kFind),
    IL_SQL(kList),
    IL_SQL(kFocus),
    IL_SQL(kTarget),
    IL_SQL(kIsLiveTransportOn),
};

Window ReadWindow(const db::Row& row) {
  Window window{.id = row.String(0),
                .project = row.String(1),
                .uuid = row.String(2),
                .agent_id = row.String(3),
                .display_name = row.String(4),
                .tmux_target = row.String(5),
                .created_at = {row.Int(6)},
                .last_active_at = {row.Int(7)}};
  if (const auto at = row.OptionalInt(8)) window.expired_at = Timestamp{*at};
  return window;
}

Result<void> Log(db::Transaction& tx, const char* type, const Window& window, Timestamp at) {
  IL_TRY_VOID(AppendEvent(tx, {.type = type,
                               .project = window.project,
                               .entity_id = window.uuid,
                               .agent = window.agent_id,
                               .created_at = at,
                               .data = WindowJson(window)}));
  return {};
}

}  // namespace

Result<Window> PutWindow(db::Transaction& tx, const Window& window) {
  IL_TRY_VOID(tx.LockProject(window.project));
  IL_TRY(auto kept,
         tx->One(kPut, ReadWindow, window.id, window.project, window.uuid, window.agent_id,
                 window.display_name, window.tmux_target, window.last_active_at.micros));
  IL_CHECK(kept.has_value());
  IL_TRY_VOID(Log(tx, domain::event_type::kWindowUpdated, *kept, window.last_active_at));
  return *std::move(kept);
}

Result<std::optional<Window>> ExpireWindow(db::Transaction& tx, std::string_view project,
                                           std::string_view uuid, Timestamp at) {
  IL_TRY_VOID(tx.LockProject(project));
  IL_TRY(auto expired, tx->One(kExpire, ReadWindow, project, uuid, at.micros));
  if (expired) IL_TRY_VOID(Log(tx, domain::event_type::kWindowExpired, *expired, at));
  return expired;
}

Result<std::optional<Window>> FindWindow(db::Connection& connection, std::string_view project,
                                         std::string_view uuid) {
  return connection.One(kFind, ReadWindow, project, uuid);
}

Result<void> ListWindows(db::Connection& connection, std::string_view project, std::int64_t limit,
                         const std::function<void(const Window&)>& take) {
  IL_TRY_VOID(connection.ForEach(
      kList, [&take](const db::Row& row) { take(ReadWindow(row)); }, project, limit));
  return {};
}

Result<Desk> FindDesk(db::Connection& connection, std::string_view project, std::string_view agent,
                      std::string_view window_uuid, Timestamp now) {
  Desk desk;
  IL_TRY_VOID(connection.ForEach(
      kFocus,
      [&](const db::Row& row) {
        const auto told = domain::ParseFocusState(row.Text(0));
        desk.focus = domain::CurrentFocus(told.value_or(domain::FocusState::kUnknown),
                                          Timestamp{row.Int(1)}, now);
      },
      agent));
  if (!window_uuid.empty()) {
    IL_TRY(const auto window, FindWindow(connection, project, window_uuid));
    const bool its_own = window && !window->expired_at && window->agent_id == agent;
    if (its_own) desk.tmux_target = window->tmux_target;
    return desk;
  }
  IL_TRY(const auto target,
         connection.One(kTarget, [](const db::Row& row) { return row.String(0); }, project, agent));
  desk.tmux_target = target.value_or("");
  return desk;
}

std::string WindowJson(const Window& window) {
  json::ObjectText text;
  text.Add("id", window.id)
      .Add("project", window.project)
      .Add("window_uuid", window.uuid)
      .Add("agent_id", window.agent_id)
      .Add("display_name", window.display_name);
  if (!window.tmux_target.empty()) text.Add("tmux_target", window.tmux_target);
  text.Add("created_at", FormatRfc3339(window.created_at))
      .Add("last_active_at", FormatRfc3339(window.last_active_at));
  if (window.expired_at) text.Add("expires_at", FormatRfc3339(*window.expired_at));
  return text.Text();
}

Result<bool> IsLiveTransportOn(db::Connection& connection) {
  IL_TRY(const auto on,
         connection.One(kIsLiveTransportOn, [](const db::Row& row) { return row.Bool(0); }));
  return on.value_or(true);
}

std::span<const db::NamedSql> WindowStatements() { return kStatements; }

}  // namespace interlock::store
