#pragma once

#include "base/clock.h"
#include "base/id.h"
#include "serve_options.h"

namespace interlock::app {

// Makes a key for a project and adds it to the keys file. The text to print is the key, where it is
// kept and how to use it; or, with exit code 1, why there is none. No key is made
// where git would add it.
Done Init(const InitOptions& options, RandomSource& random, Clock& clock);

}  // namespace interlock::app
