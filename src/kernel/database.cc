#include "kernel/database.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "db/sqlite/log_check.h"

namespace interlock::kernel {
namespace {

namespace fs = std::filesystem;

constexpr int kLogPagesMax = 256;  // 1 MiB

sqlite::OpenOptions SqliteOptions(const Database::Options& options, sqlite::Access access,
                                  const db::Schema& schema) {
  return {.path = options.path,
          .access = access,
          .busy_timeout = options.busy_timeout,
          .upkeep = sqlite::LogUpkeep::kByCaller,
          .waiting = sqlite::Waiting::kEager,
          .vfs = options.vfs,
          .owner = std::string(schema.program)};
}

// Adds a remedy, unless the error already has one.
Error WithRemedy(Error error, const fs::path& path) {
  const bool has_remedy =
      std::ranges::any_of(error.details(), [](const auto& detail) { return detail.first == "do"; });
  if (has_remedy) return error;
  const auto remedy = [&]() -> std::string {
    switch (error.code()) {
      case Errc::kBusy:
        return "another process holds the database; try again, or wait longer with --timeout=30s";
      case Errc::kCorrupt:
      case Errc::kNotADatabase:
        return fmt::format(
            "restore a backup ('ic migrate rollback', or {}.v*.backup), or move "
            "the file away and run 'ic init'",
            path.string());
      case Errc::kForeignSchema:
        return "name another file with --db, or move this one away and run 'ic init'";
      case Errc::kDiskFull:
        return fmt::format("free some space on the disk of {}", path.parent_path().string());
      case Errc::kReadOnly:
        return fmt::format("make {} and its directory writable for your user", path.string());
      case Errc::kCantOpen:
      case Errc::kIo:
        return fmt::format(
            "check {} and its -wal and -shm files: their owner, their permissions, and the disk",
            path.string());
      case Errc::kOutcomeUnknown:
        return "check whether the change was stored before you repeat it; check the disk";
      default:
        return {};
    }
  }();
  if (remedy.empty()) return error;
  return std::move(error).WithDetail("do", remedy);
}

Result<void> RefuseSymlinks(const fs::path& path) {
  std::error_code failure;
  for (const fs::path& part : {path, path.parent_path()}) {
    if (!fs::is_symlink(part, failure)) continue;
    return Error(Errc::kCantOpen, fmt::format("{} is a symlink; anybody who can change it could "
                                              "switch the database",
                                              part.string()))
        .WithDetail("do", "set INTERCORE_DB to the path that it points to");
  }
  return {};  // all other problems are reported when the file is opened
}

// SQLite treats an empty file as new and deletes its log, which may hold the last commits.
Result<void> RefuseOrphanedLog(const fs::path& path) {
  std::error_code failure;
  const auto log = fs::file_size(path.string() + "-wal", failure);
  if (failure || log == 0) return {};
  // Check the file after the log: a new file is written before it gets a log.
  const auto size = fs::file_size(path, failure);
  const bool missing = failure == std::errc::no_such_file_or_directory;
  if (!missing && (failure || size > 0)) return {};
  return Error(Errc::kCorrupt,
               fmt::format("{0} is {1}, but its log {0}-wal is not; the log may hold the last "
                           "writes, and opening the file would delete it",
                           path.string(), missing ? "missing" : "empty"))
      .WithDetail("do",
                  fmt::format("restore a backup ('ic migrate rollback', or {0}.v*.backup), "
                              "or move {0}-wal and {0}-shm away and run 'ic init' to start over",
                              path.string()));
}

Result<void> MustExist(const fs::path& path) {
  struct stat found = {};
  const bool there = ::lstat(path.c_str(), &found) == 0;
  if (!there && errno == ENOENT) {
    return Error(Errc::kCantOpen, fmt::format("there is no database at {}", path.string()))
        .WithDetail("do", "run 'ic init' to create one");
  }
  if (there && found.st_size == 0) IL_TRY_VOID(RefuseOrphanedLog(path));
  return RefuseSymlinks(path);
}

Error OldVersionError(const fs::path& path, int version) {
  if (version == 0) {
    return Error(Errc::kForeignSchema, fmt::format("{} is not migrated", path.string()))
        .WithDetail("do", "run 'ic init'");
  }
  return Error(Errc::kForeignSchema,
               fmt::format("{} has the older schema version {}", path.string(), version))
      .WithDetail("do", "run 'ic init', which makes a backup first");
}

Error InvalidVersionError(const fs::path& path, int version) {
  return Error(Errc::kForeignSchema,
               fmt::format("{} has the invalid schema version {}", path.string(), version))
      .WithDetail("do",
                  "restore a backup ('ic migrate rollback'), name another file with --db, or "
                  "move this one away and run 'ic init'");
}

Error NewerVersionError(const fs::path& path, int version, int newest) {
  return Error(Errc::kSchemaTooNew,
               fmt::format(
                   "{} has schema version {}, newer than {}, the newest that this ic supports",
                   path.string(), version, newest))
      .WithDetail("do", "upgrade ic to the version that wrote it");
}

Error ForeignError(const fs::path& path) {
  return Error(Errc::kForeignSchema,
               fmt::format("{} holds the tables of another program", path.string()))
      .WithDetail("do", "name another file with --db, or move this one away and run 'ic init'");
}

Result<int> CheckVersion(sqlite::Connection& connection, const db::Schema& schema) {
  IL_TRY(const int version, connection.SchemaVersion());
  const fs::path& path = connection.path();
  const int newest = db::NewestVersion(schema);
  if (version < 0) return InvalidVersionError(path, version);
  if (version > newest) return NewerVersionError(path, version, newest);
  if (schema.predecessor && version > 0 && version < schema.steps.front().version) {
    IL_TRY(const bool recognised, schema.predecessor->recognise(connection));
    if (!recognised) return ForeignError(path);
    const int liftable = schema.predecessor->newest;
    if (version > liftable) return NewerVersionError(path, version, liftable);
    return version;
  }
  IL_TRY(const bool foreign, connection.IsForeign(schema.program));
  if (foreign) return ForeignError(path);
  return version;
}

// Returns the version of a file of ours or of the older program. Any other file is an error.
Result<int> KnownVersion(sqlite::Connection& connection, const db::Schema& schema) {
  Result<int> known = CheckVersion(connection, schema);
  if (known || known.error().code() != Errc::kForeignSchema) return known;
  // The version was read before the tables. If another process migrated the file in between, our
  // own file looks foreign, so check again on one snapshot.
  IL_TRY_VOID(connection.BeginSnapshot());
  known = CheckVersion(connection, schema);
  connection.Rollback();
  return known;
}

// Returns true if additive steps lead to our version, false if the file has it already.
Result<bool> NeedsMigration(sqlite::Connection& connection, const db::Schema& schema) {
  IL_TRY(const int version, KnownVersion(connection, schema));
  if (version < schema.steps.front().version) return OldVersionError(connection.path(), version);
  if (version == db::NewestVersion(schema)) return false;
  if (db::ChangeFrom(schema, version) == db::Change::kBreaking) {
    return OldVersionError(connection.path(), version);
  }
  return true;
}

// Makes the file private, regardless of the creator's umask.
Result<void> MakePrivate(const fs::path& path) {
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::error_code failure;
    const fs::path file = path.string() + suffix;
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write, failure);
    if (!failure || failure == std::errc::no_such_file_or_directory) continue;
    return Error(Errc::kIo, fmt::format("chmod 0600 {}: {}", file.string(), failure.message()))
        .WithDetail("do", "run 'ic init' as the owner of the file");
  }
  return {};
}

