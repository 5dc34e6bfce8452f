#include "plan/query_plan.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // g++ 12's own <regex>, under ASan
#endif

#include <regex>
#include <set>

namespace interlock::plan {
namespace {

std::string_view WordAfter(std::string_view line, std::string_view prefix) {
  if (!line.starts_with(prefix)) return {};
  line.remove_prefix(prefix.size());
  return line.substr(0, line.find(' '));
}

bool Matches(std::string_view sql, const std::string& pattern) {
  return std::regex_search(std::string(sql), std::regex(pattern, std::regex::icase));
}

}  // namespace

std::vector<std::string> Complaints(std::string_view sql, std::span<const std::string> plan,
                                    std::span<const FixedTable> fixed_tables) {
  std::vector<std::string> complaints;
  std::set<std::string_view> harmless = {"CONSTANT"};  // SCAN CONSTANT ROW
  for (const FixedTable& table : fixed_tables) {
    harmless.insert(table.name);
    if (Matches(sql, "\\bAS\\s+" + std::string(table.name) + "\\b")) {
      complaints.push_back("gives something the name of a fixed table: " + std::string(table.name));
    }
  }
  for (const std::string& line : plan) {
    for (const std::string_view prefix : {"CO-ROUTINE ", "MATERIALIZE "}) {
      if (const auto name = WordAfter(line, prefix); !name.empty()) harmless.insert(name);
    }
  }
  for (const std::string& line : plan) {
    const std::string_view scanned = WordAfter(line, "SCAN ");
    if (!scanned.empty() && !harmless.contains(scanned)) {
      complaints.push_back("reads a whole table: " + line);
    }
    if (line.find("USING AUTOMATIC") != std::string::npos) {
      complaints.push_back("builds an index at every run: " + line);
    }
  }
  if (plan.empty() && Matches(sql, "^\\s*DELETE\\b")) {
    complaints.emplace_back("deletes every row of a table");
  }
  return complaints;
}

}  // namespace interlock::plan
