#pragma once

#include <span>

#include "cli/command.h"

namespace interlock::cli {

// `ic completion`: what a shell asks when somebody presses Tab.
// Constant data; threads as in command.h.
std::span<const Command> CompletionCommands();

}  // namespace interlock::cli
