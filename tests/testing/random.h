#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace interlock::testing {

// True in builds where everything is some times slower; randomised tests then do less.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSlowBuild = true;
#elif defined(__OPTIMIZE__)
inline constexpr bool kSlowBuild = false;
#else
inline constexpr bool kSlowBuild = true;
#endif

// The seed of a randomised test: IL_SEED from the environment, or `fallback`. Prints it, so that a
// failure can be had again.
inline std::uint64_t Seed(std::uint64_t fallback) {
  const char* chosen = std::getenv("IL_SEED");
  const std::uint64_t seed = chosen != nullptr ? std::strtoull(chosen, nullptr, 0) : fallback;
  std::printf("IL_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// A number below `bound`. REQUIRES: bound > 0
inline std::size_t Below(std::mt19937_64& rng, std::size_t bound) { return rng() % bound; }

}  // namespace interlock::testing
