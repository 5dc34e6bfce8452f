#include "kernel/payload.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>

#include "json/parse.h"
#include "kernel/secrets.h"

namespace interlock::kernel {
namespace {

constexpr json::ParseOptions kPayload = {
    .limits = {.bytes_max = kPayloadBytesMax,
               .depth_max = 20,
               .string_bytes_max = std::size_t{100} << 10,
               .key_bytes_max = 1000,
               .elements_max = 10'000,
               .members_max = kPayloadBytesMax}};  // limited only by the size of the text

constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";

constexpr bool IsKeyStart(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool IsKeyPart(char c) {
  return IsKeyStart(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
}
constexpr bool IsTailPart(char c) { return IsKeyPart(c) || c == '.' || c == ':'; }

bool IsKey(std::string_view key) {
  if (key.empty() || !IsKeyStart(key.front())) return false;
  const std::size_t dot = key.find('.');
  if (!std::ranges::all_of(key.substr(0, dot), IsKeyPart)) return false;
  if (dot == std::string_view::npos) return true;
  const std::string_view tail = key.substr(dot + 1);
  return !tail.empty() && std::ranges::all_of(tail, IsTailPart);
}

Error Refused(Errc code, std::string message, std::string remedy) {
  return Error(code, std::move(message)).WithDetail("do", std::move(remedy));
}

}  // namespace

Result<void> CheckKey(std::string_view key) {
  if (key.size() > kKeyBytesMax) {
    return Refused(
        Errc::kInvalidArgument,
        fmt::format("the key has {} characters; at most {} are allowed", key.size(), kKeyBytesMax),
        "move the variable part into the scope");
  }
  if (IsKey(key)) return {};
  return Refused(Errc::kInvalidArgument, fmt::format("invalid key '{}'", key),
                 "start with a-z, then use a-z, 0-9, '_' and '-'; after the first '.', '.' and ':' "
                 "are allowed too");
}

Result<std::string_view> CheckPayload(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kWhiteSpace);
  text.remove_prefix(first == std::string_view::npos ? text.size() : first);
  text = text.substr(0, text.find_last_not_of(kWhiteSpace) + 1);
  if (text.empty()) {
    return Refused(Errc::kBadJson, "the payload is empty",
                   "give JSON on standard input, as the third argument, or as @file");
  }
  if (text.size() > kPayloadBytesMax) {
    return Refused(Errc::kPayloadTooLarge,
                   fmt::format("the payload has {} bytes; at most {} are allowed", text.size(),
                               kPayloadBytesMax),
                   "keep it in a file and store the path of the file");
  }
  const auto read = json::Scan(text, kPayload, [](std::string_view string) -> Result<void> {
    const auto secret = FindSecret(string);
    if (!secret) return {};
    return Refused(Errc::kInvalidArgument,
                   fmt::format("likely secret: a string of the payload looks like {}", *secret),
                   "store its name or its location, never the secret itself");
  });
  if (read.ok()) return text;
  if (read.error().code() != Errc::kBadJson) return read.error();
  return Refused(Errc::kBadJson, fmt::format("the payload: {}", read.error().message()),
                 "give one JSON value within the limits of 'ic help state set'");
}

Result<std::string> OneLine(std::string_view payload) {
  constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
  constexpr json::ParseOptions kAnything = {.limits = {.bytes_max = kNoLimit,
                                                       .depth_max = 1024,
                                                       .string_bytes_max = kNoLimit,
                                                       .key_bytes_max = kNoLimit,
                                                       .elements_max = kNoLimit,
                                                       .members_max = kNoLimit}};
  const auto read =
      json::Scan(payload, kAnything, [](std::string_view) -> Result<void> { return {}; });
  if (!read.ok()) {
    return Refused(Errc::kCorrupt, "the stored value is not JSON",
                   "read it without --json; replace it with 'ic state set'");
  }
  std::string line;
  line.reserve(payload.size());
  bool in_string = false;
  for (std::size_t i = 0; i < payload.size(); ++i) {
    const char c = payload[i];
    if (!in_string && kWhiteSpace.contains(c)) continue;
    line += c;
    if (c == '"') in_string = !in_string;
    if (c == '\\') line += payload[++i];  // valid JSON: a character of the string follows
  }
  return line;
}

std::optional<std::int64_t> IntegerIn(std::string_view payload) {
  std::int64_t number = 0;
  const auto [rest, status] =
      std::from_chars(payload.data(), payload.data() + payload.size(), number);
  if (status != std::errc() || rest != payload.data() + payload.size()) return std::nullopt;
  return number;
}

Result<std::optional<std::int64_t>> TtlSeconds(Duration ttl) {
  if (ttl < Duration::zero()) {
    return Refused(Errc::kUsage, "--ttl must not be negative",
                   "write --ttl=30m, or omit it for no expiry");
  }
  if (ttl == Duration::zero()) return std::optional<std::int64_t>();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(ttl).count();
  if (seconds == 0) {
    return Refused(Errc::kInvalidArgument, "--ttl is shorter than one second",
                   "write --ttl=1s or more");
  }
  return std::optional<std::int64_t>(seconds);
}

}  // namespace interlock::kernel
