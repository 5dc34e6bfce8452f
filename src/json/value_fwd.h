#pragma once

#include <boost/json/fwd.hpp>

// The names of JSON values, without their definitions, for headers that only pass them on. Whoever
// looks inside a value includes json/value.h.
namespace interlock::json {

using Value = boost::json::value;
using Object = boost::json::object;
using Array = boost::json::array;
using String = boost::json::string;

}  // namespace interlock::json
