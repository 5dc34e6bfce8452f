#include "glob/cover.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "glob/product.h"

namespace interlock::glob {
namespace {

using Kind = Token::Kind;

// Where readers of a path can be, as sorted numbers of Readers' places.
using Places = std::vector<std::uint32_t>;

// What the segment that is being read is so far; only kName may end.
enum class Segment : std::uint8_t { kEmpty, kDot, kDots, kName };

Segment After(Segment segment, char32_t c) {
  if (c == U'/') return Segment::kEmpty;
  if (c != U'.' || segment == Segment::kDots) return Segment::kName;
  if (segment == Segment::kEmpty) return Segment::kDot;
  return segment == Segment::kDot ? Segment::kDots : Segment::kName;
}

// Whether a path without wildcards reads what is below it as well.
enum class Reach : std::uint8_t { kItself, kBelow };

// Patterns as one machine that reads a path: a place before each token, one at each end, one
// inside each globstar, and one below each path without wildcards.
class Readers {
 public:
  void Add(const Pattern& pattern, Reach reach) {
    for (const Expansion& expansion : pattern.expansions()) {
      starts_.push_back(static_cast<std::uint32_t>(places_.size()));
      for (const Token& token : expansion.tokens) {
        places_.push_back({.token = &token, .classes = pattern.classes()});
        if (token.kind == Kind::kGlobstar) {
          places_.push_back({.token = &token, .classes = {}, .inside = true});
        }
      }
      places_.push_back({.token = nullptr, .classes = {}});
      if (expansion.is_literal && reach == Reach::kBelow) {
        places_.push_back({.token = nullptr, .classes = {}, .inside = true});
      }
    }
  }

  Places Start() const {
    Places at;
    for (const std::uint32_t start : starts_) Arrive(at, start);
    return Sorted(std::move(at));
  }

  Places Read(const Places& from, char32_t c) const {
    Places at;
    for (const std::uint32_t place : from) ReadAt(at, place, c);
    return Sorted(std::move(at));
  }

  bool AtEnd(const Places& at) const {
    return std::ranges::any_of(at, [this](auto place) { return places_[place].token == nullptr; });
  }

  // Adds the characters at which some token begins or ceases to read.
  void AddBounds(std::vector<char32_t>& bounds) const {
    for (const Place& place : places_) {
      if (place.token == nullptr || place.inside) continue;
      if (place.token->kind == Kind::kLiteral) {
        bounds.insert(bounds.end(), {place.token->value, place.token->value + 1});
      }
      if (place.token->kind != Kind::kClass) continue;
      for (const CharClass::Range& range : place.classes[place.token->value].ranges()) {
        bounds.insert(bounds.end(), {range.lo, range.hi + 1});
      }
    }
  }

 private:
  struct Place {
    const Token* token;  // to be read next; null at an end
    std::span<const CharClass> classes;
    bool inside = false;  // of a globstar's segment; of what is below the end before it
  };

  static Places Sorted(Places at) {
    std::ranges::sort(at);
    at.erase(std::ranges::unique(at).begin(), at.end());
    return at;
  }

  // At a place, and wherever it leads without reading.
  void Arrive(Places& at, std::uint32_t place) const {
    at.push_back(place);
    const Token* const token = places_[place].token;
    if (token == nullptr) return;
    if (token->kind == Kind::kStar) Arrive(at, place + 1);
    if (token->kind == Kind::kGlobstar) Arrive(at, place + 2);
  }

  void ReadAt(Places& at, std::uint32_t place, char32_t c) const {
    const auto& [token, classes, inside] = places_[place];
    const bool slash = c == U'/';
    if (token == nullptr) {
      if (inside) at.push_back(place);
      if (!inside && slash && IsBelow(place + 1)) at.push_back(place + 1);
      return;
    }
    switch (token->kind) {
      case Kind::kLiteral:
        if (c == token->value) Arrive(at, place + 1);
        break;
      case Kind::kAny:
        if (!slash) Arrive(at, place + 1);
        break;
      case Kind::kClass:
        if (classes[token->value].Contains(c)) Arrive(at, place + 1);
        break;
      case Kind::kStar:
        if (!slash) Arrive(at, place);
        break;
      case Kind::kSlash:
        if (slash) Arrive(at, place + 1);
        break;
      case Kind::kGlobstar:
        if (!slash) at.push_back(inside ? place : place + 1);
        if (slash && inside) Arrive(at, place - 1);
        break;
    }
  }

