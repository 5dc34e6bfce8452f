#include "api/misspelt.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/edit_distance.h"
#include "json/codec.h"

namespace interlock::api {
namespace {

using json::Object;
using json::Path;
using json::Value;

constexpr std::size_t kEditsMax = 2;
constexpr std::size_t kLettersMin = 6;
constexpr std::size_t kUnknownMax = 256;

std::string_view KeyOf(const Object::value_type& member) {
  return {member.key().data(), member.key().size()};
}

std::string AsciiLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::vector<std::string_view> SortedWords(std::string_view name) {
  std::vector<std::string_view> words;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of("_-"), name.size());
    words.push_back(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  std::ranges::sort(words);
  return words;
}

bool IsLong(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count_if(
             name, [](char c) { return c >= 'a' && c <= 'z'; })) >= kLettersMin;
}

// How far a name that is not known is from one that is; more than kEditsMax when it is another one.
std::size_t Distance(std::string_view unknown, std::string_view known) {
  const std::size_t longer = std::max(unknown.size(), known.size());
  if (longer - std::min(unknown.size(), known.size()) > kEditsMax) return kEditsMax + 1;
  if (SortedWords(unknown) == SortedWords(known)) return 0;
  return EditDistance(unknown, known);
}

Error UnknownField(const Path& at, std::string_view meant) {
  const std::string name = at.Text();
  return Error(Errc::kInvalidArgument, "The field " + name + " is unknown; did you mean " +
                                           std::string(meant) + "? Correct it or leave it out.")
      .WithSlug("unknown_field")
      .WithDetail("field", name)
      .WithDetail("did_you_mean", std::string(meant));
}

// Walks a body along its schema.
class Checker {
 public:
  Result<void> Check(const Value& value, const Value& schema, const Path* at) {
    const Object& rules = schema.get_object();
    if (const Value* const choices = rules.if_contains("anyOf")) {
      for (const Value& choice : choices->get_array()) IL_TRY_VOID(Check(value, choice, at));
    }
    if (value.is_array()) {
      const Value* const items = rules.if_contains("items");
      if (items != nullptr) return CheckElements(value.get_array(), *items, at);
    }
    if (value.is_object()) {
      const Value* const properties = rules.if_contains("properties");
      if (properties != nullptr) {
        return CheckMembers(value.get_object(), properties->get_object(), at);
      }
    }
    return {};
  }

 private:
  Result<void> CheckElements(const json::Array& elements, const Value& schema, const Path* at) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const Path path{.parent = at, .index = i};
      IL_TRY_VOID(Check(elements[i], schema, &path));
    }
    return {};
  }

  Result<void> CheckMembers(const Object& object, const Object& known, const Path* at) {
    for (const auto& member : object) {
      const Path path{.parent = at, .name = KeyOf(member)};
      if (const Value* const schema = known.if_contains(member.key())) {
        IL_TRY_VOID(Check(member.value(), *schema, &path));
        continue;
      }
      if (unknown_++ == kUnknownMax) return {};
      IL_TRY_VOID(RefuseIfMisspelt(member, known, path));
    }
    return {};
  }

  Result<void> RefuseIfMisspelt(const Object::value_type& member, const Object& known,
                                const Path& path) {
    const std::string name = AsciiLower(KeyOf(member));
    std::string_view meant;
    std::size_t best = kEditsMax + 1;
    for (const auto& candidate : known) {
      const std::string_view key = KeyOf(candidate);
      if (name == key) return Check(member.value(), candidate.value(), &path);
      if (!IsLong(key)) continue;
      const std::size_t distance = Distance(name, key);
      if (distance >= best) continue;
      best = distance;
      meant = key;
    }
    if (meant.empty()) return {};
    return UnknownField(path, meant);
  }

  std::size_t unknown_ = 0;
};

}  // namespace

Result<void> RefuseMisspelt(const Value& body, const Value& schema) {
  return Checker().Check(body, schema, nullptr);
}

}  // namespace interlock::api
