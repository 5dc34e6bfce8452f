#pragma once

#include "db/migrate.h"

namespace interlock::kernel {

// The program that `ic` replaces: its files have versions 1 to 39 and no mark. They are known by
// their table `state`; what their tables lack is added column by column, and nothing is removed.
db::Predecessor OlderProgram();

}  // namespace interlock::kernel
