#include "auth/sha256.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/check.h"

namespace interlock::auth {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

// Returns 0 to 15, or nullopt if the character is not a hexadecimal digit.
std::optional<std::uint8_t> DigitValue(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

}  // namespace

Digest Sha256(std::string_view text) {
  static_assert(std::tuple_size_v<Digest> == SHA256_DIGEST_LENGTH);
  Digest digest;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  IL_CHECK(::SHA256(bytes, text.size(), digest.data()) != nullptr);
  return digest;
}

std::string DigestText(const Digest& digest) {
  std::string text;
  text.reserve(digest.size() * 2);
  for (const std::uint8_t byte : digest) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 0xF]);
  }
  return text;
}

std::optional<Digest> ParseDigest(std::string_view text) {
  Digest digest;
  if (text.size() != digest.size() * 2) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const auto high = DigitValue(text[2 * i]);
    const auto low = DigitValue(text[(2 * i) + 1]);
    if (!high || !low) return std::nullopt;
    digest[i] = static_cast<std::uint8_t>((*high << 4) | *low);
  }
  return digest;
}

bool SameDigest(const Digest& a, const Digest& b) {
  return ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace interlock::auth
