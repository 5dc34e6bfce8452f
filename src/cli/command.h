#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace interlock::cli {

// What callers branch on. Hooks fall back to their own ways on 2 and 3, so an internal failure must
// never look like 1.
enum ExitCode : int {
  kExitOk = 0,
  kExitNegative = 1,    // expected: not found, throttled, conflict
  kExitUnexpected = 2,  // I/O, corrupt data, our own failure
  kExitUsage = 3,       // the command line is wrong
};

// A command line, taken apart. Flags of `ic` itself may stand anywhere.
struct Invocation {
  bool json = false;
  bool help = false;
  std::string_view command;                 // "" = none
  std::vector<std::string_view> arguments;  // of the command, in order
};

// What a command has to say. Results go to stdout, everything else to stderr.
struct Outcome {
  int exit_code = kExitOk;
  std::string out;
  std::string err;
};

// One command of `ic`. The table is constant data, so that starting costs nothing per command.
struct Command {
  std::string_view name;
  std::string_view arguments;  // "[--json]"
  std::string_view summary;    // one line, no full stop
  std::string_view help;       // what it prints and when it fails, with an example
  Outcome (*run)(const Invocation& invocation);
};

std::span<const Command> Commands();

// Runs the command line, program name not included.
Outcome Run(std::span<const char* const> arguments);

}  // namespace interlock::cli
