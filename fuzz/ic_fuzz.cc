// A command line of `ic`: words with NUL bytes between them, read against the real tables and run.
//
// - It is understood the same way twice. What is not is a usage error (3) that says what to do;
// what
//   is has the arguments and flags that its command takes, and each is a word of the line.
// - A word that is read as a number is that number.
// - What runs ends with 0 to 3, says why when it fails, and with --json prints JSON.
//
// Only commands that touch nothing but the database run, on a copy of one in a temporary folder.

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/unique_fd.h"
#include "cli/command.h"
#include "cli/parse.h"
#include "json/parse.h"
#include "json/value.h"
#include "targets.h"
#include "testing/fake_clock.h"
#include "testing/seeded_random.h"
#include "testing/temp_db.h"

namespace interlock::fuzz {
namespace {

namespace fs = std::filesystem;
using cli::Parsed;
using Words = std::vector<const char*>;

// Hooks, files anywhere, waiting: these are tested in tests/cli.
bool Runs(const Parsed& parsed, const cli::Globals& globals) {
  if (globals.db) return false;  // another one than ours
  if (parsed.help || parsed.command == nullptr) return true;
  const std::string_view group = parsed.group->name;
  if (group == "help" || group == "completion") return true;
  const std::string_view path = parsed.command->path;
  if (path == "state wait" || path == "run advance" || path == "run artifact add") return false;
  const bool file = std::ranges::any_of(
      parsed.arguments.positional(), [](std::string_view word) { return word.starts_with('@'); });
  return !file && (group == "state" || group == "sentinel" || group == "run");
}

// One database, made once, and a copy of it for each command.
class Place {
 public:
  Place() {
    IL_CHECK(Run({"init"}).exit_code == 0);
    IL_CHECK(Run({"state", "set", "k", "s", "1"}).exit_code == 0);
    IL_CHECK(Run({"sentinel", "check", "n", "s", "--interval=60"}).exit_code == 0);
    for (const char* const goal : {"--goal=g", "--goal=h"}) {
      const cli::CommandResult made = Run({"run", "create", goal});
      IL_CHECK(made.exit_code == 0, made.err);
      runs_.push_back(made.out.substr(0, made.out.size() - 1));
    }
    IL_CHECK(fs::copy_file(file(), folder_.path() / "kept"));
  }

  cli::CommandResult Run(const Words& words) {
    testing::SeededRandom random(++made_);
    const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
    cli::Context context({.clock = clock_,
                          .random = random,
                          .input = nothing.get(),
                          .error = nothing.get(),
                          .environment = [&](std::string_view name) -> std::optional<std::string> {
                            if (name == "INTERCORE_DB") return file().string();
                            return std::nullopt;
                          }});
    cli::CommandResult outcome = cli::Run(context, words);
    context.Finish();
    return outcome;
  }

  cli::CommandResult RunOnCopy(const Words& words) {
    for (const char* const rest : {"-wal", "-shm"}) fs::remove(file().string() + rest);
    fs::copy_file(folder_.path() / "kept", file(), fs::copy_options::overwrite_existing);
    made_ = kMadeFirst;
    return Run(words);
  }

  // Ids are made at random, and the same in every process; "RUN" stands for the first one's.
  const std::string& run() const { return runs_.front(); }

 private:
  fs::path file() const { return folder_.path() / "ic.db"; }

