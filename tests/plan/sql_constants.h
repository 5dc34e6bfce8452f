#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace interlock::plan {

// The SQL in a piece of source text, found by looking at its literals.
struct SqlInSource {
  std::vector<std::string> constants;  // names of `db::Sql kName = …`
  // The start of each literal outside those that becomes an Sql where it stands, or that begins as
  // a statement does: whatever it is handed to may make an Sql of it.
  std::vector<std::string> nameless;
};

SqlInSource FindSql(std::string_view source);

// By folder of `src`: everything FindSql() sees in its headers and sources, tests left out. The
// folder db is left out: it is the engine, and asks SQLite about itself only.
std::map<std::string, SqlInSource> FindSqlInTree(const std::filesystem::path& src);

}  // namespace interlock::plan
