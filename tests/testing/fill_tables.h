#pragma once

#include <sqlite3.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "base/check.h"

namespace interlock::testing {

// Inserts one row into every table of a database that has the column `having`. `value` gives the
// value of a column as SQL; empty = a value of the column's type.
inline void FillTables(
    const std::filesystem::path& path, const std::string& having,
    const std::function<std::string(const std::string& table, const std::string& column)>& value) {
  struct Filling {
    const decltype(value)& of;
    std::map<std::string, std::string> values = {};  // of each table
  };
  const auto add = [](void* all, int /*count*/, char** fields, char** /*names*/) {
    auto& [of, values] = *static_cast<Filling*>(all);
    const std::string type = fields[2];
    std::string text = of(fields[0], fields[1]);
    if (text.empty()) text = type == "TEXT" ? "'x'" : type == "BLOB" ? "x'01'" : "1";
    std::string& row = values[fields[0]];
    row += (row.empty() ? "" : ", ") + text;
    return 0;
  };
  const std::string columns =
      "SELECT t.name, c.name, c.type FROM sqlite_schema AS t, pragma_table_info(t.name) AS c "
      "WHERE t.type = 'table' AND EXISTS "
      "(SELECT 1 FROM pragma_table_info(t.name) WHERE name = '" +
      having + "') ORDER BY t.name, c.cid";
  sqlite3* db = nullptr;
  IL_CHECK(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  Filling filling{.of = value};
  IL_CHECK(sqlite3_exec(db, columns.c_str(), add, &filling, nullptr) == SQLITE_OK,
           sqlite3_errmsg(db));
  IL_CHECK(!filling.values.empty());
  for (const auto& [table, row] : filling.values) {
    const std::string insert = "INSERT INTO " + table + " VALUES (" + row + ")";
    IL_CHECK(sqlite3_exec(db, insert.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK,
             sqlite3_errmsg(db));
  }
  sqlite3_close(db);
}

}  // namespace interlock::testing
