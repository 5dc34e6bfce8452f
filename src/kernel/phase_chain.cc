#include "kernel/phase_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "json/object_text.h"
#include "json/parse.h"
#include "json/value.h"

namespace interlock::kernel {
namespace {

bool IsName(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

Error Bad(std::string message) { return {Errc::kInvalidArgument, std::move(message)}; }

}  // namespace

PhaseChain PhaseChain::Default() {
  return PhaseChain({"brainstorm", "brainstorm-reviewed", "strategized", "planned", "executing",
                     "review", "polish", "reflect", "done"});
}

Result<PhaseChain> PhaseChain::Parse(std::string_view json) {
  IL_TRY(const json::Value value, json::Parse(json));
  const json::Array* const array = value.if_array();
  if (array == nullptr) {
    return Bad(fmt::format("phases must be an array of names, not {}", json::KindName(value)));
  }
  if (array->size() < 2) return Bad("phases must have at least two names: the first and the last");
  std::vector<std::string> names;
  names.reserve(array->size());
  PhaseNames seen;
  for (const json::Value& element : *array) {
    const json::String* const text = element.if_string();
    if (text == nullptr || !IsName(json::View(*text))) {
      return Bad("a phase name must consist of letters, digits, '-' and '_'");
    }
    names.emplace_back(json::View(*text));
    if (!seen.insert(names.back()).second) {
      return Bad(fmt::format("the phase '{}' is listed twice", names.back()));
    }
  }
  return PhaseChain(std::move(names));
}

std::optional<std::size_t> PhaseChain::Find(std::string_view name) const {
  const auto found = std::ranges::find(names_, name);
  if (found == names_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names_.begin());
}

std::size_t PhaseChain::Next(std::size_t from, const PhaseNames& skipped) const {
  IL_CHECK(from + 1 < names_.size());
  std::size_t next = from + 1;
  while (next + 1 < names_.size() && skipped.contains(names_[next])) ++next;
  return next;
}

std::vector<std::string> PhaseChain::Between(std::size_t after, std::size_t up_to) const {
  IL_CHECK(after <= up_to && up_to < names_.size());
  return {names_.begin() + static_cast<std::ptrdiff_t>(after) + 1,
          names_.begin() + static_cast<std::ptrdiff_t>(up_to) + 1};
}

std::string PhaseChain::Text() const {
  json::ArrayText array;
  for (const std::string& name : names_) array.Add(name);
  return array.Text();
}

}  // namespace interlock::kernel
