#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"

struct sqlite3;
struct sqlite3_stmt;

namespace interlock::sqlite {

// One prepared statement. After Run it is always reset and forgets its bindings, also when the row
// callback failed or threw: it neither holds a snapshot open nor points at the caller's strings.
//
// Used by the thread that uses its connection, and dies before it.
class Statement {
 public:
  // `text` is one statement; what follows it, beyond white space, fails a check. `text` must
  // outlive the statement.
  static Result<Statement> Prepare(sqlite3* db, std::string_view text);

  // Returns the number of rows changed. The number of values must be that of the parameters. Run
  // from its own row callback it fails a check, since its rows would be lost.
  Result<std::int64_t> Run(std::span<const db::Value> values, const db::Connection::OnRow& on_row);

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };

  Statement(sqlite3* db, std::string_view text, sqlite3_stmt* statement);
  Result<void> BindAll(std::span<const db::Value> values);
  Result<void> StepAll(const db::Connection::OnRow& on_row);
  Error Failure(int code) const;

  sqlite3* db_;
  std::string_view text_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  bool running_ = false;
};

}  // namespace interlock::sqlite
