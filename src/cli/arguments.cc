#include "cli/arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <ranges>

#include "base/check.h"
#include "base/time_text.h"

namespace interlock::cli {

std::string_view Arguments::operator[](std::size_t i) const {
  IL_CHECK(i < positional_.size());
  return positional_[i];
}

const Arguments::Given* Arguments::Find(std::string_view flag) const {
  for (const Given& given : std::views::reverse(flags_)) {
    if (given.name == flag) return &given;
  }
  return nullptr;
}

std::optional<std::string_view> Arguments::Text(std::string_view flag) const {
  const Given* const given = Find(flag);
  return given == nullptr ? std::nullopt : given->value;
}

bool Arguments::IsOn(std::string_view flag) const {
  const Given* const given = Find(flag);
  if (given == nullptr) return false;
  return !given->value || *given->value == "true" || *given->value == "1";
}

Result<std::optional<std::int64_t>> Arguments::Integer(std::string_view flag, std::int64_t least,
                                                       std::int64_t most) const {
  const std::optional<std::string_view> text = Text(flag);
  if (!text) return std::nullopt;
  IL_TRY(const std::int64_t number, ParseInteger(fmt::format("--{}", flag), *text));
  if (number < least || number > most) {
    const std::string bounds = most == std::numeric_limits<std::int64_t>::max()
                                   ? fmt::format("at least {}", least)
                                   : fmt::format("from {} to {}", least, most);
    return Error(Errc::kUsage, fmt::format("--{} must be {}, not {}", flag, bounds, *text));
  }
  return number;
}

Result<std::optional<Duration>> Arguments::Time(std::string_view flag) const {
  const std::optional<std::string_view> text = Text(flag);
  if (!text) return std::nullopt;
  IL_TRY(const Duration time, ParseTime(fmt::format("--{}", flag), *text));
  return time;
}

Result<std::int64_t> ParseInteger(std::string_view what, std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool sign_twice = text.starts_with('+') && digits.starts_with('-');
  if (failure != std::errc() || end != digits.data() + digits.size() || sign_twice) {
    return Error(Errc::kUsage, fmt::format("{} must be a whole number, not '{}'", what, text));
  }
  return number;
}

Result<Duration> ParseTime(std::string_view what, std::string_view text) {
  Result<Duration> time = ParseDuration(text);
  if (!time) {
    return Error(Errc::kUsage,
                 fmt::format("{}: invalid duration '{}': {}", what, text, time.error().message()));
  }
  return time;
}

}  // namespace interlock::cli
