#include "cli/setup.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "base/git_tree.h"
#include "base/version.h"
#include "cli/output.h"
#include "json/object_text.h"
#include "kernel/health.h"
#include "kernel/rollback.h"
#include "kernel/schema.h"

namespace interlock::cli {
namespace {

// Named as scripts that choose a download know them.
std::string_view Architecture() {
#if defined(__x86_64__)
  return "amd64";
#elif defined(__aarch64__)
  return "arm64";
#else
  return "other";
#endif
}

std::string_view Compiler() {
#if defined(__clang__)
  return "clang++ " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

// The schema version of the database that is here, whatever it is; nothing when there is none, or
// it cannot be read.
std::optional<int> LocalSchema(Context& context) {
  const Result<kernel::Database::Options> options = context.DatabaseOptions();
  if (!options) return std::nullopt;
  const Result<int> version = kernel::Database::VersionAt(*options, context.clock());
  if (!version) return std::nullopt;
  return *version;
}

Result<Outcome> RunVersion(Context& context, const Arguments& /*arguments*/) {
  const Build& build = BuildInfo();
  const std::string_view source = build.commit.empty() ? "archive" : "git";
  const std::optional<int> schema = LocalSchema(context);
  if (context.json()) {
    // Every text is ours and holds nothing to escape.
    std::string text = fmt::format(
        "{{\n  \"version\": \"{}\",\n  \"commit\": \"{}\",\n  \"commit_time\": \"{}\",\n"
        "  \"dirty\": {},\n  \"os\": \"linux\",\n  \"arch\": \"{}\",\n  \"source\": \"{}\",\n"
        "  \"compiler\": \"{}\",\n  \"go\": \"\"",
        build.version, build.commit, build.commit_time, build.dirty, Architecture(), source,
        Compiler());
    if (schema) text += fmt::format(",\n  \"schema\": {}", *schema);
    return Outcome{kExitOk, text + "\n}\n"};
  }
  const std::string commit =
      build.commit.empty()
          ? "unknown"
          : fmt::format("{}{} ({})", build.commit, build.dirty ? "-dirty" : "", build.commit_time);
  const std::string local =
      schema ? fmt::format("v{} (local database)", *schema) : "unknown (no database here)";
  return Outcome{kExitOk, fmt::format("ic {}\ncommit: {}\ntarget: linux/{}\nschema: {}\n",
                                      build.version, commit, Architecture(), local)};
}

Result<Outcome> RunInit(Context& context, const Arguments& /*arguments*/) {
  IL_TRY(const kernel::Database::Options options, context.DatabaseOptions());
  IL_TRY(const db::MigrationOutcome outcome,
         kernel::Database::Init(options, kernel::KernelSchema(), context.clock()));
  if (const auto hidden = HideFromGit({options.path}); !hidden) {
    context.Warn(fmt::format("git may add {}: {}", options.path.string(), hidden.error().message()),
                 "do not commit it");
  }
  if (!outcome.backup.empty() && context.globals.level <= LogLevel::kInfo) {
    context.Warn(
        fmt::format("the file of version {} is kept as {}", outcome.from, outcome.backup.string()));
  }
  return Answer(context,
                fmt::format("initialized {} (schema v{})", options.path.string(), outcome.to),
                json::ObjectText().Add("path", options.path.string()).Add("schema", outcome.to));
}

Result<Outcome> RunHealth(Context& context, const Arguments& arguments) {
  IL_TRY(const kernel::Database::Options options, context.DatabaseOptions());
  kernel::HealthLimits limits;
  if (arguments.IsOn("full")) limits.checked_bytes_max = std::numeric_limits<std::uintmax_t>::max();
  IL_TRY_VOID(kernel::CheckHealth(options, kernel::KernelSchema(), context.clock(), limits));
  return Answer(context, "ok", json::ObjectText().Add("status", "ok"));
}

Result<Outcome> RunRollback(Context& context, const Arguments& arguments) {
  IL_TRY(const kernel::Database::Options options, context.DatabaseOptions());
  const std::optional<std::string_view> backup = arguments.Text("backup");
  IL_TRY(const kernel::Rollback plan,
         backup ? kernel::PlanRollbackTo(options, *backup, context.clock())
                : kernel::PlanRollback(options, context.clock()));
  const std::string there =
      plan.replaced ? fmt::format("version {}", *plan.replaced) : "which cannot be read";
  const std::string what = fmt::format("{} (version {}) over {} ({})", plan.backup.string(),
                                       plan.version, options.path.string(), there);
  if (arguments.IsOn("dry-run")) {
    return Answer(context, fmt::format("would restore {}", what),
                  json::ObjectText().Add("dry_run", true).Add("restored", plan.backup.string()));
  }
  if (!arguments.IsOn("yes")) {
    const bool agreed = context.Confirm(
        fmt::format("restore {}? What is there now is kept under another name.", what));
    if (!agreed) return Outcome{kExitNegative, "", "ic: migrate rollback: nothing was changed\n"};
  }
  IL_TRY(const std::filesystem::path kept, kernel::RollBack(options, plan, context.clock()));
  return Answer(
      context,
      fmt::format("restored {}\nkept what was there as {}", plan.backup.string(), kept.string()),
      json::ObjectText().Add("kept", kept.string()).Add("restored", plan.backup.string()));
}

constexpr std::array kVersion = {
    Command{
        "version",
        "",
        0,
        0,
        {},
        "Say what this program was built from",
        "Prints the version, the commit, the machine it was built for, and the schema version of\n"
        "the database that is here, if any; with --json as one object. Never fails.\n\n"
        "Example:\n  ic version --json\n",
        RunVersion},
};

constexpr std::array kInit = {
    Command{
        "init",
        "",
        0,
        0,
        {},
        "Make the database, or bring it to this version",
        "Makes .clavain/intercore.db here (directory 0700, file 0600), unless a directory above\n"
        "has one, or --db or INTERCORE_DB names one. In a git work tree its name is added to\n"
        "info/exclude of the repository, so that git ignores it. A file of an older version, also\n"
        "of the program that ic replaces, is brought to this one after a backup beside it. Doing\n"
        "it again changes nothing, and many may do it at once.\n\n"
        "Example:\n  ic init\n  ic init --db=.clavain/intercore.db\n",
        RunInit},
};

constexpr std::array kHealthFlags = {
    Flag{"full", "", "read and check the whole file, however large it is"},
};

constexpr std::array kHealth = {
    Command{
        "health", "", 0, 0, kHealthFlags,
        "Say whether the database can be used, and what to do if not",
        "Prints ok when the database is there, of this version, sound, writable, and its disk has\n"
        "more than 10 MiB free. Otherwise it exits with 2 and says what is wrong and what to do.\n"
        "Files above 8 MiB are checked as a whole only with --full.\n\n"
        "Example:\n  ic health && echo usable\n",
        RunHealth},
};

constexpr std::array kRollbackFlags = {
    Flag{"backup", "FILE", "this one, instead of the newest of an older version"},
    Flag{"dry-run", "", "only say what would be done"},
    Flag{"yes", "", "do not ask"},
};

constexpr std::array kMigrate = {
    Command{
        "migrate rollback", "", 0, 0, kRollbackFlags, "Put back a backup of an older version",
        "A migration keeps a copy of the file as <database>.v<version>.<time>.backup. This puts\n"
        "the newest one of an older version back, after asking, and keeps what was there. Stop\n"
        "what uses the database first: what is written meanwhile is lost. Exits with 1 when there\n"
        "is no backup, or the answer is no.\n\n"
        "Example:\n  ic migrate rollback --dry-run\n  ic migrate rollback --yes\n",
        RunRollback},
};

}  // namespace

std::span<const Command> VersionCommands() { return kVersion; }
std::span<const Command> InitCommands() { return kInit; }
std::span<const Command> HealthCommands() { return kHealth; }
std::span<const Command> MigrateCommands() { return kMigrate; }

}  // namespace interlock::cli
