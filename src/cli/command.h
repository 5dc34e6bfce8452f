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

// What callers branch on. Hooks fall back to their own ways on 2 and 3, so an internal failure must
// never look like 1.
enum ExitCode : int {
  kExitOk = 0,
  kExitNegative = 1,    // expected: not found, throttled, conflict
  kExitUnexpected = 2,  // I/O, corrupt data, our own failure
  kExitUsage = 3,       // the command line is wrong
};

// What a command has to say. Results go to stdout, everything else to stderr.
struct Outcome {
  int exit_code = kExitOk;
  std::string out = {};
  std::string err = {};
};

inline constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();

// One command of `ic`. The tables are constant data, so that starting costs nothing per command,
// and safe from any thread; to run a command is for the one thread of its Context.
struct Command {
  std::string_view path;       // its words: "state set"
  std::string_view arguments;  // the positional ones, as help shows them: "<key> <scope>"
  std::size_t at_least;        // how many of them
  std::size_t at_most;
  std::span<const Flag> flags;
  std::string_view summary;  // one line, no full stop
  std::string_view help;     // what it prints and when it fails, ending in "Example:" and examples
  // An Error becomes a message and the exit code of its row in base/error.cc; its detail "do" says
  // what to do.
  Result<Outcome> (*run)(Context& context, const Arguments& arguments);
};

// The commands of one noun, or one command that is its own noun.
struct Group {
  std::string_view name;
  std::string_view summary;
  std::span<const Command> (*commands)();
};

std::span<const Group> Groups();

// The usage text of everything, of a group, or of one command, as `ic help` prints it.
std::string UsageText();
std::string GroupText(const Group& group);
std::string HelpText(const Command& command);

// The flags of `ic` itself, which may stand anywhere on the line.
std::span<const Flag> GlobalFlags();

// Runs the command line, program name not included.
Outcome Run(Context& context, std::span<const char* const> arguments);

}  // namespace interlock::cli
