#include "sim/reservation_model.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace interlock::sim {
namespace {

bool Overlap(const std::string& a, const std::string& b) {
  return a == b || a.ends_with('*') || b.ends_with('*');
}

// Is the hold what the answer shows, its end aside?
bool Fits(const Hold& hold, const Seen& seen) {
  if (!hold.id.empty() && hold.id != seen.id) return false;
  if (hold.agent != seen.agent || hold.pattern != seen.pattern) return false;
  if (hold.exclusive != seen.exclusive) return false;
  if (hold.fence != 0) return hold.fence == seen.fence;
  return seen.fence > hold.above && seen.fence < hold.below;
}

// Does it end when the answer says?
bool EndFits(const Hold& hold, const Seen& seen) {
  return seen.expires_at == hold.expires_at ||
         (hold.may_expire_later && seen.expires_at > hold.expires_at);
}

// From here on the hold is as the answer shows it.
void Learn(Reserved& state, Hold& hold, const Seen& seen) {
  hold.id = seen.id;
  hold.fence = seen.fence;
  hold.expires_at = seen.expires_at;
  hold.may_expire_later = false;
  state.last_fence = std::max(state.last_fence, seen.fence);
}

// The one by that id, or whose id is open and that may be it.
Hold* Find(Reserved& state, const Seen& seen) {
  const auto known = std::ranges::find(state.holds, seen.id, &Hold::id);
  if (known != state.holds.end()) return Fits(*known, seen) ? &*known : nullptr;
  const auto open = std::ranges::find_if(
      state.holds, [&](const Hold& hold) { return hold.id.empty() && Fits(hold, seen); });
  return open == state.holds.end() ? nullptr : &*open;
}

// The state after an answer showed exactly the holds for which `is_shown` is true.
std::optional<Reserved> Shown(Reserved state, const std::vector<Seen>& seen,
                              const std::function<bool(const Hold&)>& is_shown) {
  const auto count = std::ranges::count_if(state.holds, is_shown);
  if (static_cast<std::size_t>(count) != seen.size()) return std::nullopt;
  for (const Seen& one : seen) {
    Hold* const hold = Find(state, one);
    if (hold == nullptr || !is_shown(*hold) || !EndFits(*hold, one)) return std::nullopt;
    Learn(state, *hold, one);
  }
  return state;
}

// The hold lasts longer: until the answer's end, or an open one. False when the answer shows
// another hold, or takes away from this one.
bool Extend(Reserved& state, Hold& hold, const Operation& operation) {
  if (operation.heard == Heard::kNothing) {
    hold.may_expire_later = true;
    return true;
  }
  const Seen& shown = operation.seen.front();
  if (!Fits(hold, shown) || shown.expires_at < hold.expires_at) return false;
  Learn(state, hold, shown);
  return true;
}

// A new fence for the hold: that of the answer, or an open one. False when the answer's is not new,
// or its end is not that of the hold.
bool Grant(Reserved& state, Hold& hold, const Operation& operation) {
  hold.above = state.last_fence;
  hold.below = INT64_MAX;
  hold.fence = 0;
  if (operation.heard == Heard::kNothing) return true;
  const Seen& shown = operation.seen.front();
  if (shown.fence <= state.last_fence || !EndFits(hold, shown)) return false;
  for (Hold& other : state.holds) {
    if (other.fence == 0 && &other != &hold) other.below = std::min(other.below, shown.fence);
  }
  Learn(state, hold, shown);
  return true;
}

std::optional<Reserved> Reserve(const Reserved& before, const Operation& operation) {
  const auto is_same = [&](const Hold& hold) {
    return hold.agent == operation.agent && hold.pattern == operation.pattern &&
           hold.exclusive == operation.exclusive;
  };
  const auto in_the_way = [&](const Hold& hold) {
    return hold.agent != operation.agent && Overlap(hold.pattern, operation.pattern) &&
           (hold.exclusive || operation.exclusive);
  };
  const bool blocked = std::ranges::any_of(before.holds, in_the_way);
  if (operation.heard == Heard::kGaveUp) return before;
  if (operation.heard == Heard::kConflict) {
    const bool refused = blocked || operation.waiters > 0;
    return refused ? Shown(before, operation.seen, in_the_way) : std::nullopt;
  }
  const bool heard = operation.heard != Heard::kNothing;
  if (blocked || (heard && operation.heard != Heard::kDone)) return std::nullopt;
  Reserved after = before;
  const auto same = std::ranges::find_if(after.holds, is_same);
  if (same != after.holds.end()) {
    if (heard && Find(after, operation.seen.front()) != &*same) return std::nullopt;
    return Extend(after, *same, operation) ? std::optional(std::move(after)) : std::nullopt;
  }
  Hold made{.id = "",
            .agent = operation.agent,
            .pattern = operation.pattern,
            .exclusive = operation.exclusive,
            .may_expire_later = true};
  if (heard) {
    const std::string& id = operation.seen.front().id;
    if (std::ranges::count(before.holds, id, &Hold::id) > 0) return std::nullopt;
    made.id = id;
  }
  if (!Grant(after, made, operation)) return std::nullopt;
  if (heard && !Fits(made, operation.seen.front())) return std::nullopt;
  after.holds.push_back(std::move(made));
  return after;
}

// A transfer of `handed` that succeeds. Whoever holds the same already has it once, until the later
// of both ends.
std::optional<Reserved> HandOn(Reserved after, const Hold& handed, const Operation& operation) {
  const auto is_same = [&](const Hold& hold) {
    return handed.agent != operation.to_agent && hold.agent == operation.to_agent &&
           hold.pattern == handed.pattern && hold.exclusive == handed.exclusive;
  };
  if (std::ranges::any_of(after.holds, is_same)) {
    std::erase_if(after.holds, [&](const Hold& hold) { return hold.id == operation.id; });
  } else {
    std::ranges::find(after.holds, operation.id, &Hold::id)->agent = operation.to_agent;
  }
  const auto granted = std::ranges::find_if(
      after.holds, [&](const Hold& hold) { return is_same(hold) || hold.id == operation.id; });
  granted->expires_at = std::max(granted->expires_at, handed.expires_at);
  granted->may_expire_later = granted->may_expire_later || handed.may_expire_later;
  if (operation.heard != Heard::kNothing) {
    const std::string& shown = operation.seen.front().id;
    const bool open = granted->id.empty() && std::ranges::count(after.holds, shown, &Hold::id) == 0;
    if (!open && granted->id != shown) return std::nullopt;
  }
  if (!Grant(after, *granted, operation)) return std::nullopt;
  if (operation.heard != Heard::kNothing && !Fits(*granted, operation.seen.front())) {
    return std::nullopt;
  }
  return after;
}

// Renew, release and transfer: of one by its id.
std::optional<Reserved> OfOne(const Reserved& before, const Operation& operation) {
  Reserved after = before;
  const auto found = std::ranges::find(after.holds, operation.id, &Hold::id);
  const bool heard = operation.heard != Heard::kNothing;
  if (found == after.holds.end()) {
    return operation.heard == Heard::kGone ? std::optional(std::move(after)) : std::nullopt;
  }
  if (found->agent != operation.agent) {
    return operation.heard == Heard::kForbidden ? std::optional(std::move(after)) : std::nullopt;
  }
  if (operation.call == Call::kRenew) {
    if (heard && operation.heard != Heard::kDone) return std::nullopt;
    return Extend(after, *found, operation) ? std::optional(std::move(after)) : std::nullopt;
  }
  if (operation.call == Call::kRelease) {
    if (heard && operation.heard != Heard::kDone) return std::nullopt;
    after.holds.erase(found);
    return after;
  }
  const auto in_the_way = [&](const Hold& hold) {
    return hold.id != operation.id && hold.agent != operation.to_agent &&
           Overlap(hold.pattern, found->pattern) && (hold.exclusive || found->exclusive);
  };
  const bool blocked = std::ranges::any_of(after.holds, in_the_way);
  if (operation.heard == Heard::kConflict) {
    return blocked ? Shown(before, operation.seen, in_the_way) : std::nullopt;
  }
  if (blocked || (heard && operation.heard != Heard::kDone)) return std::nullopt;
  return HandOn(before, *found, operation);
}

}  // namespace

