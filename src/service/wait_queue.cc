#include "service/wait_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace interlock::service {
namespace {

template <typename T>
void SortOnce(std::vector<T>& list) {
  std::ranges::sort(list);
  list.erase(std::ranges::unique(list).begin(), list.end());
}

bool IsOneOf(const WaitQueue::Hold& hold, std::span<const std::string> reservation_ids) {
  return std::ranges::find(reservation_ids, hold.reservation_id) != reservation_ids.end();
}

}  // namespace

Result<WaitQueue::Ticket> WaitQueue::Join(std::shared_ptr<const Wanted> wanted,
                                          std::function<void()> wake) {
  MutexLock lock(mutex_);
  if (stopped_) return Error(Errc::kUnavailable, "the server is stopping; try again later");
  if (waiters_.size() >= waiters_max_) {
    return Error(Errc::kUnavailable,
                 "too many requests wait for reservations already; ask without wait_seconds, or "
                 "try again later");
  }
  const Ticket ticket = next_++;
  waiters_.emplace(ticket, Waiter{.wanted = std::move(wanted), .wake = std::move(wake)});
  return ticket;
}

void WaitQueue::CountHolds(const Waiter& waiter, int by) {
  for (const Hold& hold : waiter.blockers.holds) {
    const auto count = behind_agent_.try_emplace(hold.agent, 0).first;
    count->second += by;
    if (count->second == 0) behind_agent_.erase(count);
  }
}

void WaitQueue::SetBlockers(Waiter& waiter, Blockers blockers) {
  CountHolds(waiter, -1);
  for (const EarlierWait& wait : waiter.blockers.waits) {
    if (--behind_wait_[wait.ticket] == 0) behind_wait_.erase(wait.ticket);
  }
  waiter.blockers = std::move(blockers);
  CountHolds(waiter, 1);
  for (const EarlierWait& wait : waiter.blockers.waits) ++behind_wait_[wait.ticket];
}

void WaitQueue::Replace(Blockers& blockers, Ticket ticket, std::span<const Hold> granted) {
  const auto ended = std::ranges::equal_range(blockers.waits, ticket, {}, &EarlierWait::ticket);
  for (const EarlierWait& wait : ended) {
    if (!granted.empty()) blockers.holds.push_back(granted[wait.pattern]);
  }
  SortOnce(blockers.holds);
  blockers.waits.erase(ended.begin(), ended.end());
}

std::optional<Timestamp> WaitQueue::RestUntil(const Waiter& waiter) {
  if (waiter.look_again || waiter.blockers.empty() || !waiter.deadlock.empty()) return std::nullopt;
  if (!waiter.blockers.waits.empty()) return kNever;
  return std::ranges::max(waiter.blockers.holds, {}, &Hold::expires_at).expires_at;
}

void WaitQueue::Change(Waiter& waiter, const std::function<void(Blockers&)>& change) {
  const auto before = RestUntil(waiter);
  CountHolds(waiter, -1);
  change(waiter.blockers);
  CountHolds(waiter, 1);
  if (RestUntil(waiter) != before) waiter.wake();
}

void WaitQueue::Leave(Ticket ticket, std::span<const Hold> granted, Timestamp now) {
  MutexLock lock(mutex_);
  const auto leaving = waiters_.find(ticket);
  if (leaving == waiters_.end()) return;
  SetBlockers(leaving->second, {});
  waiters_.erase(leaving);
  const bool in_the_way = behind_wait_.erase(ticket) > 0;
  for (auto& [other, waiter] : waiters_) {
    if (waiter.trying) waiter.left[ticket] = {granted.begin(), granted.end()};
    if (!in_the_way || waiter.blockers.waits.empty()) continue;
    Change(waiter, [&](Blockers& blockers) { Replace(blockers, ticket, granted); });
  }
  if (in_the_way && !granted.empty()) BreakCirclesOf(granted.front().agent, now);
}

