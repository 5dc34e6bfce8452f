#include "plan/query_plan.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace interlock::plan {
namespace {

// A word, a name or text in quotes (without them), or one other character.
struct Token {
  enum class Kind : std::uint8_t { kWord, kQuoted, kOther } kind;
  std::string text;
};

bool IsWordChar(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || c == '_' || byte >= 0x80;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

std::vector<Token> Tokens(std::string_view sql) {
  std::vector<Token> tokens;
  const auto take = [&sql](std::size_t count) {
    const std::string_view taken = sql.substr(0, count);
    sql.remove_prefix(taken.size());
    return taken;
  };
  while (!sql.empty()) {
    const char c = sql[0];
    if (sql.starts_with("--")) {
      take(sql.find('\n'));
    } else if (sql.starts_with("/*")) {
      const std::size_t end = sql.find("*/", 2);
      take(end == std::string_view::npos ? end : end + 2);
    } else if (c == '"' || c == '\'' || c == '`' || c == '[') {
      const std::string_view all = take(1 + sql.substr(1).find(c == '[' ? ']' : c) + 1);
      tokens.push_back({Token::Kind::kQuoted, std::string(all.substr(1, all.size() - 2))});
    } else if (IsWordChar(c)) {
      const auto end = std::ranges::find_if_not(sql, IsWordChar);
      tokens.push_back({Token::Kind::kWord, std::string(take(end - sql.begin()))});
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      take(1);
    } else {
      tokens.push_back({Token::Kind::kOther, std::string(take(1))});
    }
  }
  return tokens;
}

// What a statement calls things, for plans show those names and not the tables behind them.
class Names {
 public:
  explicit Names(std::string_view sql) : tokens_(Tokens(sql)) {}

  // How often something is given this name: FROM mail AS x, FROM mail x, (SELECT …) x, WITH x AS.
  std::ptrdiff_t Given(std::string_view name) const {
    const std::string wanted = Upper(name);
    std::ptrdiff_t count = 0;
    for (std::size_t i = 1; i < tokens_.size(); ++i) {
      if (Upper(tokens_[i].text) == wanted && IsGivenAt(i)) ++count;
    }
    return count;
  }

  bool Deletes() const {
    return std::ranges::any_of(tokens_, [](const Token& token) {
      return token.kind == Token::Kind::kWord && Upper(token.text) == "DELETE";
    });
  }

 private:
  bool Is(std::size_t i, std::string_view text) const {
    return i < tokens_.size() && tokens_[i].kind != Token::Kind::kQuoted &&
           Upper(tokens_[i].text) == text;
  }
  // After these a name is used, not given. None of them can itself be a table or the end of one.
  bool IsUsedAfter(std::size_t i) const {
    static constexpr std::array<std::string_view, 27> kBefore = {
        "FROM", "JOIN", "INTO", "UPDATE", "SELECT", "DISTINCT", "WHERE", "AND",    "OR",
        "NOT",  "ON",   "BY",   "SET",    "HAVING", "CASE",     "WHEN",  "THEN",   "ELSE",
        "IN",   "LIKE", "GLOB", "ESCAPE", "IS",     "BETWEEN",  "LIMIT", "OFFSET", "VALUES"};
    return std::ranges::any_of(kBefore, [&](std::string_view word) { return Is(i, word); });
  }
  bool IsGivenAt(std::size_t i) const {
    const std::size_t before = i - 1;
    if (Is(before, "AS") || Is(before, ")")) return true;
    if (Is(before, "WITH") || Is(before, "RECURSIVE")) return true;
    if (Is(before, ",")) {  // a further WITH; or one of several tables or columns
      const bool body = Is(i + 2, "(") || Is(i + 2, "NOT") || Is(i + 2, "MATERIALIZED");
      return Is(i + 1, "(") || (Is(i + 1, "AS") && body);
    }
    if (tokens_[before].kind == Token::Kind::kOther || Is(i + 1, ".")) return false;
    return !IsUsedAfter(before);
  }

  const std::vector<Token> tokens_;
};

// The whole name, whatever is in it: only what SQLite adds behind it is cut off.
std::string_view NameAfter(std::string_view line, std::string_view prefix) {
  if (!line.starts_with(prefix)) return {};
  line.remove_prefix(prefix.size());
  for (const std::string_view added : {" USING ", " VIRTUAL TABLE ", " LEFT-JOIN"}) {
    line = line.substr(0, line.find(added));
  }
  return line;
}

}  // namespace

std::vector<std::string> Complaints(std::string_view sql, std::span<const std::string> plan,
                                    std::span<const FixedTable> fixed_tables) {
  const Names names(sql);
  std::set<std::string_view> fixed = {"CONSTANT ROW"};
  for (const FixedTable& table : fixed_tables) fixed.insert(table.name);
  std::set<std::string_view> subqueries;
  for (const std::string& line : plan) {
    for (const std::string_view prefix : {"CO-ROUTINE ", "MATERIALIZE "}) {
      if (const auto name = NameAfter(line, prefix); !name.empty()) subqueries.insert(name);
    }
  }
  std::vector<std::string> complaints;
  for (const std::string& line : plan) {
    const std::string_view scanned = NameAfter(line, "SCAN ");
    const bool subquery = subqueries.contains(scanned);
    if (!scanned.empty() && !subquery && !fixed.contains(scanned)) {
      complaints.push_back("reads a whole table: " + line);
    } else if (!scanned.empty() && names.Given(scanned) > (subquery ? 1 : 0)) {
      complaints.push_back("gives a name that is taken, so it hides what is read: " + line);
    }
    if (line.find("USING AUTOMATIC") != std::string::npos) {
      complaints.push_back("builds an index at every run: " + line);
    }
  }
  if (plan.empty() && names.Deletes()) complaints.emplace_back("deletes every row of a table");
  return complaints;
}

}  // namespace interlock::plan