  bool IsBelow(std::uint32_t place) const {
    return place < places_.size() && places_[place].token == nullptr && places_[place].inside;
  }

  std::vector<Place> places_;
  std::vector<std::uint32_t> starts_;
};

// One character of each kind: those of a kind are read by the same tokens.
std::vector<char32_t> Alphabet(const Readers& pattern, const Readers& by) {
  std::vector<char32_t> bounds = {1, U'.', U'/', U'0', 0xD800, 0xE000, 0x110000};
  pattern.AddBounds(bounds);
  by.AddBounds(bounds);
  std::ranges::sort(bounds);
  bounds.erase(std::ranges::unique(bounds).begin(), bounds.end());
  std::erase_if(bounds,
                [](char32_t c) { return c == 0 || (c >= 0xD800 && c < 0xE000) || c >= 0x110000; });
  return bounds;
}

// All states that reading a path can lead to, each once.
class Search {
 public:
  Search(const Pattern& pattern, std::span<const Pattern> by) {
    pattern_.Add(pattern, Reach::kItself);
    for (const Pattern& one : by) by_.Add(one, Reach::kBelow);
  }

  Result<std::optional<std::string>> Run(Budget& budget) {
    const std::vector<char32_t> alphabet = Alphabet(pattern_, by_);
    Visit({.pattern = pattern_.Start(), .by = by_.Start()}, {});
    for (std::size_t i = 0; i < visited_.size(); ++i) {
      const State from = visited_[i].state->first;  // a copy: visiting moves things
      for (const char32_t c : alphabet) {
        if (c == U'/' && from.segment != Segment::kName) continue;
        const auto cost = static_cast<std::int64_t>(from.pattern.size() + from.by.size()) + 8;
        if (!budget.Spend(cost)) return TooComplex();
        State next = {.pattern = pattern_.Read(from.pattern, c),
                      .by = by_.Read(from.by, c),
                      .segment = After(from.segment, c)};
        if (next.pattern.empty()) continue;
        const bool found =
            next.segment == Segment::kName && pattern_.AtEnd(next.pattern) && !by_.AtEnd(next.by);
        Visit(std::move(next), {.from = i, .read = c});
        if (found) return std::optional(PathTo(visited_.size() - 1));
      }
    }
    return std::optional<std::string>();
  }

 private:
  struct State {
    Places pattern;
    Places by;
    Segment segment = Segment::kEmpty;
    auto operator<=>(const State&) const = default;
  };
  struct Step {
    std::size_t from = 0;
    char32_t read = 0;
  };
  struct Visited {
    std::map<State, Step>::const_iterator state;
  };

  void Visit(State state, Step step) {
    const auto [place, is_new] = known_.emplace(std::move(state), step);
    if (is_new) visited_.push_back({place});
  }

  std::string PathTo(std::size_t last) const {
    std::u32string path;
    for (std::size_t i = last; i != 0; i = visited_[i].state->second.from) {
      path.push_back(visited_[i].state->second.read);
    }
    std::string text;
    for (const char32_t c : std::u32string(path.rbegin(), path.rend())) AppendUtf8(text, c);
    return text;
  }

  Readers pattern_;
  Readers by_;
  std::map<State, Step> known_;
  std::vector<Visited> visited_;  // in the order they were found
};

}  // namespace

Result<std::optional<std::string>> Uncovered(const Pattern& pattern, std::span<const Pattern> by,
                                             Budget& budget) {
  return Search(pattern, by).Run(budget);
}

}  // namespace interlock::glob
