#pragma once

#include <span>

#include "cli/command.h"

namespace interlock::cli {

// `ic run …`: pieces of work that pass through phases.
// Constant data; threads as in command.h.
std::span<const Command> RunCommands();

// The functions behind the rows of the table.
namespace run {

// run_create.cc
Result<CommandResult> Create(Context& context, const Arguments& arguments);
// run_read.cc
Result<CommandResult> Status(Context& context, const Arguments& arguments);
Result<CommandResult> Phase(Context& context, const Arguments& arguments);
Result<CommandResult> List(Context& context, const Arguments& arguments);
Result<CommandResult> Current(Context& context, const Arguments& arguments);
Result<CommandResult> Events(Context& context, const Arguments& arguments);
Result<CommandResult> Tokens(Context& context, const Arguments& arguments);
Result<CommandResult> Budget(Context& context, const Arguments& arguments);
// run_change.cc
Result<CommandResult> Advance(Context& context, const Arguments& arguments);
Result<CommandResult> Skip(Context& context, const Arguments& arguments);
Result<CommandResult> Rollback(Context& context, const Arguments& arguments);
Result<CommandResult> Cancel(Context& context, const Arguments& arguments);
Result<CommandResult> Abandon(Context& context, const Arguments& arguments);
Result<CommandResult> Set(Context& context, const Arguments& arguments);
// run_parts.cc
Result<CommandResult> AgentAdd(Context& context, const Arguments& arguments);
Result<CommandResult> AgentList(Context& context, const Arguments& arguments);
Result<CommandResult> AgentUpdate(Context& context, const Arguments& arguments);
Result<CommandResult> ArtifactAdd(Context& context, const Arguments& arguments);
Result<CommandResult> ArtifactList(Context& context, const Arguments& arguments);
Result<CommandResult> ActionAdd(Context& context, const Arguments& arguments);
Result<CommandResult> ActionList(Context& context, const Arguments& arguments);
Result<CommandResult> ActionUpdate(Context& context, const Arguments& arguments);
Result<CommandResult> ActionDelete(Context& context, const Arguments& arguments);

}  // namespace run
}  // namespace interlock::cli
