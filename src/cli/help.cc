#include "cli/help.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "cli/parse.h"

namespace interlock::cli {
namespace {

// The reference in docs/ic.md: every command as help explains it.
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

Result<Outcome> RunHelp(Context& context, const Arguments& arguments) {
  if (arguments.IsOn("markdown")) return Outcome{kExitOk, Markdown()};
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
    return Error(Errc::kUsage, fmt::format("unexpected argument '{}'", parsed.arguments[0]));
  }
  return Outcome{kExitOk, HelpText(*parsed.command)};
}

constexpr std::array kFlags = {
    Flag{"markdown", "", "print the whole reference, as docs/ic.md holds it"},
};

constexpr std::array kCommands = {
    Command{"help", "[command ...]", 0, kAnyNumber, kFlags, "Say what a command does",
            "Prints the commands, or what one of them does. Opens no database.\n\n"
            "Example:\n  ic help state set\n",
            RunHelp},
};

}  // namespace

std::span<const Command> HelpCommands() { return kCommands; }

}  // namespace interlock::cli
