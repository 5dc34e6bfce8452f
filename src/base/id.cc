#include "base/id.h"

#include <pthread.h>
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace interlock {
namespace {

constexpr std::uint64_t kHighMask = (std::uint64_t{1} << 12) - 1;
constexpr std::uint64_t kLowMask = (std::uint64_t{1} << 62) - 1;
constexpr std::uint64_t kMsMask = (std::uint64_t{1} << 48) - 1;

constexpr bool IsDashAt(std::size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Error BadUuid(std::string_view why) {
  std::string message("not a UUID: ");
  message.append(why).append("; expected the form 0190a6e4-7c3b-7d52-9f10-3b2c4d5e6f70");
  return {Errc::kInvalidArgument, std::move(message)};
}

std::uint64_t Load64(const std::uint8_t* from) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// How many forks lie between the first process of ours and this one.
int ForksBefore() {
  static std::atomic<int> forks = 0;
  static const int kFailed = ::pthread_atfork(nullptr, nullptr, [] { ++forks; });
  IL_CHECK(kFailed == 0, "pthread_atfork(3) must work: a child would repeat its parent's ids");
  return forks;
}

}  // namespace

void Csprng::Fill(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    IL_CHECK(got > 0, "getrandom(2) must work: ids and keys rest on it");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

Result<Uuid> Uuid::Parse(std::string_view text) {
  if (text.size() != 36) return BadUuid("it must have 36 characters");
  Uuid uuid;
  std::size_t digits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (IsDashAt(i)) {
      if (text[i] != '-') return BadUuid("a dash is missing");
      continue;
    }
    const int digit = HexDigit(text[i]);
    if (digit < 0) return BadUuid("it has a character that is no hexadecimal digit");
    std::uint8_t& byte = uuid.bytes[digits / 2];
    byte = static_cast<std::uint8_t>(byte << 4U | static_cast<unsigned>(digit));
    ++digits;
  }
  return uuid;
}

std::string Uuid::Text() const {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::array<char, 36> text;
  std::size_t size = 0;
  for (const std::uint8_t byte : bytes) {
    if (IsDashAt(size)) text[size++] = '-';
    text[size++] = kHex[byte >> 4U];
    text[size++] = kHex[byte & 0xFU];
  }
  return {text.data(), text.size()};
}

int Uuid::version() const { return bytes[8] >> 6U == 2 ? bytes[6] >> 4U : 0; }

std::int64_t Uuid::unix_ms() const {
  IL_CHECK(version() == 7);
  std::int64_t ms = 0;
  for (std::size_t i = 0; i < 6; ++i) ms = ms << 8U | bytes[i];
  return ms;
}

UuidState UuidState::Next(std::int64_t now_ms, std::span<const std::uint8_t, 16> random) const {
  // A fresh counter starts in the lower half of its range, so that there is room to count.
  const UuidState fresh = {.ms = std::min<std::uint64_t>(now_ms < 0 ? 0 : now_ms, kMsMask),
                           .high = Load64(random.data()) & (kHighMask >> 1U),
                           .low = Load64(random.data() + 8) & kLowMask};
  if (fresh.ms > ms) return fresh;
  UuidState next = *this;
  next.low += (fresh.low >> 22U) + 1;  // up to 2^40: a millisecond has room for 2^33 of these
  if (next.low > kLowMask) {
    next.low &= kLowMask;
    ++next.high;
  }
  if (next.high <= kHighMask) return next;
  IL_CHECK(ms < kMsMask);
  return {.ms = ms + 1, .high = fresh.high, .low = fresh.low};
}

Uuid UuidState::ToUuid() const {
  const std::uint64_t upper = ms << 16U | std::uint64_t{7} << 12U | high;
  const std::uint64_t lower = std::uint64_t{2} << 62U | low;
  Uuid uuid;
  for (std::size_t i = 0; i < 8; ++i) {
    uuid.bytes[i] = static_cast<std::uint8_t>(upper >> (56 - 8 * i));
    uuid.bytes[8 + i] = static_cast<std::uint8_t>(lower >> (56 - 8 * i));
  }
  return uuid;
}

Uuid UuidMaker::Next() {
  const std::int64_t now_ms = clock_.Now().micros / 1000;
  MutexLock lock(mutex_);
  const int forks = ForksBefore();
  if (used_ == pool_.size() || forks_ != forks) {
    random_.Fill(pool_);
    used_ = 0;
    forks_ = forks;
  }
  last_ = last_.Next(now_ms, std::span(pool_).subspan(used_).first<kBytesEach>());
  used_ += kBytesEach;
  return last_.ToUuid();
}

std::string ShortId(RandomSource& random) {
  static constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr std::size_t kSize = 8;
  // Bytes from here up would make the first four characters of the alphabet likelier.
  constexpr std::uint8_t kFairEnd = 256 / kAlphabet.size() * kAlphabet.size();
  std::string id;
  while (id.size() < kSize) {
    std::array<std::uint8_t, 16> bytes;
    random.Fill(bytes);
    for (const std::uint8_t byte : bytes) {
      if (byte < kFairEnd && id.size() < kSize) id += kAlphabet[byte % kAlphabet.size()];
    }
  }
  return id;
}

std::string RandomKey(RandomSource& random) {
  std::array<std::uint8_t, 32> bytes;
  random.Fill(bytes);
  return Base64Url(bytes);
}

std::string Base64Url(std::span<const std::uint8_t> bytes) {
  static constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  std::uint32_t bits = 0;
  unsigned count = 0;  // of bits not yet written
  for (const std::uint8_t byte : bytes) {
    bits = bits << 8U | byte;
    for (count += 8; count >= 6; count -= 6) text += kAlphabet[bits >> (count - 6) & 0x3FU];
  }
  if (count > 0) text += kAlphabet[bits << (6 - count) & 0x3FU];
  return text;
}

}  // namespace interlock
