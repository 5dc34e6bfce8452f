#include "db/sqlite/errors.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/check.h"

namespace interlock::sqlite {
namespace {

constexpr std::array kTable = {
    CodeInfo{SQLITE_ERROR, Errc::kInternal},  // wrong SQL, or a schema we do not expect
    CodeInfo{SQLITE_INTERNAL, Errc::kInternal},
    CodeInfo{SQLITE_PERM, Errc::kCantOpen},
    CodeInfo{SQLITE_ABORT, Errc::kInternal},
    CodeInfo{SQLITE_BUSY, Errc::kBusy},
    CodeInfo{SQLITE_LOCKED, Errc::kBusy},
    CodeInfo{SQLITE_NOMEM, Errc::kOutOfMemory},
    CodeInfo{SQLITE_READONLY, Errc::kReadOnly},
    CodeInfo{SQLITE_INTERRUPT, Errc::kCancelled},
    CodeInfo{SQLITE_IOERR, Errc::kIo},
    CodeInfo{SQLITE_CORRUPT, Errc::kCorrupt},
    CodeInfo{SQLITE_NOTFOUND, Errc::kInternal},
    CodeInfo{SQLITE_FULL, Errc::kDiskFull},
    CodeInfo{SQLITE_CANTOPEN, Errc::kCantOpen},
    CodeInfo{SQLITE_PROTOCOL, Errc::kBusy},  // lost too many races for a lock of the log
    CodeInfo{SQLITE_EMPTY, Errc::kInternal},
    CodeInfo{SQLITE_SCHEMA, Errc::kBusy},  // the schema kept changing under the statement
    CodeInfo{SQLITE_TOOBIG, Errc::kTooBig},
    CodeInfo{SQLITE_CONSTRAINT, Errc::kConstraint},
    CodeInfo{SQLITE_MISMATCH, Errc::kInternal},  // a bound value of the wrong type
    CodeInfo{SQLITE_NOLFS, Errc::kIo},
    CodeInfo{SQLITE_AUTH, Errc::kInternal},
    CodeInfo{SQLITE_FORMAT, Errc::kCorrupt},
    CodeInfo{SQLITE_RANGE, Errc::kInternal},
    CodeInfo{SQLITE_NOTADB, Errc::kNotADatabase},
    CodeInfo{SQLITE_NOTICE, Errc::kInternal},
    CodeInfo{SQLITE_WARNING, Errc::kInternal},
    CodeInfo{SQLITE_READONLY_DBMOVED, Errc::kIo},  // moved or deleted beneath us: reopen
    CodeInfo{SQLITE_IOERR_BLOCKED, Errc::kBusy},
    CodeInfo{SQLITE_IOERR_NOMEM, Errc::kOutOfMemory},
    CodeInfo{SQLITE_IOERR_CORRUPTFS, Errc::kCorrupt},
};

constexpr bool TableRises() {
  for (std::size_t i = 1; i < kTable.size(); ++i) {
    if (kTable[i - 1].code >= kTable[i].code) return false;
  }
  return true;
}
static_assert(TableRises(), "rows are searched by code");

const CodeInfo* Find(int code) {
  const auto row = std::ranges::lower_bound(kTable, code, {}, &CodeInfo::code);
  return row != kTable.end() && row->code == code ? &*row : nullptr;
}

// What happened and what to do, for the failures that a person can do something about.
std::string_view Advice(Errc errc) {
  switch (errc) {
    case Errc::kBusy:
      return "the database is locked by another connection; try again, and if it stays locked find "
             "the process that holds it";
    case Errc::kIo:
      return "the disk or file system failed; check the system log, the disk, and that the file "
             "was not moved or deleted while in use";
    case Errc::kDiskFull:
      return "the disk is full; free space on the file system that holds the database, or raise "
             "the quota or the limit of file sizes (ulimit -f), then repeat";
    case Errc::kCorrupt:
      return "the database is damaged; stop every program that uses it, keep a copy of it and of "
             "its -wal file, and restore the newest backup";
    case Errc::kReadOnly:
      return "the database cannot be written; make the file and its directory writable for this "
             "user";
    case Errc::kOutOfMemory:
      return "out of memory; raise the limit of the process or lower the load";
    case Errc::kCantOpen:
      return "the file cannot be opened; check that it exists, that its directory does, and that "
             "this user may read and write both";
    case Errc::kNotADatabase:
      return "the file is not a database; check the path, or move the file away";
    case Errc::kConstraint:
      return "the change breaks a rule of the schema";
    case Errc::kForeignSchema:
      return "the file is not damaged, but a table, view or trigger in it calls something that "
             "this program does not run; another program made it";
    case Errc::kTooBig:
      return "a value is larger than the database can hold";
    case Errc::kCancelled:
      return "the statement was interrupted";
    default:
      return "the statement failed in a way that should not happen; please report it";
  }
}

// SQLite begins with this when it cannot read a definition, whatever the reason.
constexpr std::string_view kMalformed = "malformed database schema (";

// Whether the failure is that of a definition in the file which calls what we lack or do not trust.
// SQLite takes it for damage when it reads the schema, and for wrong SQL when it finds out later;
// statements of ours call nothing of the kind.
bool CallsWhatIsNotRun(std::string_view message) {
  if (message.starts_with(kMalformed)) {
    constexpr std::string_view kReason = ") - ";
    const std::size_t end = message.find(kReason);
    if (end == std::string_view::npos) return false;
    message.remove_prefix(end + kReason.size());
  }
  return message.starts_with("unsafe use of ") || message.starts_with("no such function: ") ||
         message.starts_with("no such module: ");
}

// Some I/O errors of SQLite's writes are a lack of space: a limit of the file's size, or
// a quota. ENOSPC itself is SQLITE_FULL, except from a sync and of the shared memory.
bool IsWantOfSpace(int code, sqlite3* db) {
  switch (code) {
    case SQLITE_IOERR_WRITE:
    case SQLITE_IOERR_FSYNC:
    case SQLITE_IOERR_DIR_FSYNC:
    case SQLITE_IOERR_TRUNCATE:
    case SQLITE_IOERR_SHMSIZE:
      break;
    default:
      return false;
  }
  // Each file remembers its last failure; that of the connection may be of a later call.
  int of_file = 0;
  int of_log = 0;
  sqlite3_file* log = nullptr;
  sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &of_file);
  sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, static_cast<void*>(&log));
  if (log != nullptr && log->pMethods != nullptr) {
    log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &of_log);
  }
  return std::ranges::any_of(std::array{of_file, of_log, sqlite3_system_errno(db)}, [](int error) {
    return error == EFBIG || error == EDQUOT || error == ENOSPC;
  });
}

}  // namespace

