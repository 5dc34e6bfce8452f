#include "cli/help.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "cli/parse.h"

namespace interlock::cli {
namespace {

// The reference part of docs/ic.md: the help of every command.
std::string Markdown() {
  std::string text = "```text\n" + UsageText() + "```\n";
  for (const Group& group : Groups()) {
    text += fmt::format("\n## {}\n\n{}.\n", group.name, group.summary);
    for (const Command& command : group.commands()) {
      text += fmt::format("\n### ic {}\n\n```text\n{}```\n", command.path, HelpText(command));
    }
  }
  return text;
}

Result<CommandResult> RunHelp(Context& context, const Arguments& arguments) {
  if (arguments.IsOn("markdown")) return CommandResult{kExitOk, Markdown()};
  // Parses the words as a command line that ends in --help.
  std::vector<std::string> words(arguments.positional().begin(), arguments.positional().end());
  std::vector<const char*> line;
  line.reserve(words.size() + 1);
  for (const std::string& word : words) line.push_back(word.c_str());
  line.push_back("--help");
  Globals ignored = context.globals;
  ParseState state{.globals = ignored};
  IL_TRY(const Parsed parsed, ParseCommandLine(line, state));
  if (parsed.group == nullptr) return CommandResult{kExitOk, UsageText()};
  if (parsed.command == nullptr) return CommandResult{kExitOk, GroupText(*parsed.group)};
  if (parsed.arguments.size() > 0) {
    return Error(Errc::kUsage, fmt::format("unexpected argument '{}'", parsed.arguments[0]));
  }
  return CommandResult{kExitOk, HelpText(*parsed.command)};
}

constexpr std::array kFlags = {
    Flag{"markdown", "", "print the whole reference, as in docs/ic.md"},
};

constexpr std::array kCommands = {
    Command{"help", "[command ...]", 0, kAnyNumber, kFlags, "Print help for a command",
            "Prints the list of commands, or the help of one command. Opens no database.\n\n"
            "Example:\n  ic help state set\n",
            RunHelp},
};

}  // namespace

std::span<const Command> HelpCommands() { return kCommands; }

}  // namespace interlock::cli
