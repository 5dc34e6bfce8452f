#include "service/reservations.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "domain/text.h"
#include "events/frame.h"
#include "glob/product.h"
#include "service/address.h"
#include "service/await.h"
#include "service/grant.h"
#include "service/signal.h"
#include "service/storage.h"
#include "store/agents.h"
#include "store/events.h"
#include "store/reservations.h"

namespace interlock::service {
namespace {

using boost::asio::awaitable;
using domain::Conflict;
using domain::Reservation;

constexpr WaitQueue::Ticket kBehindAll = std::numeric_limits<WaitQueue::Ticket>::max();

// One of the times that a wish is tried.
struct Turn {
  WaitQueue::Ticket ticket = kBehindAll;
  Refusal refusal = Refusal::kToBeTold;
};

// A place in the queue, given up in any case.
class Place {
 public:
  Place(WaitQueue& queue, WaitQueue::Ticket ticket, Clock& clock)
      : queue_(queue), ticket_(ticket), clock_(clock) {}
  ~Place() {
    queue_.Leave(ticket_, granted_, clock_.Now());
    if (may_hold_in_) queue_.LookAgainIn(*may_hold_in_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  void Granted(const std::vector<Reservation>& reservations) {
    for (const Reservation& one : reservations) {
      granted_.push_back(
          {.reservation_id = one.id, .agent = one.agent, .expires_at = one.expires_at});
    }
  }
  // Perhaps something was granted in the project, which those behind must find out themselves.
  void MayHoldIn(std::string project) { may_hold_in_ = std::move(project); }

 private:
  WaitQueue& queue_;
  const WaitQueue::Ticket ticket_;
  Clock& clock_;
  std::vector<WaitQueue::Hold> granted_;
  std::optional<std::string> may_hold_in_;
};

// An alarm that sets a signal, put off in any case.
class Alarm {
 public:
  Alarm(Clock& clock, Duration delay, std::shared_ptr<Signal> signal)
      : clock_(clock),
        timer_(clock.Schedule(std::max(delay, Duration(0)),
                              [signal = std::move(signal)] { signal->Set(); })) {}
  ~Alarm() { clock_.Cancel(timer_); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

 private:
  Clock& clock_;
  const Clock::TimerId timer_;
};

Result<void> CheckText(std::string_view field, std::string_view text, std::size_t bytes_max) {
  if (domain::HasNul(text)) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("{} holds a NUL byte; remove \\u0000 from it", field))
        .WithDetail("field", std::string(field));
  }
  if (text.size() <= bytes_max) return {};
  return Error(Errc::kInvalidArgument,
               fmt::format("{} has {} bytes; send at most {}", field, text.size(), bytes_max))
      .WithDetail("field", std::string(field));
}

// An agent shows what it holds by naming itself in a header, so it must be one that a header can
// say.
Result<void> CheckAgent(std::string_view field, std::string_view id, const Limits& limits) {
  IL_TRY_VOID(CheckText(field, id, limits.agent_id_bytes_max));
  const bool plain = std::ranges::none_of(
      id, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  if (plain) return {};
  return Error(Errc::kInvalidArgument,
               fmt::format("{} holds a control character, which no X-Agent-ID can say", field))
      .WithDetail("field", std::string(field));
}

Error NobodyWaits() { return {Errc::kCancelled, "nobody waits any more"}; }

bool IsUnknown(const Result<Tried>& tried) {
  return !tried.ok() && tried.error().code() == Errc::kOutcomeUnknown;
}

// A try that may have granted something.
bool MayHold(const Result<Tried>& tried) {
  return IsUnknown(tried) ||
         (tried.ok() && std::holds_alternative<Reservations::Granted>(tried->verdict));
}

awaitable<bool> HasHungUp() {
  const auto state = co_await boost::asio::this_coro::cancellation_state;
  co_return state.cancelled() != boost::asio::cancellation_type::none;
}

Error Stopping() {
  return {Errc::kUnavailable, "the server is stopping; ask again when it is back"};
}

}  // namespace

Reservations::Reservations(Storage& storage, Clock& clock, UuidMaker& uuids, const Limits& limits,
                           Options options)
    : storage_(storage),
      clock_(clock),
      uuids_(uuids),
      limits_(limits),
      options_(std::move(options)),
      waits_(limits.waiters_max) {}

// One wish, as often as it is tried.
class Reservations::Attempt {
 public:
  static Result<std::shared_ptr<const Claims>> Prepare(Reservations& owner, Wish wish) {
    auto claims = std::make_shared<Claims>();
    claims->all.reserve(wish.patterns.size());
    glob::Budget budget;
    for (const std::string& text : wish.patterns) {
      Result<glob::Pattern> parsed = store::ParseClaim(text, wish.literal);
      if (!parsed.ok()) {
        return std::move(parsed).error().WithDetail("index",
                                                    static_cast<std::int64_t>(claims->all.size()));
      }
      glob::Pattern pattern = *std::move(parsed);
      if (!budget.Spend(pattern.parse_steps())) return glob::TooComplex();
      const auto same = std::ranges::find_if(claims->all, [&](const Claims::One& one) {
        return one.pattern.canonical() == pattern.canonical();
      });
      const auto place = static_cast<std::size_t>(same - claims->all.begin());
      claims->all.push_back(
          {.pattern = std::move(pattern), .id = owner.uuids_.Next().Text(), .same_as = place});
    }
    claims->project = std::move(wish.project);
    claims->agent = std::move(wish.agent);
    claims->literal = wish.literal;
    claims->access = wish.access;
    claims->reason = std::move(wish.reason);
    claims->lease = domain::LeaseFor(wish.ttl_minutes);
    claims->steps = budget.left();
    return std::shared_ptr<const Claims>(std::move(claims));
  }

