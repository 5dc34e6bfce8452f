#include "service/sweeper.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "service/rounds.h"
#include "service/storage.h"
#include "store/agents.h"
#include "store/events.h"
#include "store/message_retention.h"
#include "store/reservations.h"

namespace interlock::service {
namespace {

using domain::Cursor;

// A chore rests after so many looks in a row that found nothing; the rest is for the next one.
constexpr int kEmptyLooksMax = 8;

// What holds for one step, at the moment it runs: between a look and what comes of it the clock may
// have been set, and agents may have been heard of.
struct Sweep {
  Timestamp now;
  Timestamp older_than;                // what the retention lets go
  Timestamp expired_before;            // reservations
  Timestamp seen_after;                // their owners: alive
  const domain::Sightings& sightings;  // of the owners, beyond what is stored
  Cursor published = 0;
  std::size_t rows_max = 0;
};

// Where a chore goes on looking, in this sweep or in the next.
struct Place {
  Cursor after = 0;
  Timestamp until = {std::numeric_limits<std::int64_t>::max()};  // then it begins anew
};

struct Found {
  bool any = false;                  // something is to be removed
  std::vector<Cursor> cursors = {};  // which, where a chore goes by them
  Place next = {};
  bool ended = false;  // there is nothing more to look at
};

struct Removed {
  std::int64_t count = 0;
  bool all = true;                // of what was found
  Sweeper::Expired expired = {};  // of those, reservations that ran out
};

Result<Found> FindEvents(db::Connection& connection, const Sweep& sweep, const Place& place) {
  IL_TRY(const store::OldEvents old,
         store::FindOldEvents(connection, {.now = sweep.now,
                                           .older_than = sweep.older_than,
                                           .after = place.after,
                                           .through = sweep.published,
                                           .rows_max = sweep.rows_max}));
  Found found{.next = {.after = old.reached, .until = std::min(place.until, old.reached_until)},
              .ended = old.ended};
  if (old.through) found.cursors = {*old.through};
  found.any = old.through.has_value();
  return found;
}

Result<Removed> RemoveEvents(db::Transaction& tx, const Sweep& sweep, const Found& found) {
  IL_TRY(const std::int64_t count, store::PruneEvents(tx, found.cursors.front(), sweep.rows_max));
  return Removed{.count = count, .all = std::cmp_less(count, sweep.rows_max)};
}

Result<Found> FindMessages(db::Connection& connection, const Sweep& sweep, const Place& place) {
  IL_TRY(
      store::DoneMessages done,
      store::FindDoneMessages(connection, {.now = sweep.now,
                                           .older_than = sweep.older_than,
                                           .after = place.after,
                                           .rows_max = static_cast<std::int64_t>(sweep.rows_max)}));
  Found found{
      .any = !done.cursors.empty(), .cursors = std::move(done.cursors), .ended = done.ended};
  if (!done.ended) found.next.after = done.reached;
  return found;
}

Result<Removed> RemoveMessages(db::Transaction& tx, const Sweep& /*sweep*/, const Found& found) {
  IL_TRY(const std::int64_t count, store::PruneMessages(tx, found.cursors));
  return Removed{.count = count};
}

store::SweepQuery ExpiredIn(const Sweep& sweep) {
  return {.expired_before = sweep.expired_before,
          .seen_after = sweep.seen_after,
          .limit = static_cast<std::int64_t>(sweep.rows_max)};
}

Result<Found> FindExpired(db::Connection& connection, const Sweep& sweep, const Place& /*place*/) {
  IL_TRY(const bool any, store::HasExpired(connection, ExpiredIn(sweep)));
  return Found{.any = any, .ended = true};
}

// Stores that owners live, where only memory knows it. True when there was such an owner: what the
// sweep would remove is then no longer the same.
Result<bool> SpareLivingOwners(db::Transaction& tx, const Sweep& sweep) {
  IL_TRY(const auto owners, store::FindOwnersOfExpired(tx.connection(), ExpiredIn(sweep)));
  bool spared = false;
  for (const store::ExpiredOwner& owner : owners) {
    const Timestamp seen = sweep.sightings.Newest(owner.id, owner.last_seen);
    if (seen <= sweep.seen_after) continue;
    IL_TRY(const bool raised, store::RaiseLastSeen(tx, owner.id, seen));
    spared = spared || raised;
  }
  return spared;
}

Result<Removed> RemoveExpired(db::Transaction& tx, const Sweep& sweep, const Found& /*found*/) {
  IL_TRY(const bool spared, SpareLivingOwners(tx, sweep));
  if (spared) return Removed{.all = false};
  IL_TRY(auto swept, store::SweepReservations(tx, ExpiredIn(sweep)));
  std::map<std::string, std::string> names;
  for (const domain::Reservation& one : swept) {
    if (!names.contains(one.agent)) {
      IL_TRY(auto card, store::FindCard(tx.connection(), one.agent));
      if (card) names.emplace(one.agent, std::move(card->name));
    }
    IL_TRY_VOID(store::AppendReservationEvent(tx, domain::event_type::kReservationExpired, one,
                                              one.agent, sweep.now));
  }
  return Removed{.count = static_cast<std::int64_t>(swept.size()),
                 .all = swept.size() < sweep.rows_max,
                 .expired = {.reservations = std::move(swept), .names = std::move(names)}};
}

Result<Found> FindReleased(db::Connection& connection, const Sweep& sweep, const Place& /*place*/) {
  IL_TRY(const bool any, store::HasReleased(connection, sweep.older_than));
  return Found{.any = any, .ended = true};
}

Result<Removed> RemoveReleased(db::Transaction& tx, const Sweep& sweep, const Found& /*found*/) {
  IL_TRY(const std::int64_t count,
         store::PruneReleased(tx, sweep.older_than, static_cast<std::int64_t>(sweep.rows_max)));
  return Removed{.count = count, .all = std::cmp_less(count, sweep.rows_max)};
}

// When a chore is to be done.
enum class When : std::uint8_t {
  kAlways,
  kRetention,  // unless everything is kept for ever
};

struct Chore {
  std::string_view name;  // for the log
  When when;
  Result<Found> (*find)(db::Connection& connection, const Sweep& sweep, const Place& place);
  Result<Removed> (*remove)(db::Transaction& tx, const Sweep& sweep, const Found& found);
};

// In this order: a message can go once its event has.
constexpr std::array kChores = {
    Chore{"expired reservations", When::kAlways, FindExpired, RemoveExpired},
    Chore{"released reservations", When::kRetention, FindReleased, RemoveReleased},
    Chore{"events", When::kRetention, FindEvents, RemoveEvents},
    Chore{"messages", When::kRetention, FindMessages, RemoveMessages},
};

}  // namespace

// Shared with the callbacks that storage and clock hold. A sweep is a chain of steps, of which each
// one's callback begins the next: look, remove what was found, look on. So at most one is under
// way, and the fields without a guard belong to it.
class Sweeper::Core : public std::enable_shared_from_this<Sweeper::Core> {
 public:
  Core(Storage& storage, Clock& clock, Logger& log, std::function<Cursor()> published,
       Options options)
      : storage_(storage),
        clock_(clock),
        log_(log),
        published_(std::move(published)),
        options_(std::move(options)),
        rounds_(clock) {}

