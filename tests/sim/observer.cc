#include "sim/observer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "domain/event.h"
#include "sim/paths.h"
#include "store/events.h"

namespace interlock::sim {
namespace {

constexpr db::Sql kEvents =
    "SELECT cursor, type, project, entity_id, agent, created_at FROM events WHERE cursor > ?1 "
    "ORDER BY cursor";
// By way of the agents, since no index leads from a cursor to its inboxes.
constexpr db::Sql kRecipients =
    "SELECT i.agent FROM agents AS a JOIN inbox AS i ON i.project = ?1 AND i.agent = a.id "
    "AND i.cursor = ?2 ORDER BY i.agent";
constexpr db::Sql kSubject = "SELECT subject FROM messages WHERE cursor = ?1";
constexpr db::Sql kHolds =
    "SELECT id, project, agent, pattern, is_exclusive, reason, fence, expires_at, version "
    "FROM reservations WHERE released_at IS NULL";
constexpr db::Sql kIntegrity = "PRAGMA integrity_check";
constexpr db::Sql kMiscounted =
    "SELECT project || ' ' || agent FROM (SELECT project, agent, total, unread FROM mailboxes "
    "UNION ALL SELECT project, agent, count(*), count(*) - count(read_at) FROM inbox "
    "GROUP BY project, agent) GROUP BY project, agent, total, unread HAVING count(*) <> 2";
constexpr db::Sql kMislaid =
    "SELECT agent || ' ' || cursor FROM (SELECT i.agent, i.cursor, i.project FROM inbox AS i "
    "JOIN mailboxes AS b USING (project, agent) WHERE b.home = 0 UNION ALL "
    "SELECT agent, cursor, project FROM inbox_abroad) "
    "GROUP BY agent, cursor, project HAVING count(*) <> 2";
constexpr db::Sql kLiving = "SELECT id, last_seen FROM agents WHERE deregistered_at IS NULL";

}  // namespace

std::string Observer::Integrity() {
  std::string found;
  const auto read = connection_->ForEach(kIntegrity, [&](const db::Row& row) {
    found += found.empty() ? row.String(0) : "; " + row.String(0);
  });
  if (!read.ok()) return read.error().message();
  for (const db::Sql& wrong : {kMiscounted, kMislaid}) {
    const auto looked = connection_->ForEach(
        wrong, [&](const db::Row& row) { found += "; of inboxes: " + row.String(0); });
    if (!looked.ok()) return looked.error().message();
  }
  return found;
}

std::vector<LoggedEvent> Observer::Events(Cursor after) {
  std::vector<LoggedEvent> events;
  const auto read = connection_->ForEach(
      kEvents,
      [&](const db::Row& row) {
        events.push_back({.cursor = row.Int(0),
                          .type = row.String(1),
                          .project = row.String(2),
                          .entity_id = row.String(3),
                          .agent = row.String(4),
                          .created_at = {row.Int(5)}});
      },
      after);
  IL_CHECK(read.ok());
  for (LoggedEvent& event : events) {
    if (event.type != domain::event_type::kMessageCreated) continue;
    const auto to = connection_->ForEach(
        kRecipients, [&](const db::Row& row) { event.recipients.push_back(row.String(0)); },
        event.project, event.cursor);
    IL_CHECK(to.ok());
    event.subject =
        connection_->One(
                       kSubject, [](const db::Row& row) { return row.String(0); }, event.cursor)
            .value()
            .value_or("");
  }
  return events;
}

std::vector<HoldRow> Observer::Holds() {
  std::vector<HoldRow> holds;
  const auto read = connection_->ForEach(kHolds, [&](const db::Row& row) {
    holds.push_back({.id = row.String(0),
                     .project = row.String(1),
                     .agent = row.String(2),
                     .pattern = PathSpace::Get().IndexOf(row.Text(3)),
                     .exclusive = row.Bool(4),
                     .reason = row.String(5),
                     .fence = row.Int(6),
                     .expires_at = {row.Int(7)},
                     .version = row.Int(8)});
  });
  IL_CHECK(read.ok());
  return holds;
}

std::vector<AgentRow> Observer::Living() {
  std::vector<AgentRow> living;
  const auto read = connection_->ForEach(kLiving, [&](const db::Row& row) {
    living.push_back({.id = row.String(0), .last_seen = {row.Int(1)}});
  });
  IL_CHECK(read.ok());
  return living;
}

Observer::Sight Observer::Look(Cursor after) {
  const auto begun = connection_->BeginSnapshot();
  IL_CHECK(begun.ok(), begun.ok() ? "" : begun.error().message());
  Sight sight{.events = Events(after),
              .holds = Holds(),
              .living = Living(),
              .newest = store::NewestCursor(*connection_).value(),
              .pruned_through = store::PrunedThrough(*connection_).value()};
  connection_->Rollback();
  return sight;
}

}  // namespace interlock::sim
