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
#include "kernel/run.h"

// Actions: commands that the caller should run when a run enters a phase. `ic` lists them and does
// not run them. A run has at most one action per phase and command. Adding, changing or deleting an
// action touches the run, so that the run does not look abandoned.
//
// For one thread at a time, that of the connection.
namespace interlock::kernel {

struct PhaseAction {
  std::int64_t id = 0;
  std::string run_id = {};
  std::string phase = {};
  std::string type = "command";
  std::string command = {};
  std::optional<std::string> args = {};  // JSON text
  std::string mode = "interactive";
  std::int64_t priority = 0;
};

// The fields that UpdateAction() sets; unset fields keep their value.
struct ActionChange {
  std::optional<std::string> args = {};
  std::optional<std::string> mode = {};
  std::optional<std::int64_t> priority = {};
};

// Returns the id. kAlreadyExists: the phase has that command. kInvalidArgument: no such run.
Result<std::int64_t> AddAction(db::Transaction& tx, const PhaseAction& action, std::int64_t now);
// Sorted by priority, then by order of insertion. Without a phase: the actions of all phases.
Result<std::vector<PhaseAction>> ListActions(db::Connection& connection, std::string_view run_id,
                                             const std::optional<std::string>& phase);
// kNotFound if there is no such action.
Result<void> UpdateAction(db::Transaction& tx, const PhaseAction& which, const ActionChange& change,
                          std::int64_t now);
Result<void> DeleteAction(db::Transaction& tx, const PhaseAction& which, std::int64_t now);

// Parses {"phase": {"command", "args"?, "mode"?, "type"?}, …}; args is a string that contains JSON.
// kBadJson or kInvalidArgument describes the mistake.
Result<std::vector<PhaseAction>> ParseActions(std::string_view json);

// Returns the actions of one phase and substitutes ${run_id}, ${project_dir} and ${artifact:<type>}
// (the path of the newest such artifact) in their args, escaped for JSON. A variable without a
// value stays as it is.
Result<std::vector<PhaseAction>> ResolvedActions(db::Connection& connection, const Run& run,
                                                 const std::string& phase);

std::span<const db::NamedSql> PhaseActionStatements();

}  // namespace interlock::kernel