void WaitQueue::Gone(std::span<const std::string> reservation_ids) {
  MutexLock lock(mutex_);
  const auto is_gone = [&](const Hold& hold) { return IsOneOf(hold, reservation_ids); };
  for (auto& [ticket, waiter] : waiters_) {
    if (waiter.trying) {
      waiter.gone.insert(waiter.gone.end(), reservation_ids.begin(), reservation_ids.end());
    }
    if (std::ranges::none_of(waiter.blockers.holds, is_gone)) continue;
    Change(waiter, [&](Blockers& blockers) { std::erase_if(blockers.holds, is_gone); });
  }
}

void WaitQueue::LookAgain(Waiter& waiter) {
  waiter.look_again = true;
  waiter.wake();
}

void WaitQueue::Moved(std::span<const std::string> reservation_ids) {
  MutexLock lock(mutex_);
  for (auto& [ticket, waiter] : waiters_) {
    const bool concerned = std::ranges::any_of(
        waiter.blockers.holds, [&](const Hold& hold) { return IsOneOf(hold, reservation_ids); });
    if (waiter.trying || concerned) LookAgain(waiter);
  }
}

void WaitQueue::LookAgain(std::span<const Ticket> tickets) {
  MutexLock lock(mutex_);
  for (const Ticket ticket : tickets) {
    const auto found = waiters_.find(ticket);
    if (found != waiters_.end()) LookAgain(found->second);
  }
}

void WaitQueue::LookAgain(std::string_view agent) {
  MutexLock lock(mutex_);
  for (auto& [ticket, waiter] : waiters_) {
    const bool behind_it = std::ranges::any_of(
        waiter.blockers.holds, [&](const Hold& hold) { return hold.agent == agent; });
    if (waiter.wanted->agent == agent || behind_it || waiter.trying) LookAgain(waiter);
  }
}

void WaitQueue::LookAgainIn(std::string_view project) {
  MutexLock lock(mutex_);
  for (auto& [ticket, waiter] : waiters_) {
    if (waiter.wanted->project == project) LookAgain(waiter);
  }
}

std::optional<Timestamp> WaitQueue::RestUntil(Ticket ticket) const {
  MutexLock lock(mutex_);
  const auto found = waiters_.find(ticket);
  return found == waiters_.end() ? std::nullopt : RestUntil(found->second);
}

std::vector<WaitQueue::Earlier> WaitQueue::Before(std::string_view project, Ticket before) const {
  MutexLock lock(mutex_);
  std::vector<Earlier> earlier;
  for (const auto& [ticket, waiter] : waiters_) {
    if (ticket >= before) break;
    if (waiter.wanted->project == project) earlier.push_back({ticket, waiter.wanted});
  }
  return earlier;
}

void WaitQueue::BeginTry(Ticket ticket) {
  MutexLock lock(mutex_);
  Waiter& waiter = waiters_.at(ticket);
  waiter.trying = true;
  waiter.look_again = false;
  waiter.gone.clear();
  waiter.left.clear();
  SetBlockers(waiter, {});
}

WaitQueue::Next WaitQueue::EndTry(Ticket ticket, Blockers blockers, Timestamp now) {
  MutexLock lock(mutex_);
  Waiter& waiter = waiters_.at(ticket);
  IL_CHECK(waiter.trying);
  waiter.trying = false;
  if (stopped_) return Next::kStopped;
  if (waiter.look_again) return Next::kTryAgain;
  SortOnce(blockers.waits);
  for (const auto& [left, granted] : waiter.left) Replace(blockers, left, granted);
  std::erase_if(blockers.holds, [&](const Hold& hold) { return IsOneOf(hold, waiter.gone); });
  if (blockers.empty()) return Next::kTryAgain;
  SortOnce(blockers.holds);
  SetBlockers(waiter, std::move(blockers));
  BreakCircles(ticket, now);
  return waiter.deadlock.empty() ? Next::kSleep : Next::kGiveUp;
}

bool WaitQueue::Holds(const Wanted& wanted, std::string_view agent, std::string_view project) {
  if (wanted.agent != agent) return false;
  return wanted.project == project || (wanted.registered && wanted.reach == Reach::kEverywhere);
}

