#include "kernel/health.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

namespace interlock::kernel {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMiB = std::uintmax_t{1} << 20;

// SQLite's own check. Returns the first problem, or "ok".
constexpr db::Sql kCheck = "PRAGMA quick_check(1)";

constexpr db::NamedSql kStatements[] = {IL_SQL(kCheck)};

Result<void> CheckContent(Database& database, std::uintmax_t bytes_max) {
  std::error_code ignored;  // cannot fail: SQLite has the file open
  const std::uintmax_t size = fs::file_size(database.path(), ignored);
  if (size > bytes_max) return {};
  IL_TRY(const std::optional<std::string> found,
         database.sqlite().One(kCheck, [](const db::Row& row) { return row.String(0); }));
  if (found == "ok") return {};
  return Error(Errc::kCorrupt, fmt::format("{} is damaged: {}", database.path().string(),
                                           found.value_or("the check returned no row")))
      .WithDetail("do",
                  "restore a backup with 'ic migrate rollback', or move the file away and "
                  "run 'ic init'");
}

Result<void> CheckWritable(const fs::path& path) {
  for (const fs::path& needed : {path, path.parent_path(), fs::path(path.string() + "-wal"),
                                 fs::path(path.string() + "-shm")}) {
    if (::access(needed.c_str(), W_OK) == 0 || errno == ENOENT) continue;
    return Error(Errc::kReadOnly, fmt::format("{} is read-only: {}", needed.string(),
                                              std::generic_category().message(errno)))
        .WithDetail("do",
                    fmt::format("make it writable for your user: chmod u+w {}", needed.string()));
  }
  return {};
}

Result<void> CheckRoom(const fs::path& path, std::uintmax_t free_min) {
  std::error_code failure;
  const fs::space_info space = fs::space(path.parent_path(), failure);
  if (failure || space.available > free_min) return {};
  return Error(
             Errc::kDiskFull,
             fmt::format("the disk of {} is nearly full: {} MiB are free, more than {} are needed",
                         path.string(), space.available / kMiB, free_min / kMiB))
      .WithDetail("do", "free some space on that disk");
}

}  // namespace

Result<void> CheckHealth(const Database::Options& options, const db::Schema& schema, Clock& clock,
                         const HealthLimits& limits) {
  IL_TRY(Database database, Database::OpenUnmigrated(options, schema, clock));
  IL_TRY_VOID(CheckContent(database, limits.checked_bytes_max));
  IL_TRY_VOID(CheckWritable(database.path()));
  return CheckRoom(database.path(), limits.free_bytes_min);
}

std::span<const db::NamedSql> HealthStatements() { return kStatements; }

}  // namespace interlock::kernel
