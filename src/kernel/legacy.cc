#include "kernel/legacy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "json/write.h"
#include "kernel/input_file.h"
#include "kernel/payload.h"
#include "kernel/state.h"

namespace interlock::kernel {
namespace {

namespace fs = std::filesystem;
using Kind = LegacyKey::Kind;

constexpr std::array kKeys = {
    LegacyKey{"autopub", Kind::kSentinel, "clavain-autopub", ".lock", "global"},
    LegacyKey{"catalog_remind", Kind::kSentinel, "clavain-catalog-remind-", ".lock"},
    LegacyKey{"compound_throttle", Kind::kSentinel, "clavain-compound-last-", ""},
    LegacyKey{"discovery_brief", Kind::kState, "clavain-discovery-brief-", ".cache"},
    LegacyKey{"dispatch", Kind::kState, "clavain-dispatch-", ".json"},
    LegacyKey{"drift_throttle", Kind::kSentinel, "clavain-drift-last-", ""},
    LegacyKey{"handoff", Kind::kSentinel, "clavain-handoff-", ""},
    LegacyKey{"stop", Kind::kSentinel, "clavain-stop-", ""},
};

// The table's primary key.
constexpr db::Sql kCountState =
    "SELECT count(*) FROM state WHERE key = ?1 AND (expires_at IS NULL OR expires_at > ?2)";
// The table's primary key.
constexpr db::Sql kCountSentinels = "SELECT count(*) FROM sentinels WHERE name = ?1";
// The table's primary key.
constexpr db::Sql kFindSentinel =
    "SELECT last_fired FROM sentinels WHERE name = ?1 AND scope_id = ?2";
// The table's primary key. The interval stays unknown, so the interval of the next claim decides.
constexpr db::Sql kInsertSentinel =
    "INSERT INTO sentinels (name, scope_id, last_fired) VALUES (?1, ?2, ?3)";

constexpr db::NamedSql kStatements[] = {IL_SQL(kCountState), IL_SQL(kCountSentinels),
                                        IL_SQL(kFindSentinel), IL_SQL(kInsertSentinel)};

Result<std::int64_t> Count(db::Connection& connection, const db::Sql& sql, std::string_view key,
                           std::optional<std::int64_t> now) {
  const auto number = [](const db::Row& row) { return row.Int(0); };
  IL_TRY(const auto count,
         now ? connection.One(sql, number, key, *now) : connection.One(sql, number, key));
  return count.value_or(0);
}

Result<std::optional<std::int64_t>> LastFired(db::Connection& connection, const LegacyFile& file) {
  return connection.One(
      kFindSentinel, [](const db::Row& row) { return row.Int(0); }, file.key->key, file.scope_id);
}

// Returns the scope in a file name, or nullopt if the name does not match `key`.
std::optional<std::string> ScopeOf(const LegacyKey& key, std::string_view name) {
  if (name.size() < key.prefix.size() + key.suffix.size()) return std::nullopt;
  if (!name.starts_with(key.prefix) || !name.ends_with(key.suffix)) return std::nullopt;
  name.remove_prefix(key.prefix.size());
  name.remove_suffix(key.suffix.size());
  if (!key.default_scope.empty() && name.starts_with('-')) name.remove_prefix(1);
  if (name.empty() && key.default_scope.empty()) return std::nullopt;
  return std::string(name.empty() ? key.default_scope : name);
}

std::optional<struct stat> Lstat(const fs::path& path) {
  struct stat found = {};
  if (::lstat(path.c_str(), &found) != 0) return std::nullopt;
  return found;
}

bool IsUsable(const struct stat& found, Kind kind) {
  if (found.st_uid != ::geteuid()) return false;
  return S_ISREG(found.st_mode) || (kind == Kind::kSentinel && S_ISDIR(found.st_mode));
}

std::optional<LegacyFile> FileOf(const LegacyKey& key, const fs::path& path) {
  std::optional<std::string> scope = ScopeOf(key, path.filename().string());
  const std::optional<struct stat> found = scope ? Lstat(path) : std::nullopt;
  if (!found || !IsUsable(*found, key.kind)) return std::nullopt;
  LegacyFile file{.key = &key,
                  .scope_id = *std::move(scope),
                  .path = path,
                  .modified_at = found->st_mtim.tv_sec};
  if (key.kind == Kind::kState) {
    Result<std::string> content =
        ReadFileUnder(path.parent_path(), path.filename().string(), kPayloadBytesMax + 1);
    if (content) {
      file.content = std::move(content).value();
    } else {
      file.unreadable = std::move(content).error();
    }
  }
  return file;
}

// Removes a sentinel directory. One that fired again contains empty directories "after-<time>".
int RemoveGuardDirectory(const fs::path& path) {
  std::vector<fs::path> marks;
  std::error_code ignored;  // rmdir below reports what could not be removed
  for (fs::directory_iterator entry(path, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    if (entry->path().filename().string().starts_with("after-")) marks.push_back(entry->path());
  }
  for (const fs::path& mark : marks) ::rmdir(mark.c_str());
  return ::rmdir(path.c_str());
}

}  // namespace

std::span<const LegacyKey> LegacyKeys() { return kKeys; }

Result<std::vector<LegacyFile>> FindLegacyFiles(const fs::path& directory) {
  std::vector<LegacyFile> files;
  std::error_code failure;
  for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    for (const LegacyKey& key : kKeys) {
      if (auto file = FileOf(key, entry->path())) files.push_back(*std::move(file));
    }
  }
  if (failure) {
    return Error(Errc::kIo, fmt::format("{}: {}", directory.string(), failure.message()))
        .WithDetail("do", "name the directory of the legacy files with --dir");
  }
  std::ranges::sort(files, {}, &LegacyFile::path);
  return files;
}

Result<std::string> LegacyPayload(const LegacyFile& file) {
  if (file.unreadable) return *file.unreadable;
  const Result<std::string_view> as_json = CheckPayload(file.content);
  if (as_json) return std::string(*as_json);
  const bool may_be_text = file.key->suffix == ".cache";
  if (!may_be_text || as_json.error().code() != Errc::kBadJson) return as_json.error();
  std::string quoted;
  json::AppendQuoted(quoted, file.content);
  IL_TRY_VOID(CheckPayload(quoted));
  return quoted;
}

Result<ImportResult> ImportLegacyFile(db::Transaction& tx, const LegacyFile& file,
                                      std::string_view payload, std::int64_t now) {
  if (file.key->kind == Kind::kSentinel) {
    IL_TRY(const auto fired, LastFired(tx.connection(), file));
    if (fired)
      return *fired >= file.modified_at ? ImportResult::kUnchanged : ImportResult::kDiffers;
    IL_TRY_VOID(tx->Run(kInsertSentinel, file.key->key, file.scope_id, file.modified_at));
    return ImportResult::kWritten;
  }
  const StateId id{file.key->key, file.scope_id};
  IL_TRY(const auto written, SetState(tx, id, {.payload = payload, .if_version = 0}, now));
  if (written) return ImportResult::kWritten;
  IL_TRY(const auto found, FindState(tx.connection(), id, now));
  return found && found->payload == payload ? ImportResult::kUnchanged : ImportResult::kDiffers;
}

Result<bool> IsLegacyFileStored(db::Connection& connection, const LegacyFile& file,
                                std::int64_t now) {
  if (file.key->kind == Kind::kSentinel) {
    IL_TRY(const auto fired, LastFired(connection, file));
    return fired && *fired >= file.modified_at;
  }
  const Result<std::string> payload = LegacyPayload(file);
  if (!payload) return false;
  IL_TRY(const auto found, FindState(connection, {file.key->key, file.scope_id}, now));
  return found && found->payload == *payload;
}

Result<bool> RemoveLegacyFile(const LegacyFile& file) {
  const std::optional<LegacyFile> again = FileOf(*file.key, file.path);
  if (!again || again->modified_at != file.modified_at || again->content != file.content) {
    return false;
  }
  const auto found = Lstat(file.path);
  const bool directory = found && S_ISDIR(found->st_mode);
  if ((directory ? RemoveGuardDirectory(file.path) : ::unlink(file.path.c_str())) == 0) return true;
  return Error(Errc::kIo, fmt::format("removing {}: {}", file.path.string(),
                                      std::generic_category().message(errno)))
      .WithDetail("do", "inspect the file and remove it by hand");
}

Result<std::int64_t> CountScopes(db::Connection& connection, std::string_view key,
                                 std::int64_t now) {
  IL_TRY(const std::int64_t state, Count(connection, kCountState, key, now));
  IL_TRY(const std::int64_t sentinels, Count(connection, kCountSentinels, key, std::nullopt));
  return state + sentinels;
}

std::span<const db::NamedSql> LegacyStatements() { return kStatements; }

}  // namespace interlock::kernel
