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

  bool Matches(std::string_view path) const;

  // Whether there is a path that both match: every pair of places in the two patterns that some
  // text leads to is tried. For short patterns; the work grows with the square of their lengths.
  bool Overlaps(const SlowGlob& other) const;

 private:
  using Segments = std::vector<std::u32string>;

  static bool ExpandFrom(const std::u32string& text, std::size_t from,
                         std::vector<std::u32string>& out);
  bool Add(const std::u32string& expansion);
  static bool SegmentsOverlap(const Segments& a, const Segments& b);

  std::vector<Segments> expansions_;
};

}  // namespace interlock::testing
