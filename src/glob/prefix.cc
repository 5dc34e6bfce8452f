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
  if (const std::string* path = pattern.literal_path()) return *path;
  if (pattern.expansions().empty()) return {};
  std::string_view common = pattern.expansions().front().literal_prefix;
  for (const Expansion& expansion : pattern.expansions()) {
    const auto differ = std::ranges::mismatch(common, expansion.literal_prefix).in1;
    common = common.substr(0, static_cast<std::size_t>(differ - common.begin()));
  }
  return std::string(common.substr(0, DirectoryEnds(common).back()));
}

KeySet OverlapKeys(const Pattern& pattern) {
  const std::string key = PrefixKey(pattern);
  KeySet keys;
  for (const std::size_t end : DirectoryEnds(key)) keys.exact.push_back(key.substr(0, end));
  if (pattern.literal_path() != nullptr) {
    keys.exact.push_back(key);
    return keys;
  }
  keys.exact.pop_back();  // the key itself: the range begins with it
  keys.under = KeySet::Range{key, std::nullopt};
  if (!key.empty()) {
    keys.under->hi = key;
    keys.under->hi->back() = '/' + 1;  // every longer key has the slash there
  }
  return keys;
}

bool KeySet::Contains(std::string_view key) const {
  if (std::ranges::find(exact, key) != exact.end()) return true;
  return under && key >= under->lo && (!under->hi || key < *under->hi);
}

}  // namespace interlock::glob
