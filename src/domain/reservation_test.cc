#include "domain/reservation.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

namespace interlock::domain {
namespace {

using std::chrono::minutes;

TEST(ReservationTest, ALeaseIsWhatWasAskedForWithinADay) {
  const std::vector<std::pair<std::int64_t, minutes>> cases = {
      {1, minutes(1)},
      {30, minutes(30)},
      {1440, minutes(1440)},
      {1441, minutes(1440)},
      {0, minutes(30)},
      {-5, minutes(30)},
      {std::numeric_limits<std::int64_t>::max(), minutes(1440)},
      {std::numeric_limits<std::int64_t>::min(), minutes(30)},
  };
  for (const auto& [asked, lease] : cases) EXPECT_EQ(LeaseFor(asked), lease) << asked;
}

TEST(ReservationTest, ItHoldsUntilTheMomentItRunsOutOrIsReleased) {
  Reservation reservation;
  reservation.expires_at = {100};
  EXPECT_TRUE(IsActive(reservation, {99}));
  EXPECT_FALSE(IsActive(reservation, {100}));
  reservation.released_at = Timestamp{50};
  EXPECT_FALSE(IsActive(reservation, {60}));
  EXPECT_FALSE(IsActive(reservation, {40})) << "released, whatever the clock says now";
}

TEST(ReservationTest, AHolderIsActiveWhileItWasSeenWithinTheGrace) {
  const Timestamp now{1'000'000'000};
  EXPECT_EQ(StateOf(std::nullopt, now, minutes(5)), HolderState::kUnknown);
  EXPECT_EQ(StateOf(now, now, minutes(5)), HolderState::kActive);
  EXPECT_EQ(StateOf(now - minutes(5) + Duration(1), now, minutes(5)), HolderState::kActive);
  EXPECT_EQ(StateOf(now - minutes(5), now, minutes(5)), HolderState::kStale);
  EXPECT_EQ(StateOf(now + minutes(9), now, minutes(5)), HolderState::kActive)
      << "the clock was put back";
  EXPECT_EQ(Name(HolderState::kActive), "active");
  EXPECT_EQ(Name(HolderState::kStale), "stale");
  EXPECT_EQ(Name(HolderState::kUnknown), "unknown");
}

}  // namespace
}  // namespace interlock::domain
