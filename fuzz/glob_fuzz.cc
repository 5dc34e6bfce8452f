// Three texts, one per line: two patterns and a path. The patterns must be accepted, match and
// overlap as the slow matcher says; every witness is a path of both; no path at hand that both
// match may be denied.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "glob/overlap.h"
#include "glob/prefix.h"
#include "testing/slow_glob.h"

namespace interlock::glob {
namespace {

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
  for (const std::string& candidate : paths) {
    const bool in_a = a.Matches(candidate);
    const bool in_b = b.Matches(candidate);
    IL_CHECK(!(in_a && in_b) || answer->has_value(), candidate);
  }
  if (!*answer) return;
  IL_CHECK(IsPath(**answer) && a.Matches(**answer) && b.Matches(**answer), **answer);
  IL_CHECK(OverlapKeys(a.fast).Contains(PrefixKey(b.fast)));
  IL_CHECK(OverlapKeys(b.fast).Contains(PrefixKey(a.fast)));
}

void Run(std::string_view input) {
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

}  // namespace
}  // namespace interlock::glob

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 512) return 0;  // the slow matcher is slow
  interlock::glob::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
