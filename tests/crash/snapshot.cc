#include "crash/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "db/sqlite/connection.h"

namespace interlock::crash {
namespace {

constexpr db::Sql kIntegrity = "PRAGMA integrity_check";
constexpr db::Sql kLog = "SELECT cursor, type, entity_id FROM events ORDER BY cursor";
constexpr db::Sql kAgents = "SELECT session_id, id, name FROM agents";
constexpr db::Sql kMessages =
    "SELECT m.id, m.cursor, m.sender, i.agent, rtrim(m.body, '.'), length(m.body), "
    "i.ack_at IS NOT NULL "
    "FROM inbox i JOIN messages m ON m.cursor = i.cursor";
constexpr db::Sql kUndelivered =
    "SELECT count(*) FROM messages WHERE cursor NOT IN (SELECT cursor FROM inbox)";
constexpr db::Sql kReservations =
    "SELECT pattern, id, agent, fence, expires_at, released_at IS NOT NULL FROM reservations";
constexpr db::Sql kPlans = "SELECT kind, id, version, body FROM plans";
constexpr db::Sql kLastFence = "SELECT last FROM fences WHERE project = 'p'";
constexpr db::Sql kStrayMail =
    "SELECT count(*) FROM inbox i LEFT JOIN messages m ON m.cursor = i.cursor "
    "WHERE m.cursor IS NULL";
constexpr db::Sql kUntoldMail =
    "SELECT count(*) FROM messages m LEFT JOIN events e "
    "ON e.cursor = m.cursor AND e.type = 'message.created' AND e.entity_id = m.id "
    "WHERE e.cursor IS NULL";

constexpr db::Sql kMiscounted =
    "SELECT count(*) FROM (SELECT project, agent, total, unread FROM mailboxes "
    "UNION ALL SELECT project, agent, count(*), count(*) - count(read_at) FROM inbox "
    "GROUP BY project, agent) GROUP BY project, agent, total, unread HAVING count(*) <> 2";

constexpr db::Sql kMislaid =
    "SELECT count(*) FROM (SELECT i.agent, i.cursor, i.project FROM inbox AS i "
    "JOIN mailboxes AS b USING (project, agent) WHERE b.home = 0 UNION ALL "
    "SELECT agent, cursor, project FROM inbox_abroad) "
    "GROUP BY agent, cursor, project HAVING count(*) <> 2";

// The value of a text in a body that our clients made: no character of it is escaped.
std::string TextIn(std::string_view body, std::string_view name) {
  const std::string before = fmt::format(R"("{}":")", name);
  const std::size_t at = body.find(before);
  if (at == std::string_view::npos) return "";
  const std::size_t begin = at + before.size();
  return std::string(body.substr(begin, body.find('"', begin) - begin));
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& database)
      : connection_(
            sqlite::Connection::Open({.path = database, .access = sqlite::Access::kReadOnly})
                .value()) {
    IL_CHECK(connection_->BeginSnapshot().ok());
  }
  ~Reader() { connection_->Rollback(); }

  Snapshot Take() {
    Each(kIntegrity, [this](const db::Row& row) {
      if (row.Text(0) != "ok") Fault("integrity_check: {}", row.Text(0));
    });
    Each(kLog, [this](const db::Row& row) {
      taken_.log.push_back({row.Int(0), row.String(1), row.String(2)});
      ++changes_[row.String(2)];
    });
    TakeThings();
    for (const db::Sql& none : {kStrayMail, kUndelivered, kUntoldMail, kMiscounted, kMislaid}) {
      Each(none, [&](const db::Row& row) {
        if (row.Int(0) != 0) Fault("{} rows of: {}", row.Int(0), none.text());
      });
    }
    Each(kLastFence, [this](const db::Row& row) {
      if (taken_.fences.empty() || row.Int(0) >= taken_.fences.rbegin()->first) return;
      Fault("the last fence is {}, and one above it was given", row.Int(0));
    });
    return std::move(taken_);
  }

