#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"

// The agents that work on a run.
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

struct RunAgent {
  std::string id = {};
  std::string run_id = {};
  std::string type = "claude";
  std::optional<std::string> name = {};
  std::string status = "active";  // or completed or failed
  std::optional<std::string> dispatch_id = {};
  std::int64_t created_at = 0;
  std::int64_t updated_at = 0;
};

// kNotFound if the run does not exist. Touches the run, as every change of an agent does.
Result<void> AddAgent(db::Transaction& tx, const RunAgent& agent);
// In order of insertion.
Result<std::vector<RunAgent>> ListAgents(db::Connection& connection, std::string_view run_id);
// kNotFound if the agent does not exist.
Result<void> SetAgentStatus(db::Transaction& tx, std::string_view id, std::string_view status,
                            std::int64_t now);
Result<std::int64_t> CountActiveAgents(db::Connection& connection, std::string_view run_id);
// Returns the number of agents that were active.
Result<std::int64_t> FailActiveAgents(db::Transaction& tx, std::string_view run_id,
                                      std::int64_t now);

std::span<const db::NamedSql> RunAgentStatements();

}  // namespace interlock::kernel
