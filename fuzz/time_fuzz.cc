// Durations and times as people write them, and ids. What is read is written and read back as the
// same; what is written of any number is read back as it; signs, concatenation and offsets do what
// arithmetic says; a refusal says so in one short line of plain text, whatever was sent.
//
// The first 8 bytes are also taken as a number.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/id.h"
#include "base/time_text.h"
#include "targets.h"

namespace interlock::fuzz {
namespace {

constexpr std::int64_t kMicros = 1'000'000;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

void CheckRefusal(const Error& error, Errc code) {
  IL_CHECK(error.code() == code);
  IL_CHECK(!error.message().empty() && error.message().size() < 300, error.message());
  const bool plain =
      std::ranges::all_of(error.message(), [](char c) { return c >= ' ' && c < 127; });
  IL_CHECK(plain, error.message());
}

void CheckDuration(std::string_view text) {
  const Result<Duration> read = ParseDuration(text);
  if (!read.ok()) return CheckRefusal(read.error(), Errc::kInvalidArgument);
  const std::string written = FormatDuration(*read);
  IL_CHECK(ParseDuration(written).value() == *read, written);
  // Without a sign, with either one, and twice in a row.
  const std::string_view digits =
      text.substr(text.starts_with('-') || text.starts_with('+') ? 1 : 0);
  const std::string plain(digits);
  const Result<Duration> positive = ParseDuration(plain);
  IL_CHECK(positive.ok() || read->count() == kLeast, text);
  if (!positive.ok()) return;
  IL_CHECK(positive->count() >= 0);
  IL_CHECK(ParseDuration("-" + plain).value() == -*positive);
  IL_CHECK(ParseDuration("+" + plain).value() == *positive);
  if (plain == "0" || positive->count() > kMost / 2 - 1) return;
  const Duration twice = ParseDuration(plain + plain).value();
  const std::int64_t lost = twice.count() - 2 * positive->count();  // what rounding took, twice
  IL_CHECK(lost == 0 || lost == 1, plain);
}

void CheckRfc3339(std::string_view text) {
  const Result<Timestamp> read = ParseRfc3339(text);
  if (!read.ok()) return CheckRefusal(read.error(), Errc::kInvalidArgument);
  for (const Fraction fraction : {Fraction::kTrimmed, Fraction::kMicros}) {
    IL_CHECK(ParseRfc3339(FormatRfc3339(*read, fraction)).value() == *read, text);
  }
  // The same moment where clocks are an hour ahead; at the edge of the years there is none.
  if (!text.ends_with('Z')) return;
  const std::string ahead = std::string(text.substr(0, text.size() - 1)) + "+01:00";
  const Result<Timestamp> earlier = ParseRfc3339(ahead);
  IL_CHECK(earlier.ok() || text.starts_with("0000-01-01"), ahead);
  if (earlier.ok()) IL_CHECK(read->micros - earlier->micros == 3600 * kMicros, ahead);
}

void CheckRfc1123(std::string_view text) {
  const Result<Timestamp> read = ParseRfc1123(text);
  if (!read.ok()) return CheckRefusal(read.error(), Errc::kInvalidArgument);
  IL_CHECK(FormatRfc1123(*read) == text);
}

void CheckNumber(std::int64_t number) {
  const Duration duration(number);
  IL_CHECK(ParseDuration(FormatDuration(duration)).value() == duration);
  const Timestamp time{number};
  const Timestamp shown = ParseRfc3339(FormatRfc3339(time)).value();
  const bool clamped = shown != time;
  IL_CHECK(!clamped || (number > 0) == (shown.micros < number));
  const Timestamp seconds = ParseRfc1123(FormatRfc1123(time)).value();
  const std::int64_t fraction = shown.micros - seconds.micros;
  IL_CHECK(fraction >= 0 && fraction < kMicros);
  IL_CHECK(ParseRfc3339(FormatRfc3339(time, Fraction::kNone)).value() == seconds);
}

void CheckUuid(std::string_view text) {
  const Result<Uuid> read = Uuid::Parse(text);
  if (!read.ok()) return CheckRefusal(read.error(), Errc::kInvalidArgument);
  const std::string written = read->Text();
  IL_CHECK(Uuid::Parse(written).value() == *read);
  IL_CHECK(written.size() == text.size());
}

}  // namespace

void FuzzTime(std::string_view input) {
  std::int64_t number = 0;
  const std::size_t size = std::min(input.size(), sizeof(number));
  if (size > 0) std::memcpy(&number, input.data(), size);
  CheckNumber(number);
  CheckDuration(input);
  CheckRfc3339(input);
  CheckRfc1123(input);
  CheckUuid(input);
}

}  // namespace interlock::fuzz

IL_FUZZ_ENTRY(FuzzTime);
