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

  // Runs `fn` such that its failure undoes what it did and nothing else; the transaction goes on.
  // Not inside another Attempt().
  Result<void> Attempt(const std::function<Result<void>()>& fn);

  // False after an error for which SQLite gave up the whole transaction.
  bool is_open() const { return sqlite_.in_transaction(); }

 private:
  sqlite::Connection& sqlite_;
};

// The one connection that a process of `ic` has to its file. Every write is one BEGIN IMMEDIATE …
// COMMIT that waits for others as long as the busy timeout says; what was committed survives a
// power cut. The log is moved into the file by Tidy() only, so no answer waits for it.
//
// One thread.
class Database {
 public:
  enum class Access : std::uint8_t { kRead, kWrite };

  struct Options {
    std::filesystem::path path;
    std::chrono::milliseconds busy_timeout{5000};
    std::string vfs = {};  // as in sqlite::OpenOptions
  };

  // Opens a file that `ic init` has made; it is never made here. An older version whose steps to
  // ours only add is migrated on the way, with a backup; every other version is an error that says
  // what to do (detail "do"), as is a log that was damaged from outside (db/sqlite/log_check.h).
  // REQUIRES: this process has it open nowhere else.
  static Result<Database> Open(const Options& options, Access access, const db::Schema& schema,
                               Clock& clock);

  // The same for reading, and an older version is an error: nothing is changed.
  static Result<Database> Look(const Options& options, const db::Schema& schema, Clock& clock);

  // The version that a file says it has, of whatever program it is. Changes nothing.
  static Result<int> VersionAt(const Options& options, Clock& clock);

  // Makes the file and its directory where they are missing, brings it to our version. Files of the
  // older program are taken over.
  static Result<db::MigrationOutcome> Init(const Options& options, const db::Schema& schema,
                                           Clock& clock);

  // fn(db::Connection&) -> Result<T>, on one state of the file.
  template <typename Fn>
  std::invoke_result_t<Fn&, db::Connection&> Read(Fn&& fn) {
    IL_TRY_VOID(connection_->BeginSnapshot());
    auto result = fn(static_cast<db::Connection&>(*connection_));
    connection_->Rollback();
    return result;
  }

  // fn(Transaction&) -> Result<T>. An error of fn undoes all of it. kOutcomeUnknown: the commit
  // failed in a way that leaves open whether it is there. kCancelled, and HasMoved(): fn did not
  // run.
  template <typename Fn>
  std::invoke_result_t<Fn&, Transaction&> Write(Fn&& fn) {
    IL_TRY_VOID(Begin());
    Transaction tx(*connection_);
    auto result = fn(tx);
    if (result.ok()) {
      if (Result<void> done = Commit(); !done) return std::move(done).error();
    }
    connection_->Rollback();  // does nothing after a commit
    return result;
  }

  // To be called when the answer is out: moves the log into the file when it has grown long.
  void Tidy();

  Access access() const { return access_; }
  // True when the file has been replaced or removed since it was opened: what others write now is
  // not seen here.
  bool HasMoved() const { return connection_->HasMoved(); }
  const std::filesystem::path& path() const { return connection_->path(); }
  sqlite::Connection& sqlite() { return *connection_; }

 private:
  Database(std::unique_ptr<sqlite::Connection> connection, Access access)
      : connection_(std::move(connection)), access_(access) {}
  Result<void> Begin();
  Result<void> Commit();

  std::unique_ptr<sqlite::Connection> connection_;
  Access access_;
};

}  // namespace interlock::kernel
