#pragma once

#include <cstdio>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "serve_options.h"

namespace interlock::app {

// Runs the server until SIGTERM or SIGINT and returns the exit code: 0 after an orderly stop, 1
// when it could not start (stderr says why and what to do). A signal before it is ready, and a
// second one after that, end the process at once. SIGHUP reloads the keys file, or stops the server
// when it comes from a terminal that was closed.
//
// Prints "listening on <url>" to standard output, one line per socket, when requests are answered.
//
// REQUIRES: called once, on the main thread, before any other thread runs.
int Serve(const ServeOptions& given);

// Makes the server's database, or brings it to the newest schema; its first step that opens the
// file. A tool that holds the write lock is waited for, at most 30 s. A file of another program is
// refused with not one byte changed.
Result<void> MigrateDatabase(const ServeOptions& options, Clock& clock, Logger& log);

}  // namespace interlock::app
