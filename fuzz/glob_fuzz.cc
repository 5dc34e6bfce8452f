// Three texts, one per line: two patterns and a path. The patterns must be accepted, match and,
// where they are short, overlap exactly as the slow matcher says, whichever is asked first; every
// witness is a path of both; no path at hand that both match may be denied; the keys under which
// storage looks for overlapping patterns miss none; what covers another leaves no path of it at
// hand out; what is equal in canonical form matches the same.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "glob/cover.h"
#include "glob/overlap.h"
#include "glob/prefix.h"
#include "targets.h"
#include "testing/slow_glob.h"

namespace interlock::fuzz {
namespace {

using glob::IsPath;
using glob::Overlap;
using glob::OverlapKeys;
using glob::Pattern;
using glob::PrefixKey;
using ::interlock::testing::SlowGlob;

struct Both {
  Pattern fast;
  SlowGlob slow;

  bool Matches(std::string_view path) const {
    const bool matches = fast.Matches(path);
    IL_CHECK(matches == slow.Matches(path), path);
    return matches;
  }
};

std::optional<Both> ParseBoth(std::string_view text) {
  Result<Pattern> fast = Pattern::Parse(text);
  std::optional<SlowGlob> slow = SlowGlob::Parse(text);
  IL_CHECK(fast.ok() == slow.has_value(), text);
  if (!fast.ok()) return std::nullopt;
  return Both{std::move(fast).value(), std::move(*slow)};
}

// The slow matcher takes milliseconds for patterns that are not short, and looks at every code
// point of a class.
constexpr std::size_t kSlowBytesMax = 24;

void CheckSlowly(const Both& a, const Both& b, bool overlaps) {
  if (a.fast.text().size() > kSlowBytesMax || b.fast.text().size() > kSlowBytesMax) return;
  IL_CHECK(a.slow.Overlaps(b.slow) == overlaps);
  IL_CHECK(b.slow.Overlaps(a.slow) == overlaps);
}

// Checks the cover of `a` by `b` against the paths that `a` matches and `b` does not; of a path
// without wildcards only the path itself counts.
void CheckCover(const Both& a, const Both& b, const std::vector<std::string>& paths) {
  glob::Budget budget;
  const auto uncovered = glob::Uncovered(a.fast, std::span(&b.fast, 1), budget);
  if (!uncovered.ok()) return;
  if (*uncovered) IL_CHECK(a.Matches(**uncovered) && !b.Matches(**uncovered), **uncovered);
  for (const std::string& path : paths) {
    IL_CHECK(*uncovered || !a.slow.Names(path) || b.Matches(path), path);
  }
}

void CheckPair(const Both& a, const Both& b, std::string_view path) {
  const auto answer = Overlap(a.fast, b.fast);
  const auto mirrored = Overlap(b.fast, a.fast);
  IL_CHECK(answer.ok() == mirrored.ok());
  if (!answer.ok()) return;
  IL_CHECK(*answer == *mirrored);
  std::vector<std::string> paths = {std::string(path), a.fast.text(), b.fast.text(), "a", "a/b"};
  if (*answer) paths.push_back(**answer);
  // The witness of one pattern alone is a likely member of the other.
  for (const Both* one : {&a, &b}) {
    const auto own = Overlap(one->fast, one->fast);
    if (own.ok() && *own) paths.push_back(**own);
  }
  CheckSlowly(a, b, answer->has_value());
  CheckCover(a, b, paths);
  const bool same = a.fast.canonical() == b.fast.canonical();
  for (const std::string& candidate : paths) {
    const bool in_a = a.Matches(candidate);
    const bool in_b = b.Matches(candidate);
    IL_CHECK(!(in_a && in_b) || answer->has_value(), candidate);
    IL_CHECK(!same || in_a == in_b, candidate);
  }
  if (!*answer) return;
  IL_CHECK(IsPath(**answer) && a.Matches(**answer) && b.Matches(**answer), **answer);
  IL_CHECK(OverlapKeys(a.fast).Contains(PrefixKey(b.fast)));
  IL_CHECK(OverlapKeys(b.fast).Contains(PrefixKey(a.fast)));
}

}  // namespace

void FuzzGlob(std::string_view input) {
  if (input.size() > 512) return;  // the slow matcher is slow
  std::string_view line[3];
  for (std::string_view& text : line) {
    const std::size_t end = input.find('\n');
    text = input.substr(0, end);
    input = end == std::string_view::npos ? std::string_view() : input.substr(end + 1);
  }
  const std::optional<Both> a = ParseBoth(line[0]);
  const std::optional<Both> b = ParseBoth(line[1]);
  if (a && b) CheckPair(*a, *b, line[2]);
}

}  // namespace interlock::fuzz

IL_FUZZ_ENTRY(FuzzGlob);
