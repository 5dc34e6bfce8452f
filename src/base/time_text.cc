#include "base/time_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <utility>

namespace interlock {
namespace {

constexpr std::int64_t kMicrosPerSecond = 1'000'000;
constexpr std::int64_t kSecondsPerDay = 86'400;
constexpr std::int64_t kMicrosPerDay = kSecondsPerDay * kMicrosPerSecond;
constexpr std::int64_t kEarliest = -62'167'219'200 * kMicrosPerSecond;  // 0000-01-01T00:00:00Z
constexpr std::int64_t kLatest =
    253'402'300'800 * kMicrosPerSecond - 1;  // 9999-12-31T23:59:59.999999Z

constexpr std::array<std::string_view, 7> kWeekdays = {"Sun", "Mon", "Tue", "Wed",
                                                       "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

struct Civil {
  int year, month, day, hour, minute, second;
  std::int64_t micros;
  unsigned weekday;  // 0 = Sunday
};

Civil Split(Timestamp time) {
  const std::int64_t micros = std::clamp(time.micros, kEarliest, kLatest);
  std::int64_t days = micros / kMicrosPerDay;
  std::int64_t rest = micros % kMicrosPerDay;
  if (rest < 0) {
    rest += kMicrosPerDay;
    --days;
  }
  const std::chrono::sys_days date{std::chrono::days(days)};
  const std::chrono::year_month_day ymd(date);
  const std::int64_t seconds = rest / kMicrosPerSecond;
  return {.year = static_cast<int>(ymd.year()),
          .month = static_cast<int>(static_cast<unsigned>(ymd.month())),
          .day = static_cast<int>(static_cast<unsigned>(ymd.day())),
          .hour = static_cast<int>(seconds / 3600),
          .minute = static_cast<int>(seconds / 60 % 60),
          .second = static_cast<int>(seconds % 60),
          .micros = rest % kMicrosPerSecond,
          .weekday = std::chrono::weekday(date).c_encoding()};
}

std::chrono::year_month_day DateOf(const Civil& civil) {
  return std::chrono::year(civil.year) / civil.month / civil.day;
}

// "…" around the text, for messages: short, and never a way to write to someone's terminal.
std::string Quote(std::string_view text) {
  constexpr std::size_t kShownMax = 40;
  const bool plain = std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7F; });
  if (!plain || text.size() > kShownMax) return "the text";
  return fmt::format("\"{}\"", text);
}

// Reads fixed forms from left to right and remembers the first thing that was wrong.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool failed() const { return !wrong_.empty(); }
  bool at_end() const { return rest_.empty(); }
  const std::string& wrong() const { return wrong_; }

  void Fail(std::string wrong) {
    if (!failed()) wrong_ = std::move(wrong);
  }

  // Exactly `digits` digits, as a number from `low` to `high`.
  int Number(std::string_view what, std::size_t digits, int low, int high) {
    if (failed()) return low;
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (rest_.empty() || rest_[0] < '0' || rest_[0] > '9') {
        Fail(fmt::format("the {} must have {} digits", what, digits));
        return low;
      }
      value = value * 10 + (rest_[0] - '0');
      rest_.remove_prefix(1);
    }
    if (value >= low && value <= high) return value;
    Fail(fmt::format("{} {} is not between {} and {}", what, value, low, high));
    return low;
  }

  void Literal(std::string_view literal, std::string_view after) {
    if (failed()) return;
    if (!rest_.starts_with(literal)) {
      Fail(fmt::format("expected '{}' after the {}", literal, after));
      return;
    }
    rest_.remove_prefix(literal.size());
  }

  // Takes the next character if it is one of `options`, else gives 0.
  char TakeOneOf(std::string_view options) {
    if (failed() || rest_.empty() || options.find(rest_[0]) == std::string_view::npos) return 0;
    const char taken = rest_[0];
    rest_.remove_prefix(1);
    return taken;
  }

  // The index of the word that stands here.
  template <std::size_t N>
  int Word(std::string_view what, const std::array<std::string_view, N>& words) {
    if (failed()) return 0;
    const auto found =
        std::ranges::find_if(words, [&](std::string_view word) { return rest_.starts_with(word); });
    if (found == words.end()) {
      Fail(fmt::format("expected a {} such as {}", what, words[1]));
      return 0;
    }
    rest_.remove_prefix(found->size());
    return static_cast<int>(found - words.begin());
  }

 private:
  std::string_view rest_;
  std::string wrong_;
};