Result<db::MigrationOutcome> Migrate(const Database::Options& options, sqlite::Access access,
                                     const db::Schema& schema, Clock& clock) {
  IL_TRY(const auto connection, sqlite::Connection::Open(SqliteOptions(options, access, schema)));
  IL_TRY_VOID(KnownVersion(*connection, schema));
  IL_TRY(auto outcome,
         db::Migrator(schema, {.database = connection->path()}, clock).Run(*connection));
  if (connection->HasMoved()) {
    return Error(Errc::kCancelled, fmt::format("{} was removed or replaced during the migration",
                                               options.path.string()))
        .WithDetail("do", "run 'ic init' again");
  }
  return outcome;
}

// Removes a file to which nothing was written. Migrate() reports it to processes that have the file
// open and wait for its lock.
void RemoveIfEmpty(const Database::Options& options, const db::Schema& schema) {
  sqlite::OpenOptions as_found = SqliteOptions(options, sqlite::Access::kReadWrite, schema);
  as_found.journal = sqlite::Journal::kAsFound;
  std::error_code failure;
  if (fs::file_size(options.path, failure) != 0 || failure) return;
  const auto connection = sqlite::Connection::Open(as_found);
  if (!connection || !(*connection)->BeginExclusive()) return;
  const bool empty = fs::file_size(options.path, failure) == 0 && !failure;
  if (empty && !(*connection)->HasMoved()) fs::remove(options.path, failure);
  (*connection)->Rollback();
}

}  // namespace

