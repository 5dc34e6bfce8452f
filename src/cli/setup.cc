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

// Uses the names that download scripts use.
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

// Returns the schema version of the current database; nullopt if it is missing or unreadable.
std::optional<int> LocalSchema(Context& context) {
  const Result<kernel::Database::Options> options = context.DatabaseOptions();
  if (!options) return std::nullopt;
  const Result<int> version = kernel::Database::ReadVersion(*options, context.clock());
  if (!version) return std::nullopt;
  return *version;
}

Result<CommandResult> RunVersion(Context& context, const Arguments& /*arguments*/) {
  const Build& build = BuildInfo();
  const std::string_view source = build.commit.empty() ? "archive" : "git";
  const std::optional<int> schema = LocalSchema(context);
  if (context.json()) {
    // Our own texts contain nothing to escape.
    std::string text = fmt::format(
        "{{\n  \"version\": \"{}\",\n  \"commit\": \"{}\",\n  \"commit_time\": \"{}\",\n"
        "  \"dirty\": {},\n  \"os\": \"linux\",\n  \"arch\": \"{}\",\n  \"source\": \"{}\",\n"
        "  \"compiler\": \"{}\",\n  \"go\": \"\"",
        build.version, build.commit, build.commit_time, build.dirty, Architecture(), source,
        Compiler());
    if (schema) text += fmt::format(",\n  \"schema\": {}", *schema);
    return CommandResult{kExitOk, text + "\n}\n"};
  }
  const std::string commit =
      build.commit.empty()
          ? "unknown"
          : fmt::format("{}{} ({})", build.commit, build.dirty ? "-dirty" : "", build.commit_time);
  const std::string local =
      schema ? fmt::format("v{} (local database)", *schema) : "unknown (no database here)";
  return CommandResult{kExitOk, fmt::format("ic {}\ncommit: {}\ntarget: linux/{}\nschema: {}\n",
                                            build.version, commit, Architecture(), local)};
}

Result<CommandResult> RunInit(Context& context, const Arguments& /*arguments*/) {
  IL_TRY(const kernel::Database::Options options, context.DatabaseOptions());
  IL_TRY(const db::MigrationOutcome outcome,
         kernel::Database::Init(options, kernel::KernelSchema(), context.clock()));
  if (const auto hidden = HideFromGit({options.path}); !hidden) {
    context.Warn(fmt::format("git may add {}: {}", options.path.string(), hidden.error().message()),
                 "do not commit it");
  }
  if (!outcome.backup.empty() && context.globals.level <= LogLevel::kInfo) {
    context.Warn(
        fmt::format("kept the file of version {} as {}", outcome.from, outcome.backup.string()));
  }
  return Answer(context,
                fmt::format("initialized {} (schema v{})", options.path.string(), outcome.to),
                json::ObjectText().Add("path", options.path.string()).Add("schema", outcome.to));
}

Result<CommandResult> RunHealth(Context& context, const Arguments& arguments) {
  IL_TRY(const kernel::Database::Options options, context.DatabaseOptions());
  kernel::HealthLimits limits;
  if (arguments.IsOn("full")) limits.checked_bytes_max = std::numeric_limits<std::uintmax_t>::max();
  IL_TRY_VOID(kernel::CheckHealth(options, kernel::KernelSchema(), context.clock(), limits));
  return Answer(context, "ok", json::ObjectText().Add("status", "ok"));
}

Result<CommandResult> RunRollback(Context& context, const Arguments& arguments) {
  IL_TRY(const kernel::Database::Options options, context.DatabaseOptions());
  const std::optional<std::string_view> backup = arguments.Text("backup");
  IL_TRY(const kernel::RestorePlan plan,
         backup ? kernel::PlanRestoreFrom(options, *backup, context.clock())
                : kernel::PlanRestore(options, context.clock()));
  const std::string current =
      plan.replaced ? fmt::format("version {}", *plan.replaced) : "not readable";
  const std::string what = fmt::format("{} (version {}) over {} ({})", plan.backup.string(),
                                       plan.version, options.path.string(), current);
  if (arguments.IsOn("dry-run")) {
    return Answer(context, fmt::format("would restore {}", what),
                  json::ObjectText().Add("dry_run", true).Add("restored", plan.backup.string()));
  }
  if (!arguments.IsOn("yes")) {
    const bool agreed = context.Confirm(
        fmt::format("restore {}? The current content is kept under another name.", what));
    if (!agreed)
      return CommandResult{kExitNegative, "", "ic: migrate rollback: nothing was changed\n"};
  }
  IL_TRY(const std::filesystem::path kept, kernel::RestoreBackup(options, plan, context.clock()));
  return Answer(
      context,
      fmt::format("restored {}\nkept the old content as {}", plan.backup.string(), kept.string()),
      json::ObjectText().Add("kept", kept.string()).Add("restored", plan.backup.string()));
}

constexpr std::array kVersion = {
    Command{"version",
            "",
            0,
            0,
            {},
            "Print version and build information",
            "Prints the version, the commit, the target machine, and the schema version of the\n"
            "current database, if there is one. With --json prints one object. Never fails.\n\n"
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
        "Create the database, or migrate it to this version",
        "Creates .clavain/intercore.db in the current directory (directory 0700, file 0600),\n"
        "unless a parent directory has one, or --db or INTERCORE_DB names one. In a git work "
        "tree,\n"
        "adds its name to info/exclude of the repository, so that git ignores it. A file of an\n"
        "older version, or of the program that ic replaces, is migrated after a backup beside it.\n"
        "It is safe to run this again, and from several processes at once.\n\n"
        "Example:\n  ic init\n  ic init --db=.clavain/intercore.db\n",
        RunInit},
};

constexpr std::array kHealthFlags = {
    Flag{"full", "", "check the whole file, whatever its size"},
};

constexpr std::array kHealth = {
    Command{"health", "", 0, 0, kHealthFlags, "Check whether the database is usable",
            "Prints ok if the database exists, has this schema version, is undamaged and writable, "
            "and\n"
            "its disk has more than 10 MiB free. Otherwise exits with 2 and prints the problem and "
            "its\n"
            "remedy. Files above 8 MiB are fully checked only with --full.\n\n"
            "Example:\n  ic health && echo usable\n",
            RunHealth},
};

constexpr std::array kRollbackFlags = {
    Flag{"backup", "FILE", "restore this backup (default: the newest of an older version)"},
    Flag{"dry-run", "", "only print what would be done"},
    Flag{"yes", "", "do not ask"},
};

constexpr std::array kMigrate = {
    Command{
        "migrate rollback", "", 0, 0, kRollbackFlags, "Restore a backup of an older version",
        "A migration keeps a copy of the file as <database>.v<version>.<time>.backup. This "
        "command\n"
        "restores the newest backup of an older version, after a confirmation, and keeps the\n"
        "current content. First stop all users of the database: concurrent writes are lost. Exits\n"
        "with 1 if there is no backup, or if the answer is no.\n\n"
        "Example:\n  ic migrate rollback --dry-run\n  ic migrate rollback --yes\n",
        RunRollback},
};

}  // namespace

std::span<const Command> VersionCommands() { return kVersion; }
std::span<const Command> InitCommands() { return kInit; }
std::span<const Command> HealthCommands() { return kHealth; }
std::span<const Command> MigrateCommands() { return kMigrate; }

}  // namespace interlock::cli
