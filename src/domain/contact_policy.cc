#include "domain/contact_policy.h"

#include <array>
#include <utility>

namespace interlock::domain {
namespace {

constexpr std::array<std::pair<ContactPolicy, std::string_view>, 4> kNames = {{
    {ContactPolicy::kOpen, "open"},
    {ContactPolicy::kAuto, "auto"},
    {ContactPolicy::kContactsOnly, "contacts_only"},
    {ContactPolicy::kBlockAll, "block_all"},
}};

}  // namespace

std::string_view Name(ContactPolicy policy) {
  return kNames[static_cast<std::size_t>(policy)].second;
}

std::optional<ContactPolicy> ParseContactPolicy(std::string_view name) {
  for (const auto& [policy, known] : kNames) {
    if (name == known) return policy;
  }
  return std::nullopt;
}

bool MayDeliver(const ContactFacts& facts) {
  if (facts.to_itself) return true;
  const bool answers = facts.recipient_posted_in_thread && facts.sender_is_in_thread;
  const bool known = facts.sender_is_contact || answers;
  switch (facts.policy) {
    case ContactPolicy::kOpen:
      return true;
    case ContactPolicy::kAuto:
      return known || facts.holds_overlap;
    case ContactPolicy::kContactsOnly:
      return known;
    case ContactPolicy::kBlockAll:
      return false;
  }
  return false;
}

}  // namespace interlock::domain
