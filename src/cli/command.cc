#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "cli/parse.h"

namespace interlock::cli {
namespace {

std::string FlagLine(const Flag& flag) {
  std::string name = fmt::format("--{}", flag.name);
  if (!flag.value.empty()) name += fmt::format("={}", flag.value);
  if (flag.letter != 0) name += fmt::format(", -{}", flag.letter);
  return fmt::format("  {:<22} {}\n", name, flag.summary);
}

// IC_LOG_LEVEL overrides the flags.
void TakeLogLevel(Context& context) {
  const std::optional<std::string> level = context.Environment("IC_LOG_LEVEL");
  if (!level) return;
  if (*level == "debug") context.globals.level = LogLevel::kDebug;
  if (*level == "info") context.globals.level = LogLevel::kInfo;
  if (*level == "warn" || *level == "warning") context.globals.level = LogLevel::kWarn;
  if (*level == "error") context.globals.level = LogLevel::kError;
}

std::string HelpFor(const Parsed& parsed) {
  if (parsed.group == nullptr) return UsageText();
  return parsed.command == nullptr ? GroupText(*parsed.group) : HelpText(*parsed.command);
}

CommandResult Failed(Context& context, const Error& error, const ParseState& state) {
  std::string remedy;
  if (error.code() == Errc::kUsage) {
    remedy =
        state.command.empty() ? "run 'ic help'" : fmt::format("run 'ic help {}'", state.command);
  }
  context.Fail(error, remedy);
  return {error.exit_code(), "", context.TakeDiagnostics()};
}

}  // namespace

std::string UsageText() {
  std::string text =
      "usage: ic [flags] <command> [arguments]\n\n"
      "Atomic state, throttle guards, runs and locks for shell hooks and scripts, in one SQLite "
      "file.\n\ncommands:\n";
  for (const Group& group : Groups()) {
    text += fmt::format("  {:<12} {}\n", group.name, group.summary);
  }
  text += "\nflags, anywhere on the command line:\n";
  for (const Flag& flag : GlobalFlags()) text += FlagLine(flag);
  text +=
      "\nexit codes: 0 success, 1 expected negative, 2 unexpected error, 3 usage error\n"
      "\nexamples:\n  ic init\n  ic sentinel check deploy \"$SESSION\" --interval=300\n"
      "  ic help state set\n";
  return text;
}

std::string GroupText(const Group& group) {
  std::string text =
      fmt::format("usage: ic {} <subcommand> [arguments]\n\n{}.\n\n", group.name, group.summary);
  for (const Command& command : group.commands()) {
    text += fmt::format("  {:<24} {}\n", command.path, command.summary);
  }
  text += fmt::format("\nExample:\n  ic help {}\n", group.commands().front().path);
  return text;
}

std::string HelpText(const Command& command) {
  std::string text = fmt::format("usage: ic {}", command.path);
  if (!command.arguments.empty()) text += fmt::format(" {}", command.arguments);
  if (!command.flags.empty()) text += " [flags]";
  text += fmt::format("\n\n{}.\n\n", command.summary);
  if (!command.flags.empty()) {
    text += "flags:\n";
    for (const Flag& flag : command.flags) text += FlagLine(flag);
    text += '\n';
  }
  text += command.help;
  return text;
}

CommandResult Run(Context& context, std::span<const char* const> arguments) {
  ParseState state{.globals = context.globals};
  const Result<Parsed> parsed = ParseCommandLine(arguments, state);
  context.command = state.command;
  TakeLogLevel(context);
  if (!parsed) return Failed(context, parsed.error(), state);
  if (parsed->help || parsed->group == nullptr) return {kExitOk, HelpFor(*parsed), ""};
  Result<CommandResult> outcome = parsed->command->run(context, parsed->arguments);
  if (!outcome) return Failed(context, outcome.error(), state);
  outcome->err.insert(0, context.TakeDiagnostics());
  return std::move(outcome).value();
}

}  // namespace interlock::cli
