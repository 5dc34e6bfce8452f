#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

// Parts of JSON text that we wrote ourselves, as text, without making values of them: a page of
// mail hands lists of addresses on as they are stored. Stateless, so safe from any thread.
//
// REQUIRES for all: the text was made by json/write.h or json/object_text.h. Of other text the
// result is unspecified, but always within it.
namespace interlock::json {

// Puts the text of the object's member keys[i] into values[i], which stays as it is when there is
// no such member. Keys must need no escapes. REQUIRES: keys and values are of one size.
void FindRawMembers(std::string_view object, std::span<const std::string_view> keys,
                    std::span<std::string_view> values);

// The same as a value: the texts of the members, each empty when there is none.
template <std::size_t N>
std::array<std::string_view, N> RawMembers(std::string_view object,
                                           const std::array<std::string_view, N>& keys) {
  std::array<std::string_view, N> values = {};
  FindRawMembers(object, keys, values);
  return values;
}

// The texts of the array's elements, in order.
std::vector<std::string_view> RawElements(std::string_view array);

}  // namespace interlock::json