std::string Reserved::Key() const {
  std::vector<std::string> texts;
  texts.reserve(holds.size());
  for (const Hold& hold : holds) {
    std::string& text = texts.emplace_back(" ");
    text.append(hold.id).append("|").append(hold.agent).append("|").append(hold.pattern);
    text.append(hold.exclusive ? "|exclusive|" : "|shared|").append(std::to_string(hold.fence));
    text.append("|until ").append(std::to_string(hold.expires_at));
    if (hold.may_expire_later) text.append(" or later");
    if (hold.fence != 0) continue;
    text.append("|").append(std::to_string(hold.above)).append("|");
    text.append(std::to_string(hold.below));
  }
  std::ranges::sort(texts);
  std::string key = std::to_string(last_fence);
  for (const std::string& text : texts) key += text;
  return key;
}

std::optional<Reserved> Step(const Reserved& before, const Operation& operation) {
  // Whoever was granted something was shown one reservation.
  const bool shows_one = operation.heard == Heard::kDone && operation.call != Call::kLook &&
                         operation.call != Call::kRelease;
  if (shows_one && operation.seen.size() != 1) return std::nullopt;
  switch (operation.call) {
    case Call::kReserve:
      return Reserve(before, operation);
    case Call::kLook:
      if (operation.heard != Heard::kDone) return std::nullopt;
      return Shown(before, operation.seen, [](const Hold&) { return true; });
    case Call::kRenew:
    case Call::kRelease:
    case Call::kTransfer:
      return OfOne(before, operation);
  }
  return std::nullopt;
}

}  // namespace interlock::sim
