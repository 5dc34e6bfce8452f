#pragma once

#include <span>
#include <string_view>

#include "db/migrate.h"
#include "db/sql.h"

namespace interlock::plan {

// A table that may be read whole, and why it cannot grow.
struct FixedTable {
  std::string_view name;
  std::string_view reason;
};

// A folder of src/ that has SQL: what it runs, on which schema.
struct Folder {
  std::string_view name;
  db::Schema schema;
  std::span<const db::NamedSql> statements;
  std::span<const FixedTable> fixed_tables;
  // Literals of which a migration makes its script, as FindSql() shows them.
  std::span<const std::string_view> scripts = {};
};

// The one list; a new folder with SQL adds itself in folders.cc.
std::span<const Folder> Folders();

}  // namespace interlock::plan
