#pragma once

#include <optional>
#include <string_view>
#include <vector>

// Parts of JSON text that we wrote ourselves, as text, without making values of them: a page of
// mail hands lists of addresses on as they are stored. Stateless, so safe from any thread.
//
// REQUIRES for all: the text was made by json/write.h or json/object_text.h. Of other text the
// result is unspecified, but always within it.
namespace interlock::json {

// The text of the object's member `key`; nothing when it has none. The key must need no escapes.
std::optional<std::string_view> RawMember(std::string_view object, std::string_view key);

// The texts of the array's elements, in order.
std::vector<std::string_view> RawElements(std::string_view array);

}  // namespace interlock::json
