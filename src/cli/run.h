#pragma once

#include <span>

#include "cli/command.h"

namespace interlock::cli {

// `ic run …`: pieces of work on their way through phases.
// Constant data; threads as in command.h.
std::span<const Command> RunCommands();

// What the rows of its table call, by subcommand.
namespace run {

// run_create.cc
Result<Outcome> Create(Context& context, const Arguments& arguments);
// run_read.cc
Result<Outcome> Status(Context& context, const Arguments& arguments);
Result<Outcome> Phase(Context& context, const Arguments& arguments);
Result<Outcome> List(Context& context, const Arguments& arguments);
Result<Outcome> Current(Context& context, const Arguments& arguments);
Result<Outcome> Events(Context& context, const Arguments& arguments);
Result<Outcome> Tokens(Context& context, const Arguments& arguments);
Result<Outcome> Budget(Context& context, const Arguments& arguments);
// run_change.cc
Result<Outcome> Advance(Context& context, const Arguments& arguments);
Result<Outcome> Skip(Context& context, const Arguments& arguments);
Result<Outcome> Rollback(Context& context, const Arguments& arguments);
Result<Outcome> Cancel(Context& context, const Arguments& arguments);
Result<Outcome> Abandon(Context& context, const Arguments& arguments);
Result<Outcome> Set(Context& context, const Arguments& arguments);
// run_parts.cc
Result<Outcome> AgentAdd(Context& context, const Arguments& arguments);
Result<Outcome> AgentList(Context& context, const Arguments& arguments);
Result<Outcome> AgentUpdate(Context& context, const Arguments& arguments);
Result<Outcome> ArtifactAdd(Context& context, const Arguments& arguments);
Result<Outcome> ArtifactList(Context& context, const Arguments& arguments);
Result<Outcome> ActionAdd(Context& context, const Arguments& arguments);
Result<Outcome> ActionList(Context& context, const Arguments& arguments);
Result<Outcome> ActionUpdate(Context& context, const Arguments& arguments);
Result<Outcome> ActionDelete(Context& context, const Arguments& arguments);

}  // namespace run
}  // namespace interlock::cli
