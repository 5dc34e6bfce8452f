#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// SHA-256, under which secrets are kept and compared. Keys and tokens hold 256 random bits, so that
// a plain hash of them cannot be guessed backwards; a password would need a slow one.
namespace interlock::auth {

using Digest = std::array<std::uint8_t, 32>;

Digest Sha256(std::string_view text);

// 64 hexadecimal digits in lower case.
std::string DigestText(const Digest& digest);

// Reads the 64 digits, in either case; nothing when it is anything else.
std::optional<Digest> ParseDigest(std::string_view text);

// Takes the same time wherever the two differ.
bool SameDigest(const Digest& a, const Digest& b);

}  // namespace interlock::auth
