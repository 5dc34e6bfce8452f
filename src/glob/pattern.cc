#include "glob/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "glob/braces.h"
#include "glob/foreign.h"
#include "glob/lexer.h"

namespace interlock::glob {
namespace {

using LexemeKind = Lexeme::Kind;
using Kind = Token::Kind;
using LexemeSpan = std::span<const Lexeme>;

std::vector<LexemeSpan> SplitAtSlashes(LexemeSpan lexemes) {
  std::vector<LexemeSpan> segments;
  std::size_t start = 0;
  for (std::size_t i = 0; i < lexemes.size(); ++i) {
    if (lexemes[i].kind != LexemeKind::kSlash) continue;
    segments.push_back(lexemes.subspan(start, i - start));
    start = i + 1;
  }
  segments.push_back(lexemes.subspan(start));
  return segments;
}

bool IsDots(LexemeSpan segment, std::size_t count) {
  return segment.size() == count && std::ranges::all_of(segment, [](const Lexeme& lexeme) {
           return lexeme.kind == LexemeKind::kLiteral && lexeme.value == U'.';
         });
}

bool IsGlobstar(LexemeSpan segment) {
  return segment.size() == 2 && segment[0].kind == LexemeKind::kStar &&
         segment[1].kind == LexemeKind::kStar;
}

// A run of stars counts once, `**` included.
std::size_t CountWildcards(LexemeSpan segment) {
  std::size_t count = 0;
  bool after_star = false;
  for (const Lexeme& lexeme : segment) {
    const bool star = lexeme.kind == LexemeKind::kStar;
    if (star && !after_star) ++count;
    if (lexeme.kind == LexemeKind::kAny || lexeme.kind == LexemeKind::kClass) ++count;
    after_star = star;
  }
  return count;
}

// Invariant (3) of Expansion.
std::vector<Token> SegmentTokens(LexemeSpan segment) {
  std::vector<Token> tokens;
  bool star = false;
  const auto close_run = [&] {
    if (star) tokens.push_back({Kind::kStar});
    star = false;
  };
  for (const Lexeme& lexeme : segment) {
    if (lexeme.kind == LexemeKind::kStar) {
      star = true;
    } else if (lexeme.kind == LexemeKind::kAny) {
      tokens.push_back({Kind::kAny});
    } else {
      close_run();
      const bool literal = lexeme.kind == LexemeKind::kLiteral;
      tokens.push_back({literal ? Kind::kLiteral : Kind::kClass, lexeme.value});
    }
  }
  close_run();
  if (tokens == std::vector<Token>{{Kind::kAny}, {Kind::kStar}}) tokens = {{Kind::kStar}};
  return tokens;
}

void AppendLiteralText(std::string& text, char32_t code_point) {
  constexpr std::u32string_view kSpecial = U"\\*?[{},";
  constexpr std::string_view kBeforeGroup = "?*+@!";  // with a parenthesis it would be an extglob
  const bool group = code_point == U'(' && !text.empty() && kBeforeGroup.contains(text.back());
  if (group || kSpecial.find(code_point) != std::u32string_view::npos) text.push_back('\\');
  AppendUtf8(text, code_point);
}

std::string CanonicalText(std::span<const Token> tokens, std::span<const CharClass> classes) {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    switch (tokens[i].kind) {
      case Kind::kLiteral:
        AppendLiteralText(text, tokens[i].value);
        break;
      case Kind::kAny:
        text += "?";
        break;
      case Kind::kClass:
        text += classes[tokens[i].value].ToString();
        break;
      case Kind::kStar:
        text += "*";
        break;
      case Kind::kSlash:
        text += "/";
        break;
      case Kind::kGlobstar: {
        const bool trailing = i + 2 == tokens.size() && tokens[i + 1].kind == Kind::kStar;
        text += trailing ? "**" : "**/";
        if (trailing) ++i;
        break;
      }
    }
  }
  return text;
}

// Sets what Expansion says besides its tokens.
void DescribeLiteralPart(Expansion& expansion) {
  const std::vector<Token>& tokens = expansion.tokens;
  const auto is_fixed = [](const Token& token) {
    return token.kind == Kind::kLiteral || token.kind == Kind::kSlash;
  };
  const auto append = [](std::string& text, const Token& token) {
    AppendUtf8(text, token.kind == Kind::kSlash ? U'/' : token.value);
  };
  const auto first = std::ranges::find_if_not(tokens, is_fixed);
  const auto last = std::find_if_not(tokens.rbegin(), tokens.rend(), is_fixed).base();
  expansion.is_literal = first == tokens.end();
  for (auto token = tokens.begin(); token != first; ++token) {
    append(expansion.literal_prefix, *token);
  }
  if (expansion.is_literal) return;  // what is below it may end in anything
  for (auto token = last; token != tokens.end(); ++token) append(expansion.literal_suffix, *token);
}

}  // namespace

