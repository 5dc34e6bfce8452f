#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/crowd.h"
#include "sim/paths.h"

namespace interlock::sim {

using service::Reservations;

void Crowd::Reserve(Client& client) {
  const PathSpace& space = PathSpace::Get();
  const std::string tag = NewTag("r");
  TurnsPromise::Claim claim{.project = client.project,
                            .agent = client.agent,
                            .exclusive = Below(3) != 0,
                            .asked_at = step_,
                            .log_end = promises_.log.newest()};
  claim.patterns.push_back(Below(space.patterns().size()));
  if (Below(4) == 0) claim.patterns.push_back(Below(space.patterns().size()));
  const bool waits = Below(2) == 0;
  Reservations::Wish wish{.project = client.project, .agent = client.agent, .patterns = {}};
  for (const std::size_t pattern : claim.patterns) {
    wish.patterns.emplace_back(space.patterns()[pattern]);
  }
  wish.access = claim.exclusive ? domain::Access::kExclusive : domain::Access::kShared;
  wish.reason = tag;
  wish.ttl_minutes = static_cast<std::int64_t>(1 + Below(3));
  if (waits) wish.patience = std::chrono::seconds(1 + Below(25));
  promises_.tags.Asked(tag);
  const Op op = ++last_op_;
  Cancel cancel;
  if (waits) {
    cancel = std::make_shared<boost::asio::cancellation_signal>();
    waits_.emplace(op, cancel);
    promises_.turns.Wait(op, claim);
  }
  Launch<Reservations::Verdict>(
      waits ? "wait" : "reserve", world_.server().reservations.Reserve(std::move(wish)),
      [this, &client, claim, tag, op, cancel](Result<Reservations::Verdict> verdict) {
        waits_.erase(op);
        promises_.turns.Leave(op, step_);
        HearReserve(client, claim, tag, std::move(verdict));
      },
      cancel);
}

void Crowd::HearReserve(Client& client, const TurnsPromise::Claim& claim, const std::string& tag,
                        Result<Reservations::Verdict> verdict) {
  if (!verdict.ok()) return promises_.tags.Answered(tag, OutcomeOf(verdict.error()));
  if (const auto* refused = std::get_if<Reservations::Refused>(&*verdict)) {
    promises_.tags.Answered(tag, TagsPromise::Outcome::kNotDone);
    ++counts_.answered["reserve refused"];
    return CheckRefused(claim, *refused);
  }
  if (const auto* circle = std::get_if<Reservations::Deadlocked>(&*verdict)) {
    promises_.tags.Answered(tag, TagsPromise::Outcome::kNotDone);
    ++counts_.answered["reserve deadlock"];
    if (circle->agents.empty() || circle->agents.front() != claim.agent) {
      promises_.violations.Add("turns: a circle of which it is no part");
    }
    return;
  }
  // A refresh in the same commit may have put another tag in the place of this one.
  promises_.tags.Answered(tag, TagsPromise::Outcome::kUnknown);
  const auto& granted = std::get<Reservations::Granted>(*verdict);
  CheckGranted(claim, granted);
  std::vector<HoldRow> own;
  for (const auto& [id, row] : promises_.holds.rows_before()) {
    if (row.agent == claim.agent && row.expires_at > Now()) own.push_back(row);
  }
  for (const auto& [id, row] : promises_.holds.rows()) {
    const bool this_one = std::ranges::any_of(
        granted.reservations, [&](const domain::Reservation& one) { return one.id == row.id; });
    // Made for this claim, and not by another one of the same commit, of which this is a refresh.
    const bool made =
        this_one && !promises_.holds.rows_before().contains(id) && !heard_of_.contains(id);
    if (row.agent == claim.agent && row.expires_at > Now() && !made) own.push_back(row);
  }
  promises_.turns.Granted(claim, own);
  for (const domain::Reservation& one : granted.reservations) heard_of_.insert(one.id);
  if (client.agent != claim.agent) return;  // it died meanwhile
  for (const domain::Reservation& one : granted.reservations) client.holds.push_back(one.id);
}

// What was granted is there as it was answered, or was let go since.
void Crowd::CheckGranted(const TurnsPromise::Claim& claim, const Reservations::Granted& granted) {
  for (const domain::Reservation& one : granted.reservations) {
    const auto wrong = [&](std::string_view what) {
      promises_.violations.Add(fmt::format("granted: {}: {} of {}", what, one.id, one.agent));
    };
    if (one.agent != claim.agent) wrong("to somebody else");
    if (one.expires_at <= Now()) wrong("has run out already");
    if (!promises_.holds.WasGranted(one.id)) wrong("the log does not know it");
    const auto row = promises_.holds.rows().find(one.id);
    if (row == promises_.holds.rows().end()) {
      if (!promises_.holds.HasEnded(one.id)) wrong("it is not there");
    } else if (row->second.fence < one.fence || row->second.expires_at < one.expires_at) {
      wrong("it is there as something less");
    }
  }
}

// Whatever is named is in the way, and overlaps: it held at that time, and so after the question
// was asked, or it is somebody who waited.
void Crowd::CheckRefused(const TurnsPromise::Claim& claim, const Reservations::Refused& refused) {
  if (refused.conflicts.empty()) promises_.violations.Add("refused: for no reason");
  for (const domain::Conflict& conflict : refused.conflicts) {
    if (!conflict.reservation_id) {
      ++counts_.answered["in favour of who waits, refused"];
      promises_.turns.Refused(claim, conflict.agent);
      continue;
    }
    const auto in_the_way = [&](const std::map<std::string, HoldRow>& rows) {
      const auto row = rows.find(*conflict.reservation_id);
      if (row == rows.end()) return false;
      HoldRow wanted{.project = claim.project, .agent = claim.agent, .exclusive = claim.exclusive};
      return std::ranges::any_of(claim.patterns, [&](std::size_t pattern) {
        wanted.pattern = pattern;
        return HoldsPromise::Conflicts(wanted, row->second);
      });
    };
    const bool held = in_the_way(promises_.holds.rows()) ||
                      in_the_way(promises_.holds.rows_before()) ||
                      promises_.holds.HasEndedAfter(*conflict.reservation_id, claim.log_end);
    if (!held || conflict.expires_at <= Now()) {
      promises_.violations.Add(fmt::format("refused: on account of {} of {} until {}, at {}",
                                           *conflict.reservation_id, conflict.agent,
                                           conflict.expires_at.micros, Now().micros));
    }
  }
}

void Crowd::Renew(Client& client) {
  if (client.holds.empty()) return Reserve(client);
  const std::string id = client.holds.at(Below(client.holds.size()));
  const TurnsPromise::Claim claim = ClaimTo(id, client.agent);
  auto call = world_.server().reservations.Renew(
      {.id = id, .project = client.project, .agent = client.agent},
      static_cast<std::int64_t>(1 + Below(4)));
  Launch<Reservations::Verdict>(
      "renew", std::move(call), [this, &client, claim, id](Result<Reservations::Verdict> verdict) {
        if (!verdict.ok()) {
          if (verdict.error().code() == Errc::kNotFound) std::erase(client.holds, id);
          return;
        }
        const auto* granted = std::get_if<Reservations::Granted>(&*verdict);
        if (granted != nullptr) CheckGranted(claim, *granted);
        HearRefusal("renew", claim, *verdict);
      });
}

TurnsPromise::Claim Crowd::ClaimTo(const std::string& id, const std::string& agent) {
  TurnsPromise::Claim claim{.agent = agent, .asked_at = step_, .log_end = promises_.log.newest()};
  const auto row = promises_.holds.rows().find(id);
  if (row == promises_.holds.rows().end()) return claim;
  claim.project = row->second.project;
  claim.patterns = {row->second.pattern};
  claim.exclusive = row->second.exclusive;
  return claim;
}

void Crowd::HearRefusal(const std::string& name, const TurnsPromise::Claim& claim,
                        const Reservations::Verdict& verdict) {
  const auto* refused = std::get_if<Reservations::Refused>(&verdict);
  if (refused == nullptr) return;
  ++counts_.answered[name + " refused"];
  CheckRefused(claim, *refused);
}

void Crowd::Release(Client& client) {
  if (client.holds.empty()) return Heartbeat(client);
  const std::string id = client.holds.at(Below(client.holds.size()));
  auto call = world_.server().reservations.Release(
      {.id = id, .project = client.project, .agent = client.agent});
  Launch<void>("release", std::move(call), [this, &client, id](const Result<void>& released) {
    if (released.ok() && !promises_.holds.HasEnded(id)) {
      promises_.violations.Add("released: but it holds: " + id);
    }
    const bool gone = released.ok() || released.error().code() == Errc::kNotFound ||
                      released.error().code() == Errc::kForbidden;
    if (gone) std::erase(client.holds, id);
  });
}

void Crowd::Transfer(Client& client) {
  const std::string to = AnyAgentBeside(client);
  if (client.holds.empty() || to.empty()) return;
  const std::string id = client.holds.at(Below(client.holds.size()));
  auto call = world_.server().reservations.Transfer(
      {.id = id, .project = client.project, .agent = client.agent}, to);
  Launch<Reservations::Verdict>(
      "transfer", std::move(call),
      [this, &client, to, id, claim = ClaimTo(id, to)](Result<Reservations::Verdict> verdict) {
        if (!verdict.ok()) return;
        HearRefusal("transfer", claim, *verdict);
        const auto* granted = std::get_if<Reservations::Granted>(&*verdict);
        if (granted == nullptr) return;
        CheckGranted(claim, *granted);
        std::erase(client.holds, id);
        for (Client& other : clients_) {
          if (other.agent == to) other.holds.push_back(granted->reservations.at(0).id);
        }
      });
}

void Crowd::ForceRelease(Client& client) {
  std::vector<std::string> others;
  for (const auto& [id, row] : promises_.holds.rows()) {
    if (row.project == client.project && row.agent != client.agent) others.push_back(id);
  }
  if (others.empty()) return;
  const std::string id = others.at(Below(others.size()));
  auto call = world_.server().reservations.ForceRelease(
      {.id = id, .project = client.project, .agent = client.agent}, "in the way");
  using Ended = service::Reservations::Ended;
  Launch<Ended>("force", std::move(call), [this, id](const Result<Ended>& released) {
    if (released.ok() && !promises_.holds.HasEnded(id)) {
      promises_.violations.Add("forced: but it holds: " + id);
    }
  });
}

std::vector<std::string> Crowd::ActiveIds(const std::string& project, Timestamp now,
                                          const std::function<bool(const HoldRow&)>& counts) {
  std::vector<std::string> ids;
  for (const auto& [id, row] : promises_.holds.rows()) {
    if (row.project == project && row.expires_at > now && counts(row)) ids.push_back(id);
  }
  return ids;  // in the order of the map
}

void Crowd::Check(Client& client) {
  using Conflicts = std::vector<domain::Conflict>;
  const PathSpace& space = PathSpace::Get();
  const HoldRow wanted{.project = client.project,
                       .agent = client.agent,
                       .pattern = Below(space.patterns().size()),
                       .exclusive = Below(2) == 0};
  auto call = world_.server().reservations.Check(
      {.project = client.project,
       .pattern = std::string(space.patterns()[wanted.pattern]),
       .access = wanted.exclusive ? domain::Access::kExclusive : domain::Access::kShared,
       .except_agent = client.agent});
  Launch<Conflicts>("check", std::move(call), [this, wanted, asked = Now()](Result<Conflicts> all) {
    if (!all.ok()) return;
    std::vector<std::string> ids;
    for (const domain::Conflict& one : *all) ids.push_back(one.reservation_id.value_or(""));
    std::ranges::sort(ids);
    const auto expected = ActiveIds(wanted.project, asked, [&](const HoldRow& row) {
      return HoldsPromise::Conflicts(wanted, row);
    });
    if (ids != expected) promises_.violations.Add("check: not what holds right now");
  });
}

void Crowd::ListHolds(Client& client) {
  using All = std::vector<domain::Reservation>;
  auto call = world_.server().reservations.ListOfProject(client.project);
  Launch<All>("list", std::move(call),
              [this, project = client.project, asked = Now()](Result<All> all) {
                if (!all.ok()) return;
                std::vector<std::string> ids;
                for (const domain::Reservation& one : *all) ids.push_back(one.id);
                std::ranges::sort(ids);
                if (ids == ActiveIds(project, asked, [](const HoldRow&) { return true; })) return;
                promises_.violations.Add("list: not what holds right now");
              });
}

}  // namespace interlock::sim
