#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <iterator>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "base/result.h"
#include "db/database.h"

namespace interlock::sqlite {

// What waits for a storage thread: a bounded first-in first-out queue whose entries can be named
// and withdrawn. The two executors of this folder differ in what they do with a request, not in how
// they get it.
//
// Thread-safe. A request leaves the queue exactly once: taken by an executor, which then owes its
// `done`, or withdrawn by Cancel(), which calls it.
//
// Waking a thread costs about as much as a small read, so few are woken: a request is left to the
// threads that are awake as long as these have little to do, and who fell asleep last is woken
// first, since what it needs is still near its processor. Before it sleeps, and once it was woken,
// a thread lets others run who are ready to: who pushes often has more to push, and what waits
// together is done together. Where no one else is ready this takes no time. Meanwhile one of the
// sleeping threads keeps watch: it looks every millisecond whether something waits, since a thread
// that is awake may be at work on something long.
template <typename Fn>
class RequestQueue {
 public:
  using Ticket = db::Database::Ticket;
  using Done = db::Database::Done;

  struct Request {
    Ticket ticket = 0;
    Fn fn;
    Done done;
  };

  struct Stats {
    std::size_t depth = 0;  // now
    std::size_t depth_max = 0;
    std::uint64_t refused = 0;
    std::uint64_t cancelled = 0;
  };

  struct Options {
    std::string_view name;  // "write": for messages
    std::size_t max = 0;
    Ticket first_ticket = 1;  // tickets rise by 2, so that two queues share the numbers
    int threads = 1;          // how many call Take()
  };

  explicit RequestQueue(const Options& options) : options_(options), next_(options.first_ticket) {
    IL_CHECK(options.max > 0);
    for (int i = 0; i < options.threads; ++i) beds_.push_back(&sleepers_.emplace_back());
    asleep_.reserve(beds_.size());
  }

  // kUnavailable: full, or refusing.
  Result<Ticket> Push(Fn fn, Done done) IL_EXCLUDES(mutex_) {
    IL_TRY(const Queued queued, Enqueue(std::move(fn), std::move(done)));
    // Without the lock, which the woken thread wants first of all.
    if (queued.wake != nullptr) queued.wake->changed.NotifyOne();
    return queued.ticket;
  }

  // True: the request was waiting; its `done` has been called here with kCancelled.
  bool Cancel(Ticket ticket) IL_EXCLUDES(mutex_);

  // Waits for requests and takes up to `max` of them, the oldest first. Empty: closed and drained.
  std::vector<Request> Take(std::size_t max) IL_EXCLUDES(mutex_) {
    for (int i = 0; i < kYields && IsEmpty(); ++i) std::this_thread::yield();
    while (true) {
      {
        MutexLock lock(mutex_);
        if (!waiting_.empty() || closed_) return TakeLocked(max);
        Sleep();
      }
      std::this_thread::yield();  // who woke this thread may have more for it
    }
  }

  // The ticket of the next request: those that wait have lower ones.
  Ticket next_ticket() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return next_;
  }

  // Takes the oldest request if its ticket is below `end`, without waiting.
  std::optional<Request> TakeBefore(Ticket end) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (waiting_.empty() || waiting_.front().ticket >= end) return std::nullopt;
    std::optional<Request> oldest(std::move(waiting_.front()));
    waiting_.pop_front();
    return oldest;
  }

  // The same as Take() without waiting.
  std::vector<Request> TryTake(std::size_t max) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return TakeLocked(max);
  }

  // Refuse(): no new requests. Close(): also lets Take() return empty when all are taken.
  void Refuse() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    refusing_ = true;
  }
  void Close() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    refusing_ = true;
    closed_ = true;
    while (!asleep_.empty()) WakeOne()->changed.NotifyOne();
  }

  Stats stats() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Stats now = stats_;
    now.depth = waiting_.size();
    return now;
  }

 private:
  // Where a thread sleeps. Not on its stack: who wakes it does so without the lock.
  struct Sleeper {
    CondVar changed;
    bool woken = false;
  };

  struct Queued {
    Ticket ticket;
    Sleeper* wake;  // who is to take it; null: somebody is awake who will
  };
  Result<Queued> Enqueue(Fn fn, Done done) IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (refusing_ || waiting_.size() >= options_.max) {
      ++stats_.refused;
      return Error(Errc::kUnavailable, "the " + std::string(options_.name) +
                                           (refusing_ ? " queue is closed: the program is stopping"
                                                      : " queue is full; try again later"));
    }
    const Ticket ticket = next_;
    next_ += 2;
    waiting_.push_back({ticket, std::move(fn), std::move(done)});
    stats_.depth_max = std::max(stats_.depth_max, waiting_.size());
    return Queued{.ticket = ticket, .wake = MustWake() ? WakeOne() : nullptr};
  }

  bool IsEmpty() IL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return waiting_.empty() && !closed_;
  }

  // Threads that do not sleep, or were told to wake.
  int Awake() const IL_REQUIRES(mutex_) {
    return options_.threads - static_cast<int>(asleep_.size());
  }

  bool MustWake() const IL_REQUIRES(mutex_) {
    if (asleep_.empty()) return false;
    const int awake = Awake();
    return awake == 0 || !watched_ ||
           waiting_.size() > kWaitingPerThread * static_cast<std::size_t>(awake);
  }

  // To be notified by the caller. REQUIRES: somebody sleeps.
  Sleeper* WakeOne() IL_REQUIRES(mutex_) {
    Sleeper* const last = asleep_.back();
    asleep_.pop_back();
    last->woken = true;
    return last;
  }

  void Sleep() IL_REQUIRES(mutex_) {
    IL_CHECK(!beds_.empty(), "more threads take than were announced");
    Sleeper* const self = beds_.back();
    beds_.pop_back();
    self->woken = false;
    if (!watched_ && Awake() > 1) {  // somebody besides this thread is at work
      asleep_.insert(asleep_.begin(), self);
      watched_ = true;
      self->changed.WaitFor(mutex_, kWatchInterval);
      watched_ = false;
      if (!self->woken) std::erase(asleep_, self);
    } else {
      asleep_.push_back(self);
      while (!self->woken) self->changed.Wait(mutex_);
    }
    beds_.push_back(self);
  }

  std::vector<Request> TakeLocked(std::size_t max) IL_REQUIRES(mutex_) {
    const auto count = static_cast<std::ptrdiff_t>(std::min(max, waiting_.size()));
    std::vector<Request> taken(std::make_move_iterator(waiting_.begin()),
                               std::make_move_iterator(waiting_.begin() + count));
    waiting_.erase(waiting_.begin(), waiting_.begin() + count);
    // This thread may have been the one that kept watch over what still waits.
    if (!waiting_.empty() && MustWake()) WakeOne()->changed.NotifyOne();
    return taken;
  }

  static constexpr int kYields = 3;  // so often others run first before a thread goes to sleep
  static constexpr std::size_t kWaitingPerThread = 8;
  static constexpr std::chrono::milliseconds kWatchInterval{1};

  const Options options_;
  Mutex mutex_;
  std::deque<Sleeper> sleepers_;                       // one per thread; addresses stay
  std::deque<Request> waiting_ IL_GUARDED_BY(mutex_);  // tickets rise
  Ticket next_ IL_GUARDED_BY(mutex_);
  std::vector<Sleeper*> beds_ IL_GUARDED_BY(mutex_);    // nobody sleeps there
  std::vector<Sleeper*> asleep_ IL_GUARDED_BY(mutex_);  // the last one is woken first
  bool watched_ IL_GUARDED_BY(mutex_) = false;          // one of these keeps watch
  bool refusing_ IL_GUARDED_BY(mutex_) = false;
  bool closed_ IL_GUARDED_BY(mutex_) = false;
  Stats stats_ IL_GUARDED_BY(mutex_);
};