  void ScheduleSweep(Duration delay) {
    rounds_.Schedule(delay, [self = shared_from_this()] { self->BeginSweep(); });
  }
  void Stop() { rounds_.Stop(); }

  Stats stats() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return stats_;
  }

 private:
  void BeginSweep() IL_EXCLUDES(mutex_) {
    chore_ = 0;
    empty_looks_ = 0;
    const Timestamp now = clock_.Now();
    expired_before_ = std::exchange(first_, false) ? now - kStartSlack : now;
    Look();
  }

  // The next look of the sweep, or its end.
  void Look() IL_EXCLUDES(mutex_) {
    while (chore_ < kChores.size() && kChores.at(chore_).when == When::kRetention &&
           options_.retain.count() == 0) {
      ++chore_;
    }
    if (rounds_.stopped()) return ScheduleSweep({});
    if (chore_ == kChores.size()) {
      Count(&Stats::sweeps, 1);
      return ScheduleSweep(options_.interval);
    }
    Place& place = places_.at(chore_);
    if (clock_.Now() >= place.until) place = {};
    storage_.Read<Found>(
        [self = shared_from_this(), expired_before = expired_before_, place,
         find = kChores.at(chore_).find](db::Connection& connection) {
          return find(connection, self->Now(expired_before), place);
        },
        [self = shared_from_this()](Result<Found> found) { self->OnFound(std::move(found)); });
  }