Result<void> Transaction::Attempt(const std::function<Result<void>()>& fn) {
  IL_TRY_VOID(sqlite_.Savepoint());
  Result<void> result = fn();
  // If SQLite rolled back the whole transaction, nothing is left to undo and the commit fails.
  if (!result && sqlite_.in_transaction()) IL_TRY_VOID(sqlite_.RollbackToSavepoint());
  if (sqlite_.in_transaction()) IL_TRY_VOID(sqlite_.ReleaseSavepoint());
  return result;
}

Result<Database> Database::Open(const Options& options, OpenMode mode, const db::Schema& schema,
                                Clock& clock) {
  IL_TRY_VOID(MustExist(options.path));
  if (options.vfs.empty()) IL_TRY_VOID(sqlite::CheckLog(options.path, clock.Now()));
  const sqlite::OpenOptions wanted = SqliteOptions(
      options, mode == OpenMode::kRead ? sqlite::Access::kReadOnly : sqlite::Access::kReadWrite,
      schema);
  const auto open = [&]() -> Result<std::unique_ptr<sqlite::Connection>> {
    IL_TRY(auto connection, sqlite::Connection::Open(wanted));
    IL_TRY(const bool old, NeedsMigration(*connection, schema));
    if (!old) return connection;
    connection.reset();
    IL_TRY_VOID(Migrate(options, sqlite::Access::kReadWrite, schema, clock));
    return sqlite::Connection::Open(wanted);
  };
  Result<std::unique_ptr<sqlite::Connection>> connection = open();
  if (!connection) return WithRemedy(std::move(connection).error(), options.path);
  // A sync by an earlier process may have failed, and nothing in the file records that.
  if (mode == OpenMode::kWrite) (*connection)->DoubtLog();
  return Database(std::move(connection).value(), mode);
}

Result<Database> Database::OpenUnmigrated(const Options& options, const db::Schema& schema,
                                          Clock& clock) {
  IL_TRY_VOID(MustExist(options.path));
  if (options.vfs.empty()) IL_TRY_VOID(sqlite::CheckLog(options.path, clock.Now()));
  const auto open = [&]() -> Result<std::unique_ptr<sqlite::Connection>> {
    IL_TRY(auto connection,
           sqlite::Connection::Open(SqliteOptions(options, sqlite::Access::kReadOnly, schema)));
    IL_TRY(const bool old, NeedsMigration(*connection, schema));
    if (!old) return connection;
    IL_TRY(const int version, connection->SchemaVersion());
    return OldVersionError(options.path, version);
  };
  Result<std::unique_ptr<sqlite::Connection>> connection = open();
  if (!connection) return WithRemedy(std::move(connection).error(), options.path);
  return Database(std::move(connection).value(), OpenMode::kRead);
}

