#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/agent.h"
#include "domain/event.h"
#include "domain/sightings.h"

// The agents (table `agents`). A row is never removed: one that is deregistered stays, for its mail
// and for its session, and is found by id and by session only. `project` as an argument: nothing
// means every project.
//
// A token is kept as its SHA-256, which goes in and out as bytes; what makes the hash is not ours.
namespace interlock::store {

// Living or deregistered.
Result<std::optional<domain::Agent>> FindAgent(db::Connection& connection, std::string_view id);

// The agent, living or deregistered, that a session of a project belongs to.
struct SessionOwner {
  domain::Agent agent;
  bool token_matches = false;  // the hash shown is that of its token
};
Result<std::optional<SessionOwner>> FindSession(db::Connection& connection,
                                                std::string_view project,
                                                std::string_view session_id,
                                                std::optional<db::Blob> shown_token_hash);

// An agent as far as addresses go.
struct AgentCard {
  std::string id;
  std::string project;
  std::string name;
  Timestamp last_seen;
  bool living = true;  // not deregistered

  bool operator==(const AgentCard&) const = default;
};

// Living or deregistered.
Result<std::optional<AgentCard>> FindCard(db::Connection& connection, std::string_view id);

// The living agent whose token has this hash.
Result<std::optional<AgentCard>> FindAgentByToken(db::Connection& connection, db::Blob token_hash);

// The living agents of that name, the last seen first; at most `limit`.
Result<std::vector<AgentCard>> FindByName(db::Connection& connection,
                                          std::optional<std::string_view> project,
                                          std::string_view name, std::int64_t limit);

// How a text may address an agent.
struct TextUse {
  bool is_id = false;        // of an agent, living or deregistered
  bool is_name = false;      // of a living agent, in any project
  std::string project = {};  // of the agent whose id it is
};
Result<TextUse> FindTextUse(db::Connection& connection, std::string_view text);

// Does a living agent of the project have this name?
Result<bool> IsNameTaken(db::Connection& connection, std::string_view project,
                         std::string_view name);

// A living agent that was seen later than is stored.
struct FreshAgent {
  std::string id;
  Timestamp stored;
  Timestamp seen;
};
// In no order.
Result<std::vector<FreshAgent>> FindFreshAgents(db::Connection& connection,
                                                std::optional<std::string_view> project,
                                                const domain::Sightings& sightings);

// Gives the living agents to `take`, the last seen first; at most `limit` of them.
Result<void> ListAgents(db::Connection& connection, std::optional<std::string_view> project,
                        std::int64_t limit, const domain::Sightings& sightings,
                        const std::function<void(const domain::Agent&)>& take);

// How many living agents were seen at `since` or later.
Result<std::int64_t> CountAgentsSeen(db::Connection& connection, Timestamp since,
                                     const domain::Sightings& sightings);

// REQUIRES: neither the id nor the session of the project is in the table.
Result<void> InsertAgent(db::Transaction& tx, const domain::Agent& agent, db::Blob token_hash);
// Everything of the agent with this id becomes as given, the token too.
Result<void> ReplaceAgent(db::Transaction& tx, const domain::Agent& agent, db::Blob token_hash);

// A living agent of the project was seen; without `focus` what it does stays as it was told last.
// False when there is none.
struct Sighting {
  std::string_view id;
  std::optional<std::string_view> project;
  std::optional<domain::FocusState> focus;
  Timestamp at;
};
Result<bool> RecordSighting(db::Transaction& tx, const Sighting& sighting);

// A living agent was seen at `at`, which may be less than is stored: then nothing changes. False
// when nothing changed.
Result<bool> RaiseLastSeen(db::Transaction& tx, std::string_view id, Timestamp at);

Result<void> SetMetadata(db::Transaction& tx, std::string_view id, const domain::Metadata& metadata,
                         Timestamp seen_at);
Result<void> SetPolicies(db::Transaction& tx, std::string_view id, domain::Policies policies);
// Status and time of the agent's end.
Result<void> SetDeregistered(db::Transaction& tx, std::string_view id, Timestamp at);

// The agent object as clients see it in events and lists: no token, no policies.
std::string AgentJson(const domain::Agent& agent);

// {"agent_id","policy","live_contact_policy"}
std::string PoliciesJson(std::string_view id, domain::Policies policies);

// {"agent_id","changed":[…]}: which keys of its metadata have a new value.
std::string MetadataChangeJson(std::string_view id, std::span<const std::string> changed);

// Logs that something happened to an agent, by itself.
Result<void> AppendAgentEvent(db::Transaction& tx, std::string_view type,
                              const domain::Agent& agent, Timestamp at, std::string data);

std::span<const db::NamedSql> AgentStatements();

}  // namespace interlock::store
