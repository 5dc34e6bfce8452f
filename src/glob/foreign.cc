#include "glob/foreign.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace interlock::glob {
namespace {

using Kind = Lexeme::Kind;

constexpr std::string_view kEscapable = "\\*?[]{},()|";
constexpr std::string_view kEscapableInClass = "\\*?[]{},()|^!-";

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

// Takes one end of a sequence off `text`: an integer or a letter.
bool TakeEnd(std::string_view& text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (!text.empty() && is_letter(text.front())) {
    text.remove_prefix(1);
    return true;
  }
  if (text.starts_with('-')) text.remove_prefix(1);
  const auto end = std::ranges::find_if_not(text, is_digit);
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

}  // namespace

Result<void> RefuseForeign(std::string_view text, std::span<const Lexeme> lexemes) {
  std::optional<std::size_t> open;  // a brace that nothing but plain characters follows
  for (const Lexeme& lexeme : lexemes) {
    const std::string_view own = TextOf(text, lexeme);
    if (own.front() == '\\' && !kEscapable.contains(own[1])) {
      return InvalidPattern(
          "a backslash stands only before one of \\ * ? [ ] { } , ( ) | ; use / between "
          "directories, as in src/a.cc, drop a backslash that is not needed, or send literal:true "
          "for a path with a backslash in its name",
          lexeme.offset);
    }
    if (own.front() == '[' && own.size() > 1) IL_TRY_VOID(CheckClass(own, lexeme.offset));
    if (lexeme.kind == Kind::kClose && open) {
      if (IsSequence(text.substr(*open + 1, lexeme.offset - *open - 1))) {
        return InvalidPattern(
            "{1..3} is not supported; write {1,2,3} or [1-3], or for a path with braces in its "
            "name \\{ or literal:true",
            *open);
      }
    }
    if (lexeme.kind == Kind::kOpen) {
      open = lexeme.offset;
    } else if (!IsPlain(text, lexeme)) {
      open.reset();
    }
  }
  return {};
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

}  // namespace interlock::glob
