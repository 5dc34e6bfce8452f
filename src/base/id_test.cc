#include "base/id.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "testing/fake_clock.h"
#include "testing/seeded_random.h"

namespace interlock {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::FakeClock;
using testing::SeededRandom;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kPerThread = 2'000;
#else
constexpr int kPerThread = 20'000;
#endif

// Every byte the same; 0xFF takes the longest steps and the highest start.
class ConstantRandom final : public RandomSource {
 public:
  explicit ConstantRandom(std::uint8_t byte) : byte_(byte) {}
  void Fill(std::span<std::uint8_t> bytes) override { std::ranges::fill(bytes, byte_); }

 private:
  const std::uint8_t byte_;
};

TEST(UuidTest, TextAndBytesAgreeWithTheExampleOfTheRfc) {
  const std::string_view example = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";  // RFC 9562, A.6
  const Uuid uuid = *Uuid::Parse(example);
  EXPECT_EQ(uuid.Text(), example);
  EXPECT_EQ(uuid.version(), 7);
  EXPECT_EQ(uuid.unix_ms(), 1'645'557'742'000);  // 2022-02-22T19:22:22Z
  EXPECT_EQ(*Uuid::Parse("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"), uuid);
  EXPECT_EQ(Uuid::Parse("919108f7-52d1-4320-9bac-f847db4148a8")->version(), 4);
  EXPECT_EQ(Uuid::Parse("00000000-0000-0000-0000-000000000000")->version(), 0);
  EXPECT_EQ(Uuid::Parse("ffffffff-ffff-ffff-ffff-ffffffffffff")->version(), 0);
}

TEST(UuidTest, WhatIsNoUuidIsRefused) {
  for (const std::string_view text : {
           "",
           "017f22e2",
           "017f22e279b07cc398c4dc0c0c07398f",
           "017f22e2-79b0-7cc3-98c4-dc0c0c07398",
           "017f22e2-79b0-7cc3-98c4-dc0c0c07398ff",
           "017f22e2-79b0-7cc3-98c4-dc0c0c07398g",
           "017f22e2_79b0-7cc3-98c4-dc0c0c07398f",
           "017f22e27-9b0-7cc3-98c4-dc0c0c07398f",
           "-017f22e-79b0-7cc3-98c4-dc0c0c07398f",
           "{17f22e2-79b0-7cc3-98c4-dc0c0c07398}",
           " 17f22e2-79b0-7cc3-98c4-dc0c0c07398f",
           "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}",
           "urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
       }) {
    const Result<Uuid> result = Uuid::Parse(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.error().code(), Errc::kInvalidArgument);
  }
}

TEST(UuidMakerTest, CarriesVersionVariantAndMillisecond) {
  FakeClock clock;
  SeededRandom random;
  UuidMaker maker(clock, random);
  for (int i = 0; i < 1'000; ++i) {
    const Uuid uuid = maker.Next();
    ASSERT_EQ(uuid.version(), 7);
    ASSERT_EQ(uuid.bytes[8] >> 6, 2);
    ASSERT_EQ(uuid.unix_ms(), clock.Now().micros / 1000);
    ASSERT_EQ(*Uuid::Parse(uuid.Text()), uuid);
    clock.Advance(milliseconds(1));
  }
}

// Counts how often it is asked, and for how much.
class CountedRandom final : public RandomSource {
 public:
  void Fill(std::span<std::uint8_t> bytes) override {
    random_.Fill(bytes);
    ++calls_;
    given_ += bytes.size();
  }
  std::size_t calls() const { return calls_; }
  std::size_t given() const { return given_; }

