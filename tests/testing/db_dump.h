#pragma once

#include <sqlite3.h>

#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"

namespace interlock::testing {

// Every row of a database, as another program reads it: "table column='value' column='value' ".
// Counters that SQLite keeps for itself are left out.
class DbDump {
 public:
  using Rows = std::multiset<std::string>;

  static Rows Of(const std::filesystem::path& path) {
    sqlite3* db = nullptr;
    IL_CHECK(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
    Rows all;
    const std::string tables =
        "SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite%'";
    for (const std::string& table : Ask(db, tables, Columns::kBare)) {
      for (const std::string& row : Ask(db, "SELECT * FROM " + table, Columns::kNamed)) {
        all.insert(std::string(table).append(" ").append(row));
      }
    }
    sqlite3_close(db);
    return all;
  }

  // The first row of `before` that is missing in `now`, where tables may have got more columns and
  // there may be more tables, but no more rows. Empty: nothing is missing.
  static std::string Missing(const Rows& before, const Rows& now) {
    if (now.size() != before.size()) {
      return std::to_string(before.size()) + " rows became " + std::to_string(now.size());
    }
    for (const std::string& row : before) {
      const auto found = now.lower_bound(row);
      if (found == now.end() || !found->starts_with(row)) return row;
    }
    return {};
  }

 private:
  enum class Columns { kBare, kNamed };

  static Rows Ask(sqlite3* db, const std::string& query, Columns columns) {
    Rows rows;
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v2(db, query.c_str(), -1, &statement, nullptr);
    IL_CHECK(code == SQLITE_OK, sqlite3_errmsg(db));
    while (sqlite3_step(statement) == SQLITE_ROW) {
      std::string row;
      for (int i = 0; i < sqlite3_column_count(statement); ++i) {
        const auto* const text = static_cast<const char*>(sqlite3_column_blob(statement, i));
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, i));
        if (columns == Columns::kNamed) row.append(sqlite3_column_name(statement, i)).append("='");
        if (text != nullptr) row.append(text, size);
        if (columns == Columns::kNamed) row.append("' ");
      }
      rows.insert(std::move(row));
    }
    sqlite3_finalize(statement);
    return rows;
  }
};

}  // namespace interlock::testing