  // The claims with the id of the agent for its name: looked up by the first transaction, so that
  // what is compared beside the write lock is that of the same agent.
  class Resolve {
   public:
    Resolve(Reservations& owner, std::shared_ptr<const Claims> claims)
        : owner_(owner), claims_(std::move(claims)) {}

    Result<std::shared_ptr<const Claims>> Run(db::Connection& connection, Timestamp now) const {
      if (*by_id_) return *by_id_;
      const std::string& text = claims_->agent;
      Storage& storage = owner_.storage_;
      IL_TRY(std::string agent, storage.addresses().IdOf(connection, claims_->project, text, now));
      *by_id_ = claims_;
      if (agent == text) return *by_id_;
      auto named = std::make_shared<Claims>(*claims_);
      named->agent = std::move(agent);
      *by_id_ = std::move(named);
      return *by_id_;
    }

   private:
    Reservations& owner_;
    const std::shared_ptr<const Claims> claims_;
    const std::shared_ptr<std::shared_ptr<const Claims>> by_id_ =
        std::make_shared<std::shared_ptr<const Claims>>();
  };

  static awaitable<Result<Tried>> Try(Reservations& owner,
                                      const std::shared_ptr<const Claims>& claims, Turn turn) {
    const Resolve resolve(owner, claims);
    auto write = [&owner, claims, turn, resolve](db::Transaction& tx,
                                                 const GrantRules& rules) -> Result<Tried> {
      IL_TRY(const auto by_id, resolve.Run(tx.connection(), rules.now));
      IL_TRY(Tried tried, TryNow(owner, tx, *by_id, turn, rules));
      if (by_id->agent != claims->agent) tried.agent = by_id->agent;
      return tried;
    };
    auto look = [resolve](db::Connection& connection, const GrantRules& rules,
                          glob::Budget& budget) -> Result<std::vector<Conflict>> {
      IL_TRY(const auto by_id, resolve.Run(connection, rules.now));
      return FindInTheWay(connection, *by_id, rules, budget);
    };
    const std::int64_t steps = claims->steps;
    return owner.Decide(steps, std::move(write), std::move(look));
  }

