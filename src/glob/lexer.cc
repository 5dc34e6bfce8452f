#include "glob/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "glob/pattern.h"

namespace interlock::glob {
namespace {

using Kind = Lexeme::Kind;

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<Lexed> Run() {
    while (position_ < text_.size()) {
      const std::size_t start = position_;
      IL_TRY(Lexeme lexeme, Next());
      lexeme.offset = static_cast<std::uint32_t>(start);
      lexeme.size = static_cast<std::uint32_t>(position_ - start);
      lexed_.lexemes.push_back(lexeme);
    }
    return std::move(lexed_);
  }

 private:
  static Lexeme Make(Kind kind, std::uint32_t value = 0) { return {kind, value, 0, 0}; }

  char32_t Peek() const {  // 0 at the end
    return AtEnd() ? 0 : FirstUtf8Unit(text_.substr(position_)).code_point;
  }
  bool AtEnd() const { return position_ >= text_.size(); }
  char32_t Take() {
    const Utf8Unit next = FirstUtf8Unit(text_.substr(position_));
    IL_CHECK(next.valid);
    position_ += next.size;
    return next.code_point;
  }

  Result<Lexeme> Next() {
    const std::size_t start = position_;
    const char32_t c = Take();
    switch (c) {
      case U'*':
        return Make(Kind::kStar);
      case U'?':
        return Make(Kind::kAny);
      case U'/':
        return Make(Kind::kSlash);
      case U'{':
        return Make(Kind::kOpen, c);
      case U',':
        return Make(Kind::kComma, c);
      case U'}':
        return Make(Kind::kClose, c);
      case U'[':
        return Class(start);
      case U'\\': {
        IL_TRY(const char32_t escaped, Escaped(start));
        return Make(Kind::kLiteral, escaped);
      }
      default:
        return Make(Kind::kLiteral, c);
    }
  }

  // The character after a backslash that stands at `start`.
  Result<char32_t> Escaped(std::size_t start) {
    if (AtEnd()) {
      return InvalidPattern(
          "the backslash at the end escapes nothing; use / between directories, or send "
          "literal:true for a path with a backslash in its name",
          start);
    }
    const char32_t c = Take();
    if (c == U'/') {
      return InvalidPattern("a / cannot be escaped; write it without the backslash", start);
    }
    return c;
  }

  // One end of a range, or a single member.
  Result<char32_t> Member(std::size_t class_start) {
    const std::size_t start = position_;
    const char32_t c = Take();
    if (c == U'\\') return Escaped(start);
    if (c == U'/') {
      return InvalidPattern(
          "a class […] never matches /, so it cannot hold one; write \\[ for a literal bracket",
          class_start);
    }
    return c;
  }

  static Error Unclosed(std::size_t start) {
    return InvalidPattern(
        "a class is empty or not closed; write [abc], or \\[ for a literal bracket", start);
  }

  Result<Lexeme> Class(std::size_t start) {
    bool negated = false;
    if (!AtEnd() && (Peek() == U'^' || Peek() == U'!')) {
      negated = true;
      Take();
    }
    std::vector<CharClass::Range> members;
    while (true) {
      if (AtEnd()) return Unclosed(start);
      if (Peek() == U']' && !members.empty()) break;
      IL_TRY(const char32_t lo, Member(start));
      char32_t hi = lo;
      if (RangeFollows()) {
        Take();  // the dash
        IL_TRY(hi, Member(start));
      }
      if (hi < lo) {
        return InvalidPattern("a range in a class runs backwards; write its ends the other way",
                              start);
      }
      members.push_back({lo, hi});
    }
    Take();  // the closing bracket
    CharClass set = CharClass::Of(std::move(members));
    if (negated) set = set.Complement();
    if (set.empty()) return InvalidPattern("a class matches no character", start);
    if (set == CharClass::Any()) return Make(Kind::kAny);
    return Make(Kind::kClass, Intern(std::move(set)));
  }

  // A dash makes a range unless it is the last member.
  bool RangeFollows() const {
    return position_ + 1 < text_.size() && text_[position_] == '-' && text_[position_ + 1] != ']';
  }

  std::uint32_t Intern(CharClass set) {
    // At most some thousand small classes fit into a pattern; sorting them would not pay.
    const auto known = std::ranges::find(lexed_.classes, set);
    const auto index = static_cast<std::uint32_t>(known - lexed_.classes.begin());
    if (known == lexed_.classes.end()) lexed_.classes.push_back(std::move(set));
    return index;
  }

  const std::string_view text_;
  std::size_t position_ = 0;
  Lexed lexed_;
};

}  // namespace

Error InvalidPattern(std::string_view what, std::size_t offset) {
  return Error(Errc::kInvalidPattern, fmt::format("{} (at byte {} of the pattern)", what, offset))
      .WithDetail("offset", static_cast<std::int64_t>(offset));
}

Result<void> CheckText(std::string_view text) {
  if (text.empty()) {
    return InvalidPattern("the pattern is empty; write ** for every path", 0);
  }
  if (text.size() > kPatternBytesMax) {
    return InvalidPattern(
        fmt::format("the pattern has {} bytes, at most {} are allowed; reserve a directory "
                    "instead, or send several patterns",
                    text.size(), kPatternBytesMax),
        kPatternBytesMax);
  }
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Unit next = FirstUtf8Unit(text.substr(i));
    if (!next.valid) return InvalidPattern("the pattern is not valid UTF-8", i);
    if (next.code_point == 0) return InvalidPattern("no path holds a NUL character", i);
    i += next.size;
  }
  return {};
}

Result<Lexed> Lex(std::string_view text) { return Lexer(text).Run(); }

Lexed LexLiterally(std::string_view text) {
  Lexed lexed;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Unit next = FirstUtf8Unit(text.substr(i));
    IL_CHECK(next.valid);
    const Kind kind = next.code_point == U'/' ? Kind::kSlash : Kind::kLiteral;
    lexed.lexemes.push_back({kind, next.code_point, static_cast<std::uint32_t>(i),
                             static_cast<std::uint32_t>(next.size)});
    i += next.size;
  }
  return lexed;
}

}  // namespace interlock::glob
