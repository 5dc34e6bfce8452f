#include "auth/keyring_holder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace interlock::auth {
namespace {

Keyring Ring(const std::string& key) {
  return Keyring::Parse("projects: {dev: {keys: [first-" + key + ", second-" + key + "]}}").value();
}

TEST(KeyringHolderTest, WhoHoldsTheOldKeyringKeepsIt) {
  KeyringHolder holder(Ring("a"));
  const auto old = holder.Get();
  holder.Set(Ring("b"));
  EXPECT_EQ(old->Find("first-a"), "dev");
  EXPECT_EQ(holder.Get()->Find("first-a"), std::nullopt);
  EXPECT_EQ(holder.Get()->Find("first-b"), "dev");
}

TEST(KeyringHolderTest, AReaderSeesOneKeyringOrTheOtherNeverHalfOfEach) {
  KeyringHolder holder(Ring("a"));
  std::atomic<bool> done = false;
  std::atomic<int> seen = 0;
  std::vector<std::thread> readers;
  readers.reserve(3);
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        const auto keyring = holder.Get();
        const bool a = keyring->Find("first-a").has_value();
        EXPECT_EQ(keyring->Find("second-a").has_value(), a);
        EXPECT_EQ(keyring->Find("first-b").has_value(), !a);
        ++seen;
      }
    });
  }
  for (int i = 0; i < 200 || seen < 100; ++i) holder.Set(Ring(i % 2 == 0 ? "b" : "a"));
  done = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace interlock::auth
