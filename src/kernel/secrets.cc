#include "kernel/secrets.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace interlock::kernel {
namespace {

// The functions of the C library are slower and depend on the locale.
constexpr char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (Lower(c) >= 'a' && Lower(c) <= 'z');
}
constexpr bool IsTokenChar(char c) { return IsAlphanumeric(c) || c == '-' || c == '_'; }
constexpr bool IsBlank(char c) { return c == ' ' || c == '\t'; }
constexpr bool IsSpace(char c) { return IsBlank(c) || (c >= '\n' && c <= '\r'); }

// REQUIRES: `prefix` is in lower case.
bool StartsWith(std::string_view text, std::string_view prefix) {
  if (text.size() < prefix.size()) return false;
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    if (Lower(text[i]) != prefix[i]) return false;
  }
  return true;
}

template <typename Predicate>
std::size_t RunLength(std::string_view text, Predicate predicate) {
  const auto end = std::ranges::find_if_not(text, predicate);
  return static_cast<std::size_t>(end - text.begin());
}

// A fixed prefix, followed by at least `length` characters of one kind.
struct TokenShape {
  std::string_view prefix;
  std::size_t length;
  bool (*is_part)(char);
  std::string_view what;
};

constexpr bool IsSlackPart(char c) { return IsAlphanumeric(c) || c == '-'; }

constexpr std::array kTokens = {
    TokenShape{"sk-", 20, IsAlphanumeric, "an API key"},
    TokenShape{"sk_", 20, IsAlphanumeric, "an API key"},
    TokenShape{"pk-", 20, IsAlphanumeric, "an API key"},
    TokenShape{"pk_", 20, IsAlphanumeric, "an API key"},
    TokenShape{"rk-", 20, IsAlphanumeric, "an API key"},
    TokenShape{"rk_", 20, IsAlphanumeric, "an API key"},
    TokenShape{"ak-", 20, IsAlphanumeric, "an API key"},
    TokenShape{"ak_", 20, IsAlphanumeric, "an API key"},
    TokenShape{"ghp_", 30, IsAlphanumeric, "a GitHub token"},
    TokenShape{"gho_", 30, IsAlphanumeric, "a GitHub token"},
    TokenShape{"ghu_", 30, IsAlphanumeric, "a GitHub token"},
    TokenShape{"ghs_", 30, IsAlphanumeric, "a GitHub token"},
    TokenShape{"ghr_", 30, IsAlphanumeric, "a GitHub token"},
    TokenShape{"xoxb-", 20, IsSlackPart, "a Slack token"},
    TokenShape{"xoxp-", 20, IsSlackPart, "a Slack token"},
    TokenShape{"xoxr-", 20, IsSlackPart, "a Slack token"},
    TokenShape{"xoxa-", 20, IsSlackPart, "a Slack token"},
    TokenShape{"xoxs-", 20, IsSlackPart, "a Slack token"},
    TokenShape{"akia", 16, IsAlphanumeric, "an AWS access key"},
    TokenShape{"asia", 16, IsAlphanumeric, "an AWS access key"},
    TokenShape{"sk-ant-", 20, IsTokenChar, "an API key"},
    TokenShape{"sk-proj-", 20, IsTokenChar, "an API key"},
    TokenShape{"sk_live_", 16, IsTokenChar, "an API key"},
    TokenShape{"sk_test_", 16, IsTokenChar, "an API key"},
    TokenShape{"github_pat_", 20, IsTokenChar, "a GitHub token"},
    TokenShape{"glpat-", 16, IsTokenChar, "a GitLab token"},
};

constexpr std::array<std::string_view, 9> kNames = {"password", "passwd",     "secret",
                                                    "token",    "api_key",    "apikey",
                                                    "api-key",  "access_key", "private_key"};

// First characters of the patterns. One table lookup skips most characters of a text.
enum Start : std::uint8_t { kTokenStarts = 1, kNameStarts = 2, kOtherStarts = 4, kAllStarts = 7 };

