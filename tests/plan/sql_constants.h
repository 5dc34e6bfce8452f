#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace interlock::plan {

// The SQL that a piece of source text declares, found by looking at it as text.
struct SqlInSource {
  std::vector<std::string> constants;  // names of `db::Sql kName = …`
  std::vector<std::string> nameless;   // the start of each literal that becomes an Sql in place
};

SqlInSource FindSql(std::string_view source);

// By folder of `src`: everything FindSql() sees in its headers and sources, tests left out. The
// folder db is left out: it is the engine, and asks SQLite about itself only.
std::map<std::string, SqlInSource> FindSqlInTree(const std::filesystem::path& src);

}  // namespace interlock::plan
