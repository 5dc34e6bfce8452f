#pragma once

#include <cstdio>

#include "serve_options.h"

namespace interlock::app {

// Runs the server until SIGTERM or SIGINT and returns the exit code: 0 after an orderly stop, 1
// when it could not start (stderr says why and what to do). A second signal ends the process at
// once.
//
// Prints "listening on <url>" to standard output, one line per socket, when requests are answered.
//
// REQUIRES: called once, on the main thread, before any other thread runs.
int Serve(const ServeOptions& options);

}  // namespace interlock::app
