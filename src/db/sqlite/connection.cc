#include "db/sqlite/connection.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "db/sqlite/errors.h"
#include "db/sqlite/files.h"
#include "db/sqlite/json_valid.h"
#include "db/sqlite/library.h"
#include "db/sqlite/local_vfs.h"
#include "db/sqlite/statement.h"

namespace interlock::sqlite {
namespace {

namespace fs = std::filesystem;

// Every Sql is a constant of the program, so their number is bounded; more than this means that
// texts are made up at run time.
constexpr std::size_t kStatementsMax = 1000;

// Of many processes that open a fresh file, one at a time may switch it to WAL, and SQLite does not
// wait for that lock by itself. All pauses together outlast any crowd of openers.
constexpr std::chrono::milliseconds kWalPatience{2500};
constexpr int kWalPauseStepMicros = 500;
constexpr int kWalPauseMaxMicros = 10'000;

struct CloseDb {
  void operator()(sqlite3* db) const {
    const int code = sqlite3_close(db);
    IL_CHECK(code == SQLITE_OK, "a connection was closed while statements live");
  }
};
using DbPtr = std::unique_ptr<sqlite3, CloseDb>;

const char* VfsName(const std::string& vfs) { return vfs.empty() ? LocalVfs() : vfs.c_str(); }

// Opens without touching the file's content.
Result<DbPtr> OpenDb(const fs::path& path, int mode, const OpenOptions& options) {
  SetUpLibrary();
  sqlite3* raw = nullptr;
  const int flags = mode | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW |
                    SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, VfsName(options.vfs));
  DbPtr db(raw);
  if (code != SQLITE_OK) return ErrorFrom(code, raw, "opening");
  sqlite3_busy_timeout(raw, static_cast<int>(options.busy_timeout.count()));
  return db;
}

// Runs `text`, all its statements; the first column of the last row, if any.
Result<std::string> RunText(sqlite3* db, std::string_view text) {
  std::string last;
  while (!text.empty()) {
    sqlite3_stmt* raw = nullptr;
    const char* tail = nullptr;
    int code = sqlite3_prepare_v3(db, text.data(), static_cast<int>(text.size()), 0, &raw, &tail);
    const auto end = static_cast<std::size_t>(tail - text.data());
    const std::string_view statement = text.substr(0, code == SQLITE_OK ? end : text.size());
    while (code == SQLITE_OK || code == SQLITE_ROW) {
      if (raw == nullptr) break;  // a comment or white space
      code = sqlite3_step(raw);
      if (code != SQLITE_ROW) continue;
      const unsigned char* column = sqlite3_column_text(raw, 0);
      last = column == nullptr ? "" : reinterpret_cast<const char*>(column);
    }
    std::optional<Error> error;
    if (code != SQLITE_OK && code != SQLITE_DONE) {
      const std::size_t start = std::min(statement.find_first_not_of(" \t\r\n"), statement.size());
      error = ErrorFrom(code, db, fmt::format("running {}", statement.substr(start, 120)));
    }
    sqlite3_finalize(raw);
    if (error) return *std::move(error);
    text.remove_prefix(end);
  }
  return last;
}

// FNV-1a of "interlock:" and the name, as SQLite's 32-bit signed header field. Part of the format.
std::int64_t ApplicationId(std::string_view program) {
  std::uint32_t hash = 2'166'136'261;
  for (const std::string_view part : {std::string_view("interlock:"), program}) {
    for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619;
  }
  return static_cast<std::int32_t>(hash);
}

// See Migratable::IsForeign().
Result<bool> IsForeignTo(sqlite3* db, std::string_view program) {
  IL_TRY(const std::string mark, RunText(db, "PRAGMA application_id"));
  IL_TRY(const std::string version, RunText(db, "PRAGMA user_version"));
  if (mark == std::to_string(ApplicationId(program))) return version == "0";
  if (mark != "0" || version != "0") return true;
  IL_TRY(const std::string found,
         RunText(db,
                 "SELECT 1 FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
                 "LIMIT 1"));
  return !found.empty();
}

// Closing the last connection would move a log that its owner left into the file, and remove it.
void KeepLogOnClose(sqlite3* db) {
  std::error_code ignored;  // no log
  const auto size = fs::file_size(sqlite3_filename_wal(sqlite3_db_filename(db, "main")), ignored);
  if (ignored || size == 0) return;
  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

Result<void> TryToEnterWal(sqlite3* db, const OpenOptions& options) {
  IL_TRY(const std::string mode, RunText(db, "PRAGMA journal_mode"));
  if (options.access == Access::kReadOnly || options.journal == Journal::kAsFound) return {};
  if (!options.owner.empty()) {
    IL_TRY(const bool foreign, IsForeignTo(db, options.owner));
    if (foreign) {
      KeepLogOnClose(db);
      return {};
    }
  }
  if (mode == "wal") return {};
  IL_TRY(const std::string entered, RunText(db, "PRAGMA journal_mode=WAL"));
  if (entered == "wal") return {};
  return Error(Errc::kIo, fmt::format("{}: this file system cannot hold a database that several "
                                      "processes share (journal mode stays '{}'); use a local disk",
                                      sqlite3_db_filename(db, "main"), entered));
}

// The first look at the content: finds out what is no database, and settles the journal mode. A
// reader need not switch it, but must wait out one who does. SQLite's own waiting is off meanwhile:
// it would come on top of ours, at every try.
Result<void> FirstLook(sqlite3* db, const OpenOptions& options) {
  sqlite3_vfs* vfs = sqlite3_vfs_find(VfsName(options.vfs));
  IL_CHECK(vfs != nullptr);
  const std::chrono::microseconds patience = options.waiting == Waiting::kEager
                                                 ? options.busy_timeout
                                                 : std::max(kWalPatience, options.busy_timeout);
  std::chrono::microseconds waited{0};
  sqlite3_busy_timeout(db, 0);
  Result<void> done = TryToEnterWal(db, options);
  for (int pause = 0; !done && done.error().code() == Errc::kBusy && waited < patience;) {
    pause = std::min(pause + kWalPauseStepMicros, kWalPauseMaxMicros);
    vfs->xSleep(vfs, pause);
    waited += std::chrono::microseconds(pause);
    done = TryToEnterWal(db, options);
  }
  sqlite3_busy_timeout(db, static_cast<int>(options.busy_timeout.count()));
  return done;
}

Result<void> Configure(sqlite3* db, const OpenOptions& options) {
  // What a damaged or hostile file could abuse is off, and "text" is a name, never a string.
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  if (const int code = AllowJsonValid(db); code != SQLITE_OK) return ErrorFrom(code, db, "opening");
  if (options.upkeep == LogUpkeep::kByCaller) {
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }
  IL_TRY_VOID(FirstLook(db, options));
  IL_TRY_VOID(RunText(db, "PRAGMA foreign_keys=ON"));
  // The pages that a savepoint may have to restore are kept in memory: beyond 64 KiB of them SQLite
  // would write each one into a temporary file, for a third more time per write.
  IL_TRY_VOID(RunText(db, "PRAGMA temp_store=MEMORY"));
  IL_TRY_VOID(RunText(db, options.durability == Durability::kFull ? "PRAGMA synchronous=FULL"
                                                                  : "PRAGMA synchronous=NORMAL"));
  if (options.access == Access::kReadOnly) {
    IL_TRY_VOID(RunText(db, "PRAGMA query_only=ON"));
    return {};
  }
  // The pages that a batch changes, and those of the indexes on its way, stay in memory.
  IL_TRY_VOID(RunText(db, "PRAGMA cache_size=-16384"));
  // SQLite opens a write-protected file for reading without a word.
  if (sqlite3_db_readonly(db, "main") == 1) return ErrorFrom(SQLITE_READONLY, db, "opening");
  return {};
}

// Whether statements that begin or end a transaction may be prepared. Asked by SQLite's parser, so
// that no comment or spelling hides one.
struct TransactionGuard {
  bool open = false;
  bool denied = false;  // one was asked for while not open

  static int Authorize(void* guard, int action, const char* /*operation*/, const char* /*name*/,
                       const char* /*database*/, const char* /*trigger*/) {
    auto& self = *static_cast<TransactionGuard*>(guard);
    if (self.open || (action != SQLITE_TRANSACTION && action != SQLITE_SAVEPOINT)) return SQLITE_OK;
    self.denied = true;
    return SQLITE_DENY;
  }
};

// Waiting::kEager. The pauses differ, or all who wait would ask at the same moment.
struct EagerWait {
  sqlite3_vfs* vfs;
  std::chrono::microseconds limit;
  std::chrono::microseconds waited{0};

  static int AskAgain(void* wait, int count) {
    auto& self = *static_cast<EagerWait*>(wait);
    if (count == 0) self.waited = std::chrono::microseconds(0);
    if (self.waited >= self.limit) return 0;
    std::uint16_t random = 0;
    sqlite3_randomness(sizeof(random), &random);
    const int pause = 1000 + random % 4000;
    self.waited += std::chrono::microseconds(pause);
    self.vfs->xSleep(self.vfs, pause);
    return 1;
  }
};

// Opens the guard for one scope.
class Opened {
 public:
  explicit Opened(TransactionGuard& guard) : guard_(guard) { guard_.open = true; }
  ~Opened() { guard_.open = false; }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  TransactionGuard& guard_;
};

Result<void> CopyPages(sqlite3* from, sqlite3* to) {
  sqlite3_backup* backup = sqlite3_backup_init(to, "main", from, "main");
  if (backup == nullptr) return ErrorFrom(sqlite3_extended_errcode(to), to, "backing up");
  const int stepped = sqlite3_backup_step(backup, -1);
  const int code = sqlite3_backup_finish(backup);
  if (code != SQLITE_OK) return ErrorFrom(code, to, "backing up");
  if (stepped != SQLITE_DONE) return ErrorFrom(stepped, to, "backing up");  // busy or locked
  return {};
}

}  // namespace

struct Connection::Impl {
  // Each is prepared once. A text is a literal, so its address, which is quick to look for, says
  // which it is; equal texts at several addresses share one.
  struct Statements {
    std::unordered_map<std::string_view, Statement> by_text;
    std::unordered_map<const char*, Statement*> by_address;
  };

