#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "cli/command.h"

namespace interlock::cli {

// A parsed command line: the command to run, or the requested help.
struct Parsed {
  const Group* group = nullptr;      // null: no command was given
  const Command* command = nullptr;  // null: help for the group
  bool help = false;
  Arguments arguments = {};
};

// Parses a command line into `globals` and a Parsed. Stateless, so safe from any thread.
//
// The first word that is not a flag of `ic` is the command; further words belong to the command as
// long as they form a longer command name ("run agent add"). The flags of `ic` may appear anywhere.
// If a command has a flag of the same name, that flag is the command's after its last word.
// "--name value" takes the next word, "--" ends the flags, and a word with one dash (-5, -x) is an
// argument unless the command has a flag with that letter.
//
// kUsage describes the mistake and suggests a similar name. `command` receives the recognised words
// for the message.
struct ParseState {
  Globals& globals;
  std::string_view command = {};
  const Command* known = nullptr;
};
Result<Parsed> ParseCommandLine(std::span<const char* const> words, ParseState& state);

}  // namespace interlock::cli