  void OnFound(Result<Found> found) IL_EXCLUDES(mutex_) {
    if (!found.ok()) return LeaveChore(found.error());
    found_ = *std::move(found);
    if (!found_.any) {
      ++empty_looks_;
      return LookOn();
    }
    empty_looks_ = 0;
    Remove();
  }

  void Remove() IL_EXCLUDES(mutex_) {
    if (rounds_.stopped()) return ScheduleSweep({});
    storage_.Write<Removed>(
        [self = shared_from_this(), expired_before = expired_before_, found = found_,
         remove = kChores.at(chore_).remove](db::Transaction& tx) {
          return remove(tx, self->Now(expired_before), found);
        },
        [self = shared_from_this()](const Result<Removed>& removed) { self->OnRemoved(removed); });
  }

  void OnRemoved(const Result<Removed>& removed) IL_EXCLUDES(mutex_) {
    if (!removed.ok()) return LeaveChore(removed.error());
    Count(&Stats::removed, static_cast<std::uint64_t>(removed->count));
    if (!removed->expired.reservations.empty()) {
      log_.Info("cleared away reservations that ran out and whose owners are gone",
                {{"count", removed->expired.reservations.size()}});
      if (options_.on_expired) options_.on_expired(removed->expired);
    }
    if (!removed->all) return Remove();
    LookOn();
  }

  void LookOn() IL_EXCLUDES(mutex_) {
    places_.at(chore_) = found_.next;
    if (found_.ended || empty_looks_ == kEmptyLooksMax) NextChore();
    Look();
  }

  // One that fails is left for the next sweep, at the same place; the others get their turn.
  void LeaveChore(const Error& error) IL_EXCLUDES(mutex_) {
    Count(&Stats::failures, 1);
    log_.Warn("clearing away what is old failed; the next sweep tries again",
              {{"what", kChores.at(chore_).name}, {"error", error}});
    NextChore();
    Look();
  }

  void NextChore() {
    ++chore_;
    empty_looks_ = 0;
  }

  // On any thread: what storage gave up on may still run while the sweep goes on.
  Sweep Now(Timestamp expired_before) const {
    const Timestamp now = clock_.Now();
    return {.now = now,
            .older_than = now - options_.retain,
            .expired_before = std::min(expired_before, now),
            .seen_after = now - options_.heartbeat_grace,
            .sightings = storage_.signs(),
            .published = published_(),
            .rows_max = options_.rows_max};
  }

  void Count(std::uint64_t Stats::* counter, std::uint64_t by) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    stats_.*counter += by;
  }

  Storage& storage_;
  Clock& clock_;
  Logger& log_;
  const std::function<Cursor()> published_;
  const Options options_;
  std::array<Place, kChores.size()> places_ = {};  // of the chores
  std::size_t chore_ = 0;                          // of the sweep under way
  int empty_looks_ = 0;                            // of the chore, in a row
  bool first_ = true;                              // no sweep has begun yet
  Timestamp expired_before_;                       // of the sweep
  Found found_;                                    // by the last look
  Rounds rounds_;
  Mutex mutex_;
  Stats stats_ IL_GUARDED_BY(mutex_);
};

Sweeper::Sweeper(Storage& storage, Clock& clock, Logger& log, std::function<Cursor()> published,
                 Options options)
    : core_(std::make_shared<Core>(storage, clock, log, std::move(published), std::move(options))) {
}

Sweeper::~Sweeper() { Stop(); }

void Sweeper::Start() { core_->ScheduleSweep(Duration{0}); }
void Sweeper::Stop() { core_->Stop(); }
Sweeper::Stats Sweeper::stats() const { return core_->stats(); }

}  // namespace interlock::service
