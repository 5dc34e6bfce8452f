#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

// What may be stored as state: which keys, which JSON, for how long. Pure. A refusal names the
// cause, and in its detail "do" the remedy.
namespace interlock::kernel {

inline constexpr std::size_t kKeyBytesMax = 200;
inline constexpr std::size_t kPayloadBytesMax = std::size_t{1} << 20;

// A key has 1 to 200 characters: a letter a-z, then letters, digits, '_' and '-'; behind a first
// '.' also '.' and ':', of which there must be something ("dispatch.run:7"). kInvalidArgument.
Result<void> CheckKey(std::string_view key);

// The payload without the white space around it. It is one JSON value of any type, at most 1 MiB,
// nested at most 20 deep, with strings of at most 100 KiB, keys of at most 1000 bytes and arrays of
// at most 10 000 elements (kBadJson), and no string in it looks like a secret (kInvalidArgument:
// "likely secret"). The view is into `text`.
Result<std::string_view> CheckPayload(std::string_view text);

// A stored payload without the white space between its parts, so that it is one line. kCorrupt when
// it is no JSON: some other program wrote it.
Result<std::string> OneLine(std::string_view payload);

// The whole number that a payload is, if it is one that fits 64 bits: "7", not "7.0" nor "7e0".
std::optional<std::int64_t> IntegerIn(std::string_view payload);

// Whole seconds of a time to live, rounded down; nothing for zero, which means for ever. Negative
// is kUsage; more than zero and less than a second is kInvalidArgument, as it would expire at once.
Result<std::optional<std::int64_t>> TtlSeconds(Duration ttl);

}  // namespace interlock::kernel