 private:
  template <typename Fn>
  void Each(const db::Sql& sql, const Fn& fn) {
    const auto read = connection_->ForEach(sql, fn);
    IL_CHECK(read.ok(), read.ok() ? "" : read.error().message());
  }
  template <typename... Args>
  void Fault(fmt::format_string<Args...> text, Args&&... args) {
    taken_.faults.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  // `entity` is what its events name.
  void Add(std::string key, std::string text, const std::string& entity) {
    const auto changes = changes_.find(entity);
    Thing thing{std::move(text), changes == changes_.end() ? 0 : changes->second};
    const auto [there, added] = taken_.things.try_emplace(std::move(key), thing);
    if (!added) Fault("{} is there twice: {} and {}", there->first, there->second.text, thing.text);
  }

  void TakeThings() {
    Each(kAgents, [this](const db::Row& row) {
      Add("agent " + row.String(0), fmt::format("id={} name={}", row.Text(1), row.Text(2)),
          row.String(1));
    });
    Each(kMessages, [this](const db::Row& row) {
      Add("message " + row.String(0),
          fmt::format("cursor={} from={} to={} body={} length={} acked={}", row.Int(1), row.Text(2),
                      row.Text(3), row.Text(4), row.Int(5), row.Int(6)),
          row.String(0));
    });
    Each(kReservations, [this](const db::Row& row) {
      const auto [there, added] = taken_.fences.try_emplace(row.Int(3), row.String(0));
      if (!added) Fault("{} and {} have fence {}", there->second, row.Text(0), row.Int(3));
      Add("reservation " + row.String(0),
          fmt::format("id={} agent={} fence={} expires={} {}", row.Text(1), row.Text(2), row.Int(3),
                      row.Int(4), row.Bool(5) ? "released" : "held"),
          row.String(1));
    });
    Each(kPlans, [this](const db::Row& row) {
      const std::string_view body = row.Text(3);
      Add(row.String(0) + " " + row.String(1),
          fmt::format("version={} title={} status={} agent={}", row.Int(2), TextIn(body, "title"),
                      TextIn(body, "status"), TextIn(body, "agent")),
          row.String(1));
    });
    AddDeletedPlans();
  }

  void AddDeletedPlans() {
    for (const LoggedEvent& event : taken_.log) {
      const std::size_t dot = event.type.find('.');
      const std::string verb = event.type.substr(dot + 1);
      if (verb != "deleted" && verb != "archived") continue;
      taken_.things.try_emplace(event.type.substr(0, dot) + " " + event.entity,
                                Thing{"", changes_[event.entity]});
    }
  }

  const std::unique_ptr<sqlite::Connection> connection_;
  Snapshot taken_;
  std::unordered_map<std::string, std::int64_t> changes_;
};

}  // namespace

Snapshot TakeSnapshot(const std::filesystem::path& database) { return Reader(database).Take(); }

std::vector<std::string> Contradictions(const Snapshot& before, const Snapshot& now) {
  std::vector<std::string> found;
  const auto [old_one, new_one] = std::ranges::mismatch(before.log, now.log);
  if (old_one != before.log.end()) {
    found.push_back(fmt::format("the event {} {} {} is gone or another", old_one->cursor,
                                old_one->type, old_one->entity));
  }
  for (const auto& [fence, path] : before.fences) {
    if (!now.fences.contains(fence)) found.push_back(fmt::format("fence {} is gone", fence));
  }
  const std::int64_t last = before.fences.empty() ? 0 : before.fences.rbegin()->first;
  for (const auto& [fence, path] : now.fences) {
    if (fence > last) break;
    if (before.fences.contains(fence)) continue;
    found.push_back(fmt::format("{} has the new fence {}, below {}", path, fence, last));
  }
  return found;
}

}  // namespace interlock::crash
