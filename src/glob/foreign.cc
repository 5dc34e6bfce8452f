#include "glob/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace interlock::glob {
namespace {

using Kind = Lexeme::Kind;

constexpr std::string_view kEscapable = "*?[]{},()|";
constexpr std::string_view kEscapableInClass = "\\*?[]{},()|^!-";
constexpr std::string_view kBlank = " \t\n\v\f\r";

std::string_view TextOf(std::string_view text, const Lexeme& lexeme) {
  return text.substr(lexeme.offset, lexeme.size);
}

// A character that stands for itself, without a backslash.
bool IsPlain(std::string_view text, const Lexeme& lexeme) {
  return lexeme.kind == Kind::kLiteral && text[lexeme.offset] != '\\';
}

// Checks a class, from its opening to its closing bracket.
Result<void> CheckClass(std::string_view text, std::size_t offset) {
  constexpr std::string_view kDelimiters = ":.=";
  std::array<std::size_t, kDelimiters.size()> opened = {};  // behind the first `[:`, `[.`, `[=`
  bool after_bracket = false;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
      after_bracket = false;
      if (kEscapableInClass.contains(text[i])) continue;
      return InvalidPattern(
          "in a class a backslash stands only before one of \\ * ? [ ] { } , ( ) | ^ ! - and "
          "\\d and its like do not exist; write the characters, as in [0-9]",
          offset + i - 1);
    }
    const std::size_t kind = kDelimiters.find(text[i]);
    if (kind != std::string_view::npos) {
      std::size_t& open = opened.at(kind);
      if (open > 0 && i > open && i + 2 == text.size()) {
        return InvalidPattern(
            "[[:alpha:]] and its like are not supported; write the characters, as in [A-Za-z]",
            offset);
      }
      if (open == 0 && after_bracket) open = i + 1;
    }
    after_bracket = text[i] == '[';
  }
  return {};
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Takes one end of a sequence off `text`: an integer or a letter.
bool TakeEnd(std::string_view& text) {
  if (!text.empty() && IsLetter(text.front())) {
    text.remove_prefix(1);
    return true;
  }
  if (text.starts_with('-')) text.remove_prefix(1);
  const auto end = std::ranges::find_if_not(text, IsDigit);
  const auto digits = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(digits);
  return digits > 0;
}

bool TakeDots(std::string_view& text) {
  const bool dots = text.starts_with("..");
  if (dots) text.remove_prefix(2);
  return dots;
}

// True for what braces hold of a sequence: `1..3`, `a..e`, `0..9..3`.
bool IsSequence(std::string_view inside) {
  if (!TakeEnd(inside) || !TakeDots(inside) || !TakeEnd(inside)) return false;
  return inside.empty() || (TakeDots(inside) && TakeEnd(inside) && inside.empty());
}

// Refuses braces without a partner, `{1..3}`, and `{a, b}`.
class BraceCheck {
 public:
  explicit BraceCheck(std::string_view text) : text_(text) {}

  Result<void> Run(std::span<const Lexeme> lexemes) {
    for (const Lexeme& lexeme : lexemes) {
      if (lexeme.kind == Kind::kOpen) {
        if (!levels_.empty()) levels_.back().plain = false;
        levels_.push_back({.at = lexeme.offset});
        NoteBlank(lexeme.offset + 1);
      } else if (levels_.empty()) {
        if (lexeme.kind == Kind::kClose) return Unpaired("}", lexeme.offset);
      } else if (lexeme.kind == Kind::kComma) {
        levels_.back().plain = false;
        levels_.back().alternates = true;
        NoteBlank(lexeme.offset - 1);
        NoteBlank(lexeme.offset + 1);
      } else if (lexeme.kind == Kind::kClose) {
        NoteBlank(lexeme.offset - 1);
        IL_TRY_VOID(Close(lexeme.offset));
      } else if (!IsPlain(text_, lexeme)) {
        levels_.back().plain = false;
      }
    }
    if (!levels_.empty()) return Unpaired("{", levels_.front().at);
    return {};
  }

 private:
  // An open brace.
  struct Level {
    std::size_t at;
    bool plain = true;  // nothing but plain characters follow it
    bool alternates = false;
    std::optional<std::size_t> blank = {};  // at the border of a branch
  };

  static Error Unpaired(std::string_view brace, std::size_t offset) {
    return InvalidPattern(fmt::format("a {0} has no partner; write {{a,b}}, or for a path with a "
                                      "brace in its name \\{0} or literal:true",
                                      brace),
                          offset);
  }

  void NoteBlank(std::size_t at) {
    if (at < text_.size() && kBlank.contains(text_[at])) levels_.back().blank = at;
  }

  Result<void> Close(std::size_t offset) {
    const Level level = levels_.back();
    levels_.pop_back();
    if (level.plain && IsSequence(text_.substr(level.at + 1, offset - level.at - 1))) {
      return InvalidPattern(
          "{1..3} is not supported; write {1,2,3} or [1-3], or for a path with braces in its "
          "name \\{ or literal:true",
          level.at);
    }
    if (level.alternates && level.blank) {
      return InvalidPattern(
          "blanks beside the , and the braces of {a,b} are part of the branch; remove them, or "
          "write [ ] for a blank in a name",
          *level.blank);
    }
    return {};
  }

  const std::string_view text_;
  std::vector<Level> levels_;
};

