#include "glob/prefix.h"

#include <algorithm>

namespace interlock::glob {
namespace {

// Where the first kKeyDepthMax segments of `path` that end in a slash end: 0, then after each.
std::vector<std::size_t> DirectoryEnds(std::string_view path) {
  std::vector<std::size_t> ends = {0};
  for (std::size_t i = 0; i < path.size() && ends.size() <= kKeyDepthMax; ++i) {
    if (path[i] == '/') ends.push_back(i + 1);
  }
  return ends;
}

}  // namespace

std::string PrefixKey(const Pattern& pattern) {
  if (pattern.expansions().empty()) return {};
  const auto text = [](const Expansion& expansion) {
    return expansion.is_literal ? expansion.literal_prefix + '/' : expansion.literal_prefix;
  };
  std::string common = text(pattern.expansions().front());
  for (const Expansion& expansion : pattern.expansions()) {
    const std::string other = text(expansion);
    const auto differ = std::ranges::mismatch(common, other).in1;
    common.resize(static_cast<std::size_t>(differ - common.begin()));
  }
  common.resize(DirectoryEnds(common).back());
  return common;
}

KeySet OverlapKeys(const Pattern& pattern) {
  const std::string key = PrefixKey(pattern);
  KeySet keys;
  for (const std::size_t end : DirectoryEnds(key)) keys.exact.push_back(key.substr(0, end));
  keys.exact.pop_back();  // the key itself: the range begins with it
  keys.under = {.lo = key, .hi = std::nullopt};
  if (!key.empty()) {
    keys.under.hi = key;
    keys.under.hi->back() = '/' + 1;  // every longer key has the slash there
  }
  return keys;
}

bool KeySet::Contains(std::string_view key) const {
  if (std::ranges::find(exact, key) != exact.end()) return true;
  return key >= under.lo && (!under.hi || key < *under.hi);
}

}  // namespace interlock::glob
