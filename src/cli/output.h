#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "json/object_text.h"

// Formats results and messages. Stateless, so safe from any thread.
namespace interlock::cli {

// Formats `text` as one field of a line: unchanged, or as a JSON string if it contains a control
// character or begins with a quotation mark. So a text cannot break a line or a field, and
// different texts stay different. Invalid UTF-8 stays unchanged.
std::string Field(std::string_view text);

// Formats `text` for a terminal: control characters and invalid UTF-8 become \n, \t or \x1b, so
// that foreign text cannot move the cursor or start a new line.
std::string Printable(std::string_view text);

// Returns the text as one line, or the object with --json.
CommandResult Answer(const Context& context, std::string_view text, const json::ObjectText& object);

// "3 pruned", or {"pruned":3}.
CommandResult Counted(const Context& context, std::int64_t count, std::string_view what);

}  // namespace interlock::cli
