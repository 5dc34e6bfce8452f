#pragma once

#include <span>

#include "cli/command.h"

namespace interlock::cli {

// `ic completion`: completes command lines in a shell.
// Constant data; threads as in command.h.
std::span<const Command> CompletionCommands();

}  // namespace interlock::cli
