#pragma once

#include <span>

#include "cli/command.h"

namespace interlock::cli {

// `ic sentinel …`: limits how often something is done; see kernel/sentinel.h.
// Constant data; threads as in command.h.
std::span<const Command> SentinelCommands();

}  // namespace interlock::cli
