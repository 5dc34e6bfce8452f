#pragma once

#include <span>

#include "cli/command.h"

namespace interlock::cli {

// `ic version`, `ic init`, `ic health`, `ic migrate`: the database as a whole.
// Constant data; threads as in command.h.
std::span<const Command> VersionCommands();
std::span<const Command> InitCommands();
std::span<const Command> HealthCommands();
std::span<const Command> MigrateCommands();

}  // namespace interlock::cli
