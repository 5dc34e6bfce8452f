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

// What to do, where the error does not say it already.
Error WithRemedy(Error error, const fs::path& path) {
  const bool said =
      std::ranges::any_of(error.details(), [](const auto& detail) { return detail.first == "do"; });
  if (said) return error;
  const auto remedy = [&]() -> std::string {
    switch (error.code()) {
      case Errc::kBusy:
        return "another process holds the database; try again, or wait longer with --timeout=30s";
      case Errc::kCorrupt:
      case Errc::kNotADatabase:
        return fmt::format(
            "put back a backup ('ic migrate rollback', or {}.v*.backup), or move "
            "the file away and run 'ic init'",
            path.string());
      case Errc::kForeignSchema:
        return "name another file with --db, or move this one away and run 'ic init'";
      case Errc::kDiskFull:
        return fmt::format("free some space on the disk of {}", path.parent_path().string());
      case Errc::kReadOnly:
        return fmt::format("make {} and its directory writable for you", path.string());
      case Errc::kCantOpen:
      case Errc::kIo:
        return fmt::format(
            "look at {} and its -wal and -shm files: who owns them, may you read "
            "and write them, is the disk sound?",
            path.string());
      case Errc::kOutcomeUnknown:
        return "look at what is there before doing it again; is the disk full or failing?";
      default:
        return {};
    }
  }();
  if (remedy.empty()) return error;
  return std::move(error).WithDetail("do", remedy);
}

Result<void> RefuseLinks(const fs::path& path) {
  std::error_code failure;
  for (const fs::path& part : {path, path.parent_path()}) {
    if (!fs::is_symlink(part, failure)) continue;
    return Error(Errc::kCantOpen, fmt::format("{} is a symlink, and whoever can change it decides "
                                              "which database is used",
                                              part.string()))
        .WithDetail("do", "name the file that it leads to with INTERCORE_DB");
  }
  return {};  // anything else that is wrong with it is found, and named, when it is opened
}

// SQLite takes an empty file for a new one and deletes the log beside it, where what was committed
// last may be.
Result<void> RefuseToLoseLog(const fs::path& path) {
  std::error_code failure;
  const auto log = fs::file_size(path.string() + "-wal", failure);
  if (failure || log == 0) return {};
  // Looked at second: a new file is written to before it has a log.
  const auto size = fs::file_size(path, failure);
  const bool missing = failure == std::errc::no_such_file_or_directory;
  if (!missing && (failure || size > 0)) return {};
  return Error(Errc::kCorrupt,
               fmt::format("{0} is {1}, but its log {0}-wal is not: what was written last may be "
                           "there alone, and using the file would delete it",
                           path.string(), missing ? "missing" : "empty"))
      .WithDetail("do",
                  fmt::format("put back a backup ('ic migrate rollback', or {0}.v*.backup), "
                              "or move {0}-wal and {0}-shm away and run 'ic init' to begin anew",
                              path.string()));
}

Result<void> MustExist(const fs::path& path) {
  struct stat found = {};
  const bool there = ::lstat(path.c_str(), &found) == 0;
  if (!there && errno == ENOENT) {
    return Error(Errc::kCantOpen, fmt::format("there is no database at {}", path.string()))
        .WithDetail("do", "run 'ic init' to make one");
  }
  if (there && found.st_size == 0) IL_TRY_VOID(RefuseToLoseLog(path));
  return RefuseLinks(path);
}

Error OldVersion(const fs::path& path, int version) {
  if (version == 0) {
    return Error(Errc::kForeignSchema, fmt::format("{} is not migrated", path.string()))
        .WithDetail("do", "run 'ic init'");
  }
  return Error(Errc::kForeignSchema,
               fmt::format("{} has the older schema version {}", path.string(), version))
      .WithDetail("do", "run 'ic init', which makes a backup first");
}

Error NoVersion(const fs::path& path, int version) {
  return Error(Errc::kForeignSchema,
               fmt::format("{} has the schema version {}, which no ic has written", path.string(),
                           version))
      .WithDetail("do",
                  "put back a backup ('ic migrate rollback'), name another file with --db, or "
                  "move this one away and run 'ic init'");
}

