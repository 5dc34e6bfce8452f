#pragma once

#include <span>
#include <string_view>

#include "base/error.h"

struct sqlite3;

namespace interlock::sqlite {

// What SQLite's result codes mean to us. The table in errors.cc is the only place that decides it.

// One row: an extended code wins over its primary code, so only extended codes that mean something
// else than their primary one have a row of their own.
struct CodeInfo {
  int code;
  Errc errc;
};

// The Errc of a primary or extended result code. A code we do not know is kInternal.
// REQUIRES: `code` is a failure. SQLITE_MISUSE is our own bug and fails a check.
Errc ErrcOf(int code);

// All rows, rising by code; for tests.
std::span<const CodeInfo> AllCodes();

// The failure of `doing` ("opening", "running INSERT …"): what happened, to which file, and what a
// person can do about it, with SQLite's own words and code at the end. `db` may be null.
Error ErrorFrom(int code, sqlite3* db, std::string_view doing);

}  // namespace interlock::sqlite
