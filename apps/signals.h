#pragma once

#include <cstdint>

namespace interlock::app {

// The signals of the server. While it starts, SIGTERM and SIGINT end the process at once, however
// long the database or a name server lets it wait; then the first one asks for an orderly stop, and
// the second ends the process. At once is as after kill -9, which the next start repairs, and the
// exit code is what a killed process returns to its shell. SIGHUP asks to reload the keys, and
// waits until the server runs.
//
// A thread waits for them; every other thread has them blocked, so that none is interrupted and a
// signal is never lost on its way into a handler. A child process must unblock them.
//
// One per process, hence static.
class Signals {
 public:
  enum class Request : std::uint8_t { kStop, kReload };

  // REQUIRES: called once, before any other thread runs.
  static void Install();

  static void BeginServing();

  // Blocks until something is asked for. Of several reloads that come at once one is enough; a stop
  // goes before.
  static Request Wait();

  // "SIGTERM" or "SIGINT", by which the stop was asked for.
  static const char* StopName();
};

}  // namespace interlock::app