Result<int> Database::ReadVersion(const Options& options, Clock& clock) {
  IL_TRY_VOID(MustExist(options.path));
  IL_TRY_VOID(sqlite::CheckLog(options.path, clock.Now()));
  IL_TRY(const auto connection, sqlite::Connection::Open({.path = options.path,
                                                          .access = sqlite::Access::kReadOnly,
                                                          .busy_timeout = options.busy_timeout,
                                                          .upkeep = sqlite::LogUpkeep::kByCaller,
                                                          .waiting = sqlite::Waiting::kEager}));
  return connection->SchemaVersion();
}

Result<db::MigrationOutcome> Database::Init(const Options& options, const db::Schema& schema,
                                            Clock& clock) {
  const auto migrate = [&]() -> Result<db::MigrationOutcome> {
    IL_TRY_VOID(RefuseOrphanedLog(options.path));
    IL_TRY_VOID(RefuseSymlinks(options.path));
    if (options.vfs.empty()) IL_TRY_VOID(sqlite::CheckLog(options.path, clock.Now()));
    IL_TRY(auto outcome, Migrate(options, sqlite::Access::kReadWriteOrCreate, schema, clock));
    IL_TRY_VOID(MakePrivate(options.path));
    if (outcome.from == outcome.to) return outcome;
    // The file may have belonged to the older program, so change its journal mode only now.
    IL_TRY(const auto connection,
           sqlite::Connection::Open(SqliteOptions(options, sqlite::Access::kReadWrite, schema)));
    // A new file should be complete without its log. The log stays if others already use the file.
    connection->DoubtLog();
    static_cast<void>(connection->Checkpoint().ok());
    return outcome;
  };
  std::error_code failure;
  const bool is_new = fs::symlink_status(options.path, failure).type() == fs::file_type::not_found;
  Result<db::MigrationOutcome> outcome = migrate();
  constexpr int kTries = 10;  // another process whose disk was full may have removed the file
  for (int i = 1; i < kTries && !outcome && outcome.error().code() == Errc::kCancelled; ++i) {
    outcome = migrate();
  }
  if (outcome) return outcome;
  if (is_new) RemoveIfEmpty(options, schema);
  return WithRemedy(std::move(outcome).error(), options.path);
}

Result<void> Database::Begin() {
  IL_CHECK(mode_ == OpenMode::kWrite);
  Result<void> begun = connection_->BeginExclusive();
  if (!begun) return WithRemedy(std::move(begun).error(), path());
  // The lock may belong to a file that was moved away during the wait.
  if (!HasMoved()) return begun;
  connection_->Rollback();
  return Error(Errc::kCancelled, fmt::format("{} was removed or replaced", path().string()))
      .WithDetail("do", "run the command again");
}

Result<void> Database::Commit() {
  Result<void> done = connection_->Commit();
  if (done) return done;
  if (connection_->in_transaction()) return WithRemedy(std::move(done).error(), path());
  // Pages whose sync failed stay in the log. The next process could read them and build upon them,
  // although no later sync writes them to the disk. A checkpoint empties the log.
  static_cast<void>(connection_->CheckpointWithoutWaiting().ok());
  return Error(Errc::kOutcomeUnknown, fmt::format("{}: the write may or may not be stored: {}",
                                                  path().string(), done.error().message()))
      .WithDetail("do", "check whether the change was stored before you repeat it; check the disk");
}

void Database::CheckpointIfLarge() {
  // A failure needs no report: the content is safe in the log, and the next process tries again.
  static_cast<void>(connection_->TidyLog(kLogPagesMax).ok());
}

}  // namespace interlock::kernel
