#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/context.h"

namespace interlock::cli {

// Callers branch on these codes. Hooks use their own fallback on 2 and 3, so an internal failure
// must never return 1.
enum ExitCode : int {
  kExitOk = 0,
  kExitNegative = 1,    // expected: not found, throttled, conflict
  kExitUnexpected = 2,  // I/O, corrupt data, our own failure
  kExitUsage = 3,       // the command line is wrong
};

// The output of a command. Results go to stdout, everything else to stderr.
struct CommandResult {
  int exit_code = kExitOk;
  std::string out = {};
  std::string err = {};
};

inline constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();

// One command of `ic`. The tables are constant data, so they cost no start-up time and are safe
// from any thread. A command runs in the thread of its Context.
struct Command {
  std::string_view path;       // the words of the command: "state set"
  std::string_view arguments;  // its positional arguments in the help text: "<key> <scope>"
  std::size_t at_least;        // minimum number of positional arguments
  std::size_t at_most;
  std::span<const Flag> flags;
  std::string_view summary;  // one line, no full stop
  std::string_view help;     // output and failures, then "Example:" and examples
  // An Error becomes a message and an exit code (see base/error.cc). Its detail "do" is the remedy.
  Result<CommandResult> (*run)(Context& context, const Arguments& arguments);
};

// All commands of one noun, or a single command without subcommands.
struct Group {
  std::string_view name;
  std::string_view summary;
  std::span<const Command> (*commands)();
};

std::span<const Group> Groups();

// The help texts of `ic`, of a group, and of one command.
std::string UsageText();
std::string GroupText(const Group& group);
std::string HelpText(const Command& command);

// The flags of `ic` itself, which may appear anywhere on the command line.
std::span<const Flag> GlobalFlags();

// Runs a command line without the program name.
CommandResult Run(Context& context, std::span<const char* const> arguments);

}  // namespace interlock::cli
