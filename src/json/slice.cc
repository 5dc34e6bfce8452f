#include "json/slice.h"

#include <algorithm>
#include <cstddef>

namespace interlock::json {
namespace {

// How long the string is that `text` begins with, quotes included.
std::size_t StringSize(std::string_view text) {
  std::size_t i = 1;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}

// How long the value is that `text` begins with: up to the comma, colon or bracket behind it.
std::size_t ValueSize(std::string_view text) {
  std::size_t depth = 0;
  std::size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (depth == 0 && (c == ',' || c == ':' || c == ']' || c == '}')) break;
    if (c == '"') {
      i += StringSize(text.substr(i));
      continue;
    }
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    ++i;
  }
  return i;
}

// Cuts the value and the one character behind it off.
std::string_view TakeValue(std::string_view& text) {
  const std::string_view value = text.substr(0, ValueSize(text));
  text.remove_prefix(std::min(value.size() + 1, text.size()));
  return value;
}

}  // namespace

void FindRawMembers(std::string_view object, std::span<const std::string_view> keys,
                    std::span<std::string_view> values) {
  if (!object.empty()) object.remove_prefix(1);
  while (!object.empty()) {
    const std::string_view name = TakeValue(object);
    const std::string_view value = TakeValue(object);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (name.size() == keys[i].size() + 2 && name.substr(1, keys[i].size()) == keys[i]) {
        values[i] = value;
      }
    }
  }
}

std::vector<std::string_view> RawElements(std::string_view array) {
  std::vector<std::string_view> elements;
  if (array.size() <= 2) return elements;
  array.remove_prefix(1);
  while (!array.empty()) elements.push_back(TakeValue(array));
  return elements;
}

}  // namespace interlock::json
