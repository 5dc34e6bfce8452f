#include "cli/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cli/nearest.h"

namespace interlock::cli {
namespace {

constexpr std::array kGlobalFlags = {
    Flag{"db", "FILE", "the database; must end in .db and lie under the current directory"},
    Flag{"timeout", "D", "how long to wait for other processes (default 5s)"},
    Flag{"json", "", "print results as JSON"},
    Flag{"verbose", "", "print more on stderr (-vv: even more)"},
    Flag{"log-format", "text|json", "format of messages on stderr (default text)"},
    Flag{"help", "", "print help for a command", 'h'},
};

const Flag* FindFlag(std::span<const Flag> flags, std::string_view name) {
  const auto found = std::ranges::find(flags, name, &Flag::name);
  return found == flags.end() ? nullptr : &*found;
}

const Flag* FindLetter(std::span<const Flag> flags, char letter) {
  if (letter == 0) return nullptr;
  const auto found = std::ranges::find(flags, letter, &Flag::letter);
  return found == flags.end() ? nullptr : &*found;
}

Error Usage(std::string message, std::string remedy = {}) {
  Error error(Errc::kUsage, std::move(message));
  if (remedy.empty()) return error;
  return std::move(error).WithDetail("do", std::move(remedy));
}

// Parses the words one by one.
class Parser {
 public:
  Parser(std::span<const char* const> words, ParseState& state) : words_(words), state_(state) {}

  Result<Parsed> Parse() {
    while (at_ < words_.size()) {
      const std::string_view word = words_[at_];
      if (!flags_ended_ && word == "--") {
        flags_ended_ = true;
        ++at_;
        continue;
      }
      IL_TRY(const bool taken, TakeFlag(word));
      if (taken) continue;
      ++at_;
      IL_TRY_VOID(TakeWord(word));
    }
    return Finish();
  }

 private:
  struct Split {
    std::string_view name;
    std::optional<std::string_view> value;
  };

  static Split SplitFlag(std::string_view word) {
    word.remove_prefix(2);
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return {word, std::nullopt};
    return {word.substr(0, equals), word.substr(equals + 1)};
  }

  std::span<const Flag> own_flags() const {
    return parsed_.command == nullptr ? std::span<const Flag>() : parsed_.command->flags;
  }

  // Returns false if `word` is not a flag.
  Result<bool> TakeFlag(std::string_view word) {
    if (flags_ended_ || !word.starts_with('-')) return false;
    if (!word.starts_with("--")) return TakeLetter(word);
    if (parsed_.group == nullptr && word == "--version") return false;  // an alias of a command
    const Split split = SplitFlag(word);
    const Flag* const own = FindFlag(own_flags(), split.name);
    const Flag* const flag = own != nullptr ? own : FindFlag(kGlobalFlags, split.name);
    if (flag == nullptr) return UnknownFlag(split.name);
    ++at_;
    // The command is not complete yet, so the flag may be the command's own.
    const bool early = parsed_.group != nullptr && parsed_.command == nullptr;
    if (early && flag->name == "timeout") {
      early_timeout_ = split.value;
      if (!split.value) {
        IL_TRY(early_timeout_, NextValue(*flag));
      }
      return true;
    }
    IL_TRY_VOID(Take(*flag, split.value, own != nullptr));
    return true;
  }

  Result<bool> TakeLetter(std::string_view word) {
    if (word == "-vv") {
      state_.globals.level = LogLevel::kDebug;
      state_.globals.verbose = true;
      ++at_;
      return true;
    }
    if (word.size() != 2) return false;
    const Flag* const own = FindLetter(own_flags(), word[1]);
    const Flag* const flag = own != nullptr ? own : FindLetter(kGlobalFlags, word[1]);
    if (flag == nullptr) return false;
    ++at_;
    IL_TRY_VOID(Take(*flag, std::nullopt, own != nullptr));
    return true;
  }

  Result<void> Take(const Flag& flag, std::optional<std::string_view> value, bool own) {
    if (!flag.value.empty() && !value) {
      IL_TRY(value, NextValue(flag));
    }
    const bool is_switch = flag.value.empty() && value;
    if (is_switch && *value != "true" && *value != "1" && *value != "false" && *value != "0") {
      return Usage(fmt::format("--{} is a switch: true or false, not '{}'", flag.name, *value));
    }
    if (!own) return TakeGlobal(flag, value);
    parsed_.arguments.AddFlag({flag.name, value});
    return {};
  }

  Result<std::string_view> NextValue(const Flag& flag) {
    if (at_ >= words_.size() || std::string_view(words_[at_]).starts_with("--")) {
      return Usage(fmt::format("--{} needs a value", flag.name),
                   fmt::format("write --{}={}", flag.name, flag.value));
    }
    return std::string_view(words_[at_++]);
  }

  Result<void> TakeGlobal(const Flag& flag, std::optional<std::string_view> value) {
    Globals& globals = state_.globals;
    const bool on = !value || *value == "true" || *value == "1";
    if (flag.name == "json") {
      globals.json = on;
    } else if (flag.name == "help") {
      parsed_.help = on;
    } else if (flag.name == "verbose") {
      if (on) globals.level = std::min(globals.level, LogLevel::kInfo);
      globals.verbose = globals.verbose || on;
    } else if (flag.name == "db") {
      globals.db = std::string(*value);
    } else if (flag.name == "log-format") {
      if (*value != "text" && *value != "json") {
        return Usage(fmt::format("--log-format must be text or json, not '{}'", *value));
      }
      globals.format = *value == "json" ? LogFormat::kJson : LogFormat::kText;
    } else {
      return TakeTimeout(*value);
    }
    return {};
  }

