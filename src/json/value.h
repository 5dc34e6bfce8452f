#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>
#include <string_view>

#include "json/value_fwd.h"

// A JSON value in memory. Objects remember the order in which their members were added. Integers
// that fit 64 bits stay integers; every other number is a double.
//
// Heavy to compile (about a second): a header that only names a value includes json/value_fwd.h.
// As any standard container: const access from many threads, or one thread that changes it.
namespace interlock::json {

// "string", "number", "object", …: the word that error messages use.
std::string_view KindName(const Value& value);

// A view of the bytes; valid as long as the string is not changed.
inline std::string_view View(const String& text) { return {text.data(), text.size()}; }

}  // namespace interlock::json
