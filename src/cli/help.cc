#include "cli/help.h"

#include <array>
#include <string>
#include <vector>

#include "cli/parse.h"

namespace interlock::cli {
namespace {

Result<Outcome> RunHelp(Context& context, const Arguments& arguments) {
  // As if the words stood alone on the line, with --help behind them.
  std::vector<std::string> words(arguments.positional().begin(), arguments.positional().end());
  std::vector<const char*> line;
  line.reserve(words.size() + 1);
  for (const std::string& word : words) line.push_back(word.c_str());
  line.push_back("--help");
  Globals ignored = context.globals;
  ParseState state{.globals = ignored};
  IL_TRY(const Parsed parsed, ParseCommandLine(line, state));
  if (parsed.group == nullptr) return Outcome{kExitOk, UsageText()};
  if (parsed.command == nullptr) return Outcome{kExitOk, GroupText(*parsed.group)};
  if (parsed.arguments.size() > 0) {
    return Error(Errc::kUsage, "unexpected argument '" + std::string(parsed.arguments[0]) + "'");
  }
  return Outcome{kExitOk, HelpText(*parsed.command)};
}

constexpr std::array kCommands = {
    Command{"help",
            "[command …]",
            0,
            kAnyNumber,
            {},
            "Say what a command does",
            "Prints the commands, or what one of them does. Opens no database.\n\n"
            "Example:\n  ic help state set\n",
            RunHelp},
};

}  // namespace

std::span<const Command> HelpCommands() { return kCommands; }

}  // namespace interlock::cli
