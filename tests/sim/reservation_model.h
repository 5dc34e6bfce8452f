#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/history.h"

namespace interlock::sim {

// Reservations of one group as a server would keep them that does one thing at a time: small enough
// to be believed by reading it. It knows nothing of our server's code, not even of its patterns:
// here two overlap when they are equal or one of them ends in '*'. Leases never end. It knows
// nothing of those who wait either, so a refusal on their account alone is always believed; what
// else such a refusal shows is not.
//
// What a client never heard of (Heard::kNothing) the model cannot know either: the id and the fence
// of such a grant are open until some answer shows them. Nor does it know the server's clock: when
// a lease ends is what the answer to the last grant or renewal said, and no write ends it sooner. A
// renewal of which nothing was heard leaves open by how much later it ends.
struct Hold {
  std::string id;  // "" = open
  std::string agent;
  std::string pattern;
  bool exclusive = false;
  std::int64_t fence = 0;  // 0 = open; then it is above `above` and below `below`
  std::int64_t above = 0;
  std::int64_t below = INT64_MAX;
  std::int64_t expires_at = 0;
  bool may_expire_later = false;
};

struct Reserved {
  std::vector<Hold> holds;
  std::int64_t last_fence = 0;  // the highest that is known to have been given

  // Equal for states that cannot be told apart, and for no others.
  std::string Key() const;
};

// The state in which the operation leaves `before` when it happens right now and is answered with
// what was heard; nothing when that cannot be. Of an operation of which nothing was heard: the
// state in which it leaves a trace, if any; that it never happened is for the caller to consider.
std::optional<Reserved> Step(const Reserved& before, const Operation& operation);

}  // namespace interlock::sim