  OpenOptions options;
  fs::path path;
  fs::path log_path;
  std::optional<FileId> first_log;  // see CheckInPlace()
  TransactionGuard guard;           // `db` points to it
  EagerWait wait = {};              // and to it
  DbPtr db;
  Statements statements;      // of Execute; dies before `db`
  Statements controls;        // BEGIN and its like, kept apart: allowed here is not allowed there
  bool writing = false;       // between BeginExclusive and its end, unless SQLite rolled it back
  bool savepoint = false;     // one is open, with the same reservation
  bool log_in_doubt = false;  // see DoubtLog()
  int log_pages = 0;          // after the last commit, unless LogUpkeep::kAsItGrows

  static int OnCommitted(void* impl, sqlite3* /*db*/, const char* /*name*/, int pages) {
    static_cast<Impl*>(impl)->log_pages = pages;
    return SQLITE_OK;
  }

  Result<Statement*> Find(Statements& known, const db::Sql& sql) const {
    Statement*& at_address = known.by_address[sql.text().data()];
    if (at_address != nullptr) return at_address;
    if (const auto found = known.by_text.find(sql.text()); found != known.by_text.end()) {
      return at_address = &found->second;
    }
    IL_CHECK(known.by_text.size() < kStatementsMax, "too many different statements");
    IL_TRY(Statement statement, Statement::Prepare(db.get(), sql.text()));
    return at_address = &known.by_text.emplace(sql.text(), std::move(statement)).first->second;
  }

