#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "json/value_fwd.h"

// JSON text to value, for text from strangers: work and memory are bounded by the limits, and what
// is refused is refused with line, column and reason. Stateless, so safe from any thread.
//
// Beyond RFC 8259:
// (1) Of duplicate keys the last one's value counts; it stands where the first one stood.
// (2) Text and strings are UTF-8 in and out: invalid bytes and lone surrogates (\ud800) are
// refused. (3) \u0000 is a character like any other: the string then holds a NUL byte. A raw NUL,
// as every
//     raw control character inside a string, is refused.
// (4) A number must be finite as a double: 1e999 is refused.
// (5) No byte order mark, no comments, no trailing commas.
namespace interlock::json {

struct Limits {
  std::size_t bytes_max = std::size_t{1} << 20;  // of the text, ignored bytes at its end included
  std::size_t depth_max = 64;  // of arrays and objects in each other; at most 1024
  std::size_t string_bytes_max = std::size_t{1} << 20;  // of one string, unescaped
  std::size_t key_bytes_max = 1024;                     // of one key, unescaped
  std::size_t elements_max = 100'000;                   // of one array
  std::size_t members_max = 10'000;                     // of one object, duplicates included
};

enum class Trailing : std::uint8_t {
  kRefuse,  // only white space may follow the value
  kIgnore,  // whatever follows the first value is not looked at
};

enum class BigIntegers : std::uint8_t {
  kAsDouble,  // an integer beyond 64 bits becomes the nearest double; an int field refuses it
  kRefuse,    // … is refused here, for callers that must not lose a digit
};

struct ParseOptions {
  Limits limits = {};
  Trailing trailing = Trailing::kRefuse;
  BigIntegers big_integers = BigIntegers::kAsDouble;
};

// kBadJson: "line 3, column 14: unexpected character '}'". Lines end at \n and columns count code
// points, both from 1; the details `line` and `column` hold them as numbers.
Result<Value> Parse(std::string_view text, const ParseOptions& options = {});

// Called per string; an error ends the reading and becomes its result.
using OnString = std::function<Result<void>(std::string_view)>;

// The same checks without making a value, for text that is kept as it is. `on_string` hears each
// string that is a value, unescaped, also the ones that a duplicate key hides from Parse(); keys it
// does not hear. The view dies when it returns.
Result<void> Scan(std::string_view text, const ParseOptions& options, const OnString& on_string);

}  // namespace interlock::json
