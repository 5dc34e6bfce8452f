#include "kernel/run_agents.h"

#include <fmt/format.h>

#include <array>

#include "kernel/run_change.h"

namespace interlock::kernel {
namespace {

// The primary key of run_agents; run_id refers to the primary key of runs.
constexpr db::Sql kAddAgent =
    "INSERT INTO run_agents (id, run_id, agent_type, name, status, dispatch_id, created_at, "
    "updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

// ic_run_agents_run, in index order.
constexpr db::Sql kAgentsOf =
    "SELECT id, run_id, agent_type, name, status, dispatch_id, created_at, updated_at "
    "FROM run_agents WHERE run_id = ?1 ORDER BY created_at, rowid";

// The primary key of run_agents.
constexpr db::Sql kSetAgentStatus =
    "UPDATE run_agents SET status = ?2, updated_at = ?3 WHERE id = ?1 RETURNING run_id";

// ic_run_agents_run.
constexpr db::Sql kCountActiveAgents =
    "SELECT count(*) FROM run_agents WHERE run_id = ?1 AND status = 'active'";

// ic_run_agents_run.
constexpr db::Sql kFailActiveAgents =
    "UPDATE run_agents SET status = 'failed', updated_at = ?2 "
    "WHERE run_id = ?1 AND status = 'active'";

constexpr std::array kStatements = {IL_SQL(kAddAgent), IL_SQL(kAgentsOf), IL_SQL(kSetAgentStatus),
                                    IL_SQL(kCountActiveAgents), IL_SQL(kFailActiveAgents)};

}  // namespace

Result<void> AddAgent(db::Transaction& tx, const RunAgent& agent) {
  Result<std::int64_t> added =
      tx->Run(kAddAgent, agent.id, agent.run_id, agent.type, agent.name, agent.status,
              agent.dispatch_id, agent.created_at, agent.updated_at);
  return FinishInsert(tx, std::move(added), agent.run_id, agent.created_at);
}

Result<std::vector<RunAgent>> ListAgents(db::Connection& connection, std::string_view run_id) {
  std::vector<RunAgent> agents;
  IL_TRY_VOID(connection.ForEach(
      kAgentsOf,
      [&agents](const db::Row& row) {
        agents.push_back({.id = row.String(0),
                          .run_id = row.String(1),
                          .type = row.String(2),
                          .name = row.OptionalString(3),
                          .status = row.String(4),
                          .dispatch_id = row.OptionalString(5),
                          .created_at = row.Int(6),
                          .updated_at = row.Int(7)});
      },
      run_id));
  return agents;
}

Result<void> SetAgentStatus(db::Transaction& tx, std::string_view id, std::string_view status,
                            std::int64_t now) {
  IL_TRY(
      const std::optional<std::string> run_id,
      tx->One(kSetAgentStatus, [](const db::Row& row) { return row.String(0); }, id, status, now));
  if (!run_id) {
    return Error(Errc::kNotFound, fmt::format("there is no agent '{}'", id))
        .WithDetail("do", "run 'ic run agent list <run>' to list the agents of a run");
  }
  return TouchRun(tx, *run_id, now);
}

Result<std::int64_t> CountActiveAgents(db::Connection& connection, std::string_view run_id) {
  IL_TRY(const std::optional<std::int64_t> count,
         connection.One(kCountActiveAgents, [](const db::Row& row) { return row.Int(0); }, run_id));
  return count.value_or(0);
}

Result<std::int64_t> FailActiveAgents(db::Transaction& tx, std::string_view run_id,
                                      std::int64_t now) {
  return tx->Run(kFailActiveAgents, run_id, now);
}

std::span<const db::NamedSql> RunAgentStatements() { return kStatements; }

}  // namespace interlock::kernel