WaitQueue::Way WaitQueue::FindCircle(Ticket start, Timestamp now) const {
  const Wanted& first = *waiters_.at(start).wanted;
  if (!behind_agent_.contains(first.agent) && !behind_wait_.contains(start)) return {};
  std::unordered_map<std::string_view, std::vector<Ticket>> waits_of;  // not yet reached
  for (const auto& [ticket, waiter] : waiters_) {
    const bool counts = ticket != start && waiter.deadlock.empty();
    if (counts) waits_of[waiter.wanted->agent].push_back(ticket);
  }
  std::unordered_map<Ticket, Ticket> reached_from;
  std::vector<Ticket> open = {start};
  Way way;
  const auto circle_from = [&](Ticket last) {
    way.circle = {last};
    while (way.circle.back() != start) way.circle.push_back(reached_from.at(way.circle.back()));
    std::ranges::reverse(way.circle);
    return way;
  };
  while (!open.empty()) {
    const Ticket at = open.back();
    open.pop_back();
    const auto reach = [&](Ticket ticket) {
      if (reached_from.emplace(ticket, at).second) open.push_back(ticket);
    };
    const Blockers& blockers = waiters_.at(at).blockers;
    const std::string& project = waiters_.at(at).wanted->project;
    for (const Hold& hold : blockers.holds) {
      if (hold.expires_at <= now) {
        if (way.outdated.empty() || way.outdated.back() != at) way.outdated.push_back(at);
        continue;
      }
      if (Holds(first, hold.agent, project)) return circle_from(at);
      const auto next = waits_of.find(hold.agent);
      if (next == waits_of.end()) continue;
      std::vector<Ticket> others;
      others.reserve(next->second.size());
      for (const Ticket ticket : next->second) {
        if (Holds(*waiters_.at(ticket).wanted, hold.agent, project)) {
          reach(ticket);
        } else {
          others.push_back(ticket);
        }
      }
      next->second = std::move(others);
    }
    for (const EarlierWait& wait : blockers.waits) {
      if (wait.ticket == start) return circle_from(at);
      const auto next = waiters_.find(wait.ticket);
      if (next != waiters_.end() && next->second.deadlock.empty()) reach(wait.ticket);
    }
  }
  return way;
}

void WaitQueue::BreakCircles(Ticket ticket, Timestamp now) {
  while (waiters_.at(ticket).deadlock.empty()) {
    auto [circle, outdated] = FindCircle(ticket, now);
    if (circle.empty()) {
      for (const Ticket one : outdated) LookAgain(waiters_.at(one));
      return;
    }
    const auto youngest = std::ranges::max_element(circle);
    std::ranges::rotate(circle, youngest);
    Waiter& loser = waiters_.at(circle.front());
    for (const Ticket one : circle) {
      const Wanted& wanted = *waiters_.at(one).wanted;
      const bool may_know =
          loser.wanted->reach == Reach::kEverywhere || loser.wanted->project == wanted.project;
      if (may_know) loser.deadlock.push_back(wanted.agent);
    }
    loser.wake();
  }
}

void WaitQueue::BreakCirclesOf(std::string_view agent, Timestamp now) {
  for (const auto& [ticket, waiter] : waiters_) {
    if (waiter.wanted->agent == agent) BreakCircles(ticket, now);
  }
}

std::vector<std::string> WaitQueue::Deadlock(Ticket ticket) const {
  MutexLock lock(mutex_);
  const auto found = waiters_.find(ticket);
  return found == waiters_.end() ? std::vector<std::string>() : found->second.deadlock;
}

void WaitQueue::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  for (auto& [ticket, waiter] : waiters_) waiter.wake();
}

bool WaitQueue::stopped() const {
  MutexLock lock(mutex_);
  return stopped_;
}

std::size_t WaitQueue::size() const {
  MutexLock lock(mutex_);
  return waiters_.size();
}

}  // namespace interlock::service
