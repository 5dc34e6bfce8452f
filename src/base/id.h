#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"

// Randomness and the ids made of it.
namespace interlock {

// Where randomness comes from; tests use tests/testing/seeded_random.h. Thread-safe.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual void Fill(std::span<std::uint8_t> bytes) = 0;
};

// The kernel's generator. It keeps nothing in this process, so a fork shares nothing.
class Csprng final : public RandomSource {
 public:
  void Fill(std::span<std::uint8_t> bytes) override;
};

// 128 bits; compares as its bytes do, which for version 7 is the order of making.
struct Uuid {
  std::array<std::uint8_t, 16> bytes = {};

  // The 36 characters of RFC 9562, in either case; no braces, no "urn:uuid:". kInvalidArgument.
  static Result<Uuid> Parse(std::string_view text);
  // In lower case.
  std::string Text() const;
  // 1 to 8 for the layouts of RFC 9562; 0 when the variant bits are not that RFC's.
  int version() const;
  // When a version 7 was made, in milliseconds since 1970. REQUIRES: version() == 7
  std::int64_t unix_ms() const;

  auto operator<=>(const Uuid&) const = default;
};

// The fields of a version 7 that is to be followed by a greater one.
struct UuidState {
  std::uint64_t ms = 0;    // 48 bits
  std::uint64_t high = 0;  // 12 bits: rand_a, the upper part of a 74-bit counter
  std::uint64_t low = 0;   // 62 bits: rand_b, its lower part

  // The state after this one. It counts on when `now_ms` is not later, and borrows the next
  // millisecond when the counter is full.
  UuidState Next(std::int64_t now_ms, std::span<const std::uint8_t, 16> random) const;
  Uuid ToUuid() const;
};

// Makes UUIDs of version 7, each greater than every one before it, also when many fall into one
// millisecond and when the clock steps back: it then counts on from the last, in steps too random
// to guess the next one, and so long that a forked child does not make the same ones.
//
// Thread-safe.
class UuidMaker {
 public:
  // Both must outlive it.
  UuidMaker(Clock& clock, RandomSource& random) : clock_(clock), random_(random) {}

  Uuid Next() IL_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kBytesEach = 16;

  Clock& clock_;
  RandomSource& random_;
  Mutex mutex_;
  UuidState last_ IL_GUARDED_BY(mutex_);
  // Random bytes for the next ids, fetched for many at once: to ask for each costs a system call. A
  // forked child fetches its own.
  std::array<std::uint8_t, 64 * kBytesEach> pool_ IL_GUARDED_BY(mutex_) = {};
  std::size_t used_ IL_GUARDED_BY(mutex_) = pool_.size();
  int forks_ IL_GUARDED_BY(mutex_) = 0;  // that led to the process that fetched them
};

// Eight characters of [a-z0-9], each equally likely: 41 bits, for names that people type.
std::string ShortId(RandomSource& random);

// A secret for a client: 32 random bytes as base64url, 43 characters.
std::string RandomKey(RandomSource& random);

// RFC 4648 section 5, without padding.
std::string Base64Url(std::span<const std::uint8_t> bytes);

}  // namespace interlock