bool IsPath(std::string_view text) {
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size();) {
    if (i == text.size() || text[i] == '/') {
      const std::string_view segment = text.substr(start, i - start);
      if (segment.empty() || segment == "." || segment == "..") return false;
      start = ++i;
      continue;
    }
    const Utf8Unit next = FirstUtf8Unit(text.substr(i));
    if (!next.valid || next.code_point == 0) return false;
    i += next.size;
  }
  return true;
}

// Makes a Pattern of brace-free sequences.
class PatternBuilder {
 public:
  static Result<Pattern> Build(std::string_view text, std::vector<CharClass> classes,
                               std::span<const std::vector<Lexeme>> sequences) {
    PatternBuilder builder;
    builder.pattern_.text_ = text;
    builder.pattern_.classes_ = std::move(classes);
    for (const auto& sequence : sequences) IL_TRY_VOID(builder.Add(sequence));
    builder.pattern_.parse_steps_ = ParseSteps(builder.pattern_, sequences);
    return std::move(builder).Finish();
  }

 private:
  // Measured, at 5 ns a step: bytes, expansions with their elements, and the search for a class
  // among those before it.
  static std::int64_t ParseSteps(const Pattern& pattern,
                                 std::span<const std::vector<Lexeme>> sequences) {
    constexpr std::size_t kOrdinary = 200;
    const std::size_t classes = pattern.classes_.size();
    std::size_t steps = 2 * pattern.text_.size() + classes * classes / 12;
    for (const auto& sequence : sequences) steps += 60 + 4 * sequence.size();
    return static_cast<std::int64_t>(steps - std::min(steps, kOrdinary));
  }

