#pragma once

#include <span>

#include "cli/command.h"

namespace interlock::cli {

// `ic state …`: a JSON value per key and scope; see kernel/state.h.
// Constant data; threads as in command.h.
std::span<const Command> StateCommands();

}  // namespace interlock::cli
