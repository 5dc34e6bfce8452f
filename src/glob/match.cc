#include <algorithm>
#include <optional>
#include <string>

#include "base/utf8.h"
#include "glob/pattern.h"

namespace interlock::glob {
namespace {

using Kind = Token::Kind;

// Matches one expansion by going back to the last star, or else to the last globstar. No older one
// need be tried: the shortest choice leaves the most to those that come after, and a star of an
// earlier segment can only lead to the same slash again.
class Matcher {
 public:
  Matcher(std::span<const Token> tokens, std::span<const CharClass> classes,
          std::u32string_view path)
      : tokens_(tokens), classes_(classes), path_(path) {}

  bool Run() {
    while (true) {
      if (token_ == tokens_.size() && position_ == path_.size()) return true;
      if (token_ < tokens_.size() && Advance()) continue;
      if (!Retry()) return false;
    }
  }

 private:
  struct Point {
    std::size_t token;  // the one after the wildcard
    std::size_t position;
  };

  bool Advance() {
    const Token& token = tokens_[token_];
    if (token.kind == Kind::kStar || token.kind == Kind::kGlobstar) {
      ++token_;
      star_.reset();
      if (token.kind == Kind::kStar) {
        star_ = Point{token_, position_};
      } else {
        globstar_ = Point{token_, position_};
      }
      return true;
    }
    if (position_ == path_.size() || !Accepts(token, path_[position_])) return false;
    if (token.kind == Kind::kSlash) star_.reset();
    ++token_;
    ++position_;
    return true;
  }

  bool Accepts(const Token& token, char32_t c) const {
    switch (token.kind) {
      case Kind::kLiteral:
        return c == token.value;
      case Kind::kAny:
        return c != U'/';
      case Kind::kClass:
        return classes_[token.value].Contains(c);
      default:
        return c == U'/';
    }
  }

  bool Retry() {
    if (star_ && star_->position < path_.size() && path_[star_->position] != U'/') {
      position_ = ++star_->position;
      token_ = star_->token;
      return true;
    }
    star_.reset();
    if (!globstar_) return false;
    const std::size_t slash = path_.find(U'/', globstar_->position);
    if (slash == std::u32string_view::npos) return false;
    position_ = globstar_->position = slash + 1;
    token_ = globstar_->token;
    return true;
  }

  const std::span<const Token> tokens_;
  const std::span<const CharClass> classes_;
  const std::u32string_view path_;
  std::size_t token_ = 0;
  std::size_t position_ = 0;
  std::optional<Point> star_;
  std::optional<Point> globstar_;
};

std::u32string Decode(std::string_view path) {
  std::u32string decoded;
  decoded.reserve(path.size());
  for (std::size_t i = 0; i < path.size();) {
    const Utf8Unit next = FirstUtf8Unit(path.substr(i));
    decoded.push_back(next.code_point);
    i += next.size;
  }
  return decoded;
}

// Whether the tokens can read all of `path` and then a slash: as every segment matches something,
// they then match something below it. So does all that comes after a globstar.
bool ReachBelow(std::span<const Token> tokens, std::span<const CharClass> classes,
                std::u32string_view path) {
  while (true) {
    if (tokens.front().kind == Kind::kGlobstar) return true;
    const auto slash = std::ranges::find(tokens, Kind::kSlash, &Token::kind);
    if (slash == tokens.end()) return false;
    const auto segment = static_cast<std::size_t>(slash - tokens.begin());
    const std::size_t end = path.find(U'/');
    if (!Matcher(tokens.first(segment), classes, path.substr(0, end)).Run()) return false;
    if (end == std::u32string_view::npos) return true;
    tokens = tokens.subspan(segment + 1);
    path.remove_prefix(end + 1);
  }
}

}  // namespace

bool Pattern::Matches(std::string_view path) const {
  std::u32string decoded;  // only when an expansion comes so far
  for (const Expansion& expansion : expansions_) {
    if (!path.starts_with(expansion.literal_prefix)) continue;
    if (expansion.is_literal) {
      if (path.size() == expansion.literal_prefix.size()) return true;
      if (path[expansion.literal_prefix.size()] != '/') continue;
    }
    if (decoded.empty()) {
      if (!IsPath(path)) return false;
      decoded = Decode(path);
    }
    if (expansion.is_literal || Matcher(expansion.tokens, classes_, decoded).Run()) return true;
  }
  return false;
}

bool Pattern::MatchesBelow(std::string_view path) const {
  const std::u32string decoded = Decode(path);
  return std::ranges::any_of(expansions_, [&](const Expansion& expansion) {
    const std::string& prefix = expansion.literal_prefix;
    if (expansion.is_literal) return IsAtOrBelow(prefix, path) || IsAtOrBelow(path, prefix);
    return ReachBelow(expansion.tokens, classes_, decoded);
  });
}

}  // namespace interlock::glob