  Result<void> Add(LexemeSpan sequence) {
    IL_TRY(const std::vector<LexemeSpan> segments, Normalise(sequence));
    std::size_t wildcards = 0;
    for (const LexemeSpan segment : segments) wildcards += CountWildcards(segment);
    if (wildcards > kWildcardsMax) {
      return Error(Errc::kPatternTooComplex,
                   fmt::format("the pattern has {} wildcards (* ? ** […]), at most {} are "
                               "allowed; reserve a directory instead",
                               wildcards, kWildcardsMax));
    }
    Expansion expansion;
    bool possible = true;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      possible = Append(segments[i], i + 1 == segments.size(), expansion.tokens) && possible;
    }
    DescribeLiteralPart(expansion);
    std::string text = CanonicalText(expansion.tokens, pattern_.classes_);
    expansions_.emplace(std::move(text), std::pair(std::move(expansion), possible));
    return {};
  }

  // The segments that remain, a trailing "/" made "**".
  static Result<std::vector<LexemeSpan>> Normalise(LexemeSpan sequence) {
    static constexpr Lexeme kTwoStars[2] = {{LexemeKind::kStar, 0, 0, 0},
                                            {LexemeKind::kStar, 0, 0, 0}};
    const std::vector<LexemeSpan> all = SplitAtSlashes(sequence);
    if (all.size() > 1 && all.front().empty()) {
      return Error(Errc::kAbsolutePattern,
                   "patterns are relative to the project's root: write the path from there, "
                   "as in src/a.cc");
    }
    std::vector<LexemeSpan> kept;
    for (const LexemeSpan segment : all) {
      if (segment.empty() || IsDots(segment, 1)) continue;
      if (IsDots(segment, 2)) {
        return InvalidPattern("a .. segment cannot be matched; write the path without it",
                              segment.front().offset);
      }
      kept.push_back(segment);
    }
    if (kept.empty()) {
      return InvalidPattern("the pattern, or a branch of it, is empty; write ** for every path", 0);
    }
    if (all.back().empty()) kept.emplace_back(kTwoStars);
    return kept;
  }

  // False when no segment of a path can match this one: it says "." or ".." with classes.
  bool Append(LexemeSpan segment, bool last, std::vector<Token>& tokens) const {
    if (IsGlobstar(segment)) {
      if (tokens.empty() || tokens.back().kind != Kind::kGlobstar) {
        tokens.push_back({Kind::kGlobstar});
      }
      if (last) tokens.push_back({Kind::kStar});
      return true;
    }
    const std::vector<Token> own = SegmentTokens(segment);
    tokens.insert(tokens.end(), own.begin(), own.end());
    if (!last) tokens.push_back({Kind::kSlash});
    const auto only_dot = [this](const Token& token) {
      static const CharClass kDot = CharClass::Of({{U'.', U'.'}});
      if (token.kind == Kind::kLiteral) return token.value == U'.';
      return token.kind == Kind::kClass && pattern_.classes_[token.value] == kDot;
    };
    return own.size() > 2 || !std::ranges::all_of(own, only_dot);
  }

  Pattern Finish() && {
    std::string& canonical = pattern_.canonical_;
    for (auto& [text, entry] : expansions_) {
      canonical += (canonical.empty() ? "" : ",") + text;
      if (!entry.second) continue;
      pattern_.token_count_ += entry.first.tokens.size();
      pattern_.expansions_.push_back(std::move(entry.first));
    }
    if (expansions_.size() > 1) canonical = "{" + canonical + "}";
    return std::move(pattern_);
  }

  Pattern pattern_;
  // By canonical text; the flag says whether any path can match.
  std::map<std::string, std::pair<Expansion, bool>> expansions_;
};

Result<Pattern> Pattern::Parse(std::string_view text) {
  IL_TRY_VOID(CheckText(text));
  IL_TRY(Lexed lexed, Lex(text));
  IL_TRY_VOID(RefuseForeign(text, lexed.lexemes));
  IL_TRY(const auto sequences, ExpandBraces(std::move(lexed.lexemes)));
  for (const auto& sequence : sequences) IL_TRY_VOID(RefuseForeignExpansion(text, sequence));
  return PatternBuilder::Build(text, std::move(lexed.classes), sequences);
}

Result<Pattern> Pattern::ParseHeld(std::string_view text) {
  IL_TRY_VOID(CheckText(text));
  IL_TRY(Lexed lexed, Lex(text));
  IL_TRY(const auto sequences, ExpandBraces(std::move(lexed.lexemes)));
  return PatternBuilder::Build(text, std::move(lexed.classes), sequences);
}

Result<Pattern> Pattern::Literal(std::string_view path) {
  IL_TRY_VOID(CheckText(path));
  if (path.back() == '/' && path.front() != '/') {
    return InvalidPattern("an exact path does not end in /; drop it, or send a pattern",
                          path.size() - 1);
  }
  const std::vector<Lexeme> lexemes = LexLiterally(path).lexemes;
  return PatternBuilder::Build(path, {}, std::span(&lexemes, 1));
}

}  // namespace interlock::glob