// Up to nine digits; those beyond microseconds are read and dropped.
std::int64_t ScanFraction(Scanner& scan) {
  constexpr int kDigitsMax = 9;
  std::int64_t micros = 0;
  std::int64_t scale = kMicrosPerSecond / 10;
  int digits = 0;
  while (const char digit = scan.TakeOneOf("0123456789")) {
    micros += (digit - '0') * scale;
    scale /= 10;
    if (++digits > kDigitsMax) scan.Fail("the fraction has more than 9 digits");
  }
  if (digits == 0) scan.Fail("expected digits after the decimal point");
  return micros;
}

// In seconds, to be subtracted from the local time.
std::int64_t ScanOffset(Scanner& scan) {
  if (scan.TakeOneOf("Zz") != 0) return 0;
  const char sign = scan.TakeOneOf("+-");
  if (sign == 0) scan.Fail("expected Z or an offset such as +02:00 after the seconds");
  const int hours = scan.Number("offset's hour", 2, 0, 23);
  scan.Literal(":", "offset's hour");
  const int minutes = scan.Number("offset's minute", 2, 0, 59);
  const std::int64_t seconds = std::int64_t{hours} * 3600 + std::int64_t{minutes} * 60;
  return sign == '-' ? -seconds : seconds;
}

void ScanTimeOfDay(Scanner& scan, Civil& civil) {
  civil.hour = scan.Number("hour", 2, 0, 23);
  scan.Literal(":", "hour");
  civil.minute = scan.Number("minute", 2, 0, 59);
  scan.Literal(":", "minute");
  civil.second = scan.Number("second", 2, 0, 59);
}

void CheckDate(Scanner& scan, const Civil& civil) {
  if (scan.failed() || DateOf(civil).ok()) return;
  scan.Fail(fmt::format("{:04}-{:02} has no day {}", civil.year, civil.month, civil.day));
}

// REQUIRES: the date is a valid one.
Timestamp Join(const Civil& civil, std::int64_t offset_seconds) {
  const std::int64_t days = std::chrono::sys_days(DateOf(civil)).time_since_epoch().count();
  const std::int64_t minutes = std::int64_t{civil.hour} * 60 + civil.minute;
  const std::int64_t seconds = days * kSecondsPerDay + minutes * 60 + civil.second - offset_seconds;
  return {seconds * kMicrosPerSecond + civil.micros};
}

Error BadTime(std::string_view text, std::string_view wrong, std::string_view example) {
  return {Errc::kInvalidArgument,
          fmt::format("{} is not a time: {}; write it like {}", Quote(text), wrong, example)};
}

__extension__ using Wide = unsigned __int128;  // nanoseconds of any Duration, and their product

struct Unit {
  std::string_view name;
  std::uint64_t nanos;
};

