#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"
#include "db/migrate.h"
#include "db/sqlite/connection.h"

namespace interlock::kernel {

// A write transaction of `ic`.
class Transaction final : public db::Transaction {
 public:
  explicit Transaction(sqlite::Connection& connection)
      : db::Transaction(connection), sqlite_(connection) {}

  // Runs `fn` in a savepoint: if `fn` fails, only its own changes are undone and the transaction
  // continues. Calls must not be nested.
  Result<void> Attempt(const std::function<Result<void>()>& fn);

  // False if an error made SQLite roll back the whole transaction.
  bool is_open() const { return sqlite_.in_transaction(); }

 private:
  sqlite::Connection& sqlite_;
};

// The only connection of an `ic` process to its database. Each write is one BEGIN IMMEDIATE …
// COMMIT, which waits for other writers up to the busy timeout; a committed write survives a power
// failure. Only CheckpointIfLarge() copies the write-ahead log into the file, so no command waits
// for a checkpoint before it answers.
//
// For one thread.
class Database {
 public:
  enum class OpenMode : std::uint8_t { kRead, kWrite };

  struct Options {
    std::filesystem::path path;
    std::chrono::milliseconds busy_timeout{5000};
    std::string vfs = {};  // see sqlite::OpenOptions
  };

  // Opens an existing database; only Init() creates one. If the schema is older and every step to
  // our version is additive, the file is migrated after a backup. Any other version is an error,
  // and so is a damaged log (db/sqlite/log_check.h). The error detail "do" gives the remedy.
  // REQUIRES: this process has no other connection to the file.
  static Result<Database> Open(const Options& options, OpenMode mode, const db::Schema& schema,
                               Clock& clock);

  // Opens for reading and changes nothing: an older schema version is an error.
  static Result<Database> OpenUnmigrated(const Options& options, const db::Schema& schema,
                                         Clock& clock);

  // Returns the schema version of the file, whichever program wrote it. Changes nothing.
  static Result<int> ReadVersion(const Options& options, Clock& clock);

  // Creates the file and its directory if they are missing, and migrates the file to our version.
  // Also converts files of the older program.
  static Result<db::MigrationOutcome> Init(const Options& options, const db::Schema& schema,
                                           Clock& clock);

  // Calls fn(db::Connection&) -> Result<T> on one snapshot of the database.
  template <typename Fn>
  std::invoke_result_t<Fn&, db::Connection&> Read(Fn&& fn) {
    IL_TRY_VOID(connection_->BeginSnapshot());
    auto result = fn(static_cast<db::Connection&>(*connection_));
    connection_->Rollback();
    return result;
  }

  // Calls fn(Transaction&) -> Result<T>. If fn fails, all its changes are rolled back.
  // kOutcomeUnknown: the commit failed and may or may not have been stored. kCancelled together
  // with HasMoved(): the file was replaced before fn could run.
  template <typename Fn>
  std::invoke_result_t<Fn&, Transaction&> Write(Fn&& fn) {
    IL_TRY_VOID(Begin());
    Transaction tx(*connection_);
    auto result = fn(tx);
    if (result.ok()) {
      if (Result<void> done = Commit(); !done) return std::move(done).error();
    }
    connection_->Rollback();  // no effect after a commit
    return result;
  }

  // Checkpoints the log if it is large. Call this after the answer is printed.
  void CheckpointIfLarge();

  OpenMode mode() const { return mode_; }
  // True if the file was replaced or removed after it was opened. This connection then does not
  // see what other processes write.
  bool HasMoved() const { return connection_->HasMoved(); }
  const std::filesystem::path& path() const { return connection_->path(); }
  sqlite::Connection& sqlite() { return *connection_; }

 private:
  Database(std::unique_ptr<sqlite::Connection> connection, OpenMode mode)
      : connection_(std::move(connection)), mode_(mode) {}
  Result<void> Begin();
  Result<void> Commit();

  std::unique_ptr<sqlite::Connection> connection_;
  OpenMode mode_;
};

}  // namespace interlock::kernel
