#pragma once

#include <memory>
#include <string>

namespace interlock::events {

// The text of one event as consumers receive it: one JSON object, made once and shared by all for
// whom it is the same.
using Frame = std::shared_ptr<const std::string>;

}  // namespace interlock::events
