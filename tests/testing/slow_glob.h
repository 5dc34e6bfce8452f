#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace interlock::testing {

// A second implementation of patterns, written straight from their description and sharing no code
// with src/glob: braces by rewriting text, segments as text, matching by sets of positions. Tests
// and the fuzzer hold the real one against it. Slow, and only as safe as a test needs.
class SlowGlob {
 public:
  // Nothing when the pattern must be refused, for whatever reason.
  static std::optional<SlowGlob> Parse(std::string_view text);

  bool Matches(std::string_view path) const { return Names(path) || IsBelow(path); }
  // The same without what is only below a path that has no wildcards.
  bool Names(std::string_view path) const { return AnyMatches(expansions_, path); }

  // Whether there is a path that both match: every pair of places in the two patterns that some
  // text leads to is tried. For short patterns; the work grows with the square of their lengths.
  bool Overlaps(const SlowGlob& other) const;

 private:
  using Segments = std::vector<std::u32string>;

  static bool ExpandFrom(const std::u32string& text, std::size_t from,
                         std::vector<std::u32string>& out);
  bool Add(const std::u32string& expansion);
  static bool SegmentsOverlap(const Segments& a, const Segments& b);
  static bool AnyMatches(const std::vector<Segments>& expansions, std::string_view path);
  bool IsBelow(std::string_view path) const { return AnyMatches(below_, path); }
  std::vector<Segments> All() const;

  std::vector<Segments> expansions_;
  std::vector<Segments> below_;  // of each that has no wildcards: the same with "**" after it
};

}  // namespace interlock::testing
