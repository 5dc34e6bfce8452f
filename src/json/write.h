#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "json/value_fwd.h"

// Value to JSON text. The text is always valid UTF-8 and valid JSON, whatever the strings hold: a
// byte that is no UTF-8 is written as U+FFFD, a double that is no number (NaN, infinity) as null.
// Parse(Write(v)) is v for every other v. Stateless, so safe from any thread.
namespace interlock::json {

enum class Layout : std::uint8_t {
  kCompact,  // no white space at all
  kPretty,   // one member or element per line, two spaces per level, no newline at the end
};

enum class KeyOrder : std::uint8_t {
  kAsAdded,  // the order in which the members were added; for structs, of their declaration
  kSorted,   // by bytes: equal values give equal texts
};

struct WriteOptions {
  Layout layout = Layout::kCompact;
  KeyOrder key_order = KeyOrder::kAsAdded;
};

std::string Write(const Value& value, const WriteOptions& options = {});

// `text` as a JSON string, with its quotes, at the end of `out`.
void AppendQuoted(std::string& out, std::string_view text);
// The shortest text that reads back as the same double, marked as one: 1.0, not 1.
void AppendDouble(std::string& out, double number);

}  // namespace interlock::json