  Result<void> TakeTimeout(std::string_view text) {
    constexpr auto kMost = std::chrono::hours(24);
    const Result<Duration> time = ParseTime("--timeout", text);
    if (!time || *time < Duration::zero() || *time > kMost) {
      return Usage(fmt::format("invalid timeout: {}", text),
                   "write a duration from 0 to 24h, as --timeout=30s");
    }
    state_.globals.busy_timeout = std::chrono::ceil<std::chrono::milliseconds>(*time);
    return {};
  }

  Error UnknownFlag(std::string_view name) const {
    std::vector<std::string_view> names;
    names.reserve(own_flags().size() + kGlobalFlags.size());
    for (const Flag& flag : own_flags()) names.push_back(flag.name);
    for (const Flag& flag : kGlobalFlags) names.push_back(flag.name);
    return Usage(fmt::format("unknown flag '--{}'", name), DidYouMean(name, names, "--"));
  }

  Result<void> TakeWord(std::string_view word) {
    if (parsed_.group == nullptr) return TakeFirst(word);
    // A word belongs to the command as long as it forms a longer command name.
    if (parsed_.arguments.size() == 0 && Extends(word)) return {};
    if (parsed_.command == nullptr) return UnknownSubcommand(word);
    if (parsed_.arguments.size() >= parsed_.command->at_most) {
      return Usage(fmt::format("unexpected argument '{}'", word));
    }
    parsed_.arguments.AddPositional(word);
    return {};
  }

  Result<void> TakeFirst(std::string_view word) {
    const std::string_view name = word == "--version" ? "version" : word;
    const auto found = std::ranges::find(Groups(), name, &Group::name);
    if (found == Groups().end()) {
      std::vector<std::string_view> names;
      names.reserve(Groups().size());
      for (const Group& group : Groups()) names.push_back(group.name);
      const std::string hint = DidYouMean(word, names, "ic ");
      return Usage(fmt::format("unknown command '{}'", word),
                   hint.empty() ? "run 'ic help' to list the commands" : hint);
    }
    parsed_.group = &*found;
    path_ = found->name;
    FindCommand();
    return {};
  }

  // Finds the command whose words are path_.
  void FindCommand() {
    const std::span<const Command> commands = parsed_.group->commands();
    const auto found = std::ranges::find(commands, path_, &Command::path);
    parsed_.command = found == commands.end() ? nullptr : &*found;
    state_.known = parsed_.command;
    state_.command = Known();
  }

  // Returns path_ as a view that lives as long as the tables.
  std::string_view Known() const {
    if (parsed_.command != nullptr) return parsed_.command->path;
    for (const Command& command : parsed_.group->commands()) {
      if (command.path.starts_with(path_)) return command.path.substr(0, path_.size());
    }
    return parsed_.group->name;
  }

  bool Extends(std::string_view word) {
    const std::string longer = fmt::format("{} {}", path_, word);
    const bool found =
        !word.empty() && word.find(' ') == std::string_view::npos &&
        std::ranges::any_of(parsed_.group->commands(), [&longer](const Command& command) {
          return command.path == longer || command.path.starts_with(longer + ' ');
        });
    if (!found) return false;
    path_ = longer;
    FindCommand();
    return true;
  }

  Error UnknownSubcommand(std::string_view word) const {
    const std::vector<std::string_view> names = NextWords();
    std::string hint = DidYouMean(word, names, fmt::format("ic {} ", path_));
    if (hint.empty()) hint = fmt::format("run 'ic help {}' to list the subcommands", path_);
    return Usage(fmt::format("unknown subcommand '{}'", word), std::move(hint));
  }

  std::vector<std::string_view> NextWords() const {
    std::vector<std::string_view> words;
    const std::string start = path_ + ' ';
    for (const Command& command : parsed_.group->commands()) {
      if (!command.path.starts_with(start)) continue;
      const std::string_view rest = command.path.substr(start.size());
      const std::string_view word = rest.substr(0, rest.find(' '));
      if (std::ranges::find(words, word) == words.end()) words.push_back(word);
    }
    return words;
  }

  Result<Parsed> Finish() {
    if (early_timeout_) {
      const Flag* const own = FindFlag(own_flags(), "timeout");
      const Flag& flag = own != nullptr ? *own : *FindFlag(kGlobalFlags, "timeout");
      IL_TRY_VOID(Take(flag, early_timeout_, own != nullptr));
    }
    if (parsed_.help || parsed_.group == nullptr) return std::move(parsed_);
    if (parsed_.command == nullptr) {
      return Usage("a subcommand is missing",
                   fmt::format("one of: {}", fmt::join(NextWords(), ", ")));
    }
    if (parsed_.arguments.size() < parsed_.command->at_least) {
      return Usage(
          fmt::format("usage: ic {} {}", parsed_.command->path, parsed_.command->arguments));
    }
    return std::move(parsed_);
  }

  std::span<const char* const> words_;
  ParseState& state_;
  std::size_t at_ = 0;
  bool flags_ended_ = false;
  std::optional<std::string_view> early_timeout_;
  Parsed parsed_;
  std::string path_;
};

}  // namespace

std::span<const Flag> GlobalFlags() { return kGlobalFlags; }

Result<Parsed> ParseCommandLine(std::span<const char* const> words, ParseState& state) {
  return Parser(words, state).Parse();
}

}  // namespace interlock::cli
