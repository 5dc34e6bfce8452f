#include "store/events.h"

#include "base/check.h"

namespace interlock::store {
namespace {

// The table's end.
constexpr db::Sql kAppend =
    "INSERT INTO events (type, project, entity_id, agent, created_at, data) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING cursor";

constexpr db::NamedSql kStatements[] = {IL_SQL(kAppend)};

}  // namespace

Result<domain::Cursor> AppendEvent(db::Transaction& tx, const domain::Event& event) {
  IL_TRY_VOID(tx.LockProject(event.project));
  std::optional<std::string_view> data;
  if (!event.data.empty()) data = event.data;
  IL_TRY(const auto cursor,
         tx->One(
             kAppend, [](const db::Row& row) { return row.Int(0); }, event.type, event.project,
             event.entity_id, event.agent, event.created_at.micros, data));
  IL_CHECK(cursor.has_value());
  return *cursor;
}

std::span<const db::NamedSql> EventStatements() { return kStatements; }

}  // namespace interlock::store
