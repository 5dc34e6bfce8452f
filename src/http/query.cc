#include "http/query.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/utf8.h"
#include "http/path.h"

namespace interlock::http {
namespace {

// What the client wrote, short enough for a message and without bytes that no message may hold.
std::string Shown(std::string_view raw) {
  constexpr std::size_t kShownMax = 64;
  std::string shown(raw.substr(0, kShownMax));
  std::ranges::replace_if(shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  if (raw.size() > kShownMax) shown += "...";
  return shown;
}

Result<std::string> Decode(std::string_view raw, std::string_view raw_name) {
  std::string plain(raw);
  std::ranges::replace(plain, '+', ' ');
  auto decoded = DecodePercent(plain);
  const auto refused = [&](std::string_view why) {
    return Error(Errc::kInvalidArgument,
                 "The query parameter " + Shown(raw_name) + " " + std::string(why));
  };
  if (!decoded) {
    return refused(
        "has a broken escape; write '%' as %25, and every other escape as '%' and two hexadecimal "
        "digits.");
  }
  if (decoded->find('\0') != std::string::npos) {
    return refused("holds a NUL byte; remove %00 from it.");
  }
  if (!IsUtf8(*decoded)) return refused("is not UTF-8; encode it as UTF-8 before escaping it.");
  return *std::move(decoded);
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> ParseQuery(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> parameters;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view raw_name = pair.substr(0, equals);
    IL_TRY(std::string name, Decode(raw_name, raw_name));
    IL_TRY(std::string value, Decode(pair.substr(std::min(equals + 1, pair.size())), raw_name));
    parameters.emplace_back(std::move(name), std::move(value));
  }
  return parameters;
}

std::optional<std::int64_t> ParseDecimal(std::string_view text) {
  if (text.starts_with('-')) return std::nullopt;
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (stop != text.data() + text.size() || error != std::errc()) return std::nullopt;
  return number;
}

std::optional<bool> ParseBoolean(std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

}  // namespace interlock::http
