#include "domain/reservation.h"

#include <algorithm>

namespace interlock::domain {

bool IsActive(const Reservation& reservation, Timestamp now) {
  return !reservation.released_at && now < reservation.expires_at;
}

Duration LeaseFor(std::int64_t minutes) {
  if (minutes <= 0) minutes = kLeaseMinutesDefault;
  return std::chrono::minutes(std::min(minutes, kLeaseMinutesMax));
}

std::string_view Name(HolderState state) {
  switch (state) {
    case HolderState::kActive:
      return "active";
    case HolderState::kStale:
      return "stale";
    case HolderState::kUnknown:
      break;
  }
  return "unknown";
}

HolderState StateOf(std::optional<Timestamp> last_seen, Timestamp now, Duration grace) {
  if (!last_seen) return HolderState::kUnknown;
  return *last_seen > now - grace ? HolderState::kActive : HolderState::kStale;
}

}  // namespace interlock::domain
