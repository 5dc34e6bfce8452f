#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "json/object_text.h"

// How results and messages are written. Stateless, so safe from any thread.
namespace interlock::cli {

// `text` as one field of a line: as it is, or as a JSON string when it holds a control character or
// begins with a quotation mark. So a line stays a line, a field stays a field, and no two texts
// look the same. Bytes that are not UTF-8 stay as they are.
std::string Field(std::string_view text);

// `text` for a terminal: control characters, and bytes that are not UTF-8, are written as \n, \t or
// \x1b, so that what somebody else wrote moves no cursor and makes no second line.
std::string Printable(std::string_view text);

// The text and the end of its line; with --json the object instead.
Outcome Answer(const Context& context, std::string_view text, const json::ObjectText& object);

// "3 pruned", or {"pruned":3}.
Outcome Counted(const Context& context, std::int64_t count, std::string_view what);

}  // namespace interlock::cli
