#include "domain/contact_policy.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

namespace interlock::domain {
namespace {

using enum ContactPolicy;

TEST(ContactPolicyTest, EveryCombinationOfFactsHasItsAnswer) {
  struct Case {
    ContactPolicy policy;
    // By the facts that hold: none, o(verlap), t(hread), t+o, c(ontact), c+o, c+t, c+t+o.
    std::string_view allowed;
  };
  constexpr std::array kCases = {
      Case{kOpen, "++++++++"},
      Case{kAuto, "-+++++++"},
      Case{kContactsOnly, "--++++++"},
      Case{kBlockAll, "--------"},
  };
  for (const Case& c : kCases) {
    for (unsigned bits = 0; bits < 8; ++bits) {
      ContactFacts facts = {.policy = c.policy,
                            .sender_is_contact = (bits & 4U) != 0,
                            .recipient_posted_in_thread = (bits & 2U) != 0,
                            .sender_is_in_thread = (bits & 2U) != 0,
                            .holds_overlap = (bits & 1U) != 0};
      EXPECT_EQ(MayDeliver(facts), c.allowed[bits] == '+') << Name(c.policy) << " " << bits;
      facts.to_itself = true;
      EXPECT_TRUE(MayDeliver(facts)) << Name(c.policy) << " " << bits;
    }
  }
}

TEST(ContactPolicyTest, AThreadOpensTheWayForThoseWhoAreInItOnly) {
  for (const ContactPolicy policy : {kAuto, kContactsOnly}) {
    EXPECT_FALSE(MayDeliver({.policy = policy, .recipient_posted_in_thread = true}));
    EXPECT_FALSE(MayDeliver({.policy = policy, .sender_is_in_thread = true}));
  }
}

TEST(ContactPolicyTest, ANameReadsBackAsItsPolicyAndNothingElseDoes) {
  constexpr std::array<std::string_view, 4> kNames = {"open", "auto", "contacts_only", "block_all"};
  for (const ContactPolicy policy : {kOpen, kAuto, kContactsOnly, kBlockAll}) {
    EXPECT_EQ(Name(policy), kNames[static_cast<std::size_t>(policy)]);
    EXPECT_EQ(ParseContactPolicy(Name(policy)), policy);
  }
  for (const char* name : {"", "Open", " open", "open ", "contacts-only", "block", "none"}) {
    EXPECT_EQ(ParseContactPolicy(name), std::nullopt) << name;
  }
}

TEST(ContactPolicyTest, MailIsOpenAndLiveIsForContactsUntilAnAgentSaysOtherwise) {
  EXPECT_EQ(Policies{}.mail, kOpen);
  EXPECT_EQ(Policies{}.live, kContactsOnly);
}

}  // namespace
}  // namespace interlock::domain
