#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// SHA-256, for storing and comparing secrets. Keys and tokens have 256 random bits, so nobody can
// guess them from a plain hash; a password would need a slow hash.
namespace interlock::auth {

using Digest = std::array<std::uint8_t, 32>;

Digest Sha256(std::string_view text);

// 64 hexadecimal digits in lower case.
std::string DigestText(const Digest& digest);

// Parses 64 digits in either case; nullopt for any other text.
std::optional<Digest> ParseDigest(std::string_view text);

// Takes constant time, wherever the two differ.
bool SameDigest(const Digest& a, const Digest& b);

}  // namespace interlock::auth