// Tells a request its result. A `done` that throws has lost an answer that nobody can give again:
// that is a bug of its owner, and fails a check.
inline void Tell(const db::Database::Done& done, Result<void> result) {
  try {
    done(std::move(result));
  } catch (const std::exception& thrown) {
    IL_CHECK(false, std::string("a done callback threw: ") + thrown.what());
  } catch (...) {
    IL_CHECK(false, "a done callback threw");
  }
}

// Runs a request's function; what it throws becomes its own failure and nobody else's.
template <typename Fn, typename Argument>
Result<void> RunContained(const Fn& fn, Argument& argument) {
  try {
    return fn(argument);
  } catch (const std::bad_alloc&) {
    return Error(Errc::kOutOfMemory, "out of memory in a storage function");
  } catch (const std::exception& thrown) {
    return Error(Errc::kInternal, std::string("a storage function threw: ") + thrown.what());
  } catch (...) {
    return Error(Errc::kInternal, "a storage function threw");
  }
}

// Short enough to need no memory.
inline Error OutOfMemory() { return Error(Errc::kOutOfMemory, "out of memory"); }

// Takes requests for a storage thread, which must outlive a shortage of memory: nothing was taken
// then, and it is tried again.
template <typename Queue>
auto TakeContained(Queue& queue, std::size_t max) {
  while (true) {
    try {
      return queue.Take(max);
    } catch (const std::bad_alloc&) {
      std::this_thread::yield();
    }
  }
}

// Names the executor whose request this thread is running, so that closing it from one of its own
// callbacks, which would wait for itself, is found out.
class Executing {
 public:
  explicit Executing(const void* executor) : before_(std::exchange(current_, executor)) {}
  ~Executing() { current_ = before_; }
  Executing(const Executing&) = delete;
  Executing& operator=(const Executing&) = delete;

  static bool Here(const void* executor) { return current_ == executor; }

 private:
  static inline thread_local const void* current_ = nullptr;
  const void* before_;
};

// True for failures after which a connection is not trusted: it is closed, and another one opened
// and checked before the next request. Where the disk was full, part of what it believes to have
// written may be missing (gathering_vfs.h).
inline bool SpoilsConnection(Errc code) {
  return code == Errc::kIo || code == Errc::kDiskFull || code == Errc::kCorrupt ||
         code == Errc::kCantOpen || code == Errc::kNotADatabase || code == Errc::kOutcomeUnknown;
}

template <typename Fn>
bool RequestQueue<Fn>::Cancel(Ticket ticket) {
  Request withdrawn;
  {
    MutexLock lock(mutex_);
    const auto found = std::ranges::lower_bound(waiting_, ticket, {}, &Request::ticket);
    if (found == waiting_.end() || found->ticket != ticket) return false;
    withdrawn = std::move(*found);
    waiting_.erase(found);
    ++stats_.cancelled;
  }
  withdrawn.fn = nullptr;  // what it captured dies before its owner hears
  Tell(withdrawn.done, Error(Errc::kCancelled, "cancelled before it began"));
  return true;
}

}  // namespace interlock::sqlite
