#pragma once

#include <span>

#include "cli/command.h"

namespace interlock::cli {

// `ic compat`: the temporary files that hooks used before.
// Constant data; threads as in command.h.
std::span<const Command> CompatCommands();

}  // namespace interlock::cli
