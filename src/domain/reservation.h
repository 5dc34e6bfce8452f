#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

// What a reservation is, and the decisions about one that need nothing but their arguments.
namespace interlock::domain {

// What two agents may hold at once: several shared claims on a path, or one exclusive claim.
enum class Access : std::uint8_t { kShared, kExclusive };

// A claim of an agent on every path that a pattern matches, until it is released or runs out.
struct Reservation {
  std::string id;
  std::string project;
  std::string agent;     // need not be registered
  std::string pattern;   // as it was sent
  bool literal = false;  // the pattern is a path, whatever characters it has
  Access access = Access::kShared;
  std::string reason = {};
  std::int64_t fence = 0;     // rises from grant to grant in a project; a refresh keeps it
  Timestamp created_at = {};  // when it was granted, to this agent
  Timestamp expires_at = {};
  std::optional<Timestamp> released_at = {};

  bool operator==(const Reservation&) const = default;
};

// It holds its paths.
bool IsActive(const Reservation& reservation, Timestamp now);

inline constexpr std::int64_t kLeaseMinutesDefault = 30;
inline constexpr std::int64_t kLeaseMinutesMax = std::int64_t{24} * 60;

// How long a claim lasts that was asked for with that many minutes: 0 and less mean the default,
// more than a day means a day.
Duration LeaseFor(std::int64_t minutes);

// What is known of whoever holds something.
enum class HolderState : std::uint8_t {
  kActive,   // heard of within the grace
  kStale,    // registered, but not heard of since
  kUnknown,  // nobody registered it
};

// "active", "stale", "unknown"
std::string_view Name(HolderState state);

// `last_seen`: nothing when nobody registered it, or it has deregistered.
HolderState StateOf(std::optional<Timestamp> last_seen, Timestamp now, Duration grace);

// What stands in the way of a claim.
struct Conflict {
  // Nothing: it is the claim of somebody who waits, and came first.
  std::optional<std::string> reservation_id = {};
  std::string agent;
  std::string held_by;  // the agent's name, or its id when it has none
  std::string pattern;
  Access access = Access::kShared;
  std::string reason = {};
  std::optional<std::int64_t> fence = {};
  Timestamp expires_at = {};  // of one who waits: when it gives up
  std::optional<Timestamp> last_seen = {};
  HolderState holder_state = HolderState::kUnknown;
  std::string requested;  // the pattern that was asked for
  std::string witness;    // a path that both match

  bool operator==(const Conflict&) const = default;
};

}  // namespace interlock::domain
