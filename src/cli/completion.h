#pragma once

#include <span>

#include "cli/command.h"

namespace interlock::cli {

// `ic completion`: what a shell asks when somebody presses Tab.
std::span<const Command> CompletionCommands();

}  // namespace interlock::cli
