#include "http/request_id.h"

#include <algorithm>
#include <cstdint>

#include "base/id.h"
#include "http/message.h"

namespace interlock::http {
namespace {

constexpr std::size_t kBytesMax = 128;

bool IsSafe(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const bool digit = c >= '0' && c <= '9';
  return letter || digit || std::string_view("-._~:+/=@").contains(c);
}

bool IsSafe(std::string_view id) {
  return !id.empty() && id.size() <= kBytesMax &&
         std::ranges::all_of(id, [](char c) { return IsSafe(c); });
}

// Different in each thread.
std::string Prefix() {
  Csprng random;
  return ShortId(random);
}

}  // namespace

std::string RequestIdOf(const Headers& headers) {
  const auto [count, first] = headers.Look(kRequestIdField);
  if (count == 1 && IsSafe(first)) return std::string(first);
  return NewRequestId();
}

std::string NewRequestId() {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  constexpr std::size_t kSize = 15;  // the longest text that std::string keeps in itself
  thread_local const std::string kPrefix = Prefix();
  thread_local std::uint64_t count = 0;
  std::string id = kPrefix;
  id.resize(kSize, '0');
  std::size_t at = kSize;
  for (std::uint64_t rest = count++; rest > 0 && at > kPrefix.size(); rest /= kDigits.size()) {
    id[--at] = kDigits[rest % kDigits.size()];
  }
  return id;
}

}  // namespace interlock::http
