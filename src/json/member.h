#pragma once

#include <span>
#include <string_view>

#include "json/codec.h"

namespace interlock::json {

// For who decodes an object whose fields no struct names: the member that holds `name`, or nullptr.
// `names` are all fields of the object: a member that is exactly one of them never stands in for
// another. Include it in .cc files, as json/codec.h.
inline const Value* FindMember(const Object& object, std::string_view name,
                               std::span<const std::string_view> names,
                               const DecodeOptions& options) {
  return internal::FindMember(object, name, names, options);
}

}  // namespace interlock::json
