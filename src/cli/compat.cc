#include "cli/compat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "cli/output.h"
#include "json/object_text.h"
#include "kernel/legacy.h"

namespace interlock::cli {
namespace {

using kernel::ImportResult;
using kernel::LegacyFile;
using kernel::LegacyKey;

// The result for one file.
struct Report {
  const LegacyFile* file;
  std::string outcome;
  bool refused = false;
};

CommandResult Reported(const Context& context, const std::vector<Report>& reports) {
  const bool refused = std::ranges::any_of(reports, &Report::refused);
  CommandResult outcome{refused ? kExitNegative : kExitOk};
  json::ArrayText array;
  for (const Report& report : reports) {
    const LegacyFile& file = *report.file;
    if (context.json()) {
      array.Add(json::ObjectText()
                    .Add("file", file.path.string())
                    .Add("key", file.key->key)
                    .Add("outcome", report.outcome)
                    .Add("scope_id", file.scope_id));
    } else {
      outcome.out += fmt::format("{}\t{}\t{}\t{}\n", Field(file.path.string()), file.key->key,
                                 Field(file.scope_id), Field(report.outcome));
    }
  }
  if (context.json()) outcome.out = array.Text() + '\n';
  return outcome;
}

std::filesystem::path DirectoryIn(const Arguments& arguments) {
  return std::string(arguments.Text("dir").value_or("/tmp"));
}

// Returns false if the database does not exist, and an error if it cannot be opened.
Result<bool> HasDatabase(Context& context) {
  IL_TRY(const kernel::Database::Options options, context.DatabaseOptions());
  std::error_code failure;
  const auto status = std::filesystem::symlink_status(options.path, failure);
  if (status.type() == std::filesystem::file_type::not_found) return false;
  IL_TRY_VOID(context.Open(kernel::Database::OpenMode::kRead));
  return true;
}

Result<CommandResult> RunStatus(Context& context, const Arguments& arguments) {
  IL_TRY(const auto files, kernel::FindLegacyFiles(DirectoryIn(arguments)));
  std::string text = "KEY\t\t\tLEGACY\tDB\n";
  json::ArrayText array;
  IL_TRY(const bool has_database, HasDatabase(context));
  for (const LegacyKey& key : kernel::LegacyKeys()) {
    const bool legacy =
        std::ranges::any_of(files, [&key](const LegacyFile& file) { return file.key == &key; });
    std::string in_database = "n/a";
    if (has_database) {
      IL_TRY(const std::int64_t count, context.Read([&](db::Connection& connection) {
        return kernel::CountScopes(connection, key.key, context.Now());
      }));
      in_database = count > 0 ? "yes" : "no";
    }
    text += fmt::format("{:<20}\t{}\t{}\n", key.key, legacy ? "yes" : "no", in_database);
    array.Add(json::ObjectText()
                  .Add("db", in_database)
                  .Add("key", key.key)
                  .Add("legacy", legacy ? "yes" : "no"));
  }
  return CommandResult{kExitOk, context.json() ? array.Text() + '\n' : text};
}

Result<CommandResult> RunCheck(Context& context, const Arguments& arguments) {
  const std::string_view key = arguments[0];
  IL_TRY(const std::int64_t count, context.Read([&](db::Connection& connection) {
    return kernel::CountScopes(connection, key, context.Now());
  }));
  const int exit_code = count > 0 ? kExitOk : kExitNegative;
  if (context.json()) {
    return CommandResult{exit_code,
                         json::ObjectText().Add("key", key).Add("scopes", count).Text() + '\n'};
  }
  return CommandResult{exit_code, count > 0 ? fmt::format("{}: {} scope(s) in DB\n", key, count)
                                            : fmt::format("{}: not in DB\n", key)};
}

std::string ResultText(ImportResult imported, bool dry_run) {
  switch (imported) {
    case ImportResult::kWritten:
      return dry_run ? "would be imported" : "imported";
    case ImportResult::kDiffers:
      return "kept: the database has another value";
    case ImportResult::kUnchanged:
      return "already there";
  }
  return {};
}

Result<std::vector<Report>> ImportAll(kernel::Transaction& tx, const std::vector<LegacyFile>& files,
                                      std::int64_t now, bool dry_run) {
  std::vector<Report> reports;
  reports.reserve(files.size());
  for (const LegacyFile& file : files) {
    std::string payload;
    if (file.key->kind == LegacyKey::Kind::kState) {
      Result<std::string> checked = kernel::LegacyPayload(file);
      if (!checked) {
        reports.push_back({&file, "refused: " + checked.error().message(), true});
        continue;
      }
      payload = std::move(checked).value();
    }
    IL_TRY(const ImportResult imported, kernel::ImportLegacyFile(tx, file, payload, now));
    reports.push_back({&file, ResultText(imported, dry_run)});
    if (imported != ImportResult::kWritten) continue;
    IL_TRY(const bool held, kernel::IsLegacyFileStored(tx.connection(), file, now));
    if (!held) {
      return Error(Errc::kInternal, fmt::format("{}: the stored value differs from the file; "
                                                "nothing was imported",
                                                file.path.string()));
    }
  }
  return reports;
}

Result<CommandResult> RunImport(Context& context, const Arguments& arguments) {
  IL_TRY(const auto files, kernel::FindLegacyFiles(DirectoryIn(arguments)));
  const bool dry_run = arguments.IsOn("dry-run");
  std::vector<Report> reports;
  const Result<void> done = context.Write([&](kernel::Transaction& tx) -> Result<void> {
    IL_TRY(reports, ImportAll(tx, files, context.Now(), dry_run));
    if (dry_run) return Error(Errc::kCancelled, "a dry run writes nothing");
    return {};
  });
  if (!done && !(dry_run && done.error().code() == Errc::kCancelled)) return done.error();
  return Reported(context, reports);
}

Result<CommandResult> RunClean(Context& context, const Arguments& arguments) {
  IL_TRY(const auto files, kernel::FindLegacyFiles(DirectoryIn(arguments)));
  IL_TRY_VOID(context.Open(kernel::Database::OpenMode::kRead));
  std::vector<Report> reports;
  reports.reserve(files.size());
  for (const LegacyFile& file : files) {
    IL_TRY(const bool held, context.Read([&](db::Connection& connection) {
      return kernel::IsLegacyFileStored(connection, file, context.Now());
    }));
    if (!held) {
      reports.push_back({&file, "kept: the database does not have it"});
    } else if (arguments.IsOn("dry-run")) {
      reports.push_back({&file, "would be removed"});
    } else {
      IL_TRY(const bool removed, kernel::RemoveLegacyFile(file));
      reports.push_back({&file, removed ? "removed" : "kept: it changed meanwhile"});
    }
  }
  return Reported(context, reports);
}

constexpr std::array kDirFlag = {
    Flag{"dir", "DIR", "directory of the legacy files (default /tmp)"},
};
constexpr std::array kImportFlags = {
    Flag{"dir", "DIR", "directory of the legacy files (default /tmp)"},
    Flag{"dry-run", "", "only print what would be done"},
};

constexpr std::array kCommands = {
    Command{
        "compat status", "", 0, 0, kDirFlag, "List the keys that older hooks kept in files",
        "Prints one line per known key: whether you have legacy files of it, and whether the\n"
        "database has the key (n/a without a database). Exits with 2 if the database cannot be\n"
        "read.\n\n"
        "Example:\n  ic compat status\n",
        RunStatus},
    Command{"compat check",
            "<key>",
            1,
            1,
            {},
            "Check whether a key is in the database",
            "Counts the scopes of the key, as state and as sentinels. Exits with 1 if there is "
            "none.\n\n"
            "Example:\n  ic compat check dispatch\n",
            RunCheck},
    Command{
        "compat import", "", 0, 0, kImportFlags, "Import legacy files into the database",
        "Reads the files that older hooks kept under /tmp, stores the values that the database\n"
        "does not have yet, verifies them, and reports each file. Existing values and the files\n"
        "stay unchanged. The import is one transaction and can be repeated safely. Exits with 1\n"
        "if a file was refused, for example because it is not JSON or looks like a secret.\n\n"
        "Example:\n  ic compat import --dry-run\n  ic compat import\n",
        RunImport},
    Command{"compat clean", "", 0, 0, kImportFlags, "Remove legacy files that were imported",
            "Removes each legacy file whose content is in the database, keeps the others, and\n"
            "reports each file.\n\n"
            "Example:\n  ic compat clean --dry-run\n  ic compat clean\n",
            RunClean},
};

}  // namespace

std::span<const Command> CompatCommands() { return kCommands; }

}  // namespace interlock::cli
