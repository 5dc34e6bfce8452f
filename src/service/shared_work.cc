#include "service/shared_work.h"

#include <algorithm>
#include <array>
#include <cstddef>
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
constexpr std::int64_t kStepsPerHold = 60;  // to read one
constexpr std::size_t kAtOnce = 64;         // recipients whose holds are read in one statement

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

// What these agents hold; all of it, unless the budget ends before.
Result<std::map<std::string, Patterns>> PatternsHeldBy(db::Connection& connection,
                                                       const std::string& project,
                                                       std::span<const std::string> agents,
                                                       Timestamp now, glob::Budget& budget) {
  std::map<std::string, Patterns> held;
  IL_TRY(const auto holds, store::ListHeldByAny(connection, project, agents, now));
  for (const store::HeldPattern& hold : holds) {
    if (!budget.Spend(kStepsPerHold)) break;
    IL_TRY(glob::Pattern pattern, store::ParseHeld(hold.pattern, hold.literal));
    if (!budget.Spend(pattern.parse_steps())) break;
    held[hold.agent].push_back(std::move(pattern));
  }
  return held;
}

}  // namespace

Result<void> FindSharedWork(db::Connection& connection, const std::string& project,
                            const std::string& sender, Timestamp now,
                            std::span<store::RecipientFacts> facts, glob::Budget& budget) {
  std::vector<store::RecipientFacts*> asking;
  for (store::RecipientFacts& one : facts) {
    if (Asks(one)) asking.push_back(&one);
  }
  if (asking.empty()) return {};
  IL_TRY(auto own, PatternsHeldBy(connection, project, std::array{sender}, now, budget));
  if (own[sender].empty()) return {};
  for (std::size_t begin = 0; begin < asking.size() && budget.left() > 0; begin += kAtOnce) {
    const auto some = std::span(asking).subspan(begin, std::min(kAtOnce, asking.size() - begin));
    std::vector<std::string> agents;
    agents.reserve(some.size());
    for (const store::RecipientFacts* one : some) agents.push_back(one->agent);
    IL_TRY(auto held, PatternsHeldBy(connection, project, agents, now, budget));
    for (store::RecipientFacts* one : some) {
      const std::int64_t share = std::min(kStepsPerRecipient, budget.left());
      glob::Budget its_own(share);
      one->holds_overlap = AnyOverlap(own[sender], held[one->agent], its_own);
      if (!budget.Spend(share - its_own.left())) return {};
    }
  }
  return {};
}

}  // namespace interlock::service
