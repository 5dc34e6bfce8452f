#pragma once

#include <span>

#include "cli/command.h"

namespace interlock::cli {

// `ic compat`: imports the temporary files of older hooks.
// Constant data; threads as in command.h.
std::span<const Command> CompatCommands();

}  // namespace interlock::cli
