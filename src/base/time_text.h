#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

// Times and durations as people and protocols write them, both directions. What cannot be read is
// kInvalidArgument with a message that says what is wrong and gives an example. Pure functions.
namespace interlock {

enum class Fraction : std::uint8_t {
  kTrimmed,  // up to six digits, zeros at the end dropped, no point if none is left
  kNone,     // whole seconds, rounded down
  kMicros,   // always six digits, so that columns line up
};

// RFC 3339 in UTC: "2026-01-02T03:04:05.25Z". A time outside the years 0000 to 9999, which the
// format cannot say, is written as the nearest that it can.
std::string FormatRfc3339(Timestamp time, Fraction fraction = Fraction::kTrimmed);
// The same, at the end of `out`.
void AppendRfc3339(std::string& out, Timestamp time, Fraction fraction = Fraction::kTrimmed);

// "Z" or an offset, up to nine digits of fraction (rounded down to microseconds), either case of T
// and Z. Second 60 is refused: our times have no leap seconds.
Result<Timestamp> ParseRfc3339(std::string_view text);

// RFC 1123 as HTTP uses it: "Fri, 02 Jan 2026 03:04:05 GMT", rounded down to seconds.
std::string FormatRfc1123(Timestamp time);
// Exactly that form; the weekday must be that of the date.
Result<Timestamp> ParseRfc1123(std::string_view text);

// "1h30m", "250ms", "7d", "1.5s", "-2m": the largest units that fit, below a second one of ms and
// us; "0s". A day is always 24 hours.
std::string FormatDuration(Duration duration);

// A sign, then one or more numbers, fractions allowed, each with its unit: ns us µs ms s m h d.
// Without a unit only 0. The sum is rounded towards zero to microseconds, but refused if that would
// make nothing of it: a time-out of 1ns must not become "none".
Result<Duration> ParseDuration(std::string_view text);

}  // namespace interlock
