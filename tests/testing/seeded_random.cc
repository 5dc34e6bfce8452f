#include "testing/seeded_random.h"

#include <cstdio>
#include <cstdlib>

namespace interlock::testing {

std::uint64_t TestSeed() {
  static const std::uint64_t kSeed = [] {
    const char* text = std::getenv("IL_SEED");
    const std::uint64_t chosen = text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
    std::printf("seed: IL_SEED=%llu\n", static_cast<unsigned long long>(chosen));
    return chosen;
  }();
  return kSeed;
}

void SeededRandom::Fill(std::span<std::uint8_t> bytes) {
  MutexLock lock(mutex_);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(engine_() >> 56U);
}

}  // namespace interlock::testing
