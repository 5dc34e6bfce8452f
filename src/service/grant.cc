#include "service/grant.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/time_text.h"
#include "domain/event.h"
#include "domain/message.h"
#include "glob/cover.h"
#include "glob/overlap.h"
#include "glob/product.h"
#include "store/agents.h"
#include "store/messages.h"
#include "store/reservations.h"

namespace interlock::service {
namespace {

using domain::Access;
using domain::Conflict;
using domain::Reservation;
namespace event_type = domain::event_type;

Error NoSuchReservation(std::string_view id) {
  return {Errc::kNotFound,
          fmt::format("there is no reservation {} here: it was released, or it ran out and was "
                      "cleared away; reserve again",
                      id.substr(0, 100))};
}

Error NotTheOwner(const Reservation& reservation, std::string_view asker) {
  if (asker.empty()) {
    return {
        Errc::kForbidden,
        fmt::format("the reservation belongs to {}, and the request does not say who asks: send "
                    "your own agent's id as X-Agent-ID",
                    reservation.agent)};
  }
  return {
      Errc::kForbidden,
      fmt::format("the reservation belongs to {}: ask that agent in a message to release or "
                  "transfer it, or wait until it ends at {}; once its holder is stale, any agent "
                  "may release it with DELETE and force=true",
                  reservation.agent, FormatRfc3339(reservation.expires_at))};
}

Error HasLeft(std::string_view agent) {
  return {
      Errc::kNotFound,
      fmt::format("the agent {} has deregistered, and is granted nothing: register it again with "
                  "POST /api/agents, then ask again",
                  agent)};
}

Error TooMany(std::int64_t held, std::int64_t more, const GrantRules& rules) {
  return Error(Errc::kRateLimited,
               fmt::format("the agent holds {} reservations in this project, asks for {} more and "
                           "may hold {}: release some, or reserve a pattern that covers several "
                           "files",
                           held, more, rules.held_max))
      .WithSlug("reservation_limit")
      .WithDetail("limit", rules.held_max);
}

// The one that `ref` means, if it was not released; kNotFound.
Result<Reservation> Find(db::Connection& connection, const Reservations::Ref& ref) {
  IL_TRY(std::optional<Reservation> found, store::FindReservation(connection, ref.id));
  const bool here =
      found && !found->released_at && (!ref.project || *ref.project == found->project);
  if (!here) return NoSuchReservation(ref.id);
  return *std::move(found);
}

Result<Reservation> FindOwn(db::Connection& connection, const Reservations::Ref& ref) {
  IL_TRY(Reservation found, Find(connection, ref));
  if (found.agent != ref.agent) return NotTheOwner(found, ref.agent);
  return found;
}

// Somebody who holds something, or waits for it.
struct Holder {
  std::string name;                    // the id of one that nobody registered here
  std::optional<Timestamp> last_seen;  // nothing: it was never registered, or has deregistered
  bool here = false;                   // it is an agent of this project
};
Result<Holder> FindHolder(db::Connection& connection, const std::string& project,
                          const std::string& agent, const domain::Sightings& sightings) {
  IL_TRY(const auto found, store::FindAgent(connection, agent));
  if (!found || found->deregistered_at) return Holder{.name = agent, .last_seen = {}};
  const bool here = found->project == project;
  return Holder{.name = here ? found->name : agent,
                .last_seen = sightings.Newest(found->id, found->last_seen),
                .here = here};
}

Tried Refuse(std::vector<Conflict> conflicts, std::vector<WaitQueue::EarlierWait> waits) {
  Tried tried{.verdict = Reservations::Refused{}, .blockers = {.waits = std::move(waits)}};
  for (const Conflict& conflict : conflicts) {
    if (!conflict.reservation_id) continue;
    tried.blockers.holds.push_back({.reservation_id = *conflict.reservation_id,
                                    .agent = conflict.agent,
                                    .expires_at = conflict.expires_at});
  }
  tried.verdict = Reservations::Refused{.conflicts = std::move(conflicts)};
  return tried;
}

Result<Reservations::Asker> FindAsker(db::Connection& connection, const std::string& project,
                                      const std::string& agent) {
  IL_TRY(const auto card, store::FindCard(connection, agent));
  return Reservations::Asker{.agent = agent, .name = card ? card->name : "", .project = project};
}

// The refusal of a claim of `agent`, which will be told.
Result<Tried> RefuseAgent(db::Connection& connection, const Reservation& claim,
                          const std::string& agent, std::vector<Conflict> conflicts) {
  Tried tried = Refuse(std::move(conflicts), {});
  IL_TRY(std::get<Reservations::Refused>(tried.verdict).asker,
         FindAsker(connection, claim.project, agent));
  return tried;
}

// For one request. Enough for what people write; who asks for more waits its turn.
constexpr std::int64_t kCoverSteps = 200'000;

// Does the agent hold every path of the pattern already?
bool IsCovered(const glob::Pattern& pattern, std::span<const glob::Pattern> held,
               glob::Budget& budget) {
  if (const std::string* const path = pattern.literal_path()) {
    return std::ranges::any_of(held,
                               [path](const glob::Pattern& own) { return own.Matches(*path); });
  }
  std::vector<glob::Pattern> near;
  for (const glob::Pattern& own : held) {
    const auto common = glob::Overlap(pattern, own, budget);
    if (common.ok() && common->has_value()) near.push_back(own);
  }
  if (near.empty()) return false;
  const auto left = glob::Uncovered(pattern, near, budget);
  return left.ok() && !left->has_value();
}

// Of the agent, in the project or (nothing) in every one.
Result<std::vector<Reservation>> ListHeld(db::Connection& connection,
                                          const std::optional<std::string>& project,
                                          const std::string& agent, Timestamp now) {
  return project ? store::ListHeldBy(connection, *project, agent, now)
                 : store::ListActiveOfAgent(connection, agent, now);
}

// The agent's reservations as patterns; all of them, unless the budget ends before.
Result<std::vector<glob::Pattern>> PatternsHeldBy(db::Connection& connection, const Claims& claims,
                                                  Timestamp now, glob::Budget& budget) {
  IL_TRY(const auto held, store::ListHeldBy(connection, claims.project, claims.agent, now));
  std::vector<glob::Pattern> patterns;
  patterns.reserve(held.size());
  for (const Reservation& one : held) {
    IL_TRY(glob::Pattern pattern, store::ParseHeld(one.pattern, one.literal));
    if (!budget.Spend(pattern.parse_steps())) break;
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

// Nobody else was granted what it holds: a clock that was set back may have brought it to life
// after that. What is too much to compare counts as not alone, as a renewal of it would be refused.
Result<bool> HoldsAlone(db::Connection& connection, const Reservation& held, Timestamp now,
                        glob::Budget& budget) {
  IL_TRY(const glob::Pattern pattern, store::ParseHeld(held.pattern, held.literal));
  // Whether the others live does not matter.
  const auto conflicts =
      store::FindConflicts(connection, {held.project, held.agent, pattern, held.access},
                           {.now = now, .grace = {}, .sightings = domain::kNoSightings}, budget);
  if (conflicts.ok()) return conflicts->empty();
  if (conflicts.error().code() == Errc::kPatternTooComplex) return false;
  return conflicts.error();
}

// The result of a look before the lock, unless the clock was set back since: then all is compared.
std::vector<Conflict> KnownInTheWay(const GrantRules& rules) {
  const auto& compared_at = rules.effort.compared_at;
  if (!compared_at || rules.now < compared_at->now) return {};
  return rules.effort.in_the_way;
}

// Adds those of `more` that are not there yet: what is known may have been renewed since.
void Append(std::vector<Conflict>& all, std::vector<Conflict> more) {
  const auto known = static_cast<std::ptrdiff_t>(all.size());
  for (Conflict& one : more) {
    const auto is_same = [&](const Conflict& other) {
      return other.reservation_id == one.reservation_id && other.requested == one.requested;
    };
    if (std::none_of(all.begin(), all.begin() + known, is_same)) all.push_back(std::move(one));
  }
}

// Finds what is in the way of `own` in the hands of `agent`, itself not counted.
Result<std::vector<Conflict>> FindInTheWayOf(db::Connection& connection, const Reservation& own,
                                             const std::string& agent, const GrantRules& rules,
                                             glob::Budget& budget) {
  IL_TRY(const glob::Pattern pattern, store::ParseHeld(own.pattern, own.literal));
  if (!budget.Spend(pattern.parse_steps())) return glob::TooComplex();
  const store::Claim claim = {own.project, agent, pattern, own.access, rules.effort.compared_at};
  IL_TRY(auto found, store::FindConflicts(connection, claim, rules.holders(), budget));
  std::vector<Conflict> all = KnownInTheWay(rules);
  Append(all, std::move(found));
  std::erase_if(all, [&](const Conflict& one) { return one.reservation_id == own.id; });
  return all;
}

// Finds the agent's hold that is the same claim as `own`.
Result<std::optional<Reservation>> FindSameAs(db::Connection& connection, const Reservation& own,
                                              const std::string& agent, Timestamp now) {
  IL_TRY(const glob::Pattern pattern, store::ParseHeld(own.pattern, own.literal));
  return store::FindSame(connection, {own.project, agent, pattern, own.access}, now);
}

// What is granted anew, whoever held it before, is held since then, under a fence of its own.
Result<Reservation> Anew(db::Transaction& tx, Reservation granted, Timestamp now) {
  granted.created_at = now;
  IL_TRY(granted.fence, store::TakeFence(tx, granted.project));
  return granted;
}

// One attempt to grant.
class Granting {
 public:
  Granting(db::Transaction& tx, const Claims& claims, const GrantRules& rules, Refusal refusal)
      : tx_(tx),
        claims_(claims),
        rules_(rules),
        refusal_(refusal),
        holds_budget_(rules.effort.holds_steps),
        waits_budget_(rules.effort.waits_steps),
        same_(claims.all.size()),
        covered_(claims.all.size()) {}

  // What the agent holds already, and whether it may hold the rest.
  Result<void> FindOwn() {
    std::int64_t new_ones = 0;
    for (std::size_t i = 0; i < claims_.all.size(); ++i) {
      if (claims_.all[i].same_as != i) continue;
      IL_TRY(same_[i], store::FindSame(tx_.connection(), ClaimOf(i), rules_.now));
      if (!same_[i]) ++new_ones;
    }
    if (new_ones == 0) return {};
    IL_TRY(const std::int64_t held,
           store::CountHeldBy(tx_.connection(), claims_.project, claims_.agent, rules_.now));
    if (held + new_ones > rules_.held_max) return TooMany(held, new_ones, rules_);
    return {};
  }

  // Also beside what the agent holds already: a clock that was set back may have brought it to life
  // after somebody else was granted its paths.
  Result<void> FindHolds() {
    IL_TRY(conflicts_, FindInTheWay(tx_.connection(), claims_, rules_, holds_budget_));
    return {};
  }

  Result<void> FindWaits(std::span<const WaitQueue::Earlier> earlier) {
    for (const WaitQueue::Earlier& wait : earlier) {
      const WaitQueue::Wanted& wanted = *wait.wanted;
      const bool may_share = wanted.access == Access::kShared && claims_.access == Access::kShared;
      if (wanted.agent == claims_.agent || may_share) continue;
      for (std::size_t i = 0; i < claims_.all.size(); ++i) {
        if (claims_.all[i].same_as != i || same_[i]) continue;
        IL_TRY_VOID(CompareWith(wait, i));
      }
    }
    return {};
  }

  bool refused() const { return !conflicts_.empty() || !waits_.empty(); }
  Result<Tried> TakeRefusal() {
    Tried tried = Refuse(std::move(conflicts_), std::move(waits_));
    if (refusal_ == Refusal::kGoesOn) return tried;
    IL_TRY(std::get<Reservations::Refused>(tried.verdict).asker, Asker());
    return tried;
  }

  Result<Tried> Grant() {
    Reservations::Granted granted;
    IL_TRY(granted.asker, Asker());
    granted.reservations.reserve(claims_.all.size());
    for (std::size_t i = 0; i < claims_.all.size(); ++i) {
      const std::size_t first = claims_.all[i].same_as;
      if (first != i) {
        granted.reservations.push_back(granted.reservations.at(first));
        continue;
      }
      IL_TRY(Reservation reservation, same_[i] ? Extend(*same_[i]) : Make(i));
      granted.reservations.push_back(std::move(reservation));
    }
    return Tried{.verdict = std::move(granted), .passed = std::move(passed_)};
  }

 private:
  store::Claim ClaimOf(std::size_t i) const {
    return {claims_.project, claims_.agent, claims_.all[i].pattern, claims_.access};
  }

  Result<Reservations::Asker> Asker() const {
    return FindAsker(tx_.connection(), claims_.project, claims_.agent);
  }

  // Is somebody who waits in the way of the claim `i`?
  Result<void> CompareWith(const WaitQueue::Earlier& wait, std::size_t i) {
    const WaitQueue::Wanted& wanted = *wait.wanted;
    const glob::Pattern& pattern = claims_.all[i].pattern;
    for (std::size_t k = 0; k < wanted.patterns.size(); ++k) {
      const glob::Pattern& other = wanted.patterns[k];
      IL_TRY(auto witness, glob::Overlap(pattern, other, waits_budget_));
      if (!witness) continue;
      IL_TRY(const bool covered, Covers(i));
      if (covered) {
        passed_.push_back(wait.ticket);
        return {};
      }
      waits_.push_back({.ticket = wait.ticket, .pattern = k});
      if (refusal_ == Refusal::kGoesOn) continue;
      IL_TRY(const Holder who,
             FindHolder(tx_.connection(), wanted.project, wanted.agent, rules_.sightings));
      conflicts_.push_back(
          {.agent = wanted.agent,
           .held_by = who.name,
           .pattern = other.text(),
           .access = wanted.access,
           .reason = wanted.reason,
           .expires_at = wanted.until,
           .last_seen = who.here ? who.last_seen : std::nullopt,
           .holder_state = domain::StateOf(who.last_seen, rules_.now, rules_.grace),
           .requested = pattern.text(),
           .witness = *std::move(witness)});
    }
    return {};
  }

  // Does the agent hold all of the claim `i` already?
  Result<bool> Covers(std::size_t i) {
    if (!held_) {
      IL_TRY(held_, PatternsHeldBy(tx_.connection(), claims_, rules_.now, cover_budget_));
    }
    if (!covered_[i]) covered_[i] = IsCovered(claims_.all[i].pattern, *held_, cover_budget_);
    return *covered_[i];
  }

  Result<Reservation> Make(std::size_t i) {
    IL_TRY(const std::int64_t fence, store::TakeFence(tx_, claims_.project));
    Reservation made{.id = claims_.all[i].id,
                     .project = claims_.project,
                     .agent = claims_.agent,
                     .pattern = claims_.all[i].pattern.text(),
                     .literal = claims_.literal,
                     .access = claims_.access,
                     .reason = claims_.reason,
                     .fence = fence,
                     .created_at = rules_.now,
                     .expires_at = rules_.now + claims_.lease};
    IL_TRY_VOID(store::InsertReservation(tx_, made, claims_.all[i].pattern));
    IL_TRY_VOID(store::AppendReservationEvent(tx_, event_type::kReservationCreated, made,
                                              made.agent, rules_.now));
    return made;
  }

  Result<Reservation> Extend(Reservation same) {
    same.expires_at = std::max(same.expires_at, rules_.now + claims_.lease);
    if (!claims_.reason.empty()) same.reason = claims_.reason;
    IL_TRY_VOID(store::UpdateReservation(tx_, same));
    IL_TRY_VOID(store::AppendReservationEvent(tx_, event_type::kReservationRenewed, same,
                                              same.agent, rules_.now));
    return same;
  }

  db::Transaction& tx_;
  const Claims& claims_;
  const GrantRules& rules_;
  const Refusal refusal_;
  glob::Budget holds_budget_;
  glob::Budget waits_budget_;
  std::vector<std::optional<Reservation>> same_;
  // Looked at only when somebody waits.
  glob::Budget cover_budget_{kCoverSteps};
  std::optional<std::vector<glob::Pattern>> held_;
  std::vector<std::optional<bool>> covered_;  // by held_
  std::vector<WaitQueue::Ticket> passed_;
  std::vector<Conflict> conflicts_;
  std::vector<WaitQueue::EarlierWait> waits_;
};

Result<Reservation> EndReservation(db::Transaction& tx, Reservation reservation,
                                   const std::string& by, Timestamp now) {
  reservation.released_at = now;
  IL_TRY_VOID(store::SetReleased(tx, reservation.id, now));
  IL_TRY_VOID(
      store::AppendReservationEvent(tx, event_type::kReservationReleased, reservation, by, now));
  return reservation;
}

// What was handed on by `by` is a new grant.
Result<Tried> WriteTransfer(db::Transaction& tx, Reservation moved, const std::string& by,
                            Timestamp now) {
  IL_TRY(moved, Anew(tx, std::move(moved), now));
  IL_TRY_VOID(store::UpdateReservation(tx, moved));
  IL_TRY_VOID(
      store::AppendReservationEvent(tx, event_type::kReservationTransferred, moved, by, now));
  IL_TRY(auto asker, FindAsker(tx.connection(), moved.project, moved.agent));
  return Tried{.verdict = Reservations::Granted{.reservations = {std::move(moved)},
                                                .asker = std::move(asker)}};
}

// Of what is handed to an agent that holds the same already it has one: its own, of which the other
// becomes a part, as if it had asked for it again.
Result<Tried> Merge(db::Transaction& tx, Reservation handed, Reservation its_own,
                    const GrantRules& rules) {
  its_own.expires_at = std::max(its_own.expires_at, handed.expires_at);
  if (!handed.reason.empty()) its_own.reason = handed.reason;
  const std::string by = handed.agent;
  IL_TRY_VOID(EndReservation(tx, std::move(handed), by, rules.now));
  return WriteTransfer(tx, std::move(its_own), by, rules.now);
}

domain::Message LetterToHolder(const Reservation& taken, const Reservations::Ref& ref,
                               const std::string& reason, Timestamp now) {
  return {.project = taken.project,
          .sender = ref.agent,
          .subject = "Your reservation was released: " + taken.pattern,
          .body = fmt::format("{} released your reservation {} of {}, since you had not been heard "
                              "of.{}{}",
                              ref.agent, taken.id, taken.pattern,
                              reason.empty() ? "" : " Reason: ", reason),
          .addresses = {.to = {taken.agent}},
          .created_at = now};
}

}  // namespace

Result<Standing> FindStanding(db::Connection& connection, const std::string& agent) {
  IL_TRY(const auto found, store::FindCard(connection, agent));
  if (found && !found->living) return HasLeft(agent);
  return Standing{.registered = found.has_value()};
}

Result<std::vector<Conflict>> FindInTheWay(db::Connection& connection, const Claims& claims,
                                           const GrantRules& rules, glob::Budget& budget) {
  std::vector<Conflict> found;
  for (std::size_t i = 0; i < claims.all.size(); ++i) {
    if (claims.all[i].same_as != i) continue;
    const store::Claim claim = {claims.project, claims.agent, claims.all[i].pattern, claims.access,
                                rules.effort.compared_at};
    IL_TRY(auto more, store::FindConflicts(connection, claim, rules.holders(), budget));
    std::ranges::move(more, std::back_inserter(found));
  }
  std::vector<Conflict> all = KnownInTheWay(rules);
  Append(all, std::move(found));
  return all;
}

Result<std::vector<Conflict>> FindInTheWayOfRenewal(db::Connection& connection,
                                                    const Reservations::Ref& ref,
                                                    const GrantRules& rules, glob::Budget& budget) {
  IL_TRY(const Reservation own, FindOwn(connection, ref));
  return FindInTheWayOf(connection, own, own.agent, rules, budget);
}

Result<std::vector<Conflict>> FindInTheWayOfTransfer(db::Connection& connection,
                                                     const Reservations::Ref& ref,
                                                     const std::string& to_agent,
                                                     const GrantRules& rules,
                                                     glob::Budget& budget) {
  IL_TRY(const Reservation own, FindOwn(connection, ref));
  return FindInTheWayOf(connection, own, to_agent, rules, budget);
}

Result<Tried> TryGrant(db::Transaction& tx, const Claims& claims, const GrantRules& rules,
                       std::span<const WaitQueue::Earlier> earlier, Refusal refusal) {
  Granting granting(tx, claims, rules, refusal);
  IL_TRY_VOID(granting.FindOwn());
  IL_TRY_VOID(granting.FindHolds());
  IL_TRY_VOID(granting.FindWaits(earlier));
  if (granting.refused()) return granting.TakeRefusal();
  return granting.Grant();
}

Result<Tried> RenewReservation(db::Transaction& tx, const Reservations::Ref& ref, Duration lease,
                               const GrantRules& rules) {
  IL_TRY(Reservation own, FindOwn(tx.connection(), ref));
  glob::Budget budget(rules.effort.holds_steps);
  // Also of one that holds: a clock that was set back may have brought it to life after somebody
  // else was granted its paths.
  IL_TRY(auto conflicts, FindInTheWayOf(tx.connection(), own, own.agent, rules, budget));
  if (!conflicts.empty()) {
    return RefuseAgent(tx.connection(), own, own.agent, std::move(conflicts));
  }
  bool anew = false;
  if (!domain::IsActive(own, rules.now)) {
    IL_TRY(auto same, FindSameAs(tx.connection(), own, own.agent, rules.now));
    if (same) {
      own = *std::move(same);  // the agent has asked for the paths again since: once is enough
    } else {
      IL_TRY(const std::int64_t held,
             store::CountHeldBy(tx.connection(), own.project, own.agent, rules.now));
      if (held >= rules.held_max) return TooMany(held, 1, rules);
      IL_TRY(own, Anew(tx, std::move(own), rules.now));
      anew = true;
    }
  }
  own.expires_at = std::max(own.expires_at, rules.now + lease);
  IL_TRY_VOID(store::UpdateReservation(tx, own));
  IL_TRY_VOID(store::AppendReservationEvent(tx, event_type::kReservationRenewed, own, own.agent,
                                            rules.now));
  return Tried{.verdict = Reservations::Granted{.reservations = {std::move(own)}}, .anew = anew};
}

Result<Tried> TransferReservation(db::Transaction& tx, const Reservations::Ref& ref,
                                  const std::string& to_agent, const GrantRules& rules) {
  IL_TRY(Reservation own, FindOwn(tx.connection(), ref));
  if (!domain::IsActive(own, rules.now)) return NoSuchReservation(ref.id);
  // What is in the owner's hands may overlap, but not what is in the hands of two.
  glob::Budget budget(rules.effort.holds_steps);
  IL_TRY(auto conflicts, FindInTheWayOf(tx.connection(), own, to_agent, rules, budget));
  if (!conflicts.empty()) {
    return RefuseAgent(tx.connection(), own, ref.agent, std::move(conflicts));
  }
  if (to_agent != own.agent) {
    IL_TRY_VOID(FindStanding(tx.connection(), to_agent));
    IL_TRY(auto same, FindSameAs(tx.connection(), own, to_agent, rules.now));
    if (same) return Merge(tx, std::move(own), *std::move(same), rules);
    IL_TRY(const std::int64_t held,
           store::CountHeldBy(tx.connection(), own.project, to_agent, rules.now));
    if (held >= rules.held_max) return TooMany(held, 1, rules);
  }
  own.agent = to_agent;
  return WriteTransfer(tx, std::move(own), ref.agent, rules.now);
}

Result<Reservation> ReleaseReservation(db::Transaction& tx, const Reservations::Ref& ref,
                                       Timestamp now) {
  IL_TRY(Reservation own, FindOwn(tx.connection(), ref));
  return EndReservation(tx, std::move(own), ref.agent, now);
}

Result<Reservation> ForceReleaseReservation(db::Transaction& tx, const Reservations::Ref& ref,
                                            const std::string& reason,
                                            const std::string& message_id, const GrantRules& rules,
                                            domain::DeliveryListener& listener) {
  IL_TRY(Reservation taken, Find(tx.connection(), ref));
  if (taken.agent == ref.agent) return EndReservation(tx, std::move(taken), ref.agent, rules.now);
  IL_TRY(const Holder holder,
         FindHolder(tx.connection(), taken.project, taken.agent, rules.sightings));
  if (domain::StateOf(holder.last_seen, rules.now, rules.grace) == domain::HolderState::kActive) {
    return Error(Errc::kConflict,
                 fmt::format("{} was seen at {} and still works: ask it to release, or wait",
                             holder.name, FormatRfc3339(*holder.last_seen)))
        .WithSlug("holder_active");
  }
  domain::Message letter = LetterToHolder(taken, ref, reason, rules.now);
  letter.id = message_id;
  IL_TRY_VOID(store::InsertMessage(tx, store::MakeOutgoing(std::move(letter)), listener));
  return EndReservation(tx, std::move(taken), ref.agent, rules.now);
}

Result<std::vector<Reservation>> UndoGrant(db::Transaction& tx, const Claims& claims,
                                           Timestamp now) {
  std::vector<Reservation> undone;
  for (const Claims::One& claim : claims.all) {
    IL_TRY(auto made, store::FindUnchanged(tx.connection(), claim.id));
    if (!made) continue;  // the agent had it before, or has asked for it again since
    const std::string holder = made->agent;  // its id; the claims may have its name
    IL_TRY(Reservation released, EndReservation(tx, *std::move(made), holder, now));
    undone.push_back(std::move(released));
  }
  return undone;
}

Result<void> RenewAllHeldBy(db::Transaction& tx, const std::optional<std::string>& project,
                            const std::string& agent, Duration lease, Timestamp now,
                            glob::Budget& budget) {
  IL_TRY(auto held, ListHeld(tx.connection(), project, agent, now));
  std::ranges::sort(held, {}, &Reservation::expires_at);  // what must be kept soonest comes first
  std::map<std::string, bool> disputable;                 // by project
  for (Reservation& one : held) {
    if (one.expires_at >= now + lease) continue;
    const auto [known, is_new] = disputable.try_emplace(one.project, false);
    if (is_new) {
      IL_TRY(known->second, store::WasGrantedAfter(tx.connection(), one.project, now));
    }
    if (known->second) {
      IL_TRY(const bool alone, HoldsAlone(tx.connection(), one, now, budget));
      if (!alone) continue;
    }
    one.expires_at = now + lease;
    IL_TRY_VOID(store::SetExpiry(tx, one.id, one.expires_at));
    IL_TRY_VOID(
        store::AppendReservationEvent(tx, event_type::kReservationRenewed, one, agent, now));
  }
  return {};
}

Result<std::vector<Reservation>> TakeHeldUnderName(db::Transaction& tx, const domain::Agent& agent,
                                                   Timestamp now) {
  IL_TRY(auto held, store::ListHeldBy(tx.connection(), agent.project, agent.name, now));
  for (Reservation& one : held) {
    one.agent = agent.id;
    IL_TRY_VOID(store::UpdateReservation(tx, one));
    IL_TRY_VOID(
        store::AppendReservationEvent(tx, event_type::kReservationTransferred, one, agent.id, now));
  }
  return held;
}

Result<std::vector<Reservation>> ReleaseAllHeldBy(db::Transaction& tx,
                                                  const std::optional<std::string>& project,
                                                  const std::string& agent, Timestamp now) {
  IL_TRY(auto held, ListHeld(tx.connection(), project, agent, now));
  for (Reservation& one : held) {
    IL_TRY(one, EndReservation(tx, std::move(one), agent, now));
  }
  return held;
}

}  // namespace interlock::service
