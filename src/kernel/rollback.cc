#include "kernel/rollback.h"

#include <fmt/format.h>

#include <memory>
#include <ranges>
#include <system_error>
#include <vector>

#include "base/time_text.h"
#include "db/backups.h"
#include "db/sqlite/log_check.h"
#include "kernel/schema.h"

namespace interlock::kernel {
namespace {

namespace fs = std::filesystem;

constexpr int kBackupsKept = 5;

// Opens a file without changing its journal mode. With kByCaller its log stays too: it may be all
// that is left of a damaged file. Backups have no log and must not get one.
sqlite::OpenOptions AsFound(const fs::path& path, std::chrono::milliseconds busy_timeout,
                            sqlite::LogUpkeep upkeep = sqlite::LogUpkeep::kByCaller) {
  return {.path = path,
          .access = sqlite::Access::kReadWrite,
          .busy_timeout = busy_timeout,
          .journal = sqlite::Journal::kAsFound,
          .upkeep = upkeep};
}

Result<std::unique_ptr<sqlite::Connection>> OpenBackup(const fs::path& path) {
  return sqlite::Connection::Open(
      AsFound(path, std::chrono::seconds(1), sqlite::LogUpkeep::kAsItGrows));
}

// kForeignSchema: the file belongs neither to us nor to the older program.
Result<int> VersionOfBackup(const fs::path& path) {
  IL_TRY(const auto connection, OpenBackup(path));
  IL_TRY(const int version, connection->SchemaVersion());
  const db::Schema schema = KernelSchema();
  IL_TRY(const bool foreign, connection->IsForeign(schema.program));
  IL_TRY(const bool older, schema.predecessor->recognise(*connection));
  if (version > 0 && (!foreign || older)) return version;
  return Error(Errc::kForeignSchema, "not a backup of an ic database")
      .WithDetail("do", "name a file that ends in .backup and lies beside the database");
}

std::optional<int> VersionIfReadable(const Database::Options& options, Clock& clock) {
  if (!sqlite::CheckLog(options.path, clock.Now())) return std::nullopt;  // unsafe to open
  const auto connection = sqlite::Connection::Open(AsFound(options.path, options.busy_timeout));
  if (!connection) return std::nullopt;
  const Result<int> version = (*connection)->SchemaVersion();
  if (!version) return std::nullopt;
  return *version;
}

Error NoBackup(const fs::path& path) {
  return Error(Errc::kNotFound,
               fmt::format("there is no backup of an older version beside {}", path.string()))
      .WithDetail("do", "name a backup in another directory with --backup=FILE");
}

// For a readable file: makes a backup of it, then copies the backup's pages in one transaction.
Result<fs::path> Replace(sqlite::Connection& connection, const RestorePlan& plan, Clock& clock) {
  const db::Backups backups(connection.path(), kBackupsKept);
  IL_TRY(fs::path kept, backups.Make(plan.replaced.value_or(0), clock.Now(),
                                     [&connection](const fs::path& target) {
                                       return connection.BackUpTo(target);
                                     }));
  IL_TRY_VOID(connection.RestoreFrom(plan.backup));
  return kept;
}

Result<void> Rename(const fs::path& from, const fs::path& to) {
  std::error_code failure;
  fs::rename(from, to, failure);
  if (!failure || failure == std::errc::no_such_file_or_directory) return {};
  return Error(Errc::kIo,
               fmt::format("renaming {} to {}: {}", from.string(), to.string(), failure.message()));
}

// For an unreadable file: renames it and its log, and puts a copy of the backup in its place.
Result<fs::path> PutInPlace(const Database::Options& options, const RestorePlan& plan,
                            Clock& clock) {
  const std::string stamp = FormatRfc3339(clock.Now(), Fraction::kMicros);
  const fs::path fresh = fmt::format("{}.restored-{}", options.path.string(), stamp);
  fs::path kept = fmt::format("{}.damaged-{}", options.path.string(), stamp);
  {
    IL_TRY(const auto backup, OpenBackup(plan.backup));
    IL_TRY_VOID(backup->BackUpTo(fresh));
  }
  for (const char* suffix : {"-shm", "-wal", ""}) {
    IL_TRY_VOID(Rename(options.path.string() + suffix, kept.string() + suffix));
  }
  IL_TRY_VOID(Rename(fresh, options.path));
  return kept;
}

}  // namespace

Result<RestorePlan> PlanRestoreFrom(const Database::Options& options, const fs::path& backup,
                                    Clock& clock) {
  Result<int> version = VersionOfBackup(backup);
  if (!version) return std::move(version).error().In(backup.string());
  return RestorePlan{backup, *version, VersionIfReadable(options, clock)};
}

Result<RestorePlan> PlanRestore(const Database::Options& options, Clock& clock) {
  const std::optional<int> current = VersionIfReadable(options, clock);
  const std::vector<fs::path> backups = db::Backups(options.path, kBackupsKept).List();
  for (const fs::path& backup : std::views::reverse(backups)) {
    const Result<int> version = VersionOfBackup(backup);
    if (!version) continue;
    if (!current || *version < *current) return RestorePlan{backup, *version, current};
  }
  return NoBackup(options.path);
}

Result<fs::path> RestoreBackup(const Database::Options& options, const RestorePlan& plan,
                               Clock& clock) {
  if (!plan.replaced) return PutInPlace(options, plan, clock);
  IL_TRY(const auto connection,
         sqlite::Connection::Open(AsFound(options.path, options.busy_timeout)));
  return Replace(*connection, plan, clock);
}

}  // namespace interlock::kernel
