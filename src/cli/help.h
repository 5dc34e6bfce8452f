#pragma once

#include <span>

#include "cli/command.h"

namespace interlock::cli {

// `ic help`
// Constant data; threads as in command.h.
std::span<const Command> HelpCommands();

}  // namespace interlock::cli