Error NewerVersion(const fs::path& path, int version, int newest) {
  return Error(Errc::kSchemaTooNew,
               fmt::format("{} has schema version {}, newer than {}, which this ic knows",
                           path.string(), version, newest))
      .WithDetail("do", "upgrade ic to the version that wrote it");
}

Error Stranger(const fs::path& path) {
  return Error(Errc::kForeignSchema,
               fmt::format("{} holds the tables of another program", path.string()))
      .WithDetail("do", "name another file with --db, or move this one away and run 'ic init'");
}

Result<int> JudgeVersion(sqlite::Connection& connection, const db::Schema& schema) {
  IL_TRY(const int version, connection.SchemaVersion());
  const fs::path& path = connection.path();
  const int newest = db::NewestVersion(schema);
  if (version < 0) return NoVersion(path, version);
  if (version > newest) return NewerVersion(path, version, newest);
  if (schema.predecessor && version > 0 && version < schema.steps.front().version) {
    IL_TRY(const bool recognised, schema.predecessor->recognise(connection));
    if (!recognised) return Stranger(path);
    const int liftable = schema.predecessor->newest;
    if (version > liftable) return NewerVersion(path, version, liftable);
    return version;
  }
  IL_TRY(const bool foreign, connection.IsForeign(schema.program));
  if (foreign) return Stranger(path);
  return version;
}

// The version of a file that is ours, or of the program before us; of any other file why it is not.
Result<int> KnownVersion(sqlite::Connection& connection, const db::Schema& schema) {
  Result<int> known = JudgeVersion(connection, schema);
  if (known || known.error().code() != Errc::kForeignSchema) return known;
  // Its version was read before its tables: with what another process made of it in between, our
  // own file looks like a stranger's.
  IL_TRY_VOID(connection.BeginSnapshot());
  known = JudgeVersion(connection, schema);
  connection.Rollback();
  return known;
}

// Nothing when the file is as we know it; true when steps that only add lead there.
Result<bool> NeedsMigration(sqlite::Connection& connection, const db::Schema& schema) {
  IL_TRY(const int version, KnownVersion(connection, schema));
  if (version < schema.steps.front().version) return OldVersion(connection.path(), version);
  if (version == db::NewestVersion(schema)) return false;
  if (db::ChangeFrom(schema, version) == db::Change::kBreaking) {
    return OldVersion(connection.path(), version);
  }
  return true;
}

// What is in it is nobody else's to read, whoever made the file and with which umask.
Result<void> MakePrivate(const fs::path& path) {
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::error_code failure;
    const fs::path file = path.string() + suffix;
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write, failure);
    if (!failure || failure == std::errc::no_such_file_or_directory) continue;
    return Error(Errc::kIo, fmt::format("chmod 0600 {}: {}", file.string(), failure.message()))
        .WithDetail("do", "let its owner run 'ic init'");
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
    return Error(Errc::kCancelled,
                 fmt::format("{} was removed or replaced meanwhile", options.path.string()))
        .WithDetail("do", "run 'ic init' again");
  }
  return outcome;
}

// Takes away a file to which nothing could be written. Who has it open and waits for the lock finds
// out after it: see Migrate().
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
  // When SQLite gave up the whole transaction there is nothing left to undo, and the commit fails.
  if (!result && sqlite_.in_transaction()) IL_TRY_VOID(sqlite_.RollbackToSavepoint());
  if (sqlite_.in_transaction()) IL_TRY_VOID(sqlite_.ReleaseSavepoint());
  return result;
}

