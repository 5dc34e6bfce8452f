#include "domain/message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
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

TEST(MessageTest, TheSameIsSaidWhateverTheOrderOfAddressesButNotOfOtherContent) {
  const Message said = {.cursor = 7,
                        .id = "m",
                        .project = "p",
                        .sender = "s",
                        .thread_id = "t",
                        .topic = "x",
                        .subject = "u",
                        .body = "b",
                        .importance = "i",
                        .addresses = {.to = {"1", "2"}, .cc = {"3", "4"}, .bcc = {"5", "6"}},
                        .created_at = {1}};
  Message again = said;
  again.cursor = 8;
  again.created_at = {2};
  for (auto* list : {&again.addresses.to, &again.addresses.cc, &again.addresses.bcc}) {
    std::ranges::reverse(*list);
  }
  EXPECT_TRUE(SaysTheSame(said, again));

  for (std::string Message::* field :
       {&Message::id, &Message::project, &Message::sender, &Message::thread_id, &Message::topic,
        &Message::subject, &Message::body, &Message::importance}) {
    Message other = said;
    other.*field += '\0';
    EXPECT_FALSE(SaysTheSame(said, other));
  }
  Message other = said;
  other.ack_required = true;
  EXPECT_FALSE(SaysTheSame(said, other));
  for (Texts Addresses::* list : {&Addresses::to, &Addresses::cc, &Addresses::bcc}) {
    other = said;
    (other.addresses.*list)[0] = "9";
    EXPECT_FALSE(SaysTheSame(said, other));
    other = said;
    (other.addresses.*list).push_back("9");
    EXPECT_FALSE(SaysTheSame(said, other));
  }
  other = said;
  std::swap(other.addresses.to, other.addresses.cc);
  EXPECT_FALSE(SaysTheSame(said, other));
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