Error OutsideTheRoot(std::string_view what, std::size_t offset) {
  return InvalidPattern(
      fmt::format("{}: paths are relative to the project's root; write the path from there, as in "
                  "src/a.cc, or send literal:true for a file that really has this name",
                  what),
      offset);
}

constexpr std::string_view kDrive = "a drive such as C: is not part of a path";

// The first name of every path that matches, "" when it holds a wildcard, a class or an escape.
std::string FirstName(std::string_view text, std::span<const Lexeme> sequence) {
  std::string name;
  for (const Lexeme& lexeme : sequence) {
    if (lexeme.kind == Kind::kSlash) {
      if (!name.empty() && name != ".") break;
      name.clear();
    } else if (IsPlain(text, lexeme)) {
      name += TextOf(text, lexeme);
    } else {
      return "";
    }
  }
  return name;
}

bool IsHome(std::string_view name) {
  return name.starts_with('~') && std::ranges::all_of(name.substr(1), [](char c) {
           return IsLetter(c) || IsDigit(c) || c == '_' || c == '-';
         });
}

// `$NAME`, `${…}`, `$(…)`; a name that merely begins with a dollar sign is not one: `$id.tsx`.
bool IsVariable(std::string_view name) {
  if (!name.starts_with('$') || name.size() == 1) return false;
  if (name[1] == '(' || name[1] == '{') return name.ends_with(name[1] == '(' ? ')' : '}');
  return !IsDigit(name[1]) && std::ranges::all_of(name.substr(1), [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '_';
  });
}

Result<void> RefuseExtglobs(std::string_view text, std::span<const Lexeme> sequence) {
  std::vector<const Lexeme*> open;  // for each parenthesis the operator before it, or null
  const Lexeme* before = nullptr;
  for (const Lexeme& lexeme : sequence) {
    const std::string_view own = TextOf(text, lexeme);
    if (own == "(") {
      const bool extended = before != nullptr && before->size == 1 &&
                            std::string_view("?*+@!").contains(text[before->offset]);
      open.push_back(extended ? before : nullptr);
    } else if (own == ")" && !open.empty()) {
      if (open.back() != nullptr) {
        return InvalidPattern(
            "?(…) *(…) +(…) @(…) and !(…) are not supported; write {a,b} for one of several, or "
            "for a path with parentheses in its name \\( or literal:true",
            open.back()->offset);
      }
      open.pop_back();
    }
    before = &lexeme;
  }
  return {};
}

Result<void> RefuseSeparators(std::string_view text, std::span<const Lexeme> sequence) {
  bool in_name = false;
  for (const Lexeme& lexeme : sequence) {
    const std::string_view own = TextOf(text, lexeme);
    if (in_name && (own == "\\*" || own == "\\?")) {
      return InvalidPattern(
          "a backslash does not separate directories; use / as in src/*.cc, write [*] or [?] for "
          "the character itself in a name, or send literal:true",
          lexeme.offset);
    }
    in_name = lexeme.kind != Kind::kSlash;
  }
  return {};
}

Result<void> RefuseRoots(std::string_view text, std::span<const Lexeme> sequence) {
  if (sequence.empty() || sequence.front().kind == Kind::kSlash) return {};  // refused elsewhere
  const std::string name = FirstName(text, sequence);
  const std::size_t offset = sequence.front().offset;
  if (name.size() == 2 && IsLetter(name[0]) && name[1] == ':') {
    return OutsideTheRoot(kDrive, offset);
  }
  if (IsHome(name)) return OutsideTheRoot("~ is not expanded", offset);
  if (IsVariable(name)) return OutsideTheRoot("variables of a shell are not expanded", offset);
  return {};
}

}  // namespace

Result<void> RefuseForeign(std::string_view text, std::span<const Lexeme> lexemes) {
  if (kBlank.contains(text.front()) || kBlank.contains(text.back())) {
    return InvalidPattern(
        "blanks around a pattern are part of it; remove them, or send literal:true for a path that "
        "really has them",
        kBlank.contains(text.front()) ? 0 : text.size() - 1);
  }
  if (text.size() > 2 && IsLetter(text[0]) && text.substr(1).starts_with(":\\")) {
    return OutsideTheRoot(kDrive, 0);
  }
  for (const Lexeme& lexeme : lexemes) {
    const std::string_view own = TextOf(text, lexeme);
    if (own.front() == '\\' && !kEscapable.contains(own[1])) {
      return InvalidPattern(
          "a backslash stands only before one of * ? [ ] { } , ( ) | ; use / between "
          "directories, as in src/a.cc, drop a backslash that is not needed, or send literal:true "
          "for a path with a backslash in its name",
          lexeme.offset);
    }
    if (own.front() == '[' && own.size() > 1) IL_TRY_VOID(CheckClass(own, lexeme.offset));
  }
  return BraceCheck(text).Run(lexemes);
}

Result<void> RefuseForeignExpansion(std::string_view text, std::span<const Lexeme> sequence) {
  IL_TRY_VOID(RefuseExtglobs(text, sequence));
  IL_TRY_VOID(RefuseSeparators(text, sequence));
  IL_TRY_VOID(RefuseRoots(text, sequence));
  if (!sequence.empty() && TextOf(text, sequence.front()) == "!") {
    return InvalidPattern(
        "a leading ! excludes nothing here; send only the patterns to hold, or literal:true for a "
        "path that really begins with !",
        sequence.front().offset);
  }
  return {};
}

}  // namespace interlock::glob