  const testing::TempDir folder_;
  testing::FakeClock clock_;
  static constexpr std::uint64_t kMadeFirst = 1000;  // more than the constructor needs
  std::uint64_t made_ = 0;                           // seeds of ids: no two commands make the same
  std::vector<std::string> runs_;
};

void CheckParsed(const Parsed& parsed, const Words& words) {
  IL_CHECK(parsed.command == nullptr || parsed.group != nullptr);
  if (parsed.command == nullptr) {
    IL_CHECK(parsed.help || parsed.group == nullptr);
    return;
  }
  const std::size_t count = parsed.arguments.size();
  IL_CHECK(count <= parsed.command->at_most);
  IL_CHECK(parsed.help || count >= parsed.command->at_least);
  auto from = words.begin();  // arguments are words of the line, in its order
  for (const std::string_view argument : parsed.arguments.positional()) {
    from = std::find_if(from, words.end(), [&](const char* word) { return argument == word; });
    IL_CHECK(from != words.end(), argument);
    ++from;
  }
  for (const cli::Flag& flag : parsed.command->flags) {
    const auto text = parsed.arguments.Text(flag.name);
    if (!text) continue;
    const bool there = std::ranges::any_of(
        words, [&](const char* word) { return std::string_view(word).ends_with(*text); });
    IL_CHECK(there && parsed.arguments.Has(flag.name), flag.name);
  }
}

void CheckInteger(std::string_view text) {
  const Result<std::int64_t> read = cli::ParseInteger("--n", text);
  IL_CHECK(!read.ok() || cli::ParseInteger("--n", std::to_string(*read)).value() == *read);
  if (!read.ok()) {
    IL_CHECK(read.error().code() == Errc::kUsage);
    return;
  }
  const std::string_view digits = text.substr(text.starts_with('+') ? 1 : 0);
  const std::size_t sign = *read < 0 || digits.starts_with('-') ? 1 : 0;
  const std::size_t first = std::min(digits.find_first_not_of('0', sign), digits.size() - 1);
  const std::string shortest =
      std::string(*read < 0 ? "-" : "") + std::string(digits.substr(first));
  IL_CHECK(std::to_string(*read) == shortest, text);
}

bool IsJson(std::string_view text) { return json::Parse(text).ok(); }

void CheckOutcome(const cli::CommandResult& outcome, const Parsed* parsed,
                  const cli::Globals& globals) {
  IL_CHECK(outcome.exit_code >= cli::kExitOk && outcome.exit_code <= cli::kExitUsage);
  if (parsed == nullptr) IL_CHECK(outcome.exit_code == cli::kExitUsage, outcome.err);
  if (outcome.exit_code >= cli::kExitUnexpected) {
    IL_CHECK(outcome.err.ends_with('\n'), outcome.err);
    IL_CHECK(
        globals.format == LogFormat::kJson ? IsJson(outcome.err) : outcome.err.starts_with("ic: "),
        outcome.err);
  }
  const bool result = parsed != nullptr && parsed->command != nullptr && !parsed->help &&
                      parsed->group->name != "help" && parsed->group->name != "completion";
  if (!result || !globals.json || outcome.out.empty()) return;
  IL_CHECK(outcome.out.ends_with('\n') && IsJson(outcome.out), outcome.out);
}

}  // namespace

void FuzzIc(std::string_view input) {
  static Place place;
  if (input.size() > 2048) return;
  std::vector<std::string> texts;
  for (const auto word : std::views::split(input, '\0')) {
    texts.emplace_back(word.begin(), word.end());
    if (texts.back() == "RUN") texts.back() = place.run();
  }
  Words words;
  words.reserve(texts.size());
  for (const std::string& text : texts) {
    CheckInteger(text);
    words.push_back(text.c_str());
  }

  cli::Globals globals;
  cli::ParseState state{.globals = globals};
  const Result<Parsed> parsed = cli::ParseCommandLine(words, state);
  cli::Globals other_globals;
  cli::ParseState other{.globals = other_globals};
  const Result<Parsed> again = cli::ParseCommandLine(words, other);
  IL_CHECK(parsed.ok() == again.ok() && state.command == other.command);
  if (!parsed.ok()) {
    IL_CHECK(parsed.error().code() == Errc::kUsage && !parsed.error().message().empty());
    IL_CHECK(parsed.error().message() == again.error().message());
    return CheckOutcome(place.Run(words), nullptr, globals);
  }
  IL_CHECK(parsed->command == again->command && parsed->help == again->help);
  CheckParsed(*parsed, words);
  if (Runs(*parsed, globals)) CheckOutcome(place.RunOnCopy(words), &*parsed, globals);
}

}  // namespace interlock::fuzz

IL_FUZZ_ENTRY(FuzzIc);
