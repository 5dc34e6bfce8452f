#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"
#include "domain/agent.h"
#include "domain/mailbox.h"
#include "domain/reservation.h"
#include "glob/budget.h"
#include "glob/pattern.h"
#include "service/reservations.h"
#include "service/wait_queue.h"
#include "store/reservations.h"

// What is decided about reservations inside a write transaction, and written there with its event.
// Each function may run several times: everything that is made anew (ids, the time) is given to it.
namespace interlock::service {

// A claim that is ready to be decided.
struct Claims {
  struct One {
    glob::Pattern pattern;
    std::string id;       // of the reservation, should it be a new one
    std::size_t same_as;  // the first of the list that means the same paths; itself, mostly
  };
  std::string project;
  std::string agent;
  std::vector<One> all;
  bool literal = false;
  domain::Access access = domain::Access::kShared;
  std::string reason = {};
  Duration lease = {};
  std::int64_t steps = glob::Budget::kStepsDefault;  // what parsing has left of the budget
};

// How much may be compared, in the steps of a glob::Budget, and what need not be.
struct Effort {
  std::int64_t holds_steps = glob::Budget::kStepsDefault;
  std::int64_t waits_steps = glob::Budget::kStepsDefault;
  // When the claim was compared with all that is held, and what was in its way then.
  std::optional<store::Compared> compared_at = {};
  std::vector<domain::Conflict> in_the_way = {};
};

// While one decides under the only write lock, everybody waits: what takes longer, half a
// millisecond and some, is compared before (FindInTheWay).
inline constexpr std::int64_t kStepsUnderLock = 100'000;

struct GrantRules {
  Timestamp now;
  Duration grace;
  std::int64_t held_max;
  Effort effort = {};
  const domain::Sightings& sightings = domain::kNoSightings;  // beyond what is stored

  store::HolderRules holders() const { return {now, grace, sightings}; }
};

// Whether the server knows the agent. kNotFound when it has deregistered: it is granted nothing
// until it registers again.
struct Standing {
  bool registered = false;  // nobody else has its id
};
Result<Standing> FindStanding(db::Connection& connection, const std::string& agent);

struct Tried {
  Reservations::Verdict verdict;      // Granted or Refused
  WaitQueue::Blockers blockers = {};  // of a refusal
  // Who waits for what was granted all the same, since the agent held it already.
  std::vector<WaitQueue::Ticket> passed = {};
  bool anew = false;       // a renewal that was a new grant, past those who wait
  Standing standing = {};  // of the agent
  std::string agent = {};  // its id, if the claims call it by its name
};

// Whether a refusal is to be told: of one that goes on waiting, those who wait before it are named
// in the blockers only.
enum class Refusal : std::uint8_t { kToBeTold, kGoesOn };

// All of the claims, or nothing. Whoever waits for overlapping paths already comes first, unless
// the agent holds the paths in question itself.
Result<Tried> TryGrant(db::Transaction& tx, const Claims& claims, const GrantRules& rules,
                       std::span<const WaitQueue::Earlier> earlier,
                       Refusal refusal = Refusal::kToBeTold);

// Find what others hold in the way of the claims, of a renewal, of a transfer. Without the lock
// it may be out of date at once, so a decision needs what was granted since (Effort).
Result<std::vector<domain::Conflict>> FindInTheWay(db::Connection& connection, const Claims& claims,
                                                   const GrantRules& rules, glob::Budget& budget);
Result<std::vector<domain::Conflict>> FindInTheWayOfRenewal(db::Connection& connection,
                                                            const Reservations::Ref& ref,
                                                            const GrantRules& rules,
                                                            glob::Budget& budget);
Result<std::vector<domain::Conflict>> FindInTheWayOfTransfer(db::Connection& connection,
                                                             const Reservations::Ref& ref,
                                                             const std::string& to_agent,
                                                             const GrantRules& rules,
                                                             glob::Budget& budget);

// One that ran out, and that the agent has asked for again since: that one is renewed instead.
Result<Tried> RenewReservation(db::Transaction& tx, const Reservations::Ref& ref, Duration lease,
                               const GrantRules& rules);
// Refused when what the owner keeps, or anybody else holds, is in the way of the new owner;
// kNotFound when the new owner has deregistered. What the new owner holds the same way already
// takes it in, and is what was granted.
Result<Tried> TransferReservation(db::Transaction& tx, const Reservations::Ref& ref,
                                  const std::string& to_agent, const GrantRules& rules);
Result<domain::Reservation> ReleaseReservation(db::Transaction& tx, const Reservations::Ref& ref,
                                               Timestamp now);

// `message_id` is that of the letter to the holder, of which `listener` hears.
Result<domain::Reservation> ForceReleaseReservation(
    db::Transaction& tx, const Reservations::Ref& ref, const std::string& reason,
    const std::string& message_id, const GrantRules& rules, domain::DeliveryListener& listener);

// Takes back what was granted for the claims, unless somebody has changed it since. Gives what it
// released.
Result<std::vector<domain::Reservation>> UndoGrant(db::Transaction& tx, const Claims& claims,
                                                   Timestamp now);

// Everything that the agent holds, in the project or (nothing) in every one. What another holds as
// well, since a clock was set back, is left to run out; so is, where a clock may have been, what
// the budget does not suffice to compare. Elsewhere nothing is compared.
Result<void> RenewAllHeldBy(db::Transaction& tx, const std::optional<std::string>& project,
                            const std::string& agent, Duration lease, Timestamp now,
                            glob::Budget& budget);
// Reservations under the bare name of an agent, from before it registered, are its own from now on:
// the same end, the same fence. Gives those that changed hands. REQUIRES: nobody else is meant by
// the name.
Result<std::vector<domain::Reservation>> TakeHeldUnderName(db::Transaction& tx,
                                                           const domain::Agent& agent,
                                                           Timestamp now);
// Ends all of it; gives what it released.
Result<std::vector<domain::Reservation>> ReleaseAllHeldBy(db::Transaction& tx,
                                                          const std::optional<std::string>& project,
                                                          const std::string& agent, Timestamp now);

}  // namespace interlock::service
