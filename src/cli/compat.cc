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

using kernel::Imported;
using kernel::LegacyFile;
using kernel::LegacyKey;

// What became of one file.
struct Report {
  const LegacyFile* file;
  std::string outcome;
  bool refused = false;
};

Outcome Reported(const Context& context, const std::vector<Report>& reports) {
  const bool refused = std::ranges::any_of(reports, &Report::refused);
  Outcome outcome{refused ? kExitNegative : kExitOk};
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

// Whether a database can be asked: false only when there is none, an error when it is broken.
Result<bool> HasDatabase(Context& context) {
  IL_TRY(const kernel::Database::Options options, context.DatabaseOptions());
  std::error_code failure;
  const auto status = std::filesystem::symlink_status(options.path, failure);
  if (status.type() == std::filesystem::file_type::not_found) return false;
  IL_TRY_VOID(context.Open(kernel::Database::Access::kRead));
  return true;
}

Result<Outcome> RunStatus(Context& context, const Arguments& arguments) {
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
  return Outcome{kExitOk, context.json() ? array.Text() + '\n' : text};
}

Result<Outcome> RunCheck(Context& context, const Arguments& arguments) {
  const std::string_view key = arguments[0];
  IL_TRY(const std::int64_t count, context.Read([&](db::Connection& connection) {
    return kernel::CountScopes(connection, key, context.Now());
  }));
  const int exit_code = count > 0 ? kExitOk : kExitNegative;
  if (context.json()) {
    return Outcome{exit_code,
                   json::ObjectText().Add("key", key).Add("scopes", count).Text() + '\n'};
  }
  return Outcome{exit_code, count > 0 ? fmt::format("{}: {} scope(s) in DB\n", key, count)
                                      : fmt::format("{}: not in DB\n", key)};
}

std::string Said(Imported imported, bool dry_run) {
  switch (imported) {
    case Imported::kNow:
      return dry_run ? "would be imported" : "imported";
    case Imported::kKept:
      return "kept: the database has another value";
    case Imported::kBefore:
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
    IL_TRY(const Imported imported, kernel::ImportLegacyFile(tx, file, payload, now));
    reports.push_back({&file, Said(imported, dry_run)});
    if (imported != Imported::kNow) continue;
    IL_TRY(const bool held, kernel::HoldsLegacyFile(tx.connection(), file, now));
    if (!held) {
      return Error(Errc::kInternal, fmt::format("{}: what was written did not read back the same; "
                                                "nothing was imported",
                                                file.path.string()));
    }
  }
  return reports;
}

Result<Outcome> RunImport(Context& context, const Arguments& arguments) {
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

Result<Outcome> RunClean(Context& context, const Arguments& arguments) {
  IL_TRY(const auto files, kernel::FindLegacyFiles(DirectoryIn(arguments)));
  IL_TRY_VOID(context.Open(kernel::Database::Access::kRead));
  std::vector<Report> reports;
  reports.reserve(files.size());
  for (const LegacyFile& file : files) {
    IL_TRY(const bool held, context.Read([&](db::Connection& connection) {
      return kernel::HoldsLegacyFile(connection, file, context.Now());
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
    Flag{"dir", "DIR", "where the old files are (default /tmp)"},
};
constexpr std::array kImportFlags = {
    Flag{"dir", "DIR", "where the old files are (default /tmp)"},
    Flag{"dry-run", "", "only say what would be done"},
};

constexpr std::array kCommands = {
    Command{"compat status", "", 0, 0, kDirFlag, "List the keys that hooks once kept in files",
            "One line per known key: whether old files of yours are there, and whether the "
            "database has\n"
            "the key (n/a without a database; one that cannot be read is exit code 2).\n\n"
            "Example:\n  ic compat status\n",
            RunStatus},
    Command{"compat check",
            "<key>",
            1,
            1,
            {},
            "Say whether a key is in the database",
            "Counts the scopes of the key, as state and as sentinels. Exits with 1 when there is "
            "none.\n\n"
            "Example:\n  ic compat check dispatch\n",
            RunCheck},
    Command{
        "compat import", "", 0, 0, kImportFlags, "Bring old files into the database",
        "Reads the files that hooks kept under /tmp, stores what the database does not have yet,\n"
        "reads it back, and reports each file. What the database has stays; files stay too. All "
        "or\n"
        "nothing; doing it again changes nothing. Exits with 1 when a file was refused, for "
        "example\n"
        "since it is no JSON or looks like a secret.\n\n"
        "Example:\n  ic compat import --dry-run\n  ic compat import\n",
        RunImport},
    Command{"compat clean", "", 0, 0, kImportFlags, "Remove old files that are in the database",
            "Removes each old file whose content the database has, and reports each; the others "
            "stay.\n\n"
            "Example:\n  ic compat clean --dry-run\n  ic compat clean\n",
            RunClean},
};

}  // namespace

std::span<const Command> CompatCommands() { return kCommands; }

}  // namespace interlock::cli