Result<Database> Database::Open(const Options& options, Access access, const db::Schema& schema,
                                Clock& clock) {
  IL_TRY_VOID(MustExist(options.path));
  if (options.vfs.empty()) IL_TRY_VOID(sqlite::CheckLog(options.path, clock.Now()));
  const sqlite::OpenOptions wanted = SqliteOptions(
      options, access == Access::kRead ? sqlite::Access::kReadOnly : sqlite::Access::kReadWrite,
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
  // Who wrote to it before may have met a sync that failed, and cannot tell us.
  if (access == Access::kWrite) (*connection)->DoubtLog();
  return Database(std::move(connection).value(), access);
}

Result<Database> Database::Look(const Options& options, const db::Schema& schema, Clock& clock) {
  IL_TRY_VOID(MustExist(options.path));
  if (options.vfs.empty()) IL_TRY_VOID(sqlite::CheckLog(options.path, clock.Now()));
  const auto open = [&]() -> Result<std::unique_ptr<sqlite::Connection>> {
    IL_TRY(auto connection,
           sqlite::Connection::Open(SqliteOptions(options, sqlite::Access::kReadOnly, schema)));
    IL_TRY(const bool old, NeedsMigration(*connection, schema));
    if (!old) return connection;
    IL_TRY(const int version, connection->SchemaVersion());
    return OldVersion(options.path, version);
  };
  Result<std::unique_ptr<sqlite::Connection>> connection = open();
  if (!connection) return WithRemedy(std::move(connection).error(), options.path);
  return Database(std::move(connection).value(), Access::kRead);
}

Result<int> Database::VersionAt(const Options& options, Clock& clock) {
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
    IL_TRY_VOID(RefuseToLoseLog(options.path));
    IL_TRY_VOID(RefuseLinks(options.path));
    if (options.vfs.empty()) IL_TRY_VOID(sqlite::CheckLog(options.path, clock.Now()));
    IL_TRY(auto outcome, Migrate(options, sqlite::Access::kReadWriteOrCreate, schema, clock));
    IL_TRY_VOID(MakePrivate(options.path));
    if (outcome.from == outcome.to) return outcome;
    // Only now is it ours to change its journal mode, when it was another program's.
    IL_TRY(const auto connection,
           sqlite::Connection::Open(SqliteOptions(options, sqlite::Access::kReadWrite, schema)));
    // A new file should be whole without its log; others who work already keep it as it is.
    connection->DoubtLog();
    static_cast<void>(connection->Checkpoint().ok());
    return outcome;
  };
  std::error_code failure;
  const bool is_new = fs::symlink_status(options.path, failure).type() == fs::file_type::not_found;
  Result<db::MigrationOutcome> outcome = migrate();
  constexpr int kTries = 10;  // another one who found its disk full took the file away
  for (int i = 1; i < kTries && !outcome && outcome.error().code() == Errc::kCancelled; ++i) {
    outcome = migrate();
  }
  if (outcome) return outcome;
  if (is_new) RemoveIfEmpty(options, schema);
  return WithRemedy(std::move(outcome).error(), options.path);
}

Result<void> Database::Begin() {
  IL_CHECK(access_ == Access::kWrite);
  Result<void> begun = connection_->BeginExclusive();
  if (!begun) return WithRemedy(std::move(begun).error(), path());
  // Whoever waited for the lock may have the lock of a file that was moved away meanwhile.
  if (!HasMoved()) return begun;
  connection_->Rollback();
  return Error(Errc::kCancelled, fmt::format("{} was removed or replaced", path().string()))
      .WithDetail("do", "do it again");
}

Result<void> Database::Commit() {
  Result<void> done = connection_->Commit();
  if (done) return done;
  if (connection_->in_transaction()) return WithRemedy(std::move(done).error(), path());
  // Pages whose sync failed stay in the log, where the next process could read and build upon them,
  // although no later sync brings them to the disk. Best there is no log any more.
  static_cast<void>(connection_->CheckpointWithoutWaiting().ok());
  return Error(Errc::kOutcomeUnknown, fmt::format("{}: the write may or may not have been kept: {}",
                                                  path().string(), done.error().message()))
      .WithDetail("do",
                  "look at what is there before you do it again; is the disk full or failing?");
}

void Database::Tidy() {
  // What fails here fails nobody: the content is safe in the log, and the next one tries again.
  static_cast<void>(connection_->TidyLog(kLogPagesMax).ok());
}

}  // namespace interlock::kernel
