#include "store/agents.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/time_text.h"
#include "json/codec.h"
#include "json/object_text.h"
#include "store/events.h"

namespace interlock::store {
namespace {

// agents' primary key.
constexpr db::Sql kFindById =
    "SELECT id, project, session_id, name, capabilities, metadata, status, contact_policy, "
    "live_contact_policy, focus_state, focus_at, created_at, last_seen, deregistered_at "
    "FROM agents WHERE id = ?1";

// agents_by_session.
constexpr db::Sql kFindBySession =
    "SELECT id, project, session_id, name, capabilities, metadata, status, contact_policy, "
    "live_contact_policy, focus_state, focus_at, created_at, last_seen, deregistered_at, "
    "token_hash FROM agents WHERE project = ?1 AND session_id = ?2";

// agents_by_token.
constexpr db::Sql kFindByToken =
    "SELECT id, project, name, last_seen, 1 FROM agents "
    "WHERE token_hash = ?1 AND deregistered_at IS NULL";

// agents_by_name.
constexpr db::Sql kIsNameTaken =
    "SELECT 1 FROM agents WHERE project = ?1 AND name = ?2 AND deregistered_at IS NULL LIMIT 1";

// agents' primary key.
constexpr db::Sql kFindCard =
    "SELECT id, project, name, last_seen, deregistered_at IS NULL FROM agents WHERE id = ?1";

// agents_by_name, read from its end.
constexpr db::Sql kFindByName =
    "SELECT id, project, name, last_seen, 1 FROM agents "
    "WHERE name = ?1 AND project = ?2 AND deregistered_at IS NULL "
    "ORDER BY last_seen DESC, id DESC LIMIT ?3";

// agents_by_name; those of all projects are sorted.
constexpr db::Sql kFindByNameAnywhere =
    "SELECT id, project, name, last_seen, 1 FROM agents "
    "WHERE name = ?1 AND deregistered_at IS NULL ORDER BY last_seen DESC, id DESC LIMIT ?2";

// agents' primary key; agents_by_name.
constexpr db::Sql kFindTextUse =
    "SELECT (SELECT project FROM agents WHERE id = ?1), "
    "EXISTS (SELECT 1 FROM agents WHERE name = ?1 AND deregistered_at IS NULL)";

// agents_living, read from its end; the id, which every index ends with, settles equal times.
constexpr db::Sql kListProject =
    "SELECT id, project, session_id, name, capabilities, metadata, status, contact_policy, "
    "live_contact_policy, focus_state, focus_at, created_at, last_seen, deregistered_at "
    "FROM agents WHERE project = ?1 AND deregistered_at IS NULL "
    "ORDER BY last_seen DESC, id DESC LIMIT ?2";

// agents_living_anywhere, read from its end.
constexpr db::Sql kListAll =
    "SELECT id, project, session_id, name, capabilities, metadata, status, contact_policy, "
    "live_contact_policy, focus_state, focus_at, created_at, last_seen, deregistered_at "
    "FROM agents WHERE deregistered_at IS NULL AND last_seen >= ?1 "
    "ORDER BY last_seen DESC, id DESC LIMIT ?2";

// agents' primary key.
constexpr db::Sql kFindLastSeen =
    "SELECT project, last_seen FROM agents WHERE id = ?1 AND deregistered_at IS NULL";

// agents_living_anywhere.
constexpr db::Sql kCountSeen =
    "SELECT count(*) FROM agents WHERE deregistered_at IS NULL AND last_seen >= ?1";

// agents' primary key.
constexpr db::Sql kInsert =
    "INSERT INTO agents (id, project, session_id, name, capabilities, metadata, status, "
    "contact_policy, live_contact_policy, focus_state, focus_at, created_at, last_seen, "
    "deregistered_at, token_hash) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";

// agents' primary key.
constexpr db::Sql kReplace =
    "UPDATE agents SET project = ?2, session_id = ?3, name = ?4, capabilities = ?5, "
    "metadata = ?6, status = ?7, contact_policy = ?8, live_contact_policy = ?9, "
    "focus_state = ?10, focus_at = ?11, created_at = ?12, last_seen = ?13, "
    "deregistered_at = ?14, token_hash = ?15 WHERE id = ?1";

// agents' primary key. Without a project (?2) every one will do; without a focus (?3) the old
// stays.
constexpr db::Sql kRecordSighting =
    "UPDATE agents SET last_seen = ?4, focus_state = coalesce(?3, focus_state), "
    "focus_at = CASE WHEN ?3 IS NULL THEN focus_at ELSE ?4 END "
    "WHERE id = ?1 AND project = coalesce(?2, project) AND deregistered_at IS NULL";

// agents' primary key.
constexpr db::Sql kRaiseLastSeen =
    "UPDATE agents SET last_seen = ?2 "
    "WHERE id = ?1 AND deregistered_at IS NULL AND last_seen < ?2";

// agents' primary key.
constexpr db::Sql kSetMetadata = "UPDATE agents SET metadata = ?2, last_seen = ?3 WHERE id = ?1";

// agents' primary key.
constexpr db::Sql kSetPolicies =
    "UPDATE agents SET contact_policy = ?2, live_contact_policy = ?3 WHERE id = ?1";

// agents' primary key.
constexpr db::Sql kSetDeregistered =
    "UPDATE agents SET status = ?2, deregistered_at = ?3 WHERE id = ?1";

constexpr db::NamedSql kStatements[] = {
    IL_SQL(kFindById),
    IL_SQL(kFindBySession),
    IL_SQL(kFindByToken),
    IL_SQL(kIsNameTaken),
    IL_SQL(kFindCard),
    IL_SQL(kFindByName),
    IL_SQL(kFindByNameAnywhere),
    IL_SQL(kFindTextUse),
    IL_SQL(kListProject),
    IL_SQL(kListAll),
    IL_SQL(kCountSeen),
    IL_SQL(kInsert),
    IL_SQL(kReplace),
    IL_SQL(kRecordSighting),
    IL_SQL(kSetMetadata),
    IL_SQL(kSetPolicies),
    IL_SQL(kSetDeregistered),
    IL_SQL(kFindLastSeen),
    IL_SQL(kRaiseLastSeen),
};

// The column, which only we write, as what it was made of.
template <typename T>
Result<std::optional<T>> DecodeColumn(const db::Row& row, int column) {
  if (row.IsNull(column)) return std::optional<T>();
  auto decoded = json::DecodeText<T>(row.Text(column), json::kStrict);
  if (!decoded.ok()) {
    return Error(Errc::kCorrupt, "an agent's row holds JSON of a wrong form (" +
                                     decoded.error().message() + "): put back a backup");
  }
  return std::optional<T>(*std::move(decoded));
}

template <typename T>
std::optional<std::string> EncodeColumn(const std::optional<T>& value) {
  if (!value) return std::nullopt;
  return json::EncodeText(*value);
}

// The columns in the order of the statements above.
Result<domain::Agent> ReadAgent(const db::Row& row) {
  domain::Agent agent;
  agent.id = row.String(0);
  agent.project = row.String(1);
  agent.session_id = row.String(2);
  agent.name = row.String(3);
  IL_TRY(agent.capabilities, DecodeColumn<domain::Capabilities>(row, 4));
  IL_TRY(agent.metadata, DecodeColumn<domain::Metadata>(row, 5));
  agent.status = row.String(6);
  const domain::Policies defaults;
  agent.policies = {
      .mail = domain::ParseContactPolicy(row.Text(7)).value_or(defaults.mail),
      .live = domain::ParseContactPolicy(row.Text(8)).value_or(defaults.live),
  };
  agent.focus = domain::ParseFocusState(row.Text(9)).value_or(domain::FocusState::kUnknown);
  agent.focus_at = {row.Int(10)};
  agent.created_at = {row.Int(11)};
  agent.last_seen = {row.Int(12)};
  if (const auto at = row.OptionalInt(13)) agent.deregistered_at = Timestamp{*at};
  return agent;
}

// A list of the living in which those that were seen later than is stored have their places. The
// others come in the order of their stored times.
class LivingList {
 public:
  LivingList(db::Connection& connection, std::vector<FreshAgent> fresh, std::int64_t limit,
             const std::function<void(const domain::Agent&)>& take)
      : connection_(connection), fresh_(std::move(fresh)), left_(limit), take_(take) {
    std::ranges::sort(fresh_, std::greater(), PlaceOf);
    for (const FreshAgent& one : fresh_) fresh_ids_.insert(one.id);
  }

