#include "cli/completion.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace interlock::cli {
namespace {

// The script asks the program, so that it matches the installed version.
constexpr std::string_view kBash =
    R"(# bash completion for ic: source it, or put it into /etc/bash_completion.d
_ic() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("$line")
  done < <("${COMP_WORDS[0]}" completion next -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2>/dev/null
  fi
}
complete -o default -F _ic ic intercore
)";

// Returns the words before the current one that can name a command: no flags, and no value of a
// flag that is written as a separate word.
std::string PathOf(std::span<const std::string_view> words) {
  std::string path;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--db" || words[i] == "--timeout" || words[i] == "--log-format") {
      ++i;
    } else if (!words[i].starts_with('-')) {
      path += path.empty() ? std::string(words[i]) : ' ' + std::string(words[i]);
    }
  }
  return path;
}

// Returns the longest command that `path` begins with, or null.
const Command* CommandOf(const Group& group, std::string_view path) {
  const Command* longest = nullptr;
  for (const Command& command : group.commands()) {
    const bool fits = path == command.path || path.starts_with(std::string(command.path) + ' ');
    if (fits && (longest == nullptr || command.path.size() > longest->path.size())) {
      longest = &command;
    }
  }
  return longest;
}

void AddFlags(std::span<const Flag> flags, std::set<std::string>& found) {
  for (const Flag& flag : flags) {
    found.insert("--" + std::string(flag.name) + (flag.value.empty() ? "" : "="));
  }
}

std::set<std::string> Candidates(std::string_view path, bool flags) {
  std::set<std::string> found;
  if (flags) AddFlags(GlobalFlags(), found);
  for (const Group& group : Groups()) {
    if (path.empty()) {
      if (!flags) found.emplace(group.name);
      continue;
    }
    if (path.substr(0, path.find(' ')) != group.name) continue;
    if (flags) {
      const Command* const command = CommandOf(group, path);
      if (command != nullptr) AddFlags(command->flags, found);
      continue;
    }
    const std::string start = std::string(path) + ' ';
    for (const Command& command : group.commands()) {
      if (!command.path.starts_with(start)) continue;
      const std::string_view rest = command.path.substr(start.size());
      found.emplace(rest.substr(0, rest.find(' ')));
    }
  }
  return found;
}

Result<CommandResult> RunBash(Context& /*context*/, const Arguments& /*arguments*/) {
  return CommandResult{kExitOk, std::string(kBash)};
}

Result<CommandResult> RunNext(Context& /*context*/, const Arguments& arguments) {
  std::span<const std::string_view> words = arguments.positional();
  std::string_view typed;
  if (!words.empty()) {
    typed = words.back();
    words = words.first(words.size() - 1);
  }
  std::string text;
  for (const std::string& candidate : Candidates(PathOf(words), typed.starts_with('-'))) {
    if (candidate.starts_with(typed)) text += candidate + '\n';
  }
  return CommandResult{kExitOk, text};
}

constexpr std::array kCommands = {
    Command{"completion bash",
            "",
            0,
            0,
            {},
            "Print a script that completes ic in bash",
            "The script calls ic itself, so a new version of ic needs no new script.\n\n"
            "Example:\n  source <(ic completion bash)\n",
            RunBash},
    Command{
        "completion next",
        "-- [word ...]",
        0,
        kAnyNumber,
        {},
        "Print completions of the last word",
        "The words are those of a command line after ic. The last word is the incomplete one and\n"
        "may be empty. Prints one completion per line, or nothing if there is none.\n\n"
        "Example:\n  ic completion next -- state s\n",
        RunNext},
};

}  // namespace

std::span<const Command> CompletionCommands() { return kCommands; }

}  // namespace interlock::cli