  void SetWaiting() {
    if (options.waiting == Waiting::kEager) {
      sqlite3_busy_handler(db.get(), EagerWait::AskAgain, &wait);
    } else {
      sqlite3_busy_timeout(db.get(), static_cast<int>(options.busy_timeout.count()));
    }
  }

  // Null: it is not open.
  sqlite3_file* LogFile() const {
    sqlite3_file* log = nullptr;
    const int code = sqlite3_file_control(db.get(), "main", SQLITE_FCNTL_JOURNAL_POINTER,
                                          static_cast<void*>(&log));
    const bool is_open = code == SQLITE_OK && log != nullptr && log->pMethods != nullptr;
    return is_open ? log : nullptr;
  }

  // See gathering_vfs.h. A log that cannot be written takes nothing any more: nothing to report.
  void WriteGathered() const {
    sqlite3_int64 size = 0;
    if (sqlite3_file* const log = LogFile()) log->pMethods->xFileSize(log, &size);
  }

  Result<void> RunControl(const db::Sql& sql) {
    const Opened opened(guard);
    IL_TRY(Statement * statement, Find(controls, sql));
    IL_TRY_VOID(statement->Run({}, nullptr));
    return {};
  }
};

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::~Connection() = default;

Result<std::unique_ptr<Connection>> Connection::Open(const OpenOptions& options) {
  IL_TRY(fs::path path,
         SafePath(options.path, options.access == Access::kReadWriteOrCreate ? IfMissing::kCreate
                                                                             : IfMissing::kFail));
  const int mode =
      options.access == Access::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  IL_TRY(DbPtr db, OpenDb(path, mode, options));
  IL_TRY_VOID(Configure(db.get(), options));
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->log_path = path;
  impl->log_path += "-wal";
  impl->first_log = FileAt(impl->log_path);
  impl->path = std::move(path);
  impl->db = std::move(db);
  sqlite3_set_authorizer(impl->db.get(), TransactionGuard::Authorize, &impl->guard);
  impl->wait = {.vfs = sqlite3_vfs_find(VfsName(options.vfs)), .limit = options.busy_timeout};
  impl->SetWaiting();
  if (options.upkeep != LogUpkeep::kAsItGrows) {
    sqlite3_wal_hook(impl->db.get(), Impl::OnCommitted, impl.get());  // instead of SQLite's own
  }
  return std::unique_ptr<Connection>(new Connection(std::move(impl)));
}

Result<std::int64_t> Connection::Execute(const db::Sql& sql, std::span<const db::Value> values,
                                         const OnRow& on_row) {
  if (impl_->writing && !in_transaction()) {
    return Error(Errc::kInternal,
                 "an earlier failure rolled back the transaction; it cannot go on");
  }
  Result<Statement*> statement = impl_->Find(impl_->statements, sql);
  IL_CHECK(!impl_->guard.denied, sql.text());
  if (!statement) return statement.error();
  return (*statement)->Run(values, on_row);
}

Result<void> Connection::BeginExclusive() {
  impl_->savepoint = false;
  impl_->writing = false;
  IL_TRY_VOID(impl_->RunControl("BEGIN IMMEDIATE"));
  impl_->writing = true;
  return {};
}

Result<void> Connection::BeginSnapshot() {
  impl_->savepoint = false;
  impl_->writing = false;
  return impl_->RunControl("BEGIN");
}

Result<void> Connection::Commit() {
  Result<void> committed = impl_->RunControl("COMMIT");
  if (!in_transaction()) impl_->writing = false;
  return committed;
}

void Connection::Rollback() {
  impl_->savepoint = false;
  const bool wrote = std::exchange(impl_->writing, false);
  if (!in_transaction()) return;
  if (wrote) impl_->WriteGathered();
  // A rollback that cannot undo in memory still ends the transaction: readers never saw it.
  const Result<void> rolled_back = impl_->RunControl("ROLLBACK");
  IL_CHECK(!in_transaction(), rolled_back.ok() ? "" : rolled_back.error().message());
}

Result<void> Connection::Savepoint() {
  IL_CHECK(!impl_->savepoint, "savepoints do not nest");
  IL_CHECK(in_transaction(), "a savepoint outside a transaction");
  IL_TRY_VOID(impl_->RunControl("SAVEPOINT one"));
  impl_->savepoint = true;
  return {};
}

Result<void> Connection::RollbackToSavepoint() { return impl_->RunControl("ROLLBACK TO one"); }

Result<void> Connection::ReleaseSavepoint() {
  IL_TRY_VOID(impl_->RunControl("RELEASE one"));
  impl_->savepoint = false;
  return {};
}

Result<int> Connection::SchemaVersion() {
  IL_TRY(const std::optional<std::int64_t> version,
         One("PRAGMA user_version", [](const db::Row& row) { return row.Int(0); }));
  IL_CHECK(version.has_value());
  return static_cast<int>(*version);
}

Result<void> Connection::SetSchemaVersion(std::string_view program, int version) {
  IL_TRY_VOID(
      RunText(impl_->db.get(), fmt::format("PRAGMA application_id={}; PRAGMA user_version={}",
                                           ApplicationId(program), version)));
  return {};
}

Result<void> Connection::RunScript(std::string_view script) {
  std::optional<Opened> opened;
  if (!in_transaction()) opened.emplace(impl_->guard);
  Result<std::string> ran = RunText(impl_->db.get(), script);
  if (std::exchange(impl_->guard.denied, false)) {
    return Error(Errc::kInternal,
                 "a script controls the transaction that it was lent: " + ran.error().message());
  }
  if (!ran) return std::move(ran).error();
  return {};
}

Result<bool> Connection::IsForeign(std::string_view program) {
  return IsForeignTo(impl_->db.get(), program);
}

Result<void> Connection::BackUpTo(const fs::path& target) {
  // Through a connection of its own: SQLite refuses to copy from one that has a write open, which
  // is when a migration wants its backup.
  IL_TRY(const DbPtr from, OpenDb(impl_->path, SQLITE_OPEN_READONLY, impl_->options));
  IL_TRY_VOID(CreatePrivateFile(target));
  const auto copy = [&]() -> Result<void> {
    IL_TRY(const fs::path safe, SafePath(target, IfMissing::kFail));
    IL_TRY(const DbPtr to, OpenDb(safe, SQLITE_OPEN_READWRITE, impl_->options));
    return CopyPages(from.get(), to.get());
  };
  Result<void> copied = copy();
  if (!copied) {
    std::error_code ignored;  // the first failure is the one to tell
    fs::remove(target, ignored);
  }
  return copied;
}

Result<void> Connection::RestoreFrom(const fs::path& source) {
  IL_CHECK(!in_transaction());
  IL_TRY(const fs::path safe, SafePath(source, IfMissing::kFail));
  IL_TRY(const DbPtr from, OpenDb(safe, SQLITE_OPEN_READWRITE, impl_->options));
  sqlite3_vfs* vfs = sqlite3_vfs_find(VfsName(impl_->options.vfs));
  std::chrono::microseconds waited{0};
  Result<void> copied = CopyPages(from.get(), impl_->db.get());
  // SQLite does not wait by itself for the file that is written.
  while (!copied && copied.error().code() == Errc::kBusy && waited < impl_->options.busy_timeout) {
    vfs->xSleep(vfs, kWalPauseMaxMicros);
    waited += std::chrono::microseconds(kWalPauseMaxMicros);
    copied = CopyPages(from.get(), impl_->db.get());
  }
  return copied;
}

void Connection::DoubtLog() {
  impl_->log_in_doubt = true;
  sqlite3_db_config(impl_->db.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

// Nobody else writes meanwhile, and whoever reads finds the same bytes.
Result<void> Connection::WriteLogAnew() {
  constexpr sqlite3_int64 kPiece = sqlite3_int64{64} * 1024;  // SQLite's files take 128 KiB at most
  std::string bytes(kPiece, '\0');
  IL_TRY_VOID(BeginExclusive());
  sqlite3_file* const log = impl_->LogFile();
  sqlite3_int64 size = 0;
  int code = SQLITE_OK;
  if (log != nullptr) code = log->pMethods->xFileSize(log, &size);
  for (sqlite3_int64 at = 0; code == SQLITE_OK && at < size; at += kPiece) {
    const int count = static_cast<int>(std::min(kPiece, size - at));
    code = log->pMethods->xRead(log, bytes.data(), count, at);
    if (code == SQLITE_OK) code = log->pMethods->xWrite(log, bytes.data(), count, at);
  }
  Rollback();  // writes what was gathered, too
  if (code != SQLITE_OK) return ErrorFrom(code, impl_->db.get(), "writing the log anew");
  return {};
}

Result<Connection::Moved> Connection::MoveLog(int mode) {
  sqlite3* const db = impl_->db.get();
  if (impl_->log_in_doubt) {
    IL_TRY_VOID(WriteLogAnew());
    impl_->log_in_doubt = false;  // a sync that fails now puts it in doubt again
    const int keep = impl_->options.upkeep == LogUpkeep::kByCaller ? 1 : 0;
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep, nullptr);
  }
  Moved moved;
  const int code = sqlite3_wal_checkpoint_v2(db, "main", mode, &moved.log_pages, &moved.moved);
  if (code == SQLITE_OK) return moved;
  if (code != SQLITE_BUSY) DoubtLog();
  return ErrorFrom(code, db, "moving the log into the file");
}

Result<void> Connection::Checkpoint() {
  IL_TRY_VOID(MoveLog(SQLITE_CHECKPOINT_TRUNCATE));
  return {};
}

Result<void> Connection::CheckpointWithoutWaiting() {
  sqlite3_busy_handler(impl_->db.get(), nullptr, nullptr);
  Result<void> emptied = Checkpoint();
  impl_->SetWaiting();
  return emptied;
}

Result<bool> Connection::TidyLog(int pages) {
  if (std::exchange(impl_->log_pages, 0) <= pages) return false;
  sqlite3_busy_handler(impl_->db.get(), nullptr, nullptr);
  const Result<Moved> moved = MoveLog(SQLITE_CHECKPOINT_PASSIVE);
  impl_->SetWaiting();
  if (!moved && moved.error().code() == Errc::kBusy) return false;
  if (!moved) return moved.error();
  // A long-lived writer begins the log anew by itself, in the room that is there.
  const bool whole = moved->log_pages == moved->moved;
  if (impl_->options.upkeep != LogUpkeep::kByCaller || !whole) return moved->moved > 0;
  // That it was moved is known to the index only, and that ends with the last process that has it
  // open: the next one would find a log as long as before, and write behind it.
  const Result<void> emptied = CheckpointWithoutWaiting();
  if (!emptied && emptied.error().code() != Errc::kBusy) return emptied.error();
  return true;
}

Result<std::vector<std::string>> Connection::QueryPlan(const db::Sql& sql) {
  const std::string text = fmt::format("EXPLAIN QUERY PLAN {}", sql.text());
  constexpr int kDetailColumn = 3;
  sqlite3_stmt* raw = nullptr;  // by hand: the parameters stay unbound
  int code = sqlite3_prepare_v3(impl_->db.get(), text.c_str(), -1, 0, &raw, nullptr);
  std::vector<std::string> lines;
  while (code == SQLITE_OK || code == SQLITE_ROW) {
    code = sqlite3_step(raw);
    if (code != SQLITE_ROW) continue;
    lines.emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(raw, kDetailColumn)));
  }
  std::optional<Error> error;
  if (code != SQLITE_DONE) error = ErrorFrom(code, impl_->db.get(), text);
  sqlite3_finalize(raw);
  if (error) return *std::move(error);
  return lines;
}