  Result<void> TakeRow(const db::Row& row) {
    const std::string_view id = row.Text(0);
    if (fresh_ids_.contains(id)) return {};
    IL_TRY_VOID(GiveFreshBefore({row.Int(12)}, id));
    if (left_ <= 0) return {};
    IL_TRY(const domain::Agent agent, ReadAgent(row));
    Give(agent);
    return {};
  }

  Result<void> TakeEnd() { return GiveFreshBefore({std::numeric_limits<std::int64_t>::min()}, ""); }

 private:
  using Place = std::tuple<Timestamp, std::string_view>;
  static Place PlaceOf(const FreshAgent& one) { return {one.seen, one.id}; }

  Result<void> GiveFreshBefore(Timestamp seen, std::string_view id) {
    for (; next_ < fresh_.size() && left_ > 0; ++next_) {
      if (PlaceOf(fresh_[next_]) < Place(seen, id)) break;
      IL_TRY(auto agent, FindAgent(connection_, fresh_[next_].id));
      if (!agent) continue;
      agent->last_seen = fresh_[next_].seen;
      Give(*agent);
    }
    return {};
  }

  void Give(const domain::Agent& agent) {
    take_(agent);
    --left_;
  }

  db::Connection& connection_;
  std::vector<FreshAgent> fresh_;  // the last seen first
  std::int64_t left_;
  const std::function<void(const domain::Agent&)>& take_;
  std::unordered_set<std::string_view> fresh_ids_;
  std::size_t next_ = 0;  // of fresh_
};

// The columns of kFindCard.
AgentCard CardFrom(const db::Row& row) {
  return {.id = row.String(0),
          .project = row.String(1),
          .name = row.String(2),
          .last_seen = {row.Int(3)},
          .living = row.Bool(4)};
}

// Runs kInsert or kReplace, whose parameters are the same.
Result<void> Put(db::Transaction& tx, const db::Sql& sql, const domain::Agent& agent,
                 db::Blob token_hash) {
  const std::optional<std::string> capabilities = EncodeColumn(agent.capabilities);
  const std::optional<std::string> metadata = EncodeColumn(agent.metadata);
  std::optional<std::int64_t> deregistered_at;
  if (agent.deregistered_at) deregistered_at = agent.deregistered_at->micros;
  IL_TRY_VOID(tx->Run(sql, agent.id, agent.project, agent.session_id, agent.name, capabilities,
                      metadata, agent.status, Name(agent.policies.mail), Name(agent.policies.live),
                      Name(agent.focus), agent.focus_at.micros, agent.created_at.micros,
                      agent.last_seen.micros, deregistered_at, token_hash));
  return {};
}

}  // namespace

Result<std::optional<domain::Agent>> FindAgent(db::Connection& connection, std::string_view id) {
  std::optional<domain::Agent> found;
  IL_TRY_VOID(connection.ForEach(
      kFindById,
      [&](const db::Row& row) -> Result<void> {
        IL_TRY(found, ReadAgent(row));
        return {};
      },
      id));
  return found;
}

Result<std::optional<AgentCard>> FindAgentByToken(db::Connection& connection, db::Blob token_hash) {
  return connection.One(kFindByToken, CardFrom, token_hash);
}

Result<std::optional<SessionOwner>> FindSession(db::Connection& connection,
                                                std::string_view project,
                                                std::string_view session_id,
                                                std::optional<db::Blob> shown_token_hash) {
  std::optional<SessionOwner> found;
  IL_TRY_VOID(connection.ForEach(
      kFindBySession,
      [&](const db::Row& row) -> Result<void> {
        IL_TRY(domain::Agent agent, ReadAgent(row));
        const bool matches =
            shown_token_hash && std::ranges::equal(row.Bytes(14), *shown_token_hash);
        found = SessionOwner{.agent = std::move(agent), .token_matches = matches};
        return {};
      },
      project, session_id));
  return found;
}

Result<std::optional<AgentCard>> FindCard(db::Connection& connection, std::string_view id) {
  return connection.One(kFindCard, CardFrom, id);
}

Result<std::vector<AgentCard>> FindByName(db::Connection& connection,
                                          std::optional<std::string_view> project,
                                          std::string_view name, std::int64_t limit) {
  std::vector<AgentCard> cards;
  const auto take = [&cards](const db::Row& row) { cards.push_back(CardFrom(row)); };
  if (project) {
    IL_TRY_VOID(connection.ForEach(kFindByName, take, name, *project, limit));
  } else {
    IL_TRY_VOID(connection.ForEach(kFindByNameAnywhere, take, name, limit));
  }
  return cards;
}

Result<TextUse> FindTextUse(db::Connection& connection, std::string_view text) {
  const auto use = [](const db::Row& row) {
    TextUse found = {.is_id = !row.IsNull(0), .is_name = row.Bool(1)};
    if (found.is_id) found.project = row.Text(0);
    return found;
  };
  IL_TRY(const auto found, connection.One(kFindTextUse, use, text));
  return found.value_or(TextUse{});
}

Result<bool> IsNameTaken(db::Connection& connection, std::string_view project,
                         std::string_view name) {
  IL_TRY(const auto taken,
         connection.One(kIsNameTaken, [](const db::Row&) { return true; }, project, name));
  return taken.has_value();
}

Result<void> ListAgents(db::Connection& connection, std::optional<std::string_view> project,
                        std::int64_t limit, const domain::Sightings& sightings,
                        const std::function<void(const domain::Agent&)>& take) {
  IL_TRY(std::vector<FreshAgent> fresh, FindFreshAgents(connection, project, sightings));
  LivingList list(connection, std::move(fresh), limit, take);
  const auto read = [&list](const db::Row& row) { return list.TakeRow(row); };
  if (project) {
    IL_TRY_VOID(connection.ForEach(kListProject, read, *project, limit));
  } else {
    constexpr auto kEver = std::numeric_limits<std::int64_t>::min();
    IL_TRY_VOID(connection.ForEach(kListAll, read, kEver, limit));
  }
  return list.TakeEnd();
}

Result<std::vector<FreshAgent>> FindFreshAgents(db::Connection& connection,
                                                std::optional<std::string_view> project,
                                                const domain::Sightings& sightings) {
  std::vector<FreshAgent> fresh;
  for (std::string& id : sightings.Remembered()) {
    std::optional<Timestamp> seen;
    Timestamp stored;
    const auto compare = [&](const db::Row& row) {
      if (project && row.Text(0) != *project) return;
      stored = {row.Int(1)};
      seen = sightings.Newest(id, stored);
    };
    IL_TRY_VOID(connection.ForEach(kFindLastSeen, compare, id));
    if (seen && *seen > stored) fresh.push_back({std::move(id), stored, *seen});
  }
  return fresh;
}

Result<std::int64_t> CountAgentsSeen(db::Connection& connection, Timestamp since,
                                     const domain::Sightings& sightings) {
  IL_TRY(const auto count,
         connection.One(kCountSeen, [](const db::Row& row) { return row.Int(0); }, since.micros));
  IL_TRY(const auto fresh, FindFreshAgents(connection, std::nullopt, sightings));
  return count.value_or(0) + std::ranges::count_if(fresh, [since](const FreshAgent& one) {
           return one.stored < since && one.seen >= since;
         });
}

Result<void> InsertAgent(db::Transaction& tx, const domain::Agent& agent, db::Blob token_hash) {
  return Put(tx, kInsert, agent, token_hash);
}

Result<void> ReplaceAgent(db::Transaction& tx, const domain::Agent& agent, db::Blob token_hash) {
  return Put(tx, kReplace, agent, token_hash);
}

Result<bool> RecordSighting(db::Transaction& tx, const Sighting& sighting) {
  std::optional<std::string_view> focus;
  if (sighting.focus) focus = Name(*sighting.focus);
  IL_TRY(const std::int64_t changed,
         tx->Run(kRecordSighting, sighting.id, sighting.project, focus, sighting.at.micros));
  return changed > 0;
}

Result<bool> RaiseLastSeen(db::Transaction& tx, std::string_view id, Timestamp at) {
  IL_TRY(const std::int64_t changed, tx->Run(kRaiseLastSeen, id, at.micros));
  return changed > 0;
}

Result<void> SetMetadata(db::Transaction& tx, std::string_view id, const domain::Metadata& metadata,
                         Timestamp seen_at) {
  const std::string text = json::EncodeText(metadata);
  IL_TRY_VOID(tx->Run(kSetMetadata, id, text, seen_at.micros));
  return {};
}

Result<void> SetPolicies(db::Transaction& tx, std::string_view id, domain::Policies policies) {
  IL_TRY_VOID(tx->Run(kSetPolicies, id, Name(policies.mail), Name(policies.live)));
  return {};
}

Result<void> SetDeregistered(db::Transaction& tx, std::string_view id, Timestamp at) {
  IL_TRY_VOID(tx->Run(kSetDeregistered, id, domain::kDeregistered, at.micros));
  return {};
}

std::string AgentJson(const domain::Agent& agent) {
  json::ObjectText text;
  text.Add("agent_id", agent.id)
      .Add("session_id", agent.session_id)
      .Add("name", agent.name)
      .Add("project", agent.project)
      .AddRaw("capabilities", EncodeColumn(agent.capabilities).value_or("null"))
      .AddRaw("metadata", EncodeColumn(agent.metadata).value_or("null"))
      .Add("status", agent.status)
      .Add("last_seen", FormatRfc3339(agent.last_seen, Fraction::kNone))
      .Add("created_at", FormatRfc3339(agent.created_at, Fraction::kNone));
  return text.Text();
}

std::string PoliciesJson(std::string_view id, domain::Policies policies) {
  return json::ObjectText()
      .Add("agent_id", id)
      .Add("policy", Name(policies.mail))
      .Add("live_contact_policy", Name(policies.live))
      .Text();
}

std::string MetadataChangeJson(std::string_view id, std::span<const std::string> changed) {
  return json::ObjectText().Add("agent_id", id).Add("changed", changed).Text();
}

Result<void> AppendAgentEvent(db::Transaction& tx, std::string_view type,
                              const domain::Agent& agent, Timestamp at, std::string data) {
  IL_TRY_VOID(AppendEvent(tx, {.type = std::string(type),
                               .project = agent.project,
                               .entity_id = agent.id,
                               .agent = agent.id,
                               .created_at = at,
                               .data = std::move(data)}));
  return {};
}

std::span<const db::NamedSql> AgentStatements() { return kStatements; }

}  // namespace interlock::store