// Longer names before those that they begin with.
constexpr std::array kUnits = {
    Unit{"ns", 1},
    Unit{"us", 1'000},
    Unit{"\u00B5s", 1'000},  // micro sign
    Unit{"\u03BCs", 1'000},  // Greek mu, which looks the same
    Unit{"ms", 1'000'000},
    Unit{"s", 1'000'000'000},
    Unit{"m", 60'000'000'000},
    Unit{"h", 3'600'000'000'000},
    Unit{"d", 86'400'000'000'000},
};

constexpr Wide kNanosMax = (Wide{1} << 63U) * 1000 + 999;  // of the most negative Duration

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

Error BadDuration(std::string_view text, std::string_view wrong) {
  return {Errc::kInvalidArgument,
          fmt::format("{} is not a duration: {}; write it like 1h30m, 250ms or 7d", Quote(text),
                      wrong)};
}

// One number with its unit, taken from the front of `rest`.
struct Part {
  Wide nanos = 0;               // rounded down
  bool zero = true;             // exactly nothing, not just rounded to it
  std::size_t size = 0;         // how much of the text it took
  std::string_view wrong = {};  // why it is none; empty if it is
};

Part Wrong(std::string_view wrong) { return {.wrong = wrong}; }

Part TakePart(std::string_view rest) {
  // More digits behind the point are below a nanosecond even of a day; they are read and dropped.
  constexpr std::size_t kFractionMax = 18;
  std::size_t at = 0;
  Wide whole = 0;
  for (; at < rest.size() && IsDigit(rest[at]); ++at) {
    whole = whole * 10 + static_cast<unsigned>(rest[at] - '0');
    if (whole > kNanosMax) return Wrong("it is too long");
  }
  std::size_t digits = at;
  Wide fraction = 0;
  Wide scale = 1;
  if (at < rest.size() && rest[at] == '.') {
    ++at;
    for (std::size_t count = 0; at < rest.size() && IsDigit(rest[at]); ++at, ++digits, ++count) {
      if (count >= kFractionMax) continue;
      fraction = fraction * 10 + static_cast<unsigned>(rest[at] - '0');
      scale *= 10;
    }
  }
  if (digits == 0) return Wrong("a number is missing");
  const bool zero = rest.substr(0, at).find_first_not_of("0.") == std::string_view::npos;
  const std::string_view behind = rest.substr(at);
  const auto unit = std::ranges::find_if(
      kUnits, [&](const Unit& candidate) { return behind.starts_with(candidate.name); });
  if (unit == kUnits.end()) {
    const bool none = behind.empty() || IsDigit(behind[0]) || behind[0] == '.';
    return Wrong(none ? "a unit is missing" : "a unit is not one of ns, us, ms, s, m, h, d");
  }
  return {.nanos = whole * unit->nanos + fraction * unit->nanos / scale,
          .zero = zero,
          .size = at + unit->name.size()};
}

}  // namespace

// Without {fmt}: a page of mail has a time per message, and this is ten times as fast.
void AppendRfc3339(std::string& out, Timestamp time, Fraction fraction) {
  const Civil at = Split(time);
  constexpr std::string_view kForm = "0000-00-00T00:00:00.000000";
  std::array<char, kForm.size()> text;
  std::ranges::copy(kForm, text.begin());
  const auto put = [&text](std::size_t offset, std::int64_t number) {  // of two digits
    text.at(offset) = static_cast<char>('0' + number / 10);
    text.at(offset + 1) = static_cast<char>('0' + number % 10);
  };
  put(0, at.year / 100);
  put(2, at.year % 100);
  put(5, at.month);
  put(8, at.day);
  put(11, at.hour);
  put(14, at.minute);
  put(17, at.second);
  put(20, at.micros / 10'000);
  put(22, at.micros / 100 % 100);
  put(24, at.micros % 100);
  std::string_view shown(text.data(), text.size());
  if (fraction == Fraction::kTrimmed) {
    shown = shown.substr(0, shown.find_last_not_of('0') + 1);
    if (shown.ends_with('.')) shown.remove_suffix(1);
  } else if (fraction == Fraction::kNone) {
    shown = shown.substr(0, kForm.find('.'));
  }
  out.append(shown).push_back('Z');
}

std::string FormatRfc3339(Timestamp time, Fraction fraction) {
  std::string text;
  AppendRfc3339(text, time, fraction);
  return text;
}

Result<Timestamp> ParseRfc3339(std::string_view text) {
  constexpr std::string_view kExample = "2026-01-02T15:04:05Z";
  Scanner scan(text);
  Civil civil = {};
  civil.year = scan.Number("year", 4, 0, 9999);
  scan.Literal("-", "year");
  civil.month = scan.Number("month", 2, 1, 12);
  scan.Literal("-", "month");
  civil.day = scan.Number("day", 2, 1, 31);
  CheckDate(scan, civil);
  if (scan.TakeOneOf("Tt") == 0) scan.Fail("expected 'T' after the day");
  ScanTimeOfDay(scan, civil);
  if (scan.TakeOneOf(".") != 0) civil.micros = ScanFraction(scan);
  const std::int64_t offset = ScanOffset(scan);
  if (!scan.at_end()) scan.Fail("there is text after it");
  if (scan.failed()) return BadTime(text, scan.wrong(), kExample);
  const Timestamp time = Join(civil, offset);
  if (time.micros < kEarliest || time.micros > kLatest) {
    return BadTime(text, "in UTC it is not in the years 0000 to 9999", kExample);
  }
  return time;
}

std::string FormatRfc1123(Timestamp time) {
  const Civil at = Split(time);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kWeekdays[at.weekday], at.day,
                     kMonths[static_cast<std::size_t>(at.month - 1)], at.year, at.hour, at.minute,
                     at.second);
}

Result<Timestamp> ParseRfc1123(std::string_view text) {
  Scanner scan(text);
  Civil civil = {};
  civil.weekday = static_cast<unsigned>(scan.Word("weekday", kWeekdays));
  scan.Literal(", ", "weekday");
  civil.day = scan.Number("day", 2, 1, 31);
  scan.Literal(" ", "day");
  civil.month = scan.Word("month", kMonths) + 1;
  scan.Literal(" ", "month");
  civil.year = scan.Number("year", 4, 0, 9999);
  CheckDate(scan, civil);
  scan.Literal(" ", "year");
  ScanTimeOfDay(scan, civil);
  scan.Literal(" GMT", "seconds");
  if (!scan.at_end()) scan.Fail("there is text after it");
  if (!scan.failed()) {
    const Timestamp time = Join(civil, 0);
    const unsigned weekday = Split(time).weekday;
    if (weekday == civil.weekday) return time;
    scan.Fail(fmt::format("that day is a {}", kWeekdays[weekday]));
  }
  return BadTime(text, scan.wrong(), "Fri, 02 Jan 2026 15:04:05 GMT");
}

Result<Duration> ParseDuration(std::string_view text) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.empty()) return BadDuration(text, "it is empty");
  if (rest == "0") return Duration::zero();
  Wide nanos = 0;
  bool zero = true;
  while (!rest.empty()) {
    const Part part = TakePart(rest);
    if (!part.wrong.empty()) return BadDuration(text, part.wrong);
    if (part.nanos > kNanosMax || nanos + part.nanos > kNanosMax) {
      return BadDuration(text, "it is too long");
    }
    nanos += part.nanos;
    zero = zero && part.zero;
    rest.remove_prefix(part.size);
  }
  const Wide micros = nanos / 1000;
  if (micros == 0 && !zero) return BadDuration(text, "it is shorter than 1us");
  const Wide most = Wide{std::numeric_limits<std::int64_t>::max()} + (negative ? 1 : 0);
  if (micros > most) return BadDuration(text, "it is too long");
  const auto bits = static_cast<std::uint64_t>(micros);
  return Duration(static_cast<std::int64_t>(negative ? ~bits + 1 : bits));
}

std::string FormatDuration(Duration duration) {
  const std::int64_t count = duration.count();
  if (count == 0) return "0s";
  // Negated as unsigned: the most negative one has no positive.
  auto micros = static_cast<std::uint64_t>(count);
  if (count < 0) micros = ~micros + 1;
  std::string text = count < 0 ? "-" : "";
  const auto decimal = [&](std::uint64_t value, std::uint64_t unit, int digits) {
    text += fmt::format("{}", value / unit);
    if (value % unit == 0) return;
    text += fmt::format(".{:0{}}", value % unit, digits);
    text.erase(text.find_last_not_of('0') + 1);
  };
  if (micros < 1'000) return text + fmt::format("{}us", micros);
  if (micros < 1'000'000) {
    decimal(micros, 1'000, 3);
    return text + "ms";
  }
  static constexpr std::array<std::pair<char, std::uint64_t>, 3> kLongUnits = {
      {{'d', 86'400'000'000}, {'h', 3'600'000'000}, {'m', 60'000'000}}};
  for (const auto& [name, unit_micros] : kLongUnits) {
    if (micros >= unit_micros) text += fmt::format("{}{}", micros / unit_micros, name);
    micros %= unit_micros;
  }
  if (micros == 0) return text;
  decimal(micros, 1'000'000, 6);
  return text + "s";
}

}  // namespace interlock