std::int64_t Connection::last_inserted() const {
  return sqlite3_last_insert_rowid(impl_->db.get());
}

std::int64_t Connection::changes() const { return sqlite3_total_changes64(impl_->db.get()); }

bool Connection::in_transaction() const { return sqlite3_get_autocommit(impl_->db.get()) == 0; }

const fs::path& Connection::path() const { return impl_->path; }

bool Connection::HasMoved() const {
  int moved = 0;
  sqlite3_file_control(impl_->db.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return moved != 0;
}

Result<void> Connection::CheckInPlace() {
  if (HasMoved()) return NotInPlace(path());
  const std::optional<FileId> log = FileAt(impl_->log_path);
  if (!impl_->first_log) impl_->first_log = log;  // none yet when it was opened
  if (impl_->first_log == log) return {};
  return Error(Errc::kUnavailable,
               fmt::format("The log of the database, {}, was removed or replaced. Stop the server, "
                           "which saves what the log holds, and start it again.",
                           impl_->log_path.string()))
      .WithSlug("cannot_open");
}

Error NotInPlace(const fs::path& path) {
  return Error(Errc::kUnavailable,
               fmt::format("The database {} was moved away, removed or replaced; put it back, or "
                           "stop the server and start it on the new one.",
                           path.string()))
      .WithSlug("cannot_open");
}

}  // namespace interlock::sqlite
