#pragma once

#include <cstddef>
#include <random>

namespace interlock::testing {

// True in builds where everything is some times slower; randomised tests then do less.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSlowBuild = true;
#elif defined(INTERLOCK_RELEASE)
inline constexpr bool kSlowBuild = false;
#else
inline constexpr bool kSlowBuild = true;
#endif

// A number below `bound`. REQUIRES: bound > 0
inline std::size_t Below(std::mt19937_64& rng, std::size_t bound) { return rng() % bound; }

}  // namespace interlock::testing