Errc ErrcOf(int code) {
  const int primary = code & 0xff;
  IL_CHECK(primary != SQLITE_OK && primary != SQLITE_ROW && primary != SQLITE_DONE,
           "a success is not an error");
  IL_CHECK(primary != SQLITE_MISUSE, "the SQLite interface was misused");
  if (const CodeInfo* row = Find(code)) return row->errc;
  if (const CodeInfo* row = Find(primary)) return row->errc;
  return Errc::kInternal;
}

std::span<const CodeInfo> AllCodes() { return kTable; }

Error ErrorFrom(int code, sqlite3* db, std::string_view doing) {
  // The connection's message belongs to its last call: use it only if that is the one that failed.
  const bool last = db != nullptr && sqlite3_extended_errcode(db) == code;
  const std::string_view words = last ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const int system_error = last ? sqlite3_system_errno(db) : 0;
  Errc errc = ErrcOf(code);
  if (CallsWhatIsNotRun(words)) errc = Errc::kForeignSchema;
  if (last && IsWantOfSpace(code, db)) errc = Errc::kDiskFull;
  const std::string_view advice =
      errc == Errc::kCorrupt && words.starts_with(kMalformed)
          ? "a definition in the database cannot be read: a newer SQLite wrote it, or the file is "
            "damaged; keep a copy of it and of its -wal file, and restore the newest backup"
          : Advice(errc);
  const char* file = db != nullptr ? sqlite3_db_filename(db, "main") : nullptr;
  std::string text(doing);
  if (file != nullptr && *file != '\0') text += fmt::format(" ({})", file);
  text += fmt::format(": {} [SQLite {}: {}", advice, code, words);
  const bool of_system = (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_IOERR;
  if (system_error != 0 && of_system) {
    text += fmt::format(", {}", ::strerrordesc_np(system_error));
  }
  text += ']';
  return Error(errc, std::move(text));
}

}  // namespace interlock::sqlite