constexpr std::array<std::uint8_t, 256> kStarts = [] {
  std::array<std::uint8_t, 256> starts = {};
  for (const TokenShape& token : kTokens) {
    starts[static_cast<unsigned char>(token.prefix[0])] |= kTokenStarts;
  }
  for (const std::string_view name : kNames) {
    starts[static_cast<unsigned char>(name[0])] |= kNameStarts;
  }
  starts['-'] |= kOtherStarts;
  starts['e'] |= kOtherStarts;
  return starts;
}();

bool Begins(char c, Start start) { return (kStarts[static_cast<unsigned char>(c)] & start) != 0; }

// REQUIRES: `text` begins where a word begins.
std::optional<std::string_view> FindToken(std::string_view text) {
  for (const TokenShape& token : kTokens) {
    if (!StartsWith(text, token.prefix)) continue;
    const std::string_view rest = text.substr(token.prefix.size(), token.length);
    if (RunLength(rest, token.is_part) == token.length) return token.what;
  }
  return std::nullopt;
}

struct WebToken {
  bool found = false;
  std::size_t looked_at = 0;  // no web token begins before this offset
};

// REQUIRES: `text` begins at the start of a word. A token that begins inside the first part also
// ends where that part ends, so the caller may continue after it. This keeps the search linear.
WebToken FindWebToken(std::string_view text) {
  constexpr std::size_t kPartMin = 20;
  if (!StartsWith(text, "eyj")) return {};
  const std::size_t first = RunLength(text, IsTokenChar);
  if (first == text.size() || text[first] != '.') return {.looked_at = first};
  const std::string_view rest = text.substr(first + 1);
  const std::size_t second = RunLength(rest, IsTokenChar);
  const bool ended = second < rest.size() && rest[second] == '.';
  return {.found = ended && first >= kPartMin && second >= kPartMin, .looked_at = first};
}

// "-----BEGIN RSA PRIVATE KEY-----", with a label of limited length before "PRIVATE KEY".
bool IsPrivateKeyHeader(std::string_view text) {
  constexpr std::string_view kBegin = "-----begin ";
  constexpr std::string_view kEnd = "private key";
  constexpr std::size_t kLabelMax = 64;
  if (!StartsWith(text, kBegin)) return false;
  const std::string_view label = text.substr(kBegin.size(), kLabelMax);
  const std::string_view until = label.substr(0, label.find("-----"));
  for (std::size_t i = 0; i < until.size(); ++i) {
    if (StartsWith(until.substr(i), kEnd)) return true;
  }
  return false;
}

// "password = hunter2hunter2"
bool IsAssignment(std::string_view text) {
  constexpr std::size_t kValueMin = 8;
  const auto name = std::ranges::find_if(
      kNames, [text](std::string_view candidate) { return StartsWith(text, candidate); });
  if (name == kNames.end()) return false;
  text.remove_prefix(name->size());
  text.remove_prefix(RunLength(text, IsBlank));
  if (!text.starts_with(':') && !text.starts_with('=')) return false;
  text.remove_prefix(1);
  text.remove_prefix(RunLength(text, IsBlank));
  return RunLength(text.substr(0, kValueMin), [](char c) { return !IsSpace(c); }) == kValueMin;
}

}  // namespace

std::optional<std::string_view> FindSecret(std::string_view text) {
  std::size_t web_token_from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char first = Lower(text[i]);
    if (!Begins(first, kAllStarts)) continue;
    const std::string_view rest = text.substr(i);
    if (first == '-' && IsPrivateKeyHeader(rest)) return "a private key";
    if (Begins(first, kNameStarts) && IsAssignment(rest)) return "a password or key in plain text";
    if (i > 0 && IsAlphanumeric(text[i - 1])) continue;
    if (Begins(first, kTokenStarts)) {
      if (const auto token = FindToken(rest)) return token;
    }
    if (first != 'e' || i < web_token_from) continue;
    const WebToken web_token = FindWebToken(rest);
    if (web_token.found) return "a JSON Web Token";
    web_token_from = i + web_token.looked_at;
  }
  return std::nullopt;
}

}  // namespace interlock::kernel
