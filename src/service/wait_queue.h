#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "domain/reservation.h"
#include "glob/pattern.h"

namespace interlock::service {

// Who waits for paths that somebody else holds, in the order they came. It decides nothing about
// paths: whoever waits tries again when it is woken, and tells what was in its way this time. It
// finds the waits that could never end, since each holds what the next one wants.
//
// In memory only: a wait ends with its connection, and so with the server. Thread-safe.
class WaitQueue {
 public:
  using Ticket = std::uint64_t;  // whoever came first has the lower one
  static constexpr Timestamp kNever = {std::numeric_limits<std::int64_t>::max()};

  // Where whoever asks for a wait may work: in one project, or in all of them.
  enum class Reach : std::uint8_t { kProject, kEverywhere };

  // What somebody waits for. Never changes.
  struct Wanted {
    std::string project;
    std::string agent;
    Reach reach = Reach::kProject;
    bool registered = false;  // the agent is: the server made its id, which nobody else has
    std::vector<glob::Pattern> patterns;
    domain::Access access;
    std::string reason;
    Timestamp until;  // when it gives up
  };

  // What is in the way of a claim.
  struct Hold {
    std::string reservation_id;
    std::string agent;              // whose it is
    Timestamp expires_at = kNever;  // as far as is known: it may be renewed
    auto operator<=>(const Hold&) const = default;
  };
  struct EarlierWait {
    Ticket ticket;
    std::size_t pattern;  // which of its patterns
    auto operator<=>(const EarlierWait&) const = default;
  };
  struct Blockers {
    std::vector<Hold> holds = {};
    std::vector<EarlierWait> waits = {};
    bool empty() const { return holds.empty() && waits.empty(); }
  };

  explicit WaitQueue(std::size_t waiters_max) : waiters_max_(waiters_max) {}

  // `wake` is called, from any thread and perhaps more often than needed, when RestUntil() has
  // changed: above all when nothing of what was in the way is left, so of many who wait for one
  // path only the next is woken; it must be quick, and must not call the queue. kUnavailable: too
  // many wait already, or Stop() was called.
  Result<Ticket> Join(std::shared_ptr<const Wanted> wanted, std::function<void()> wake)
      IL_EXCLUDES(mutex_);

  // Nothing is heard of the ticket any more; those behind it may be free to go. Idempotent.
  void Leave(Ticket ticket) IL_EXCLUDES(mutex_) { Leave(ticket, {}, {}); }
  // It was granted this at `now`, one hold per pattern (nothing: it gave up). They are in the way
  // in its place, which closes a circle when the agent waits for something else as well.
  void Leave(Ticket ticket, std::span<const Hold> granted, Timestamp now) IL_EXCLUDES(mutex_);

  // The waits in the project that began before `before`, in their order.
  struct Earlier {
    Ticket ticket;
    std::shared_ptr<const Wanted> wanted;
  };
  std::vector<Earlier> Before(std::string_view project, Ticket before) const IL_EXCLUDES(mutex_);

  // To be called before each try, so that nothing that ends meanwhile is missed.
  void BeginTry(Ticket ticket) IL_EXCLUDES(mutex_);

  enum class Next : std::uint8_t {
    kSleep,     // see RestUntil()
    kTryAgain,  // all that was in the way has gone meanwhile
    kGiveUp,    // Deadlock() says why
    kStopped,
  };
  // The try failed, for these reasons, as they were found at `now`.
  Next EndTry(Ticket ticket, Blockers blockers, Timestamp now) IL_EXCLUDES(mutex_);

  // When the last of what is in the way will have run out, if nobody tells before: until then, and
  // until `wake`, a try is in vain. kNever while others wait in front; nothing = try now.
  std::optional<Timestamp> RestUntil(Ticket ticket) const IL_EXCLUDES(mutex_);

