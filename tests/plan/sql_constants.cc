#include "plan/sql_constants.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace interlock::plan {
namespace {

namespace fs = std::filesystem;

// A word, a literal (its inside), or one other character.
struct Token {
  enum class Kind : std::uint8_t { kWord, kString, kOther } kind;
  std::string_view text;
};

bool IsWordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Reads C++ as tokens; comments and white space are none.
class Lexer {
 public:
  explicit Lexer(std::string_view source) : rest_(source) {}

  std::vector<Token> Read() {
    std::vector<Token> tokens;
    while (!rest_.empty()) {
      if (rest_.starts_with("//")) {
        Take(rest_.find('\n'));
      } else if (rest_.starts_with("/*")) {
        Take(rest_.find("*/", 2));
      } else if (rest_.starts_with("R\"")) {
        tokens.push_back({Token::Kind::kString, TakeRaw()});
      } else if (rest_[0] == '"' || rest_[0] == '\'') {
        tokens.push_back({Token::Kind::kString, TakeQuoted(rest_[0])});
      } else if (IsWordChar(rest_[0])) {
        tokens.push_back({Token::Kind::kWord, TakeWord()});
      } else if (std::isspace(static_cast<unsigned char>(rest_[0])) != 0) {
        Take(1);
      } else {
        tokens.push_back({Token::Kind::kOther, Take(1)});
      }
    }
    return tokens;
  }

 private:
  std::string_view Take(std::size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  // With the ' of 1'000 as part of it.
  std::string_view TakeWord() {
    std::size_t end = 1;
    while (end < rest_.size() &&
           (IsWordChar(rest_[end]) || (rest_[end] == '\'' && std::isdigit(rest_[0]) != 0))) {
      ++end;
    }
    return Take(end);
  }
  std::string_view TakeQuoted(char quote) {
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != quote) end += rest_[end] == '\\' ? 2 : 1;
    const std::string_view all = Take(end + 1);
    return all.substr(1, all.size() < 2 ? 0 : all.size() - 2);
  }
  std::string_view TakeRaw() {
    const std::string_view opening = Take(rest_.find('(') + 1);
    const std::string closing = ")" + std::string(opening.substr(2, opening.size() - 3)) + "\"";
    const std::string_view inside = Take(rest_.find(closing));
    Take(closing.size());
    return inside;
  }

  std::string_view rest_;
};

// Does a text begin as a statement does? Verbs in capitals, as in all our SQL, and the commonest
// beginnings however they are written. A verb alone is a word unless it is a whole statement.
bool LooksLikeSql(std::string_view text) {
  static constexpr std::array<std::string_view, 17> kVerbs = {
      "ALTER",     "ATTACH",  "BEGIN",  "CREATE", "DELETE",  "DETACH",
      "DROP",      "EXPLAIN", "INSERT", "PRAGMA", "RELEASE", "REPLACE",
      "SAVEPOINT", "SELECT",  "UPDATE", "VALUES", "WITH"};
  static constexpr std::array<std::string_view, 6> kAlone = {"ANALYZE", "BEGIN",    "COMMIT",
                                                             "REINDEX", "ROLLBACK", "VACUUM"};
  static constexpr std::array<std::string_view, 4> kAnyCase = {"DELETE FROM", "INSERT INTO",
                                                               "REPLACE INTO", "SELECT *"};
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
  const std::string_view verb(text.begin(), std::ranges::find_if_not(text, IsWordChar));
  if (std::ranges::find(kAlone, verb) != kAlone.end()) return true;
  if (std::ranges::find(kVerbs, verb) != kVerbs.end()) return verb.size() < text.size();
  std::string upper;
  for (const char c : text.substr(0, 20)) {
    upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return std::ranges::any_of(kAnyCase,
                             [&](std::string_view start) { return upper.starts_with(start); });
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path);
  IL_CHECK(file.good(), path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

// The tokens of a source, looked at from one place.
class Finder {
 public:
  explicit Finder(std::string_view source) : tokens_(Lexer(source).Read()) {}

  SqlInSource Find() {
    while (at_ < tokens_.size()) Step();
    return std::move(found_);
  }

 private:
  bool Is(std::size_t at, std::string_view text) const {
    return at < tokens_.size() && tokens_[at].kind != Token::Kind::kString &&
           tokens_[at].text == text;
  }
  bool IsString(std::size_t at) const {
    return at < tokens_.size() && tokens_[at].kind == Token::Kind::kString;
  }
  bool IsAnyOf(std::size_t at, std::initializer_list<std::string_view> texts) const {
    return std::ranges::any_of(texts, [&](std::string_view text) { return Is(at, text); });
  }
  // A member call whose first argument is the literal at at_.
  bool IsArgumentOfCall() const {
    return at_ >= 3 && Is(at_ - 1, "(") && IsAnyOf(at_ - 2, {"Run", "ForEach", "One", "Execute"}) &&
           IsAnyOf(at_ - 3, {".", ">"});
  }

  void Step() {
    if (Is(at_, "Sql") && at_ + 1 < tokens_.size() && tokens_[at_ + 1].kind == Token::Kind::kWord &&
        IsAnyOf(at_ + 2, {"=", "{", "("})) {
      found_.constants.emplace_back(tokens_[at_ + 1].text);
      at_ += 3;
      while (IsString(at_)) ++at_;  // its text, in pieces
      return;
    }
    if (IsString(at_)) {
      const bool in_place = at_ >= 2 && IsAnyOf(at_ - 1, {"(", "{"}) && Is(at_ - 2, "Sql");
      if (in_place || IsArgumentOfCall() || LooksLikeSql(tokens_[at_].text)) {
        found_.nameless.emplace_back(tokens_[at_].text.substr(0, 40));
      }
      while (IsString(at_)) ++at_;
      return;
    }
    ++at_;
  }

  const std::vector<Token> tokens_;
  std::size_t at_ = 0;
  SqlInSource found_;
};

}  // namespace

SqlInSource FindSql(std::string_view source) { return Finder(source).Find(); }

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
