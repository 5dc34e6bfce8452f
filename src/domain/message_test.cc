#include "domain/message.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace interlock::domain {
namespace {

using Texts = std::vector<std::string>;

TEST(MessageTest, EachAddressStaysWhereItStandsFirst) {
  const Addresses sent = {
      .to = {"b", "a", "b"}, .cc = {"a", "c", "c"}, .bcc = {"d", "c", "b", "d", "D"}};
  const Addresses once = {.to = {"b", "a"}, .cc = {"c"}, .bcc = {"d", "D"}};
  EXPECT_EQ(OnceEach(sent), once);
  EXPECT_EQ(OnceEach(once), once);
  EXPECT_EQ(once.All(), (Texts{"b", "a", "c", "d", "D"}));
  EXPECT_EQ(once.size(), 5U);
  EXPECT_FALSE(once.empty());
  EXPECT_FALSE(Addresses{.bcc = {"x"}}.empty());
  EXPECT_TRUE(OnceEach({}).empty());
}

TEST(MessageTest, ABlindCopyIsSeenByItselfAndTheSenderOnly) {
  const Addresses all = {.to = {"a"}, .cc = {"b"}, .bcc = {"x", "y"}};
  const Message message = {.id = "m", .sender = "s", .body = "text", .addresses = all};
  EXPECT_EQ(AsSeenBy(message, "s"), message);
  EXPECT_EQ(AsSeenBy(message, "x").addresses.bcc, Texts{"x"});
  EXPECT_EQ(AsSeenBy(message, "y").addresses.bcc, Texts{"y"});
  for (const char* viewer : {"a", "b", "stranger", ""}) {
    const Message seen = AsSeenBy(message, viewer);
    EXPECT_EQ(seen.addresses, (Addresses{.to = {"a"}, .cc = {"b"}, .bcc = {}})) << viewer;
    EXPECT_EQ(seen.body, message.body);
  }
}

TEST(MessageTest, KindsHaveTheirNames) {
  EXPECT_EQ(Name(AddressKind::kTo), "to");
  EXPECT_EQ(Name(AddressKind::kCc), "cc");
  EXPECT_EQ(Name(AddressKind::kBcc), "bcc");
}

}  // namespace
}  // namespace interlock::domain
