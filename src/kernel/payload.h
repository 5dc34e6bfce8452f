#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

// Validates state before it is stored: keys, JSON values and lifetimes. Pure functions. An error
// names the cause, and its detail "do" the remedy.
namespace interlock::kernel {

inline constexpr std::size_t kKeyBytesMax = 200;
inline constexpr std::size_t kPayloadBytesMax = std::size_t{1} << 20;

// A key has 1 to 200 characters: first a letter a-z, then letters, digits, '_' and '-'. After the
// first '.', at least one character follows, and '.' and ':' are allowed too ("dispatch.run:7").
// kInvalidArgument otherwise.
Result<void> CheckKey(std::string_view key);

// Returns the payload without surrounding white space, as a view into `text`. The payload must be
// one JSON value of at most 1 MiB, nested at most 20 deep, with strings of at most 100 KiB, keys of
// at most 1000 bytes and arrays of at most 10 000 elements (kBadJson). No string in it may look
// like a secret (kInvalidArgument: "likely secret").
Result<std::string_view> CheckPayload(std::string_view text);

// Returns a stored payload without the white space between its tokens, so that it is one line.
// kCorrupt: it is not JSON, so another program wrote it.
Result<std::string> OneLine(std::string_view payload);

// Returns the payload as an integer if it is one that fits 64 bits: "7", but not "7.0" or "7e0".
std::optional<std::int64_t> IntegerIn(std::string_view payload);

// Converts a time to live to whole seconds, rounded down. Zero means no expiry and returns nullopt.
// A negative value is kUsage; more than zero but less than a second is kInvalidArgument, because
// the value would expire at once.
Result<std::optional<std::int64_t>> TtlSeconds(Duration ttl);

}  // namespace interlock::kernel
