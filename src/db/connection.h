#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/result.h"
#include "db/sql.h"

namespace interlock::db {

// One session with a database, as storage code sees it: run a statement, read its rows. Statements
// are prepared at first use and kept.
//
// Used by one thread at a time. The connection that a read or a write receives is lent to it: it
// must not be kept, and transactions are begun and ended by the lender only.
class Connection {
 public:
  // Called per row; an error ends the statement and becomes its result.
  using OnRow = std::function<Result<void>(const Row&)>;

  virtual ~Connection() = default;
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs `sql`; returns the number of rows it inserted, updated or deleted (0 for a query).
  virtual Result<std::int64_t> Execute(const Sql& sql, std::span<const Value> values,
                                       const OnRow& on_row) = 0;

  // The number of the row that the last INSERT added, which costs less than RETURNING it.
  // REQUIRES: it added one, to a table that numbers its rows.
  virtual std::int64_t last_inserted() const = 0;

  // Runs a statement whose rows, if any, do not matter.
  template <typename... Args>
  Result<std::int64_t> Run(const Sql& sql, const Args&... args) {
    return Execute(sql, Values(args...), nullptr);
  }

  // Calls fn(row) for each row; fn returns void or Result<void>.
  template <std::invocable<const Row&> Fn, typename... Args>
  Result<std::int64_t> ForEach(const Sql& sql, Fn&& fn, const Args&... args) {
    return Execute(sql, Values(args...), [&fn](const Row& row) -> Result<void> {
      if constexpr (std::is_void_v<std::invoke_result_t<Fn&, const Row&>>) {
        fn(row);
        return {};
      } else {
        return fn(row);
      }
    });
  }

  // The first row as fn makes it; nothing when there is none. Also for INSERT … RETURNING.
  template <std::invocable<const Row&> Fn, typename... Args>
  auto One(const Sql& sql, Fn&& fn, const Args&... args)
      -> Result<std::optional<std::invoke_result_t<Fn&, const Row&>>> {
    std::optional<std::invoke_result_t<Fn&, const Row&>> found;
    IL_TRY_VOID(ForEach(
        sql,
        [&](const Row& row) {
          if (!found) found = fn(row);
        },
        args...));
    return found;
  }

 private:
  template <typename... Args>
  static std::array<Value, sizeof...(Args)> Values(const Args&... args) {
    return {Bind(args)...};
  }
};

// A connection inside a write transaction that somebody else commits. A write function receives it,
// and may be run again from the start after a rollback: it must touch nothing but the database and
// variables that it sets anew on each run.
class Transaction {
 public:
  explicit Transaction(Connection& connection) : connection_(connection) {}
  virtual ~Transaction() = default;

  Connection& connection() { return connection_; }
  Connection* operator->() { return &connection_; }

  // To be called before appending events of `project`, so that their cursors become visible in
  // order. Free on SQLite, where there is one writer; an advisory lock elsewhere.
  virtual Result<void> LockProject(std::string_view /*project*/) { return {}; }

 private:
  Connection& connection_;
};

}  // namespace interlock::db
