#pragma once

#include <span>

#include "cli/command.h"

namespace interlock::cli {

// `ic help`
std::span<const Command> HelpCommands();

}  // namespace interlock::cli
