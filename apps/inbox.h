#pragma once

#include <functional>
#include <string_view>

#include "serve_options.h"

namespace interlock::app {

// Takes text for stdout; false when nobody reads it any more.
using Print = std::function<bool(std::string_view text)>;

// Prints the messages that were to be put before an agent and wait to be surfaced, each in its
// envelope, with a line "---" between them; nothing when none waits. With `mark_surfaced` each is
// marked once it is printed, so that one that could not be printed comes again. Done with 0 and, if
// more wait than a page holds, a text that says so; or as Failed() says.
Done Inbox(const InboxOptions& options, const Print& print);

}  // namespace interlock::app
