#pragma once

#include "cli/command.h"

namespace interlock::cli {

// `ic version`: "ic 0.1.0", a line for the commit, a line for the machine.
Outcome RunVersion(const Invocation& invocation);

}  // namespace interlock::cli
