#include "service/shared_work.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "domain/contact_policy.h"
#include "glob/budget.h"
#include "glob/overlap.h"
#include "glob/pattern.h"
#include "store/reservations.h"

namespace interlock::service {
namespace {

using domain::ContactPolicy;
using Patterns = std::vector<glob::Pattern>;

constexpr std::int64_t kStepsPerRecipient = 200'000;

bool Asks(const store::RecipientFacts& facts) {
  const domain::Policies& policies = facts.policies;
  return policies.mail == ContactPolicy::kAuto || policies.live == ContactPolicy::kAuto;
}

bool AnyOverlap(const Patterns& some, const Patterns& others, glob::Budget& budget) {
  return std::ranges::any_of(some, [&](const glob::Pattern& one) {
    return std::ranges::any_of(others, [&](const glob::Pattern& other) {
      const auto witness = glob::Overlap(one, other, budget);
      return witness.ok() && witness->has_value();
    });
  });
}

}  // namespace

Result<void> FindSharedWork(db::Connection& connection, const std::string& project,
                            const std::string& sender, Timestamp now,
                            std::span<store::RecipientFacts> facts) {
  std::vector<std::string> agents;
  for (const store::RecipientFacts& one : facts) {
    if (Asks(one)) agents.push_back(one.agent);
  }
  if (agents.empty()) return {};
  IL_TRY(const std::int64_t held_by_sender, store::CountHeldBy(connection, project, sender, now));
  if (held_by_sender == 0) return {};
  agents.push_back(sender);
  std::map<std::string, Patterns> held;
  IL_TRY(const auto holds, store::ListHeldByAny(connection, project, agents, now));
  for (const store::HeldPattern& hold : holds) {
    IL_TRY(glob::Pattern pattern, store::ParseClaim(hold.pattern, hold.literal));
    held[hold.agent].push_back(std::move(pattern));
  }
  for (store::RecipientFacts& one : facts) {
    glob::Budget budget(kStepsPerRecipient);
    if (Asks(one)) one.holds_overlap = AnyOverlap(held[sender], held[one.agent], budget);
  }
  return {};
}

}  // namespace interlock::service
