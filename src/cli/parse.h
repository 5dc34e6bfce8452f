#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "cli/command.h"

namespace interlock::cli {

// A command line, understood: what is to be run, or what help is asked for.
struct Parsed {
  const Group* group = nullptr;      // null: no command was named
  const Command* command = nullptr;  // null: help for the group
  bool help = false;
  Arguments arguments = {};
};

// Reads a command line into `globals` and what is to be run. Uses nothing but its arguments, so
// threads do not meet in it.
//
// The first word that is no flag of `ic` is the command; words go on as long as they name a longer
// one ("run agent add"). The flags of `ic` may stand anywhere; where a command has one of the same
// name, after its last word it is the command's own. "--name value" takes the next word, "--" ends
// flags, and a word of one dash (-5, -x) is an argument unless the command knows its letter.
//
// kUsage says what is wrong, with the nearest name that exists; `command` gets the words that were
// understood, for the message.
struct ParseState {
  Globals& globals;
  std::string_view command = {};
  const Command* known = nullptr;
};
Result<Parsed> ParseCommandLine(std::span<const char* const> words, ParseState& state);

}  // namespace interlock::cli