  // The agents of a circle of waits, each of which is in the way of the one before it, of which
  // this, the first, is the youngest: it must give up. Empty when it need not. To be asked whenever
  // it is woken.
  //
  // A circle may lead through several projects, where it is known that one agent waits here and
  // holds there. An id that nobody registered may be another agent in each project, and who may
  // work in one project only is not believed to be somebody of another. Nor is it told who is.
  std::vector<std::string> Deadlock(Ticket ticket) const IL_EXCLUDES(mutex_);

  // These reservations no longer hold.
  void Gone(std::span<const std::string> reservation_ids) IL_EXCLUDES(mutex_);

  // These belong to somebody else now: whoever they are in the way of looks again.
  void Moved(std::span<const std::string> reservation_ids) IL_EXCLUDES(mutex_);

  // Something was granted that these did not know to be in their way.
  void LookAgain(std::span<const Ticket> tickets) IL_EXCLUDES(mutex_);
  // Something happened to the agent itself: it looks again, and whoever it is in the way of.
  void LookAgain(std::string_view agent) IL_EXCLUDES(mutex_);
  // Something was granted in the project past those who wait there.
  void LookAgainIn(std::string_view project) IL_EXCLUDES(mutex_);

  bool stopped() const IL_EXCLUDES(mutex_);

  // Wakes everybody; nobody may join any more.
  void Stop() IL_EXCLUDES(mutex_);

  std::size_t size() const IL_EXCLUDES(mutex_);

 private:
  struct Waiter {
    std::shared_ptr<const Wanted> wanted;
    std::function<void()> wake;
    Blockers blockers = {};  // of the last try; both lists are sorted
    bool trying = false;
    bool look_again = false;  // since the last try began
    // During this try:
    std::vector<std::string> gone = {};  // reservations
    // Waits that ended, and what they were granted; nothing when they gave up.
    std::map<Ticket, std::vector<Hold>> left = {};
    std::vector<std::string> deadlock = {};
  };

  // What the agent holds in the project is held by whoever waits for this.
  static bool Holds(const Wanted& wanted, std::string_view agent, std::string_view project);
  // Takes a wait that has ended out of the list, or puts what it was granted in its place.
  static void Replace(Blockers& blockers, Ticket ticket, std::span<const Hold> granted);
  static std::optional<Timestamp> RestUntil(const Waiter& waiter);
  static void LookAgain(Waiter& waiter);
  // Something that was in the way of the waiter may be gone; it is told if that matters.
  void Change(Waiter& waiter, const std::function<void(Blockers&)>& change) IL_REQUIRES(mutex_);
  void CountHolds(const Waiter& waiter, int by) IL_REQUIRES(mutex_);
  void SetBlockers(Waiter& waiter, Blockers blockers) IL_REQUIRES(mutex_);
  struct Way {
    // The waits on a way from one back to itself, or to what its own agent holds; empty when there
    // is none.
    std::vector<Ticket> circle = {};
    // On the way there: waits behind what has run out, if nobody renewed it.
    std::vector<Ticket> outdated = {};
  };
  Way FindCircle(Ticket start, Timestamp now) const IL_REQUIRES(mutex_);
  // Of every circle that this wait closes, the youngest gives up. Who can only be known to be part
  // of one by looking again looks again, and closes it then.
  void BreakCircles(Ticket ticket, Timestamp now) IL_REQUIRES(mutex_);
  // The same of every wait of the agent, which holds something now that others waited behind.
  void BreakCirclesOf(std::string_view agent, Timestamp now) IL_REQUIRES(mutex_);

  const std::size_t waiters_max_;
  mutable Mutex mutex_;
  std::map<Ticket, Waiter> waiters_ IL_GUARDED_BY(mutex_);
  // How many waits stand behind each agent or wait: whoever is in nobody's way closes no circle.
  std::unordered_map<std::string, int> behind_agent_ IL_GUARDED_BY(mutex_);
  std::unordered_map<Ticket, int> behind_wait_ IL_GUARDED_BY(mutex_);
  Ticket next_ IL_GUARDED_BY(mutex_) = 1;
  bool stopped_ IL_GUARDED_BY(mutex_) = false;
};

}  // namespace interlock::service
