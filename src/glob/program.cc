#include "glob/program.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <utility>

#include "base/check.h"

namespace interlock::glob {
namespace {

using TokenKind = Token::Kind;
using TokenSpan = std::span<const Token>;

CharSet SetOf(const Token& token) {
  switch (token.kind) {
    case TokenKind::kLiteral:
      return {CharSet::Kind::kLiteral, token.value};
    case TokenKind::kClass:
      return {CharSet::Kind::kClass, token.value};
    default:
      IL_CHECK(token.kind == TokenKind::kAny);
      return {CharSet::Kind::kAny};
  }
}

// A segment that could read "." or "..": one or two characters, each of which may be a dot, with or
// without stars around them. It is rewritten into alternatives that cannot.
class DottySegment {
 public:
  // Nothing when the segment can read neither.
  static std::optional<DottySegment> Of(TokenSpan segment, ProgramClasses& classes) {
    DottySegment dotty;
    for (const Token& token : segment) {
      if (token.kind == TokenKind::kStar) {
        dotty.star_[dotty.size_] = true;
        continue;
      }
      const CharSet set = SetOf(token);
      if (dotty.size_ == 2 || !classes.Contains(set, U'.')) return std::nullopt;
      dotty.sets_[dotty.size_++] = set;
    }
    IL_CHECK(dotty.size_ > 0);  // "*" alone is kAnySegment
    return dotty;
  }

  void Emit(std::vector<Op>& ops, ProgramClasses& classes) const {
    ops.push_back({Op::Kind::kFork});
    const std::size_t start = ops.size();
    for (std::size_t extra = 0; size_ + extra <= 2; ++extra) {
      ForEachPlacement(extra,
                       [&](const Placement& placement) { EmitExact(placement, ops, classes); });
    }
    // Three characters or more are never "." or "..".
    ForEachPlacement(3 - size_, [&](const Placement& placement) { EmitLong(placement, ops); });
    IL_CHECK(ops.size() > start);
    ops.back() = {Op::Kind::kJoin};  // the last kNext
  }

 private:
  using Placement = std::array<std::size_t, 3>;  // characters that the star of each gap reads

  // All ways to have the stars read `extra` characters.
  void ForEachPlacement(std::size_t extra,
                        const std::function<void(const Placement&)>& visit) const {
    IL_CHECK(extra <= 2);
    if (extra == 0) return visit({});
    for (std::size_t first = 0; first <= size_; ++first) {
      if (!star_[first]) continue;
      if (extra == 1) {
        Placement placement{};
        placement[first] = 1;
        visit(placement);
        continue;
      }
      for (std::size_t second = first; second <= size_; ++second) {
        if (!star_[second]) continue;
        Placement placement{};
        ++placement[first];
        ++placement[second];
        visit(placement);
      }
    }
  }

  // One or two characters that are not all dots.
  void EmitExact(const Placement& placement, std::vector<Op>& ops, ProgramClasses& classes) const {
    std::vector<CharSet> sets;
    for (std::size_t gap = 0; gap <= size_; ++gap) {
      sets.insert(sets.end(), placement[gap], CharSet{CharSet::Kind::kAny});
      if (gap < size_) sets.push_back(sets_[gap]);
    }
    for (std::size_t other = 0; other < sets.size(); ++other) {
      // Dots before `other`, something else there, whatever after it.
      const std::optional<CharSet> not_dot = classes.WithoutDot(sets[other]);
      if (!not_dot) continue;
      for (std::size_t i = 0; i < sets.size(); ++i) {
        const CharSet dot = {CharSet::Kind::kLiteral, U'.'};
        ops.push_back({Op::Kind::kStep, i < other ? dot : i == other ? *not_dot : sets[i]});
      }
      ops.push_back({Op::Kind::kNext});
    }
  }

  void EmitLong(const Placement& placement, std::vector<Op>& ops) const {
    for (std::size_t gap = 0; gap <= size_; ++gap) {
      ops.insert(ops.end(), placement[gap], Op{Op::Kind::kStep, {CharSet::Kind::kAny}});
      if (star_[gap]) ops.push_back({Op::Kind::kStar});
      if (gap < size_) ops.push_back({Op::Kind::kStep, sets_[gap]});
    }
    ops.push_back({Op::Kind::kNext});
  }

  std::size_t size_ = 0;
  std::array<CharSet, 2> sets_ = {CharSet{CharSet::Kind::kAny}, CharSet{CharSet::Kind::kAny}};
  std::array<bool, 3> star_ = {};  // in the gap before each character, and after the last
};

void CompileSegment(TokenSpan segment, std::vector<Op>& ops, ProgramClasses& classes) {
  IL_CHECK(!segment.empty());
  if (segment.size() == 1 && segment[0].kind == TokenKind::kStar) {
    ops.push_back({Op::Kind::kAnySegment});
    return;
  }
  if (const auto dotty = DottySegment::Of(segment, classes)) {
    dotty->Emit(ops, classes);
    return;
  }
  for (const Token& token : segment) {
    if (token.kind == TokenKind::kStar) {
      ops.push_back({Op::Kind::kStar});
    } else {
      ops.push_back({Op::Kind::kStep, SetOf(token)});
    }
  }
}

}  // namespace

const CharClass& ProgramClasses::Get(std::uint32_t id) {
  if (id < classes_.size()) return classes_[id];
  const std::size_t origin = id - classes_.size();
  std::optional<CharClass>& made = without_dot_.at(origin);
  if (!made) {
    made = (origin < classes_.size() ? classes_[origin] : CharClass::Any()).Without(U'.');
  }
  return *made;
}

bool ProgramClasses::Contains(const CharSet& set, char32_t code_point) {
  if (set.kind == CharSet::Kind::kLiteral) return set.value == code_point;
  return set.kind == CharSet::Kind::kAny || Get(set.value).Contains(code_point);
}

std::optional<CharSet> ProgramClasses::WithoutDot(const CharSet& set) {
  if (set.kind == CharSet::Kind::kLiteral) return std::nullopt;
  const std::size_t origin = set.kind == CharSet::Kind::kClass ? set.value : classes_.size();
  const auto id = static_cast<std::uint32_t>(classes_.size() + origin);
  if (Get(id).empty()) return std::nullopt;
  return CharSet{CharSet::Kind::kClass, id};
}

std::vector<Op> Compile(const Expansion& expansion, ProgramClasses& classes) {
  std::vector<Op> ops;
  ops.reserve(expansion.tokens.size());
  const TokenSpan tokens = expansion.tokens;
  for (std::size_t i = 0; i < tokens.size();) {
    if (tokens[i].kind == TokenKind::kGlobstar) {
      ops.push_back({Op::Kind::kGlobstar});
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < tokens.size() && tokens[end].kind != TokenKind::kSlash) ++end;
    CompileSegment(tokens.subspan(i, end - i), ops, classes);
    if (end < tokens.size()) ops.push_back({Op::Kind::kSlash});
    i = end + 1;
  }
  if (expansion.is_literal) {
    // Everything below, or (the last alternative, which a witness prefers) the path itself.
    using enum Op::Kind;
    for (const Op::Kind kind : {kFork, kSlash, kGlobstar, kAnySegment, kNext, kJoin}) {
      ops.push_back({kind});
    }
  }
  return ops;
}

}  // namespace interlock::glob
