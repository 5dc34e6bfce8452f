#include "base/secret.h"

#include <gtest/gtest.h>

#include <array>
#include <new>
#include <sstream>
#include <string>
#include <utility>

namespace interlock {
namespace {

TEST(SecretTest, NeverPrintsItsText) {
  const Secret secret("hunter2");
  std::ostringstream out;
  out << secret;
  EXPECT_EQ(out.str(), "[secret]");
  EXPECT_EQ(testing::PrintToString(secret), "[secret]");
  EXPECT_EQ(secret.Reveal(), "hunter2");
}

TEST(SecretTest, MatchesOnlyTheWholeText) {
  const Secret secret(std::string("a\0b", 3));
  EXPECT_TRUE(secret.Matches(std::string_view("a\0b", 3)));
  for (const std::string_view other : {"", "a", "ab", "a b", "xxx"}) {
    EXPECT_FALSE(secret.Matches(other)) << other;
  }
  EXPECT_TRUE(Secret().Matches(""));
  EXPECT_TRUE(Secret().empty());
}

TEST(SecretTest, CopiesAndMovesLikeAString) {
  for (const std::string& text : {std::string("short"), std::string(100, 'x')}) {
    Secret a(text);
    Secret b(a);
    Secret c;
    c = b;
    EXPECT_EQ(c.Reveal(), text);
    c = *&c;
    EXPECT_EQ(c.Reveal(), text);
    Secret d(std::move(c));
    EXPECT_TRUE(c.empty());  // NOLINT(bugprone-use-after-move): what is left behind is the point
    b = std::move(d);
    EXPECT_EQ(b.Reveal(), text);
    EXPECT_TRUE(d.empty());  // NOLINT(bugprone-use-after-move)
  }
}

// Looks into the object's own bytes, where a short string lives.
TEST(SecretTest, LeavesNoCopyBehindWhenMovedFromOrDestroyed) {
  alignas(Secret) std::array<char, sizeof(Secret)> memory;
  const auto holds = [&] {
    return std::string_view(memory.data(), memory.size()).find("unter2") != std::string_view::npos;
  };
  memory.fill(0);
  auto* secret = new (memory.data()) Secret("hunter2");
  ASSERT_TRUE(holds()) << "else the test sees nothing";
  Secret taken(std::move(*secret));
  EXPECT_FALSE(holds());
  *secret = taken;
  ASSERT_TRUE(holds());
  secret->~Secret();
  EXPECT_FALSE(holds());
}

}  // namespace
}  // namespace interlock
