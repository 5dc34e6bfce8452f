#pragma once

#include <cstdint>
#include <random>
#include <span>

#include "base/id.h"
#include "base/mutex.h"

namespace interlock::testing {

// The seed of this run: IL_SEED if set, else 1. Printed once, so that any failure can be replayed.
std::uint64_t TestSeed();

// Randomness that a seed repeats. Thread-safe.
class SeededRandom final : public RandomSource {
 public:
  explicit SeededRandom(std::uint64_t seed = TestSeed()) : engine_(seed) {}
  void Fill(std::span<std::uint8_t> bytes) override IL_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::mt19937_64 engine_ IL_GUARDED_BY(mutex_);
};

}  // namespace interlock::testing