 private:
  SeededRandom random_;
  std::size_t calls_ = 0;
  std::size_t given_ = 0;
};

TEST(UuidMakerTest, UsesEachRandomByteOnceAndFetchesThemForManyIds) {
  constexpr std::size_t kIds = 1'000;
  FakeClock clock;
  CountedRandom random;
  UuidMaker maker(clock, random);
  SeededRandom same;
  std::vector<std::uint8_t> expected;
  for (std::size_t i = 0; i < kIds; ++i) {
    const std::size_t given = random.given();
    const Uuid uuid = maker.Next();
    if (random.given() > given) {
      expected.resize(random.given() - given);
      same.Fill(expected);
    }
    ASSERT_GE(expected.size(), 16U) << "bytes were used that nobody gave";
    // Each id is the first of its millisecond, so its last bytes are the random ones.
    for (std::size_t byte = 0; byte < 7; ++byte) {
      ASSERT_EQ(uuid.bytes[15 - byte], expected[8 + byte]) << "id " << i;
    }
    expected.erase(expected.begin(), expected.begin() + 16);
    clock.Advance(milliseconds(1));
  }
  EXPECT_LE(random.calls(), kIds / 10);
}

TEST(UuidMakerTest, RisesWithinOneMillisecondAlsoAsText) {
  FakeClock clock;
  SeededRandom random;
  UuidMaker maker(clock, random);
  Uuid last = maker.Next();
  const std::int64_t ms = last.unix_ms();
  for (int i = 0; i < 100'000; ++i) {
    const Uuid next = maker.Next();
    ASSERT_LT(last, next);
    ASSERT_LT(last.Text(), next.Text());
    ASSERT_EQ(next.unix_ms(), ms) << "no millisecond is borrowed without need";
    last = next;
  }
}

TEST(UuidMakerTest, RisesWhenTheClockStepsBackAndCatchesUpLater) {
  FakeClock clock;
  SeededRandom random;
  UuidMaker maker(clock, random);
  Uuid last = maker.Next();
  const std::int64_t start_ms = last.unix_ms();
  for (const auto jump : {hours(-1), hours(-24 * 365), hours(0), hours(-24 * 365 * 80)}) {
    clock.JumpWallClock(jump);  // the last one is before 1970
    for (int i = 0; i < 100; ++i) {
      const Uuid next = maker.Next();
      ASSERT_LT(last, next);
      ASSERT_EQ(next.unix_ms(), start_ms);
      last = next;
    }
  }
  clock.JumpWallClock(hours(24 * 365 * 81) + hours(2));
  const Uuid next = maker.Next();
  EXPECT_LT(last, next);
  EXPECT_EQ(next.unix_ms(), clock.Now().micros / 1000);
}

// Counted by hand, since a real counter would take years to fill.
TEST(UuidStateTest, CarriesAndBorrowsTheNextMillisecondWhenFull) {
  constexpr std::uint64_t kLowMax = (std::uint64_t{1} << 62) - 1;
  std::array<std::uint8_t, 16> zeros = {};
  std::array<std::uint8_t, 16> ones;
  ones.fill(0xFF);
  const UuidState carries = {.ms = 9, .high = 0x7FF, .low = kLowMax};
  const UuidState carried = carries.Next(9, zeros);
  EXPECT_EQ(carried.ms, 9u);
  EXPECT_EQ(carried.high, 0x800u);
  EXPECT_EQ(carried.low, 0u);
  const UuidState full = {.ms = 9, .high = 0xFFF, .low = kLowMax};
  for (const auto& random : {zeros, ones}) {
    for (const std::int64_t now_ms : {-5, 0, 8, 9}) {
      EXPECT_LT(carries.ToUuid(), carries.Next(now_ms, random).ToUuid());
      const UuidState next = full.Next(now_ms, random);
      EXPECT_EQ(next.ms, 10u);
      EXPECT_LT(full.ToUuid(), next.ToUuid());
      EXPECT_LT(next.ToUuid(), next.Next(10, random).ToUuid()) << "when time catches up";
    }
  }
  const UuidState later = full.Next(11, ones);
  EXPECT_EQ(later.ms, 11u);
  EXPECT_EQ(later.high, 0x7FFu) << "half of the range is left to count in";
  EXPECT_EQ(UuidState().Next(std::int64_t{1} << 60, zeros).ms, (std::uint64_t{1} << 48) - 1);
}

TEST(UuidMakerTest, ManyThreadsGetDifferentOnesEachInRisingOrder) {
  SystemClock clock;
  Csprng random;
  UuidMaker maker(clock, random);
  constexpr int kThreads = 8;
  std::vector<std::vector<Uuid>> made(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (std::vector<Uuid>& mine : made) {
    threads.emplace_back([&maker, &mine] {
      for (int i = 0; i < kPerThread; ++i) mine.push_back(maker.Next());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Uuid> all;
  for (const std::vector<Uuid>& mine : made) {
    EXPECT_TRUE(std::ranges::is_sorted(mine));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end()) << "two are equal";
  EXPECT_EQ(all.size(), std::size_t{kThreads} * kPerThread);
}

TEST(UuidMakerTest, TheSameSeedMakesTheSameOnes) {
  FakeClock clock;
  SeededRandom random_a(7);
  SeededRandom random_b(7);
  SeededRandom random_c(8);
  UuidMaker a(clock, random_a);
  UuidMaker b(clock, random_b);
  UuidMaker c(clock, random_c);
  for (int i = 0; i < 10; ++i) {
    const Uuid from_a = a.Next();
    EXPECT_EQ(from_a, b.Next());
    EXPECT_NE(from_a, c.Next());
  }
}

// Forks; gives what the child wrote. The child only computes and writes.
template <typename Make>
std::string InChild(Make make) {
  std::array<int, 2> ends;
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = make();
    const bool sent = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 256> buffer;
  for (ssize_t n = 0; (n = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return text;
}

// The clock stands still, so a maker that counts by one would give both the same.
TEST(UuidMakerTest, AForkedChildMakesOthersThanItsParent) {
  FakeClock clock;
  Csprng random;
  UuidMaker maker(clock, random);
  (void)maker.Next();
  std::set<std::string> seen;
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(seen.insert(InChild([&] { return maker.Next().Text(); })).second);
  }
  EXPECT_TRUE(seen.insert(maker.Next().Text()).second);
}

TEST(CsprngTest, FillsEveryByteAndSharesNothingWithAChild) {
  Csprng random;
  std::array<std::uint8_t, 1024> bytes = {};
  random.Fill(bytes);
  std::set<std::uint8_t> values(bytes.begin(), bytes.end());
  EXPECT_GT(values.size(), 200u);  // of 256; fewer has a chance below 1e-30
  EXPECT_TRUE(std::ranges::any_of(std::span(bytes).last(8), [](int b) { return b != 0; }));
  const std::string in_child = InChild([&] { return RandomKey(random); });
  EXPECT_NE(in_child, RandomKey(random));
  random.Fill({});
}

TEST(ShortIdTest, IsEightCharactersOfTheAlphabet) {
  Csprng random;
  std::set<std::string> seen;
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = ShortId(random);
    ASSERT_EQ(id.size(), 8u);
    ASSERT_EQ(id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"), std::string::npos);
    ASSERT_TRUE(seen.insert(id).second) << "10 000 of 2.8e12 should differ";
  }
}

// Each byte value in turn. Bytes that do not fit a multiple of 36 must be dropped: without that,
// a to d would appear 8 times per cycle, all others 7 times.
class CountingRandom final : public RandomSource {
 public:
  void Fill(std::span<std::uint8_t> bytes) override {
    for (std::uint8_t& byte : bytes) byte = next_++;
  }

 private:
  std::uint8_t next_ = 0;
};

TEST(ShortIdTest, EveryCharacterIsEquallyLikely) {
  // An id drops what it did not need of its last 16 bytes, so a plain cycle is counted by hand: a
  // source that repeats one byte shows where that byte goes.
  std::map<char, int> count;
  for (int byte = 0; byte < 252; ++byte) {
    ConstantRandom random(static_cast<std::uint8_t>(byte));
    const std::string id = ShortId(random);
    EXPECT_EQ(id, std::string(8, id[0]));
    ++count[id[0]];
  }
  EXPECT_EQ(count.size(), 36u);
  for (const auto& [character, times] : count) EXPECT_EQ(times, 7) << character;
  // 252 to 255 are passed over: the next usable bytes are 0, 1, 2 …
  CountingRandom counting;
  std::array<std::uint8_t, 252> skip;
  counting.Fill(skip);
  EXPECT_EQ(ShortId(counting), "abcdefgh");
}

TEST(Base64UrlTest, FollowsTheVectorsOfTheRfc) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
      {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xFB\xFF\xBF", "-_-_"},
  };
  for (const auto& [in, out] : cases) {
    std::vector<std::uint8_t> bytes(in.begin(), in.end());
    EXPECT_EQ(Base64Url(bytes), out);
  }
}

TEST(RandomKeyTest, Is32BytesInBase64Url) {
  Csprng random;
  const std::string key = RandomKey(random);
  EXPECT_EQ(key.size(), 43u);
  EXPECT_NE(key, RandomKey(random));
  ConstantRandom ones(0xFF);
  EXPECT_EQ(RandomKey(ones), std::string(42, '_') + "8");
}

}  // namespace
}  // namespace interlock
