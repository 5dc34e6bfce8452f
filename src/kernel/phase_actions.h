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

// What is to be done when a run enters a phase: commands for the caller, which `ic` names and does
// not run. One of a run, phase and command. Who adds, changes or deletes one works on the run: it
// is touched, and so not taken over.
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

// What an update changes.
struct ActionChange {
  std::optional<std::string> args = {};
  std::optional<std::string> mode = {};
  std::optional<std::int64_t> priority = {};
};

// Returns its id. kAlreadyExists: that command stands there already; kInvalidArgument: no such run.
Result<std::int64_t> AddAction(db::Transaction& tx, const PhaseAction& action, std::int64_t now);
// By priority, then in the order of adding; of all phases when none is given.
Result<std::vector<PhaseAction>> ListActions(db::Connection& connection, std::string_view run_id,
                                             const std::optional<std::string>& phase);
// kNotFound when there is no such action.
Result<void> UpdateAction(db::Transaction& tx, const PhaseAction& which, const ActionChange& change,
                          std::int64_t now);
Result<void> DeleteAction(db::Transaction& tx, const PhaseAction& which, std::int64_t now);

// {"phase": {"command", "args"?, "mode"?, "type"?}, …}, args being a string that holds JSON.
// kBadJson or kInvalidArgument says what is wrong.
Result<std::vector<PhaseAction>> ParseActions(std::string_view json);

// The actions of the run's phase with ${run_id}, ${project_dir} and ${artifact:<type>} (the path of
// the newest such artifact) in their args replaced, escaped as JSON asks. What has no value stays.
Result<std::vector<PhaseAction>> ResolvedActions(db::Connection& connection, const Run& run,
                                                 const std::string& phase);

std::span<const db::NamedSql> PhaseActionStatements();

}  // namespace interlock::kernel