  static Result<Tried> TryNow(Reservations& owner, db::Transaction& tx, const Claims& claims,
                              const Turn& turn, const GrantRules& rules) {
    IL_TRY(const Standing standing, FindStanding(tx.connection(), claims.agent));
    // Inside, where writes stand in line: whoever joined before this moment comes first, and what
    // ran out while this write stood in line holds no more.
    const auto earlier = owner.waits_.Before(claims.project, turn.ticket);
    IL_TRY(Tried tried, TryGrant(tx, claims, rules, earlier, turn.refusal));
    tried.standing = standing;
    return tried;
  }

  struct Patience {
    std::chrono::seconds time;
    WaitQueue::Reach reach;
    Standing standing;  // of the agent, when it began to wait
  };
  // Tries whenever something that was in the way has gone, until its time is up.
  static awaitable<Result<Verdict>> Wait(Reservations& owner, std::shared_ptr<const Claims> claims,
                                         Patience how) {
    const std::chrono::seconds patience = how.time;
    const auto signal = std::make_shared<Signal>();
    const Duration deadline = owner.clock_.Monotonic() + patience;
    const Alarm last_call(owner.clock_, patience, signal);
    auto wanted = std::make_shared<WaitQueue::Wanted>();
    wanted->project = claims->project;
    wanted->agent = claims->agent;
    wanted->reach = how.reach;
    wanted->registered = how.standing.registered;
    for (const Claims::One& one : claims->all) wanted->patterns.push_back(one.pattern);
    wanted->access = claims->access;
    wanted->reason = claims->reason;
    wanted->until = owner.clock_.Now() + patience;
    IL_CO_TRY(const WaitQueue::Ticket ticket,
              owner.waits_.Join(std::move(wanted), [signal] { signal->Set(); }));
    Place place(owner.waits_, ticket, owner.clock_);
    while (true) {
      if (auto circle = owner.waits_.Deadlock(ticket); !circle.empty()) {
        co_return Verdict(Deadlocked{std::move(circle)});
      }
      owner.waits_.BeginTry(ticket);
      const bool last = owner.clock_.Monotonic() >= deadline;
      const Turn turn = {.ticket = ticket, .refusal = last ? Refusal::kToBeTold : Refusal::kGoesOn};
      Result<Tried> tried = co_await Try(owner, claims, turn);
      if (IsUnknown(tried)) place.MayHoldIn(claims->project);
      const bool gone = co_await HasHungUp();
      if (gone) {
        if (MayHold(tried)) owner.Undo(claims);  // nobody will hear of it
        co_return NobodyWaits();
      }
      if (!tried.ok()) co_return std::move(tried).error();
      if (const auto* granted = std::get_if<Granted>(&tried->verdict)) {
        place.Granted(granted->reservations);
        co_return owner.Hear(*std::move(tried));
      }
      if (last) co_return LastWord(*std::move(tried));
      const WaitQueue::Next next =
          owner.waits_.EndTry(ticket, std::move(tried->blockers), owner.clock_.Now());
      if (next == WaitQueue::Next::kStopped) co_return Stopping();
      if (next != WaitQueue::Next::kSleep) continue;
      IL_CO_TRY_VOID(co_await Rest(owner, ticket, deadline, signal));
    }
  }

 private:
  // Until a try may succeed, or is the last one.
  static awaitable<Result<void>> Rest(Reservations& owner, WaitQueue::Ticket ticket,
                                      Duration deadline, std::shared_ptr<Signal> signal) {
    while (owner.clock_.Monotonic() < deadline) {
      const std::optional<Timestamp> until = owner.waits_.RestUntil(ticket);
      const Timestamp now = owner.clock_.Now();
      if (!until || *until <= now) break;
      std::optional<Alarm> expiry;
      const bool matters = *until < now + (deadline - owner.clock_.Monotonic());
      if (matters) expiry.emplace(owner.clock_, *until - now, signal);
      if (owner.clock_.Now() >= *until) break;  // it came while the alarm was set
      co_await WaitFor(signal);
      if (owner.waits_.stopped()) co_return Stopping();
      const bool left = co_await HasHungUp();
      if (left) co_return NobodyWaits();
    }
    co_return Result<void>();
  }

