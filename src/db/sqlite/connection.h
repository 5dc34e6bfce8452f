#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "db/connection.h"
#include "db/migrate.h"

namespace interlock::sqlite {

// kFull: an acknowledged write survives a power cut. kFast: it survives the process, but the last
// moments before a power cut may be lost (never torn).
enum class Durability : std::uint8_t { kFull, kFast };

enum class Access : std::uint8_t {
  kReadOnly,
  kReadWrite,          // the file must exist
  kReadWriteOrCreate,  // new directories 0700, new files 0600
};

enum class Journal : std::uint8_t {
  kWal,
  kAsFound,  // of a file whose mode is somebody else's to choose
};

// Who moves the log's content into the database file.
enum class LogUpkeep : std::uint8_t {
  kAsItGrows,         // SQLite, inside the commit that makes it too long, and on closing last
  kByCaller,          // whoever calls TidyLog(): a commit never pays for it, nor does closing
  kByCallerAndClose,  // the same, but who closes last moves the rest and removes the log
};

// How to wait for a lock that another process holds. Both give up after the busy timeout.
enum class Waiting : std::uint8_t {
  kPatient,  // less and less often, down to ten times a second: SQLite's own way
  kEager,    // every few milliseconds: among many who write once, nobody waits in vain
};

struct OpenOptions {
  std::filesystem::path path = {};
  Access access = Access::kReadWrite;
  Durability durability = Durability::kFull;
  std::chrono::milliseconds busy_timeout{250};
  Journal journal = Journal::kWal;
  LogUpkeep upkeep = LogUpkeep::kAsItGrows;
  Waiting waiting = Waiting::kPatient;
  std::string vfs = {};  // empty = SQLite's own; tests name a fault-injecting one
  // The program whose file it should be, for one that may have to refuse it: a file that
  // IsForeign() keeps its journal mode and its log, so that not one byte of it changes. Empty =
  // anybody's.
  std::string owner = {};
};

// A connection to one SQLite file in WAL mode. Opening sets, in this order: busy_timeout,
// journal_mode=WAL (only if it is not yet, so that concurrent openers never fail on it; they are
// waited for as long as busy_timeout, and with Waiting::kPatient at least 2.5 s), foreign_keys=ON,
// synchronous by durability. A database file or parent directory that is a symlink is refused:
// somebody else could point it elsewhere between two opens. A read-only connection, and one with
// Journal::kAsFound, takes the journal mode it finds; the former refuses writes also by query_only.
//
// Transactions are begun and ended by the functions below only: BEGIN, COMMIT, SAVEPOINT and the
// like as an Sql fail a check, so that no storage code can end the transaction it was lent. A
// script may hold them, unless it runs inside a transaction: there it fails at the first one
// (kInternal).
//
// Used by one thread at a time. Errors are mapped to Errc by the one table in errors.cc; misuse of
// the SQLite API is our bug and fails a check.
class Connection final : public db::Connection, public db::Migratable {
 public:
  static Result<std::unique_ptr<Connection>> Open(const OpenOptions& options);
  ~Connection() override;

  Result<std::int64_t> Execute(const db::Sql& sql, std::span<const db::Value> values,
                               const OnRow& on_row) override;
  std::int64_t last_inserted() const override;

  // db::Migratable
  db::Connection& connection() override { return *this; }
  // When SQLite rolls back everything by itself, statements fail until the next Begin or Rollback:
  // run outside the transaction they would commit at once.
  Result<void> BeginExclusive() override;
  // After a failure in_transaction() tells: still open, then surely nothing was committed; not
  // open, then the log was being written, and only a later look at the file tells.
  Result<void> Commit() override;
  void Rollback() override;  // does nothing when none is open
  Result<int> SchemaVersion() override;
  // The mark is the file's application_id, made from the name: it keeps the files of two programs
  // of ours apart, and those of strangers that also count versions.
  Result<void> SetSchemaVersion(std::string_view program, int version) override;
  Result<void> RunScript(std::string_view script) override;
  Result<bool> IsForeign(std::string_view program) override;
  Result<void> BackUpTo(const std::filesystem::path& target) override;

  // Replaces everything by the content of another database, a backup, as one transaction; the
  // schema version too. kBusy when others do not let go of the file in time.
  Result<void> RestoreFrom(const std::filesystem::path& source);

  // A read transaction: from the first statement to Commit() or Rollback() all see one state.
  Result<void> BeginSnapshot();

  // One level of undo inside a transaction. Rolling back leaves the savepoint open; releasing it
  // keeps what was done since as part of the transaction.
  Result<void> Savepoint();
  Result<void> RollbackToSavepoint();
  Result<void> ReleaseSavepoint();

  // Moves the log's content into the database file and empties the log (TRUNCATE). kBusy while
  // another connection reads an old snapshot or writes; nothing is lost then.
  Result<void> Checkpoint();
  Result<void> CheckpointWithoutWaiting();  // the same, but kBusy at once
  // Moves what it can into the database file without waiting for anybody, when the log had more
  // than `pages` at this connection's last commit. With LogUpkeep::kByCaller it also empties the
  // log if nobody else is using it. True: what the log holds, or a part of it, is in the file.
  Result<bool> TidyLog(int pages);
  // What the log holds can be read, but a sync of it may have failed, and no later one brings its
  // pages to the disk: a power cut while they are moved would leave some in the file and none in
  // the log. The next move therefore writes the log over itself first. Known by itself after a move
  // that failed; closing then leaves the log where it is.
  void DoubtLog();
  // How SQLite would run `sql`: the lines of EXPLAIN QUERY PLAN. For tests.
  Result<std::vector<std::string>> QueryPlan(const db::Sql& sql);
  // Rows inserted, changed or removed since it was opened, also those that were rolled back later.
  std::int64_t changes() const;
  // True while a transaction is open (SQLite rolls back by itself after some errors).
  bool in_transaction() const override;
  // Where the file is, symlinks above its directory resolved.
  const std::filesystem::path& path() const;
  // True when there is another file, or none, at path() by now: this connection still has the old
  // one, which nobody else will ever find.
  bool HasMoved() const;
  // kUnavailable, slug cannot_open, when HasMoved(), or when the log beside the file is no longer
  // the one that was there first: what is written would be lost to whoever opens the database next.
  Result<void> CheckInPlace();

 private:
  struct Impl;
  struct Moved {
    int log_pages = 0;
    int moved = 0;  // of them, into the file
  };
  Result<Moved> MoveLog(int mode);
  Result<void> WriteLogAnew();
  explicit Connection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The refusal to use a database that is no longer where it was opened: kUnavailable, slug
// cannot_open.
Error NotInPlace(const std::filesystem::path& path);

}  // namespace interlock::sqlite
