#include "sim/promises.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/paths.h"

namespace interlock::sim {
namespace {

namespace event_type = domain::event_type;

bool Overlaps(std::span<const std::size_t> some, std::span<const std::size_t> others) {
  const PathSpace& space = PathSpace::Get();
  return std::ranges::any_of(some, [&](std::size_t a) {
    return std::ranges::any_of(others, [&](std::size_t b) { return space.Overlap(a, b); });
  });
}

bool Conflicts(const TurnsPromise::Claim& claim, const HoldRow& row) {
  return claim.project == row.project && claim.agent != row.agent &&
         (claim.exclusive || row.exclusive) && Overlaps(claim.patterns, std::span(&row.pattern, 1));
}

bool Conflicts(const TurnsPromise::Claim& a, const TurnsPromise::Claim& b) {
  return a.project == b.project && a.agent != b.agent && (a.exclusive || b.exclusive) &&
         Overlaps(a.patterns, b.patterns);
}

std::string Text(const HoldRow& row) {
  return fmt::format("{} of {} on {} ({}, fence {}, until {})", row.id, row.agent,
                     PathSpace::Get().patterns()[row.pattern],
                     row.exclusive ? "exclusive" : "shared", row.fence, row.expires_at.micros);
}

}  // namespace

// ---- LogPromise

void LogPromise::See(std::span<const LoggedEvent> later, Cursor pruned_through, Cursor published) {
  for (const LoggedEvent& event : later) {
    if (event.cursor != newest() + 1) {
      violations_.Add(fmt::format("log: {} follows {}", event.cursor, newest()));
      return;
    }
    events_.push_back(event);
  }
  if (pruned_through < pruned_through_) violations_.Add("log: removed events are back");
  if (pruned_through > pruned_through_ && pruned_through > published) {
    violations_.Add(
        fmt::format("log: removed up to {}, handed out up to {}", pruned_through, published));
  }
  pruned_through_ = pruned_through;
}

void LogPromise::SeeAgain(std::span<const LoggedEvent> end, Cursor newest_now) {
  if (newest_now < newest()) {
    violations_.Add(fmt::format("log: {} was there, and ends at {}", newest(), newest_now));
  }
  for (const LoggedEvent& event : end) {
    if (event.cursor > newest() || event.cursor < 1) continue;
    const LoggedEvent& before = At(event.cursor);
    if (event.type == before.type && event.entity_id == before.entity_id) continue;
    violations_.Add(fmt::format("log: {} was {} {}, is {} {}", event.cursor, before.type,
                                before.entity_id, event.type, event.entity_id));
  }
}

// ---- HoldsPromise

bool HoldsPromise::Conflicts(const HoldRow& a, const HoldRow& b) {
  return a.project == b.project && a.agent != b.agent && (a.exclusive || b.exclusive) &&
         PathSpace::Get().Overlap(a.pattern, b.pattern);
}

void HoldsPromise::Tick(Timestamp now) {
  std::erase_if(live_, [&](const std::string& id) { return rows_.at(id).expires_at <= now; });
}

void HoldsPromise::See(std::span<const HoldRow> rows, std::span<const LoggedEvent> events,
                       Timestamp now) {
  Tick(now);
  SeeEvents(events);
  before_ = std::exchange(rows_, {});
  for (const HoldRow& row : rows) rows_.emplace(row.id, row);
  std::erase_if(live_, [&](const std::string& id) { return !rows_.contains(id); });
  for (const auto& [id, row] : before_) {
    if (rows_.contains(id) || ended_.contains(id)) continue;
    violations_.Add("holds: gone without an event: " + Text(row));
  }
  new_fences_.clear();
  std::vector<const HoldRow*> changed;
  for (const auto& [id, row] : rows_) {
    const auto old = before_.find(id);
    if (old != before_.end() && old->second == row) continue;
    SeeFence(row, old == before_.end() ? nullptr : &old->second, now);
    if (ended_.contains(id)) violations_.Add("holds: back after its end: " + Text(row));
    if (old != before_.end() && row.expires_at < old->second.expires_at) {
      violations_.Add("holds: ends sooner than before: " + Text(row));
    }
    if (row.expires_at <= now) continue;
    live_.insert(id);
    changed.push_back(&row);
  }
  for (const HoldRow* row : changed) CheckPairs(*row);
  for (const auto& [project, fences] : new_fences_) fences_[project] = *fences.rbegin();
}

void HoldsPromise::SeeEvents(std::span<const LoggedEvent> events) {
  for (const LoggedEvent& event : events) {
    if (event.type == event_type::kReservationCreated) granted_.insert(event.entity_id);
    if (event.type == event_type::kAgentDeregistered) living_.erase(event.entity_id);
    const bool expired = event.type == event_type::kReservationExpired;
    if (!expired && event.type != event_type::kReservationReleased) continue;
    ended_.emplace(event.entity_id, event.cursor);
    const auto row = rows_.find(event.entity_id);
    if (row != rows_.end()) SeeEnd(event, row->second);
  }
}

void HoldsPromise::SeeEnd(const LoggedEvent& ended, const HoldRow& row) {
  const bool expired = ended.type == event_type::kReservationExpired;
  if (expired && live_.contains(row.id)) {
    violations_.Add("sweeper: took what holds: " + Text(row));
  }
  if (!expired && ended.agent == row.agent) return;
  const auto owner = living_.find(row.agent);
  if (owner == living_.end()) return;
  Timestamp seen = owner->second;
  if (const auto heard = heard_.find(row.agent); heard != heard_.end()) {
    seen = std::max(seen, heard->second);
  }
  if (seen <= ended.created_at - grace_) return;
  violations_.Add((expired ? "sweeper: its owner lives: " : "force: its owner lives: ") +
                  Text(row));
}

void HoldsPromise::Heard(const std::string& agent, Timestamp at) {
  Timestamp& heard = heard_[agent];
  heard = std::max(heard, at);
}

void HoldsPromise::SeeFence(const HoldRow& row, const HoldRow* before, Timestamp now) {
  const bool granted = before == nullptr || before->agent != row.agent ||
                       (before->expires_at <= now && row.expires_at > now);
  if (before != nullptr && before->fence == row.fence) {
    if (granted) violations_.Add("fence: granted under an old one: " + Text(row));
    return;
  }
  const auto last = fences_.find(row.project);
  const bool rises = last == fences_.end() || row.fence > last->second;
  if (!rises || !new_fences_[row.project].insert(row.fence).second) {
    violations_.Add("fence: does not rise: " + Text(row));
  }
}

void HoldsPromise::CheckPairs(const HoldRow& changed) {
  for (const std::string& id : live_) {
    const HoldRow& other = rows_.at(id);
    if (!Conflicts(changed, other)) continue;
    violations_.Add("exclusion: " + Text(changed) + " beside " + Text(other));
  }
}

void HoldsPromise::SeeAgents(std::span<const AgentRow> living) {
  living_.clear();
  for (const AgentRow& agent : living) living_.emplace(agent.id, agent.last_seen);
}

void HoldsPromise::Renewed(const Renewal& renewal, Timestamp began, Timestamp now) {
  for (const auto& [id, row] : rows_) {
    if (row.project != renewal.project || row.agent != renewal.agent) continue;
    const auto old = before_.find(id);
    const bool held =
        old != before_.end() && old->second.fence == row.fence && old->second.expires_at > now;
    const bool disputed = std::ranges::any_of(before_, [&](const auto& other) {
      return other.second.expires_at > began && Conflicts(row, other.second);
    });
    if (!held || disputed) continue;
    ++renewals_checked_;
    if (row.expires_at >= began + renewal.lease) continue;
    violations_.Add("heartbeat: does not keep what its agent holds: " + Text(row));
  }
}

// ---- TurnsPromise

void TurnsPromise::AllStandInLine(std::uint64_t step) {
  for (auto& [op, wait] : waits_) {
    if (!wait.in_line_since) wait.in_line_since = step;
  }
}

void TurnsPromise::HangUp(Op op) {
  const auto wait = waits_.find(op);
  if (wait == waits_.end()) return;
  past_[op] = {.claim = std::move(wait->second.claim)};
  waits_.erase(wait);
}

void TurnsPromise::Leave(Op op, std::uint64_t step) {
  HangUp(op);
  if (const auto past = past_.find(op); past != past_.end()) past->second.left_at = step;
}

void TurnsPromise::Clear() {
  waits_.clear();
  past_.clear();
}

void TurnsPromise::Refused(const Claim& claim, const std::string& agent) {
  ++checks_;
  const auto in_the_way = [&](const Claim& other) {
    return other.agent == agent && Conflicts(other, claim);
  };
  for (const auto& [op, wait] : waits_) {
    if (in_the_way(wait.claim)) return;
  }
  for (const auto& [op, past] : past_) {
    const bool since = !past.left_at || *past.left_at >= claim.asked_at;
    if (since && in_the_way(past.claim)) return;
  }
  violations_.Add(
      fmt::format("turns: {} was refused in favour of {}, who did not wait", claim.agent, agent));
}

void TurnsPromise::ClockJumped() {
  for (auto& [op, wait] : waits_) wait.jumped = true;
}

void TurnsPromise::Granted(const Claim& claim, std::span<const HoldRow> own) {
  const PathSpace& space = PathSpace::Get();
  PathSpace::Paths held;
  for (const HoldRow& row : own) {
    if (row.project == claim.project) held |= space.PathsOf(row.pattern);
  }
  Claim more = claim;  // than it had
  std::erase_if(more.patterns,
                [&](std::size_t pattern) { return (space.NamedBy(pattern) & ~held).none(); });
  for (const auto& [op, wait] : waits_) {
    const bool before = wait.in_line_since && *wait.in_line_since <= claim.asked_at;
    if (before) ++checks_;
    if (!before || !Conflicts(wait.claim, more)) continue;
    violations_.Add(fmt::format("turns: {} was served at once, though {} waited since step {}",
                                claim.agent, wait.claim.agent, *wait.in_line_since));
  }
}

void TurnsPromise::CheckAllBlocked(std::span<const HoldRow> active) {
  std::map<Op, const Waiting*> free;
  std::vector<const Waiting*> blocked;
  checks_ += waits_.size();
  for (const auto& [op, wait] : waits_) {
    const bool in_the_way = std::ranges::any_of(
        active, [&](const HoldRow& row) { return sim::Conflicts(wait.claim, row); });
    if (in_the_way || wait.jumped) {
      blocked.push_back(&wait);
    } else {
      free.emplace(op, &wait);
    }
  }
  for (std::size_t i = 0; i < blocked.size(); ++i) {
    std::erase_if(free, [&](const auto& one) {
      const bool came_first =
          one.second->in_line_since && *one.second->in_line_since <= blocked[i]->claim.asked_at;
      const bool behind = !came_first && Conflicts(blocked[i]->claim, one.second->claim);
      if (behind) blocked.push_back(one.second);
      return behind;
    });
  }
  for (const auto& [op, wait] : free) {
    violations_.Add(
        fmt::format("turns: {} waits for nothing (operation {})", wait->claim.agent, op));
  }
}

void TurnsPromise::CheckNoCircle(std::span<const HoldRow> active) {
  std::map<std::string, std::set<std::string>> behind;  // agent: whose holds it waits for
  for (const auto& [op, wait] : waits_) {
    if (wait.jumped) continue;
    for (const HoldRow& row : active) {
      if (sim::Conflicts(wait.claim, row)) behind[wait.claim.agent].insert(row.agent);
    }
  }
  // Whoever waits for nobody that waits is in no circle: what is left without them is one.
  const auto is_free = [&](const auto& one) {
    return std::ranges::none_of(one.second,
                                [&](const std::string& holder) { return behind.contains(holder); });
  };
  while (true) {
    const auto free = std::ranges::find_if(behind, is_free);
    if (free == behind.end()) break;
    behind.erase(free);
  }
  if (behind.empty()) return;
  std::string agents;
  for (const auto& [agent, holders] : behind) agents += " " + agent;
  violations_.Add("turns: a circle that nobody was told of, of some of" + agents);
}

// ---- TagsPromise

void TagsPromise::Answered(const std::string& tag, Outcome outcome) {
  Tag& known = tags_[tag];
  --known.open;
  if (outcome != Outcome::kNotDone) known.may_be_there = true;
  if (known.seen && known.open == 0 && !known.may_be_there) {
    violations_.Add("refused, but there: " + tag);
  }
  if (outcome == Outcome::kDone && !known.seen) violations_.Add("done, but not there: " + tag);
}

void TagsPromise::Seen(const std::string& tag) {
  const auto known = tags_.find(tag);
  if (known == tags_.end()) return violations_.Add("nobody asked for it: " + tag);
  known->second.seen = true;
  if (known->second.open == 0 && !known->second.may_be_there) {
    violations_.Add("refused, but there: " + tag);
  }
}

void TagsPromise::SeenOnce(const std::string& tag) {
  const auto known = tags_.find(tag);
  if (known != tags_.end() && known->second.seen) violations_.Add("there twice: " + tag);
  Seen(tag);
}

// ---- MailPromise

void MailPromise::See(const LoggedEvent& created, Cursor pruned_through) {
  const auto before = messages_.find(created.entity_id);
  if (before != messages_.end() && before->second.cursor <= pruned_through) {
    messages_.erase(before);
    const auto of_it = [&](const Receipt& receipt) {
      return receipt.message_id == created.entity_id;
    };
    std::erase_if(recorded_, of_it);
    std::erase_if(asked_, [&](const auto& asked) { return of_it(asked.first); });
  }
  const auto [kept, is_new] =
      messages_.emplace(created.entity_id, Kept{created.cursor, created.recipients});
  if (!is_new) {
    violations_.Add(fmt::format("mail: {} at {} and at {}", created.entity_id, kept->second.cursor,
                                created.cursor));
  }
  if (created.recipients.empty()) violations_.Add("mail: kept for nobody: " + created.entity_id);
  for (const std::string& agent : created.recipients) inboxes_[agent].push_back(created.cursor);
}

void MailPromise::Answered(const Delivered& delivered) {
  const auto kept = messages_.find(delivered.message_id);
  if (kept == messages_.end()) {
    return violations_.Add("mail: answered, but not there: " + delivered.message_id);
  }
  std::vector<std::string> received = delivered.received;
  std::ranges::sort(received);
  if (kept->second.cursor == delivered.cursor && kept->second.recipients == received) return;
  violations_.Add("mail: not as answered: " + delivered.message_id);
}

void MailPromise::Read(const Page& page, Cursor pruned_through) {
  const std::vector<Cursor>& inbox = inboxes_[page.agent];
  auto expected = std::ranges::upper_bound(inbox, page.after);
  const auto wrong = [&](Cursor cursor) {
    violations_.Add(
        fmt::format("mail: the inbox of {} after {}: wrong at {}", page.agent, page.after, cursor));
  };
  for (const Cursor cursor : page.cursors) {
    while (expected != inbox.end() && *expected < cursor && *expected <= pruned_through) ++expected;
    if (expected == inbox.end() || *expected != cursor) return wrong(cursor);
    ++expected;
  }
  if (page.cursors.size() > page.limit) return wrong(page.cursors.back());
  if (page.cursors.size() == page.limit) return;
  while (expected != inbox.end() && *expected <= pruned_through) ++expected;
  if (expected != inbox.end()) wrong(*expected);
}

void MailPromise::ReceiptAnswered(const Receipt& receipt, domain::ReceiptOutcome outcome) {
  const auto wrong = [&](std::string_view what) {
    violations_.Add(fmt::format("receipt: {}: {} by {}", what, receipt.message_id, receipt.agent));
  };
  switch (outcome) {
    case domain::ReceiptOutcome::kRecorded:
      if (!recorded_.insert(receipt).second) wrong("recorded twice");
      return;
    case domain::ReceiptOutcome::kAlreadyThere:
      if (asked_[receipt] < 2 && !recorded_.contains(receipt)) wrong("there before it was asked");
      return;
    case domain::ReceiptOutcome::kNotARecipient:
    case domain::ReceiptOutcome::kNobodyNamed:
      if (const auto& all = messages_[receipt.message_id].recipients;
          std::ranges::find(all, receipt.agent) != all.end()) {
        wrong("refused to a recipient");
      }
      return;
    case domain::ReceiptOutcome::kNoSuchMessage:
      return;  // it may be pruned
  }
}

// ---- FollowPromise

bool FollowPromise::Hears(const LoggedEvent& event) const {
  if (event.project != project_) return false;
  if (agent_.empty() || event.type != event_type::kMessageCreated) return true;
  return std::ranges::find(event.recipients, agent_) != event.recipients.end();
}

std::optional<Cursor> FollowPromise::FirstBetween(Cursor after, Cursor before) const {
  for (Cursor cursor = after + 1; cursor < before; ++cursor) {
    if (Hears(log_.At(cursor))) return cursor;
  }
  return std::nullopt;
}

void FollowPromise::Heard(Cursor cursor) {
  const auto wrong = [&](std::string_view what, Cursor at) {
    violations_.Add(fmt::format("follow: {} of {} {} {}, at {}", agent_, project_, what, at,
                                position_.value_or(-1)));
  };
  if (cursor < 1 || cursor > log_.newest()) return wrong("hears what is in no log:", cursor);
  if (!Hears(log_.At(cursor))) wrong("hears what is not for it:", cursor);
  if (position_) {
    if (cursor <= *position_) wrong("hears again", cursor);
    const Cursor from = *position_ == 0 ? log_.pruned_through() : *position_;
    if (const auto missed = FirstBetween(from, cursor)) wrong("misses", *missed);
  }
  position_ = cursor;
}

void FollowPromise::Reached(Cursor cursor) {
  if (cursor > log_.newest()) violations_.Add("follow: it is told of what is in no log");
  const Cursor from = std::max(position_.value_or(0), position_ > 0 ? 0 : log_.pruned_through());
  const Cursor end = std::min(cursor, log_.newest());
  if (const auto missed = FirstBetween(from, end + 1)) {
    violations_.Add(fmt::format("follow: it is led past {}, to {}", *missed, cursor));
  }
  position_ = cursor;
}

bool FollowPromise::Gone() {
  // Who has heard nothing yet may have been anywhere.
  const Cursor at_least = position_.value_or(0);
  const bool gone = at_least < log_.pruned_through();
  if (!gone) violations_.Add("follow: told that its place is gone, which is there");
  return gone;
}

void FollowPromise::CheckCaughtUp() {
  if (!position_) return;
  const Cursor from = *position_ == 0 ? log_.pruned_through() : *position_;
  if (const auto missed = FirstBetween(from, log_.newest() + 1)) {
    violations_.Add(fmt::format("follow: {} of {} is at {} and never hears {}", agent_, project_,
                                *position_, *missed));
  }
}

}  // namespace interlock::sim