  static Verdict LastWord(Tried tried) {
    auto& refused = std::get<Refused>(tried.verdict);
    std::vector<WaitQueue::Ticket> before;
    before.reserve(tried.blockers.waits.size());
    for (const WaitQueue::EarlierWait& wait : tried.blockers.waits) before.push_back(wait.ticket);
    std::ranges::sort(before);
    before.erase(std::ranges::unique(before).begin(), before.end());
    refused.queue_position = before.size() + 1;
    return std::move(tried.verdict);
  }
};

GrantRules Reservations::Rules(Effort effort) const {
  return {.now = clock_.Now(),
          .grace = options_.heartbeat_grace,
          .held_max = options_.held_max,
          .effort = std::move(effort),
          .sightings = storage_.signs()};
}

awaitable<Result<Effort>> Reservations::Look(std::int64_t steps, LookFn look) {
  auto read = [this, steps, look = std::move(look)](db::Connection& connection) -> Result<Effort> {
    const GrantRules rules = Rules({});
    glob::Budget budget(steps);
    IL_TRY(const domain::Cursor newest, store::NewestCursor(connection));
    IL_TRY(auto in_the_way, look(connection, rules, budget));
    return Effort{.holds_steps = kStepsUnderLock,
                  .waits_steps = budget.left(),
                  .compared_at = store::Compared{.cursor = newest, .now = rules.now},
                  .in_the_way = std::move(in_the_way)};
  };
  return AwaitRead<Effort>(storage_, std::move(read));
}

awaitable<Result<Tried>> Reservations::Decide(std::int64_t steps, WriteFn write, LookFn look) {
  const auto under_lock = [&](Effort effort) {
    auto decide = [this, write, effort = std::move(effort)](db::Transaction& tx) {
      return write(tx, Rules(effort));
    };
    return AwaitWrite<Tried>(storage_, std::move(decide));
  };
  const std::int64_t left = std::max<std::int64_t>(steps - kStepsUnderLock, 0);
  Result<Tried> tried =
      co_await under_lock({.holds_steps = std::min(steps, kStepsUnderLock), .waits_steps = left});
  const bool too_complex = !tried.ok() && tried.error().code() == Errc::kPatternTooComplex;
  if (!too_complex) co_return tried;
  IL_CO_TRY(Effort rest, co_await Look(left, std::move(look)));
  co_return co_await under_lock(std::move(rest));
}

Result<Reservations::Ref> Reservations::ById(db::Connection& connection, Ref ref) const {
  AddressBook& book = storage_.addresses();
  IL_TRY(const bool is_name, book.IsName(connection, ref.agent));
  if (!is_name) return ref;
  IL_TRY(const auto found, store::FindReservation(connection, ref.id));
  const bool here = found && (!ref.project || *ref.project == found->project);
  // Reservations under the very text, from before anybody had the name, are the agent's.
  if (!here || found->agent == ref.agent) return ref;
  IL_TRY(ref.agent, book.IdOf(connection, found->project, ref.agent, clock_.Now()));
  return ref;
}

Reservations::ResolvedRef Reservations::ResolveOnce(Ref ref) const {
  return [this, ref = std::move(ref), known = std::make_shared<std::optional<Ref>>()](
             db::Connection& connection) -> Result<Ref> {
    if (!*known) {
      IL_TRY(*known, ById(connection, ref));
    }
    return **known;
  };
}

// Takes back what the claims were granted, unless the agent has asked for it again since. If that
// fails `tries` times it is left to run out.
void Reservations::Undo(const std::shared_ptr<const Claims>& claims, int tries) {
  using Released = std::vector<Reservation>;
  auto undo = [this, claims](db::Transaction& tx) { return UndoGrant(tx, *claims, clock_.Now()); };
  auto tell = [this, claims, tries](const Result<Released>& released) {
    if (!released.ok() && tries > 1) return Undo(claims, tries - 1);
    // What may have ended, also in a try before; to be told too often does no harm.
    std::vector<std::string> ids;
    ids.reserve(claims->all.size());
    for (const Claims::One& one : claims->all) ids.push_back(one.id);
    waits_.Gone(ids);
  };
  storage_.Write<Released>(std::move(undo), std::move(tell));
}

// A grant that its agent is about to hear of.
Reservations::Verdict Reservations::Hear(Tried tried) {
  waits_.LookAgain(tried.passed);
  return std::move(tried.verdict);
}

Result<void> Reservations::CheckTexts(const Wish& wish) const {
  IL_TRY_VOID(CheckAgent("agent_id", wish.agent, limits_));
  IL_TRY_VOID(CheckText("project", wish.project, limits_.project_bytes_max));
  IL_TRY_VOID(CheckText("reason", wish.reason, limits_.reason_bytes_max));
  if (wish.patience.count() < 0 || wish.patience.count() > limits_.wait_seconds_max) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("wait_seconds is {}; send 0 to {}", wish.patience.count(),
                             limits_.wait_seconds_max))
        .WithDetail("field", "wait_seconds");
  }
  if (wish.patterns.size() <= limits_.patterns_max) return {};
  return Error(Errc::kInvalidArgument, fmt::format("path_patterns has {} entries; send at most {}",
                                                   wish.patterns.size(), limits_.patterns_max))
      .WithDetail("field", "path_patterns");
}

void Reservations::PublishConflict(const Claims& claims, const Refused& refused) const {
  if (!options_.publish_live) return;
  std::vector<std::string> patterns;
  patterns.reserve(claims.all.size());
  for (const Claims::One& one : claims.all) patterns.push_back(one.pattern.text());
  options_.publish_live({.type = std::string(domain::event_type::kReservationConflict),
                         .project = claims.project,
                         .entity_id = {},
                         .agent = claims.agent,
                         .created_at = clock_.Now(),
                         // A longer one is sent without it.
                         .data = store::RefusalJson(claims.agent, patterns, refused.conflicts,
                                                    events::kFrameBytesMax)});
}

awaitable<Result<Reservations::Verdict>> Reservations::Reserve(Wish wish) {
  IL_CO_TRY_VOID(CheckTexts(wish));
  const std::chrono::seconds patience = wish.patience;
  const WaitQueue::Reach reach = wish.reach;
  IL_CO_TRY(auto claims, Attempt::Prepare(*this, std::move(wish)));
  const bool waits = patience.count() > 0;
  const Turn first = {.refusal = waits ? Refusal::kGoesOn : Refusal::kToBeTold};
  Result<Tried> tried = co_await Attempt::Try(*this, claims, first);
  if (waits) {
    const bool gone = co_await HasHungUp();
    if (gone) {
      if (MayHold(tried)) Undo(claims);
      co_return NobodyWaits();
    }
  }
  if (!tried.ok()) co_return std::move(tried).error();
  if (!tried->agent.empty()) {  // from now on it is called by its id
    auto by_id = std::make_shared<Claims>(*claims);
    by_id->agent = tried->agent;
    claims = std::move(by_id);
  }
  const Attempt::Patience how = {patience, reach, tried->standing};
  const bool in_the_way = std::holds_alternative<Refused>(tried->verdict);
  Verdict verdict = Hear(*std::move(tried));
  if (in_the_way && waits) {
    IL_CO_TRY(verdict, co_await Attempt::Wait(*this, claims, how));
  }
  if (const auto* refused = std::get_if<Refused>(&verdict)) PublishConflict(*claims, *refused);
  co_return verdict;
}

awaitable<Result<std::vector<Conflict>>> Reservations::Check(Question question) {
  IL_CO_TRY(glob::Pattern pattern, store::ParseClaim(question.pattern, question.literal));
  glob::Budget whole;
  if (!whole.Spend(pattern.parse_steps())) co_return glob::TooComplex();
  auto find = [&book = storage_.addresses(), question = std::move(question),
               pattern = std::move(pattern), rules = Rules({}),
               whole](db::Connection& connection) -> Result<std::vector<Conflict>> {
    glob::Budget budget = whole;
    IL_TRY(const std::string except,
           book.IdOf(connection, question.project, question.except_agent, rules.now));
    return store::FindConflicts(connection, {question.project, except, pattern, question.access},
                                rules.holders(), budget);
  };
  co_return co_await AwaitRead<std::vector<Conflict>>(storage_, std::move(find));
}

awaitable<Result<Reservation>> Reservations::Get(Ref ref) {
  auto get = [ref = std::move(ref)](db::Connection& connection) -> Result<Reservation> {
    IL_TRY(auto found, store::FindReservation(connection, ref.id));
    if (found && (!ref.project || *ref.project == found->project)) return *std::move(found);
    return Error(Errc::kNotFound, "there is no such reservation here");
  };
  co_return co_await AwaitRead<Reservation>(storage_, std::move(get));
}

awaitable<Result<Reservations::Verdict>> Reservations::Renew(Ref ref, std::int64_t ttl_minutes) {
  const auto by_id = ResolveOnce(ref);
  auto renew = [by_id, lease = domain::LeaseFor(ttl_minutes)](
                   db::Transaction& tx, const GrantRules& rules) -> Result<Tried> {
    IL_TRY(const Ref own, by_id(tx.connection()));
    return RenewReservation(tx, own, lease, rules);
  };
  auto look = [by_id](db::Connection& connection, const GrantRules& rules,
                      glob::Budget& budget) -> Result<std::vector<Conflict>> {
    IL_TRY(const Ref own, by_id(connection));
    return FindInTheWayOfRenewal(connection, own, rules, budget);
  };
  IL_CO_TRY(Tried tried,
            co_await Decide(glob::Budget::kStepsDefault, std::move(renew), std::move(look)));
  if (const auto* renewed = std::get_if<Granted>(&tried.verdict);
      renewed != nullptr && tried.anew) {
    waits_.LookAgainIn(renewed->reservations.front().project);
  }
  co_return std::move(tried.verdict);
}

awaitable<Result<Reservations::Verdict>> Reservations::Transfer(Ref ref, std::string to_agent) {
  IL_CO_TRY_VOID(CheckAgent("to_agent", to_agent, limits_));
  std::string id = ref.id;
  const auto by_id = ResolveOnce(ref);
  const auto receiver = ResolveOnce({.id = ref.id, .project = ref.project, .agent = to_agent});
  auto transfer = [by_id, receiver](db::Transaction& tx, const GrantRules& rules) -> Result<Tried> {
    IL_TRY(const Ref own, by_id(tx.connection()));
    IL_TRY(const Ref to, receiver(tx.connection()));
    return TransferReservation(tx, own, to.agent, rules);
  };
  auto look = [by_id, receiver](db::Connection& connection, const GrantRules& rules,
                                glob::Budget& budget) -> Result<std::vector<Conflict>> {
    IL_TRY(const Ref own, by_id(connection));
    IL_TRY(const Ref to, receiver(connection));
    return FindInTheWayOfTransfer(connection, own, to.agent, rules, budget);
  };
  Result<Tried> tried =
      co_await Decide(glob::Budget::kStepsDefault, std::move(transfer), std::move(look));
  const bool moved = tried.ok() ? std::holds_alternative<Granted>(tried->verdict)
                                : tried.error().code() == Errc::kOutcomeUnknown;
  if (moved) waits_.Moved(std::vector<std::string>{std::move(id)});
  if (!tried.ok()) co_return std::move(tried).error();
  co_return std::move(tried->verdict);
}

awaitable<Result<void>> Reservations::Release(Ref ref) {
  std::string id = ref.id;
  auto release = [this, ref = std::move(ref)](db::Transaction& tx) -> Result<Ended> {
    IL_TRY(const Ref by_id, ById(tx.connection(), ref));
    IL_TRY(Reservation released, ReleaseReservation(tx, by_id, clock_.Now()));
    return Ended{std::move(released)};
  };
  IL_CO_TRY_VOID(co_await End(std::move(id), std::move(release)));
  co_return Result<void>();
}

// What may have ended is told to those who wait; to be told too often does no harm.
awaitable<Result<Reservations::Ended>> Reservations::End(
    std::string id, std::function<Result<Ended>(db::Transaction&)> release) {
  auto ended = co_await AwaitWrite<Ended>(storage_, std::move(release));
  if (ended.ok() || ended.error().code() == Errc::kOutcomeUnknown) {
    waits_.Gone(std::vector<std::string>{std::move(id)});
  }
  co_return ended;
}

awaitable<Result<Reservations::Ended>> Reservations::ForceRelease(Ref ref, std::string reason) {
  IL_CO_TRY_VOID(CheckText("reason", reason, limits_.reason_bytes_max));
  IL_CO_TRY_VOID(CheckAgent("X-Agent-ID", ref.agent, limits_));
  std::string id = ref.id;
  auto release = [this, ref = std::move(ref), reason = std::move(reason),
                  message_id = uuids_.Next().Text()](db::Transaction& tx) -> Result<Ended> {
    IL_TRY(const Ref by_id, ById(tx.connection(), ref));
    IL_TRY(Reservation forced,
           ForceReleaseReservation(tx, by_id, reason, message_id, Rules({}), storage_.inboxes()));
    IL_TRY(const auto holder, store::FindCard(tx.connection(), forced.agent));
    return Ended{std::move(forced), holder ? holder->name : ""};
  };
  co_return co_await End(std::move(id), std::move(release));
}

awaitable<Result<std::vector<Reservation>>> Reservations::ListOfAgent(Owner owner) {
  using Found = std::vector<Reservation>;
  auto list = [this, owner = std::move(owner),
               max = limits_.reservations_listed_max](db::Connection& connection) -> Result<Found> {
    IL_TRY(const std::string id,
           storage_.addresses().IdOf(connection, owner.named_in, owner.agent, clock_.Now()));
    return store::ListOfAgent(connection, owner.project, id, max);
  };
  co_return co_await AwaitRead<Found>(storage_, std::move(list));
}

awaitable<Result<std::vector<Reservation>>> Reservations::ListOfProject(std::string project) {
  auto list = [project = std::move(project), now = clock_.Now(),
               max = limits_.reservations_listed_max](db::Connection& connection) {
    return store::ListOfProject(connection, project, now, max);
  };
  co_return co_await AwaitRead<std::vector<Reservation>>(storage_, std::move(list));
}

awaitable<Result<std::int64_t>> Reservations::CountActive() {
  auto start = [this](Storage::DoneWith<std::int64_t> done) {
    auto count = [now = clock_.Now()](db::Connection& connection) {
      return store::CountActive(connection, now);
    };
    return storage_.Peek<std::int64_t>(limits_.ping_timeout, std::move(count), std::move(done));
  };
  co_return co_await Await<std::int64_t>(start);
}

std::string Reservations::Json(const Reservation& reservation) const {
  return store::ReservationJson(reservation, clock_.Now());
}

std::string Reservations::ListJson(const std::vector<Reservation>& reservations) const {
  const Timestamp now = clock_.Now();
  std::string text = R"({"reservations":[)";
  for (const Reservation& one : reservations) {
    if (text.back() == '}') text += ',';
    text += store::ReservationJson(one, now);
  }
  return text + "]}";
}

std::string ConflictJson(const Conflict& conflict) { return store::ConflictJson(conflict); }

void Reservations::TellGone(const std::vector<Reservation>& gone) {
  std::vector<std::string> ids;
  ids.reserve(gone.size());
  for (const Reservation& one : gone) ids.push_back(one.id);
  waits_.Gone(ids);
}

void Reservations::TellLeft(std::string_view agent, const std::vector<Reservation>& released) {
  if (!released.empty()) TellGone(released);
  waits_.LookAgain(agent);
}

std::size_t Reservations::CountWaiting(const std::optional<std::string>& project) const {
  if (!project) return waits_.size();
  return waits_.Before(*project, std::numeric_limits<WaitQueue::Ticket>::max()).size();
}

}  // namespace interlock::service
