#include "plan/sql_constants.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // g++ 12's own <regex>, under ASan
#endif

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>

#include "base/check.h"

namespace interlock::plan {
namespace {

namespace fs = std::filesystem;

// Whole-line comments only: a constant behind code on its line is none.
std::string WithoutComments(std::string_view source) {
  static const std::regex kComment(R"((^|\n)\s*//[^\n]*)");
  return std::regex_replace(std::string(source), kComment, "$1");
}

void Collect(const std::string& text, const std::regex& what, std::vector<std::string>& into) {
  for (std::sregex_iterator match(text.begin(), text.end(), what), end; match != end; ++match) {
    into.push_back((*match)[1].str());
  }
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path);
  IL_CHECK(file.good(), path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

SqlInSource FindSql(std::string_view source) {
  const std::string text = WithoutComments(source);
  static const std::regex kConstant(R"(\bSql\s+(\w+)\s*[={(])");
  static const std::regex kArray(R"(\bSql\s+(\w+\s*\[))");
  static const std::regex kInPlace(R"(\bSql\s*[({]\s*(R?"[^"\n]{0,40}))");
  static const std::regex kCall(R"((?:\.|->)(?:Run|ForEach|One|Execute)\s*\(\s*(R?"[^"\n]{0,40}))");
  SqlInSource found;
  Collect(text, kConstant, found.constants);
  for (const std::regex* nameless : {&kArray, &kInPlace, &kCall}) {
    Collect(text, *nameless, found.nameless);
  }
  return found;
}

std::map<std::string, SqlInSource> FindSqlInTree(const fs::path& src) {
  std::map<std::string, SqlInSource> folders;
  for (const auto& entry : fs::recursive_directory_iterator(src)) {
    const std::string name = entry.path().filename().string();
    const bool source = name.ends_with(".cc") || name.ends_with(".h");
    if (!source || name.ends_with("_test.cc")) continue;
    const std::string folder = entry.path().lexically_relative(src).begin()->string();
    if (folder == "db") continue;
    SqlInSource found = FindSql(ReadFile(entry.path()));
    if (found.constants.empty() && found.nameless.empty()) continue;
    SqlInSource& all = folders[folder];
    std::ranges::move(found.constants, std::back_inserter(all.constants));
    std::ranges::move(found.nameless, std::back_inserter(all.nameless));
  }
  return folders;
}

}  // namespace interlock::plan
