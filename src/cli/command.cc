#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/version.h"

namespace interlock::cli {
namespace {

Outcome RunHelp(const Invocation& invocation);

constexpr std::array kCommands = {
    Command{"help", "[command]", "Say what a command does",
            "Prints the commands, or what one of them does.\n\nExample:\n  ic help version\n",
            RunHelp},
    Command{"version", "[--json]", "Say what this program was built from",
            "Prints the version, the commit and the machine it was built for; with --json as one\n"
            "object. Opens no database and never fails.\n\nExample:\n  ic version --json\n",
            RunVersion},
};

const Command* FindCommand(std::string_view name) {
  const auto found = std::ranges::find(kCommands, name, &Command::name);
  return found == kCommands.end() ? nullptr : &*found;
}

std::string Usage() {
  std::string text =
      "usage: ic [--json] <command> [arguments]\n\n"
      "Atomic state for shell hooks and scripts, in one SQLite file.\n\ncommands:\n";
  for (const Command& command : kCommands) {
    text += fmt::format("  {:<10} {}\n", command.name, command.summary);
  }
  text +=
      "\nflags, anywhere on the line:\n"
      "  --json     print results as JSON\n"
      "  --help     say what a command does\n"
      "\nexit codes: 0 success, 1 expected negative, 2 unexpected error, 3 usage error\n"
      "\nexamples:\n  ic version\n  ic help version\n";
  return text;
}

std::string HelpOf(const Command& command) {
  return fmt::format("usage: ic {} {}\n\n{}", command.name, command.arguments, command.help);
}

// How many letters must change to make `a` out of `b`. Commands are short, so it is cheap.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t i = 0; i <= b.size(); ++i) row[i] = i;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t k = 1; k <= b.size(); ++k) {
      const std::size_t above = row[k];
      const std::size_t changed = diagonal + (a[i - 1] == b[k - 1] ? 0 : 1);
      row[k] = std::min({above + 1, row[k - 1] + 1, changed});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// The command that was probably meant; null when none is near.
const Command* Nearest(std::string_view name) {
  constexpr std::size_t kTypos = 2;
  const Command* nearest = nullptr;
  std::size_t best = kTypos + 1;
  if (name.size() > 64) return nullptr;
  for (const Command& command : kCommands) {
    const std::size_t distance = EditDistance(name, command.name);
    if (distance >= best || distance >= command.name.size()) continue;
    best = distance;
    nearest = &command;
  }
  return nearest;
}

Outcome UnknownCommand(std::string_view name) {
  const Command* const nearest = Nearest(name);
  const std::string hint = nearest != nullptr ? fmt::format("did you mean 'ic {}'?", nearest->name)
                                              : "run 'ic help' for the commands";
  return {kExitUsage, Usage(), fmt::format("ic: unknown command '{}'\n{}\n", name, hint)};
}

Outcome RunHelp(const Invocation& invocation) {
  if (invocation.arguments.empty()) return {kExitOk, Usage(), ""};
  const Command* const command = FindCommand(invocation.arguments.front());
  if (command == nullptr) return UnknownCommand(invocation.arguments.front());
  if (invocation.arguments.size() > 1) {
    return {kExitUsage, "",
            fmt::format("ic: help: unexpected argument '{}'\nusage: ic help [command]\n",
                        invocation.arguments[1])};
  }
  return {kExitOk, HelpOf(*command), ""};
}

bool IsTrue(std::string_view value) { return value == "true" || value == "1"; }

// The flags of `ic` itself; true when `argument` was one.
bool TakeGlobalFlag(std::string_view argument, Invocation& invocation) {
  if (argument == "--json") return invocation.json = true;
  if (argument.starts_with("--json=")) {
    invocation.json = IsTrue(argument.substr(7));
    return true;
  }
  if (argument == "--help" || argument == "-h") return invocation.help = true;
  return false;
}

}  // namespace

std::span<const Command> Commands() { return kCommands; }

Outcome Run(std::span<const char* const> arguments) {
  Invocation invocation;
  bool named = false;  // an empty word is a command too, though an unknown one
  for (const std::string_view argument : arguments) {
    if (TakeGlobalFlag(argument, invocation)) continue;
    if (named) {
      invocation.arguments.push_back(argument);
    } else if (argument == "--version") {
      invocation.command = "version";
      named = true;
    } else if (argument.starts_with('-')) {
      return {kExitUsage, "",
              fmt::format("ic: unknown flag '{}'\nrun 'ic help' for the flags\n", argument)};
    } else {
      invocation.command = argument;
      named = true;
    }
  }
  if (!named) return {kExitOk, Usage(), ""};
  const Command* const command = FindCommand(invocation.command);
  if (command == nullptr) return UnknownCommand(invocation.command);
  if (invocation.help) return {kExitOk, HelpOf(*command), ""};
  return command->run(invocation);
}

}  // namespace interlock::cli
