#pragma once

#include <span>

#include "cli/command.h"

namespace interlock::cli {

// `ic lock …`: locks in the file system. None of the commands opens a database.
// Constant data; threads as in command.h.
std::span<const Command> LockCommands();

}  // namespace interlock::cli
