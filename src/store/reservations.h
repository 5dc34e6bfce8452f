#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "db/connection.h"
#include "db/sql.h"
#include "domain/event.h"
#include "domain/reservation.h"
#include "domain/sightings.h"
#include "glob/budget.h"
#include "glob/pattern.h"

// The claims of agents on paths (table `reservations`), and what stands in the way of one. Nothing
// here decides who may do what; that is the service's. A write that depends on what was read before
// it must be in the same transaction.
namespace interlock::store {

// `text` as the pattern, or the path, that it was sent as; of what is held already, also as an
// older version took it.
Result<glob::Pattern> ParseClaim(std::string_view text, bool literal);
Result<glob::Pattern> ParseHeld(std::string_view text, bool literal);

// A claim was compared with all that held at `now`, up to this event of the log.
struct Compared {
  domain::Cursor cursor = 0;
  Timestamp now;
};

// A claim that somebody wants to make.
struct Claim {
  std::string_view project;
  // Whose own claims are not in the way; empty = everybody's are.
  std::string_view agent;
  const glob::Pattern& pattern;
  domain::Access access;
  // Then it was compared with all that held: only what was granted since is looked at, unless the
  // clock was set back. A grant, a renewal and a transfer are each an event of the log.
  std::optional<Compared> compared_at = {};
};

// By what a holder counts as active, stale or unknown.
struct HolderRules {
  Timestamp now;
  Duration grace;  // for which a holder counts as active after it was last seen
  const domain::Sightings& sightings;
};

// Everything active that a claim must not be granted beside: the claims of others that overlap it,
// of which at least one of the two is exclusive. In the order of their grants. Looks only at what
// the index of prefixes gives. kPatternTooComplex when the budget is used up. When they are many,
// the reasons of some are left out.
Result<std::vector<domain::Conflict>> FindConflicts(db::Connection& connection, const Claim& claim,
                                                    const HolderRules& rules, glob::Budget& budget);

Result<std::optional<domain::Reservation>> FindReservation(db::Connection& connection,
                                                           std::string_view id);

// The same if nothing has changed it since it was made.
Result<std::optional<domain::Reservation>> FindUnchanged(db::Connection& connection,
                                                         std::string_view id);

// What the agent already holds that is the same claim: the same paths, the same access.
Result<std::optional<domain::Reservation>> FindSame(db::Connection& connection, const Claim& claim,
                                                    Timestamp now);

// Is there a claim, not released, that was granted after `now`? Only in a project where the clock
// was set back since, and only there can two that conflict hold at once: the later of them was
// granted when the other had run out.
Result<bool> WasGrantedAfter(db::Connection& connection, std::string_view project, Timestamp now);

// How many claims of the agent hold in the project right now.
Result<std::int64_t> CountHeldBy(db::Connection& connection, std::string_view project,
                                 std::string_view agent, Timestamp now);

// Does any claim of the agent hold right now, in whatever project?
Result<bool> HoldsAnything(db::Connection& connection, std::string_view agent, Timestamp now);

// What the agent holds in the project right now, the first to expire first.
Result<std::vector<domain::Reservation>> ListHeldBy(db::Connection& connection,
                                                    std::string_view project,
                                                    std::string_view agent, Timestamp now);

// The same of each of these agents, in no order.
struct HeldPattern {
  std::string agent;
  std::string pattern;
  bool literal = false;
};
Result<std::vector<HeldPattern>> ListHeldByAny(db::Connection& connection, std::string_view project,
                                               std::span<const std::string> agents, Timestamp now);

// All that the agent holds in every project, in no order.
Result<std::vector<domain::Reservation>> ListActiveOfAgent(db::Connection& connection,
                                                           std::string_view agent, Timestamp now);

// Of the agent, in this project or (nothing) in every one, whether they still hold or not; the
// newest first, `limit` at most.
Result<std::vector<domain::Reservation>> ListOfAgent(db::Connection& connection,
                                                     std::optional<std::string_view> project,
                                                     std::string_view agent, std::int64_t limit);
// Active ones of everybody in the project; the newest first, `limit` at most.
Result<std::vector<domain::Reservation>> ListOfProject(db::Connection& connection,
                                                       std::string_view project, Timestamp now,
                                                       std::int64_t limit);

// The next fence of the project: one more than any that was ever given there.
Result<std::int64_t> TakeFence(db::Transaction& tx, std::string_view project);

// REQUIRES: the id is new; `pattern` is what the reservation's text means.
Result<void> InsertReservation(db::Transaction& tx, const domain::Reservation& reservation,
                               const glob::Pattern& pattern);

// Agent, reason, fence, created_at, expires_at and released_at become as given; the rest never
// changes.
Result<void> UpdateReservation(db::Transaction& tx, const domain::Reservation& reservation);
// The same where only one of them changes, which is most of what happens to a reservation.
Result<void> SetReleased(db::Transaction& tx, std::string_view id, Timestamp at);
Result<void> SetExpiry(db::Transaction& tx, std::string_view id, Timestamp at);

// Removes claims that ran out before `expired_before` and were not released, and whose owner was
// not seen after `seen_after`, or was never registered; `limit` at most, the oldest first. Gives
// what it removed.
struct SweepQuery {
  Timestamp expired_before;
  Timestamp seen_after = {};
  std::int64_t limit;
};
Result<std::vector<domain::Reservation>> SweepReservations(db::Transaction& tx,
                                                           const SweepQuery& query);
// The living agents that own what it would remove, each once.
struct ExpiredOwner {
  std::string id;
  Timestamp last_seen;  // as it is stored
};
Result<std::vector<ExpiredOwner>> FindOwnersOfExpired(db::Connection& connection,
                                                      const SweepQuery& query);
// Is there anything that it would remove?
Result<bool> HasExpired(db::Connection& connection, const SweepQuery& query);

// Forgets claims that were released before `released_before`; says how many, `limit` at most.
Result<std::int64_t> PruneReleased(db::Transaction& tx, Timestamp released_before,
                                   std::int64_t limit);
Result<bool> HasReleased(db::Connection& connection, Timestamp released_before);

// How many claims hold right now, in every project.
Result<std::int64_t> CountActive(db::Connection& connection, Timestamp now);

// {id, agent_id, project, path_pattern, literal?, exclusive, reason?, fence, created_at,
// expires_at, released_at?, is_active}
std::string ReservationJson(const domain::Reservation& reservation, Timestamp now);

// {reservation_id | waiting, agent_id, held_by, pattern, exclusive, reason?, expires_at, fence?,
// last_seen?, holder_state, requested, witness}
std::string ConflictJson(const domain::Conflict& conflict);

// {agent_id, path_patterns, conflicts}: what was refused to an agent. What is longer than
// `enough_bytes`, nobody wants to have whole: then some conflicts are left out.
std::string RefusalJson(std::string_view agent, const std::vector<std::string>& patterns,
                        std::span<const domain::Conflict> conflicts, std::size_t enough_bytes);

// Logs that something happened to a reservation, by `agent`.
Result<void> AppendReservationEvent(db::Transaction& tx, std::string_view type,
                                    const domain::Reservation& reservation, std::string_view agent,
                                    Timestamp at);

std::span<const db::NamedSql> ReservationStatements();

}  // namespace interlock::store
